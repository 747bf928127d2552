"""Splits text into sentences by rule, and recognises table rows. Works on offsets, so that results can be quoted. Pure."""

from __future__ import annotations

import re

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
_COUNTS = re.compile(r"[(\[]?(?:[\d§€$£]|[IVXLCDM]+\b)")
_CUT_SHORT = re.compile(r"(?:.*[-.])?[^\W\d_]{0,5}[^\W\d_aeiouyáéíóúąęà]")
_NUMERAL = re.compile(r"\d[\d.]*|[IVXLCDM]+")
_BULLET = re.compile(r"[ \t]*(?:[-*•‣◦▪·–—][ \t]+|\(?\d{1,3}[.)][ \t]+|\(?[a-z][.)][ \t]+)")
_NEARBY = 80
_SHORT_LINE = 60  # a line this short that stops without a mark is a heading or an item, not a wrapped line


def split_sentences(text: str) -> list[Span]:
    """Offsets of the sentences, in order, not overlapping, without the white space around them."""
    spans: list[Span] = []
    for start, end in _blocks(text):
        cut = start
        for match in _END.finditer(text, start, end):
            if match.start() >= cut and _ends_sentence(text, match, end):
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
    lowered = before.lower()
    if rest[0] in "¿¡":
        return True
    first = re.match(r"[^\W_]+(?!\.)\b", rest.lstrip(_OPENERS))
    word = first[0].lower() if first else ""
    opener = word in word_list("sentence_openers") or word in word_list("opening_words")
    initial = len(before) == 1 and before.isupper()
    trailing = lowered.rpartition("-")[2] in word_list("abbreviations_after")
    if (lowered in word_list("abbreviations_before") and not initial) or (opens.isdigit() and trailing):
        return False
    if _COUNTS.match(rest) and (_CUT_SHORT.fullmatch(lowered) or lowered.endswith("str")):
        return False  # "Abschn. 4.9", "gem. § 5": most likely an abbreviation
    if len(before) == 1 and before.islower():
        return not opens.isdigit() and (opener or _NUMERAL.fullmatch(ahead) is not None)  # "1998 r.", "12 f."
    if before.isdigit() and len(before) < 4 and ahead.lower().rstrip(".") in word_list("ordinal_contexts"):
        return opener
    if trailing or initial or _INITIALS.fullmatch(before):
        return opener
    # "1. First item": a number that opens a line numbers it.
    opens_line = nearby.removesuffix(before).rstrip(" \t")[-1:] in ("", "\n")
    return not (opens_line and len(before) < 4 and before.isdigit())


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
