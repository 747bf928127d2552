"""Splits text into sentences by rule, and recognises table rows. Works on offsets, so that results can be quoted. Pure."""

from __future__ import annotations

import re

from assay.language.dates import MONTHS
from assay.language.terms import word_list

Span = tuple[int, int]

_CLOSERS = "\"'”’“»)]}"
_OPENERS = "\"'“‘«„([{¿¡–—- "
_END = re.compile(
    r"(?<![.!?…؟۔])(?P<mark>[.!?…؟۔]++)(?P<close>(?:[\"'”’“»)\]}]|[ \u00a0\u202f]»)*)"
    r"(?P<cite>(?:\s?\[\d+(?:[,–-]\s?\d+)*\])*|\d{1,3}(?:[,–-]\d{1,3})*)(?=\s|$)"
    r"|(?P<wide>[。！？]+(?![》〉])(?P<quoted>[」』”’）]*))"
)
_ELIDED = re.compile(r"['’][stn] (?=[A-Z])")  # "'s Avonds"
_HIRAGANA = re.compile(r"[\u3041-\u309f]")
_INITIALS = re.compile(r"(?:[^\W\d_]\.-?)+[^\W\d_]")
_NUMERAL = re.compile(r"\d[\d.,]*|[IVXLCDM]+")
_COUNTS = re.compile(r"[(\[]?(?:[\d§€$£]|(?!I\b)[IVXLCDM]+\b(?!['’]))")
_YEAR_RUNS_ON = re.compile(r"(?:1[5-9]|20)\d\d\s[^\W\d_A-Z]")
_CUT_SHORT = re.compile(r"(?:.*[-.])?[^\W\d_]{0,5}[^\W\d_aeiouyáéíóúąęà]|[^\W\d_]{2}")
_WITHOUT_VOWEL = re.compile(r"[b-df-hj-np-tv-xzßłńśźżćç]{2,}")
_MARKER = re.compile(r"\s{0,9}(?:\d{1,3}|[^\W\d_])\.")  # "1. First item", "Q. Who"
_BULLET = re.compile(r"[ \t]*(?:[-*•‣◦▪·–—][ \t]+|\(?\d{1,3}[.)][ \t]+|\(?[a-z][.)][ \t]+)")
_NEARBY = 80
_SHORT_LINE = 60  # a line this short that stops without a mark is a heading or an item, not a wrapped line


def split_sentences(text: str) -> list[Span]:
    """Offsets of the sentences, in order, not overlapping, without the white space around them."""
    spans: list[Span] = []
    for start, end in _blocks(text):
        cut = start
        for match in _END.finditer(text, start, end):
            marker = _MARKER.fullmatch(text, cut, match.end())
            if match.start() >= cut and not marker and _ends_sentence(text, match, end):
                spans.append((cut, match.end()))
                cut = match.end()
        spans.append((cut, end))
    return [trimmed for start, end in spans if (trimmed := _trim(text, start, end))[0] < trimmed[1]]


def _blocks(text: str) -> list[Span]:
    """Spans that no sentence crosses: paragraphs, list items, headings. A wrapped line does not end one."""
    blocks: list[Span] = []
    start = 0
    for newline in re.finditer(r"\n", text):
        at = newline.start()
        line = text[text.rfind("\n", 0, at) + 1 : at].strip()
        following = text[at + 1 : text.find("\n", at + 1) if text.find("\n", at + 1) >= 0 else len(text)]
        opens = following.strip()[:1]
        ends_paragraph = (
            not line
            or not opens
            or _BULLET.match(following)
            or (not opens.islower() and (len(line) < _SHORT_LINE or line[-1] in ".!?…:。！？" + _CLOSERS))
        )
        if ends_paragraph:
            blocks.append((start, at))
            start = at + 1
    blocks.append((start, len(text)))
    return blocks


def _ends_sentence(text: str, match: re.Match[str], end: int) -> bool:
    if match["wide"]:  # after a quotation, who said it, or a particle
        asked = match["wide"][0] in "！？"
        return not match["quoted"] or not (asked or _HIRAGANA.match(text, match.end(), end))
    # Only the text nearby is examined, so that the time per sentence does not grow with the text.
    rest = text[match.end() : min(end, match.end() + _NEARBY)].lstrip()
    if not rest:
        return True
    nearby = text[max(0, match.start() - _NEARBY) : match.start()]
    *_, ahead, before = ("", *re.split(r"[\s(\[\"'“‘«„]", nearby))
    if match["cite"][:1].isdigit() and not before[-1:].isalpha():
        return False  # "3.14 is": a decimal, not a raised reference number
    opens = _ELIDED.sub("", rest).lstrip(_OPENERS)[:2]
    opens = opens[:1] if not opens[1:].isupper() else "A"  # a name such as eBay
    if not opens or opens.islower():
        return False
    if match["mark"] in ("...", "…") and opens.isalpha() and not opens.isupper():
        return False  # a script without capitals
    if match["mark"] != "." or match["close"]:
        return True
    if before.isdigit() and len(before) < 4:
        return not _is_ordinal(ahead, rest)
    in_brackets = nearby.removesuffix(before)[-1:] in ("(", "[")
    return not (in_brackets and before.isalpha() and before.islower()) and _ends_after(before, ahead, rest, opens)


def _is_ordinal(ahead: str, rest: str) -> bool:
    """Whether a number with a full stop belongs to what follows: "3. Juli", "7. 3. 2017", "78. Aufl.", "die 2. Auflage"."""
    word = re.match(r"[^\W_]+", rest)
    following = word[0].lower() if word else ""
    if following in MONTHS or (
        rest[len(following) :].startswith(".") and following in word_list("abbreviations_after")
    ):
        return True
    if re.fullmatch(r"\d{1,2}\.", ahead) and rest[0].isdigit():
        return True
    return ahead.lower().rstrip(".") in word_list("ordinal_contexts") and not _opens_sentence(rest)


def _opens_sentence(rest: str) -> bool:
    first = re.match(r"[^\W_]+(?!\.)\b", rest.lstrip(_OPENERS))
    word = first[0].lower() if first else ""
    return word in word_list("sentence_openers") or word in word_list("opening_words")


def _ends_after(before: str, ahead: str, rest: str, opens: str) -> bool:
    """Whether a full stop ends a sentence after this word, or abbreviates it."""
    lowered, opener = before.lower(), _opens_sentence(rest)
    scaled = ahead.lower().rstrip(".") in word_list("scales")
    numbered = scaled or _NUMERAL.fullmatch(ahead) is not None  # "1998 r.", "3 mln zł."
    initial = len(before) == 1 and before.isupper()
    spaced = f"{ahead}{before}" if ahead.endswith(".") else before  # "u. Ä."
    final = not word_list("abbreviations_final").isdisjoint((before, spaced))
    if final and ahead.lower() not in word_list("opening_words"):
        return not opens.isdigit()
    labels = not initial and lowered in word_list("abbreviations_before")
    if len(before) == 1 and before.islower():
        return not opens.isdigit() and rest[0] != "(" and (opener or (numbered and not labels))
    if labels:
        return numbered and opener
    trailing = lowered in word_list("abbreviations_after")
    consonants = _WITHOUT_VOWEL.fullmatch(lowered) is not None and before[1:].islower()
    if _COUNTS.match(rest) and (trailing or _CUT_SHORT.fullmatch(lowered) or lowered.endswith(("str", "nr"))):
        # "Abschn. 4.9", "gem. § 5": most likely an abbreviation, but "hin. 2019 wurde" is none.
        return _YEAR_RUNS_ON.match(rest) is not None and not (trailing or consonants)
    return opener or not (trailing or initial or (consonants and not numbered) or _INITIALS.fullmatch(before))


def _trim(text: str, start: int, end: int) -> Span:
    part = text[start:end].lstrip()
    return end - len(part), end - len(part) + len(part.rstrip())


COLUMN_VALUE = re.compile(r"(?:^|; )([^;:|]{1,40}): ")


def is_table_row(line: str) -> bool:
    """Whether a line is a table row: cells between bars or tabs, or `column: value` pairs."""
    return line.count(" | ") >= 2 or "\t" in line.strip() or len(COLUMN_VALUE.findall(line)) >= 3


WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def is_unspaced_script(words: str) -> bool:
    """Whether a text is in a script with few or no spaces between words, so that words cannot be counted."""
    return len(WIDE.findall(words)) >= 6


def split_statements(body: str) -> list[Span]:
    """Sentences; where several table rows read as one sentence, the single rows."""
    found: list[Span] = []
    for start, end in split_sentences(body):
        lines = [(start + match.start(), start + match.end()) for match in re.finditer(r"\S[^\n]*\S", body[start:end])]
        rows = len(lines) > 1 and all(is_table_row(body[slice(*line)]) for line in lines[-2:])
        found += lines if rows else [(start, end)]
    return found


def is_statement(sentence: str) -> bool:
    """False for a heading, a lone number or a fragment of a table."""
    words = sentence.split()
    return (
        len(words) >= 5
        or (len(words) >= 3 and any(sign.isdigit() for sign in sentence))
        or is_unspaced_script(sentence)
    )
