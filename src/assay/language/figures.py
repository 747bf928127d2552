"""Figures as texts write them: values, decimals, and the scale that words or a table's header give them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from assay.language import facts
from assay.language.sentences import Span, split_statements

MOST_PLACES = 20  # where the same words stand
SCALES = {
    **dict.fromkeys(("thousand", "thousands", "tsd", "k"), 3),
    **dict.fromkeys(("lakh", "lakhs"), 5),
    **dict.fromkeys(("million", "millions", "mn", "mln", "mio", "m", "mm"), 6),
    **dict.fromkeys(("crore", "crores"), 7),
    **dict.fromkeys(("billion", "billions", "bn", "mrd", "b"), 9),
    **dict.fromkeys(("trillion", "trillions", "tn"), 12),
}
_long = "|".join(
    sorted((word for word in SCALES if len(word) > 2 or word in {"mn", "bn", "tn"}), key=len, reverse=True)
)
_money = r"(?:US\$|[$€£¥]|\b(?:USD|EUR|GBP|CHF|JPY|CNY|INR|dollars?|euros?)\b)"
_short = r"(?:m|mm|k|b)\b"
FIGURE = re.compile(
    rf"(?P<sign>(?<![\w)\]%.])[-−–]\s?)?(?P<money>{_money}\s?)?(?<![\w.])(?<!\d[,’'])"
    r"(?P<digits>\d{1,3}(?:[,’'\u00a0\u202f]\d{3})+(?:\.\d+)?(?!\d)|\d+(?:[.,]\d+)*|\.\d+)(?P<power>[eE][-+]?\d{1,3}\b)?"
    rf"(?:[\s-]?(?P<scale>{_long})\b|\s?(?P<short>{_short}))?(?P<percent>\s?%)?",
    re.I,
)
STATED = re.compile(  # in the header of a table, or near it
    rf"\bin\s+(?:[A-Za-z$€£¥.]+\s+){{0,3}}?(?P<many>thousands|millions|billions|trillions|crores|lakhs|mio|mrd|tsd)\b"
    rf"|{_money}\s?(?P<unit>{_long}|{_short})(?!\w)|[$€£¥(’'´]\s?(?P<zeros>000)(?:['’]?s)?\b(?![,.]?\d)",
    re.I,
)
SCALE = re.compile(rf"(?<![^\W\d_])(?:(?P<long>{_long})\b|{_money}\s?(?P<short>{_short}))", re.I)
COMMAS = re.compile(r"(?<![\d,])\d+,\d{1,2}(?![\d,])")  # decimal commas
SPACED = re.compile(r"\d{1,3}(?: \d{3})+")
WORDED = {"one": "1", "once": "1", "twice": "2", "double": "2", "doubled": "2", "tripled": "3", "half": "0.5"}
DASHES, QUOTES, MONEY = "-‐‑‒–—−", "'’‘‛´`\"“”„«»", "$€£¥"

Readings = dict[Decimal, frozenset[int]]  # a value that a text has, and the powers of ten that it may be in


@dataclass(frozen=True, slots=True)
class Figure:
    value: Decimal
    decimals: int = 0
    scale: int | None = None  # 6 for "1.2 million"
    percent: bool = False


def figures(text: str, *, commas: bool = False) -> list[Figure]:
    """The figures of a text, in digits or words, dates included. With decimal commas, "1.500" has two readings."""
    if SPACED.fullmatch(text.strip()):
        text = text.replace(" ", "")
    found: list[Figure] = []
    for match in FIGURE.finditer(text):
        word = match["scale"] or (match["short"] if match["money"] else None)
        scale = SCALES[word.lower()] if word else None
        for digits in _plain(match["digits"], commas=commas):
            value = Decimal(f"{'-' if match['sign'] else ''}{digits}{match['power'] or ''}")
            found.append(Figure(value, len(digits.partition(".")[2]), scale, bool(match["percent"])))
    spelled = [each for each in facts.numbers(text) if not any(sign.isdigit() for sign in each.text)]
    found += [Figure(value) for each in spelled for value in each.values]
    return found + [Figure(Decimal(WORDED[word])) for word in re.findall(r"[a-z]+", text.lower()) if word in WORDED]


def _plain(digits: str, *, commas: bool) -> Iterator[str]:
    """The digits with a decimal point and nothing else, in each reading they have."""
    bare = re.sub("[’'\u00a0\u202f]", "", digits)
    if len(bare) > 40:
        return
    if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", bare):
        yield bare.replace(",", "")
    elif bare.count(",") + bare.count(".") <= 1:
        yield bare.replace(",", ".")
    if commas and re.fullmatch(r"\d{1,3}(?:\.\d{3})+(?:,\d+)?", bare):
        yield bare.replace(".", "").replace(",", ".")


def scale_in(text: str) -> int | None:
    """The scale that a text names: 6 for "USD million"."""
    match = SCALE.search(text)
    return SCALES[(match["long"] or match["short"]).lower()] if match else None


def readings(text: str, places: Sequence[Span]) -> Readings:
    """Every value that may be read from the words at these places, without signs: figures, parts of dates and times. The
    scale is that of the words, or the last one stated above them."""
    found: Readings = {}
    commas = COMMAS.search(text) is not None

    def add(value: Decimal, scale: int | None) -> None:
        found[abs(value)] = found.get(abs(value), frozenset()) | ({scale} if scale is not None else frozenset())

    for start, end in places:
        after = re.match(rf"[\s-]?(?:{_long})\b|\s?%", text[end : end + 20], re.I)
        words = text[start:end] + (after[0] if after else "")
        above = _stated(text[: text.find("\n", end) if "\n" in text[end:] else len(text)])
        for each in figures(words, commas=commas):
            add(each.value, None if each.percent else each.scale if each.scale is not None else above)
            if each.scale is not None:
                add(each.value.scaleb(each.scale), 0)
        for part in (part for days in facts.dates(words) for day in days for part in day if part):
            found[Decimal(part)] = frozenset()
    return found


def _stated(text: str) -> int | None:
    last = None
    for match in STATED.finditer(text):
        last = match
    return None if last is None else 3 if last["zeros"] else SCALES[(last["many"] or last["unit"]).lower()]


# --- words in a text ------------------------------------------------------------------------------------------------


def find_words(words: str, text: str) -> list[Span]:
    """Where words stand in a text, whatever its white space, quote marks and dashes. A figure must be whole there."""
    words = " ".join(words.split())
    if not words:
        return []
    body = r"\s+".join("".join(map(_sign, part)) for part in words.split(" "))
    if re.fullmatch(rf"[{DASHES}][{MONEY}]?[\d.,]+", words):  # a negative figure may stand in brackets
        body = rf"{body}|\({''.join(map(_sign, words[1:]))}\)"
    before = r"(?<![\w.])(?<!\d[,’'])" if words[0].isdigit() else r"(?<!\w)" if words[0].isalpha() else ""
    after = r"(?!\d|[.,’']\d|[eE][-+]?\d)" if words[-1].isdigit() else r"(?!\w)" if words[-1].isalpha() else ""
    found: list[Span] = []
    for match in re.finditer(f"{before}(?:{body}){after}", text, re.I):
        found.append(match.span())
        if len(found) == MOST_PLACES:
            break
    return found


def _sign(sign: str) -> str:
    """A pattern for one sign."""
    if sign in DASHES:
        return f"[{DASHES}]"
    if sign in QUOTES:
        return f"[{QUOTES}]"
    return rf"{re.escape(sign)}\s*" if sign in MONEY else r"\s*%" if sign == "%" else re.escape(sign)


def lines(text: str) -> list[Span]:
    """Sentences and rows of tables. A line that ends with a figure is a row."""
    return [
        (start + row.start(), start + row.end())
        for start, end in split_statements(text)
        for row in re.finditer(r"\S(?:.|\n)*?(?:[\d)%—–](?=[ \t]*\n)|\Z)", text[start:end])
    ]


def line_at(text: str, place: Span) -> str:
    """The sentence or row in which words stand."""
    around = [text[start:end] for start, end in lines(text) if start < place[1] and place[0] < end]
    return " ".join(" ".join(around).split())
