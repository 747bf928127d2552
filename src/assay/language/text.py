"""What can be read off a text by rule alone: clean characters, sentences, names, abbreviations, content terms.

Everything is pure and works on offsets, so whatever is found here can be quoted. Used from ingestion to the answer.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache

import snowballstemmer

Span = tuple[int, int]


def _words(several: str) -> frozenset[str]:
    return frozenset(several.split())


# Characters nobody sees: zero-width, bidirectional controls, soft hyphen, byte-order mark, variation selectors, language
# tags and the C0/C1 controls. They hide instructions from a reader and split words for a search.
_INVISIBLE = re.compile(
    "[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u0084\u0086-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_LINE_END = re.compile("\r\n?|\u0085|\u2028|\u2029")
_ESCAPE = (
    re.compile(  # what a terminal is told goes as a whole: without its first sign, the rest would be read as words
        "\u001b\\[[0-?]*[ -/]*[@-~]|\u001b\\][^\u0007\u001b\n]{0,500}(?:\u0007|\u001b\\\\)|\u001b[@-Z\\\\^_]"
    )
)


def clean(text: str) -> str:
    """The same text without characters that cannot be seen, and with one kind of line end. Nothing else changes."""
    plain = _ESCAPE.sub("", text) if "\u001b" in text else text
    return _INVISIBLE.sub("", _LINE_END.sub("\n", plain))


# --- sentences ------------------------------------------------------------------------------------------------------

# Never the end of a sentence: a title or a label is always followed by what it belongs to.
_LEADING = _words(
    "mr mrs ms mx dr prof sr sra st ste gen col lt sgt capt cmdr maj adm rev hon gov sen rep pres fr br mt ft messrs "
    "mme mlle e.g i.e cf viz vs v b d r fl fig figs eq eqs no nos nr vol vols pp ch sec sect tab ref refs op art ca c approx"
)
# Sometimes the end: only if what follows opens a sentence the way a function word does.
_TRAILING = _words(
    "etc al inc ltd co corp bros jr esq dept univ est ed eds jan feb mar apr jun jul aug sep sept oct nov dec "
    "mon tue wed thu fri sat sun ave blvd rd u.s u.k u.n e.u d.c a.m p.m a.d b.c ph.d m.d b.a m.a"
)
_OPENERS = _words(
    "the a an this that these those it its he she they we i you his her their our my there here in on at by for from "
    "with as after before during since when while if although though because however but and or so then thus moreover "
    "furthermore also both each some many most all other another what who which where why how no not"
)
_CLOSERS = "\"'”’»)]}"
_END = re.compile(
    r"(?<![.!?…])(?P<mark>[.!?…]++)(?P<close>[\"'”’»)\]}]*)(?P<cite>(?:\s?\[\d+(?:[,–-]\s?\d+)*\])*|\d{1,3}(?:[,–-]\d{1,3})*)(?=\s|$)"
    r"|(?P<wide>[。！？]+[」』”’）]*)"
)
_BULLET = re.compile(r"[ \t]*(?:[-*•‣◦▪·–—][ \t]+|\(?\d{1,3}[.)][ \t]+|\(?[a-z][.)][ \t]+)")
_NEARBY = 80
_SHORT_LINE = 60  # a line this short that stops without a mark is a heading or an item, not a wrapped line


def sentences(text: str) -> list[Span]:
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
    """Stretches that no sentence crosses: paragraphs, list items, headings. A wrapped line does not end one."""
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
    if match["wide"]:
        return True
    # Only what stands nearby is looked at, so that a long text takes no longer per sentence than a short one.
    rest = text[match.end() : min(end, match.end() + _NEARBY)].lstrip()
    if not rest:
        return True
    nearby = text[max(0, match.start() - _NEARBY) : match.start()]
    before = re.split(r"[\s(\[\"'“‘«]", nearby)[-1]
    if match["cite"][:1].isdigit() and not before[-1:].isalpha():
        return False  # "3.14 is": a decimal, not a raised reference number
    opens = rest.lstrip("\"'“‘«([{¿¡")[:1]
    if not opens or opens.islower():
        return False
    if match["mark"] != "." or match["close"]:
        return True
    lowered = before.lower()
    first = re.match(r"\w+", rest.lstrip("\"'“‘«([{"))
    opener = bool(first) and first[0].lower() in _OPENERS
    initial = len(before) == 1 and before.isupper()
    if (lowered in _LEADING and not initial) or (opens.isdigit() and lowered in _TRAILING):
        return False
    if lowered in _TRAILING or initial or re.fullmatch(r"(?:[A-Za-z]\.)+[A-Za-z]", before):
        return opener
    # "1. First item": a number that opens a line numbers it.
    opens_line = nearby.removesuffix(before).rstrip(" \t")[-1:] in ("", "\n")
    return not (opens_line and len(before) < 4 and before.isdigit())


def _trim(text: str, start: int, end: int) -> Span:
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


PAIR = re.compile(r"(?:^|; )([^;:|]{1,40}): ")


def is_row(line: str) -> bool:
    """A row of a table: cells between bars, or columns and values."""
    return line.count(" | ") >= 2 or len(PAIR.findall(line)) >= 3


_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def is_wide(words: str) -> bool:
    """Whether a text says something in a script that puts no space between words, or few: there they cannot be counted."""
    return len(_WIDE.findall(words)) >= 6


# --- names ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Name:
    """A name as it stands in a text: `text == source[start:end]`."""

    text: str
    start: int
    end: int
    quoted: bool = False


_TOKEN = re.compile(r"[^\W_]+(?:[’'.\-–&/][^\W_]+)*")
# What may stand inside a name without a capital: "University of the Arts", "Ludwig van Beethoven", "Romeo & Juliet".
_PARTICLES = _words(
    "of the de da di do du des del della dos das la le les el al bin ibn ben ap van von der den zu zur y e & und et af "
    "av"
)
_JOINERS = _words("and in on to for a with")
_CALENDAR = _words(
    "january february march april may june july august september october november december jan feb mar apr jun jul aug "
    "sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday spring summer autumn fall winter "
    "ad bc bce ce"
)
_QUOTED = re.compile(r"\"([^\"\n]{2,80})\"|“([^”\n]{2,80})”|``\s?([^`'\n]{2,80}?)\s?''|«([^»\n]{2,80})»")


def names(text: str, *, joined: bool = False) -> list[Name]:
    """Names in the order they stand: runs of capitalised words, and quoted titles.

    A word that is only capitalised because it opens a sentence counts when it is no ordinary word of the language;
    A day or a month is no name. `joined` also lets "and", "in" and the like stand inside a name ("Pride and Prejudice"),
    for lookups that can afford a wrong guess.
    """
    found = [
        Name(text[match.start(g) : match.end(g)], match.start(g), match.end(g), quoted=True)
        for match in _QUOTED.finditer(text)
        for g in (match.lastindex or 1,)
    ]
    openings = {start for start, _ in sentences(text)}
    tokens = list(_TOKEN.finditer(text))
    inner = _PARTICLES | _JOINERS if joined else _PARTICLES
    at = 0
    while at < len(tokens):
        if not _capital(tokens[at][0]) or (tokens[at].start() in openings and _ordinary(tokens[at][0])):
            at += 1
            continue
        last = at
        ahead = at + 1
        while ahead < len(tokens) and _adjacent(text, tokens[ahead - 1], tokens[ahead]):
            word = tokens[ahead][0]
            if _capital(word) or (word[0].isdigit() and ahead == last + 1):
                last = ahead
            elif word.lower() not in inner or ahead - last > 2:
                break
            ahead += 1
        first = at
        while first < last and tokens[first][0].lower() in _OPENERS and tokens[first].start() in openings:
            first += 1
        start, end = tokens[first].start(), _without_possessive(text, tokens[last].end())
        words = [token[0].lower() for token in tokens[first : last + 1]]
        dated = all(word in _CALENDAR or word.isdigit() or word in inner for word in words)
        if not dated and not (first == last and _ordinary(tokens[first][0])):
            found.append(Name(text[start:end], start, end))
        at = last + 1
    unique = {(name.start, name.end): name for name in reversed(found)}  # the quoted reading of the same words wins
    return sorted(unique.values(), key=lambda name: (name.start, -name.end))


def _capital(word: str) -> bool:
    return word[0].isupper() or (len(word) > 1 and word[0].islower() and word[1].isupper())


def _ordinary(word: str) -> bool:
    return word.lower() in STOP_WORDS or word.lower() in _OPENERS


def _adjacent(text: str, left: re.Match[str], right: re.Match[str]) -> bool:
    between = text[left.end() : right.start()]
    if between in (" ", " & ", "\u00a0", " - ", "-"):
        return True
    # An initial or a short title keeps its full stop inside the name: "J. R. R. Tolkien", "Dr. Who", "St. Louis".
    return between == ". " and (len(left[0]) == 1 or left[0].lower() in _LEADING)


def _without_possessive(text: str, end: int) -> int:
    return end - 2 if text[max(0, end - 2) : end] in ("'s", "’s") else end


_DEFINED = re.compile(r"\(\s*([A-Z][A-Za-z&.\-]{1,9}s?)\s*[);,]")


def abbreviations(text: str) -> dict[str, str]:
    """Short form → long form, for forms the text itself defines: "World Health Organization (WHO)"."""
    defined: dict[str, str] = {}
    for match in _DEFINED.finditer(text):
        short = match[1].rstrip("s") if match[1][:-1].isupper() else match[1]
        letters = [c.lower() for c in short if c.isalpha()]
        if sum(c.isupper() for c in short) < 2:
            continue
        words = list(re.finditer(r"[^\W_]+", text[max(0, match.start() - 120) : match.start()]))
        long = _long_form(words, letters)
        if long is not None:
            offset = max(0, match.start() - 120)
            defined.setdefault(short, text[offset + long : match.start()].strip())
    return defined


def _long_form(words: list[re.Match[str]], letters: list[str]) -> int | None:
    """Where the long form starts: walking back, each letter opens a word; small words may be skipped."""
    at = len(words) - 1
    start: int | None = None
    for letter in reversed(letters):
        # A small word is passed over, even one with the right letter if the word before has it too: "Office of".
        while (
            at >= 0
            and words[at][0].lower() in STOP_WORDS
            and (not words[at][0].lower().startswith(letter) or (at and words[at - 1][0].lower().startswith(letter)))
        ):
            at -= 1
        if at < 0 or not words[at][0].lower().startswith(letter):
            return None
        start = words[at].start()
        at -= 1
    return start


# --- terms ----------------------------------------------------------------------------------------------------------

STOP_WORDS = _words(
    "a about above across after again against ago all almost along already also although always am among an and another "
    "any anyone anything are around as at away back be became because become been before behind being below between both "
    "but by came can cannot could did do does doing done down during each either else ever every few for from further "
    "had has have having he her here hers herself him himself his how however i if in into is it its itself just last "
    "least less let like made make many may me might more most much must my myself near neither never no nor not now of "
    "off often on once one only onto or other others our ours out over own per perhaps rather same shall she should "
    "since so some someone something still such than that the their theirs them themselves then there these they this "
    "those though through thus to together too toward towards under until up upon us use used very via was we well were "
    "what whatever when where whether which while who whom whose why will with within without would yes yet you your"
)

_STEMMER = snowballstemmer.stemmer("english")


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """The stem of one lower-case word."""
    return _STEMMER.stemWord(word)


def fold(text: str) -> str:
    """Lower case without accents, so that "Tekezé" and "Tekeze" are the same name."""
    if text.isascii():  # nearly everything is, and has no accents to take off
        return text.casefold()
    return "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))


def terms(text: str) -> list[str]:
    """Stems of the words that carry meaning, in order, repeated when repeated."""
    return [stem(word) for word in re.findall(r"[^\W_]+", fold(text)) if word not in STOP_WORDS]


def residual(text: str, covered: Collection[str]) -> str:
    """`text` without the words whose stems are in `covered`: what is still to be found out, in the asker's words."""
    kept: Iterable[str] = (
        word
        for word in re.findall(r"[^\W_]+(?:['’-][^\W_]+)*", text)
        if (own := set(terms(word))) and not own & set(covered)
    )
    return " ".join(kept)
