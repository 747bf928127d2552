"""Reads numbers as texts and tables write them: values, decimals, scale and unit, and how units are declared. Pure. The
one place that knows words for units, scales and currencies. What is found is returned as written, or as a power of
ten."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from itertools import repeat

from assay.language.dates import DATED, dates, days_of
from assay.language.sentences import Span
from assay.language.terms import data_lines

LONGEST_LINE = 300  # characters of a line that may declare units

SCALES = {
    word.replace("_", " "): int(power)
    for power, _, words in map(str.partition, data_lines("scales"), repeat(":"))
    for word in words.split()
}
UNITS = {
    spelling: unit
    for unit, _, others in map(str.partition, data_lines("units"), repeat(":"))
    for spelling in (unit.lower(), *others.split())
}

LONG_SCALE = "|".join(  # words for a scale that need no currency before them
    sorted((each for each in SCALES if len(each) > 2 or each in {"mn", "bn", "tn"}), key=len, reverse=True)
)
STATED_SCALE = LONG_SCALE.replace("hundred|", "")
_SHORT_SCALE = r"(?:m|mm|k|b|bn)"
_CODES = "USD|EUR|GBP|CHF|JPY|CNY|RMB|INR|CAD|AUD|SEK|NOK|DKK|PLN"
_SIGNS = r"US\$|[$€£¥]"
MONEY_WORD = rf"(?:{_SIGNS}|\b(?:{_CODES}|dollars?|euros?|zł)\b)"
_JOINED = rf"(?<!\w)(?P<joined>[kmt])(?:(?:{_CODES})\b|[€£$])"  # kCHF, TEUR, M€
_POWERS = {"k": 3, "t": 3, "m": 6}


STATED = re.compile(  # in the header of a table, or near it
    r"\b(?:in|of|dollars|amounts|en)\s+(?:[A-Za-z$€£¥.]+\s+){0,3}?"
    r"(?P<many>thousands|millions|billions|trillions|crores|lakhs|mio|mrd|tsd|tausend|milliers|millionen|milliarden|millones"
    r"|milliards|milioni|miliardi|migliaia|miljoenen|miljarden|duizenden)\b|\ben\s(?P<spanish>miles)\b"
    rf"|{MONEY_WORD}\s?(?P<unit>(?:{STATED_SCALE}|{_SHORT_SCALE})\b)(?!\w)|\(\s?(?P<bracket>{STATED_SCALE})\b"
    rf"|(?<![\d\s])(?:\s|^)(?P<before>{STATED_SCALE})\.?\s(?:of\s|de\s|d[’'])?{MONEY_WORD}|{_JOINED}"
    r"|[$€£¥(’'´]\s?(?P<zeros>000)(?:['’]?s)?\b(?![,.]?\d)"
    r"|(?:^|[—–|\t:;,(])[ ]?(?P<alone>thousands|millions|billions)[ ]?(?=$|[—–|\t:;,)])",
    re.I | re.M,
)
SCALE = re.compile(
    rf"(?<![^\W\d_])(?:(?P<long>{STATED_SCALE})\b|{MONEY_WORD}\s?(?P<short>{_SHORT_SCALE}\b))|{_JOINED}", re.I
)


def scale_in(text: str) -> int | None:
    """The scale that a text names: 6 for "USD million"."""
    match = SCALE.search(text)
    return _power(match) if match else None


def stated_scales(text: str) -> list[int]:
    """The scales that a text states for its figures, in order: 6 for "($ in millions)"."""
    return [_power(each) for each in STATED.finditer(text)]


def _power(match: re.Match[str]) -> int:
    word = next(filter(None, match.groups())).lower()
    return _POWERS[word] if match["joined"] else 3 if word in {"000", "miles"} else SCALES[word]


_FIGURE = r"\d[\d.,’'\u202f]*+"
BARE_MONEY = re.compile(  # without a scale of its own
    rf"(?:{_SIGNS}|\b(?:{_CODES})\s)\s?\(?{_FIGURE}(?!\)?[\s-]?(?:{LONG_SCALE}|{_SHORT_SCALE})\b)"
    rf"|(?<![\w.,]){_FIGURE}\s?(?:[€£¥]|(?:{_CODES}|euros?|dollars?)\b)",
    re.I,
)


_OF = r"(?:of\s|de\s|d[’']\s?|von\s|di\s)"
_SCALE = rf"(?:(?:{STATED_SCALE})\b\.?|(?<=en\s)miles\b|[’'´]?000s?\b)"
_MONEY_SHORT = rf"{MONEY_WORD}\s?{_SHORT_SCALE}\b"
_PERCENT = r"(?:%|per ?cent(?:ages?)?|prozent|pour ?cent)(?:\s+(?:of|von|de)\b.*)?"
_KILO = _JOINED.replace("?P<joined>", "?:")
_BRACKETS = re.compile(r"[(\[]([^()\[\]]{1,160})[)\]]")
_IN_BRACKETS = re.compile(
    rf"(?<!\w){_SCALE}|{_KILO}|{_MONEY_SHORT}"
    rf"|^(?:(?:in|en)\s+)?(?:{MONEY_WORD}|{_PERCENT})$|^(?:in|en)\s+\S+$",
    re.I,
)
_AMOUNTS = "all|the|tabular|amounts?|figures|values|beträge|angaben|montants|importes|importi"
_ARE = "are|is|expressed|stated|presented|shown"
_LINE = re.compile(  # Amounts in EUR million, except per share
    rf"(?<!\W)\W*+(?:(?:{_AMOUNTS}|u\.?s\.?|numbers|shares|data|{MONEY_WORD})\W++){{0,4}}(?:(?:{_ARE})\s++)*"
    rf"(?:in|en)\s+(?:[\w.$€£¥]+\s+){{0,3}}?(?:{_SCALE}|{_KILO})"
    rf"(?:\s*(?:{_OF}|\b)\w+)?\s*(?:$|[^\w\s]|except\b|unless\b)",
    re.I,
)
_TAIL = re.compile(  # Turnover by region, thousand euros
    rf"(?:[,;:–—|-]\s*|\s(?=(?:in|en)\s))(?P<tail>(?:(?:in|en)\s+)?(?:{MONEY_WORD}\s?)?"
    rf"(?:{_SCALE}(?:\s{_OF}?{MONEY_WORD})?|{_KILO}))\W*$"
    rf"|(?:[,;:–—|-]\s*|\s(?=in\s))(?P<short>(?:in\s+)?{_MONEY_SHORT})\W*$",
    re.I,
)
_ALONE = re.compile(
    rf"\W*(?:(?:in|en)\s+{MONEY_WORD}|{MONEY_WORD}\s?{_SCALE}|{_SCALE}\s{_OF}?{MONEY_WORD}|{_MONEY_SHORT})\W*", re.I
)
_OF_AMOUNTS = re.compile(rf"\W*+(?:(?:{_AMOUNTS}|{_ARE})\W++)*(?:(?:in|en)\s++)?\W*+(?:{_SCALE}|{_KILO})", re.I)
_SENTENCE = re.compile(r"(?:in|en)\s(?:\S+\s+){5,}\S+[.]$", re.I)


def find_units(lines: Iterable[str]) -> str:
    """The units that one of these lines declares, as written: `in millions, except per share`; empty if none does."""
    for line in lines:
        if len(line) > LONGEST_LINE:
            continue
        for match in _BRACKETS.finditer(line):
            inside = " ".join(match[1].split())
            if _IN_BRACKETS.search(inside) and not re.search(r"\d", inside.replace("000", "")):
                return inside
        if len(line) <= 120:
            if (_LINE.match(line) and not _SENTENCE.match(line)) or _ALONE.fullmatch(line):
                return " ".join(line.split()).strip(" ()[]:*")
            if tail := _TAIL.search(line):
                return " ".join((tail["tail"] or tail["short"]).split())
    return ""


def is_unit(words: str) -> bool:
    """Whether words are a unit and nothing else: `mg/L`, `[m³/s]`, `kCHF`."""
    bare = words.strip(" ()[]")
    parts = re.split(r"[/·*\s]+", re.sub(r"(?<=[^\W\d])[\d²³⁻¹^-]+", "", bare.lower()))
    return bool(bare) and (all(part in UNITS for part in parts) or bool(find_units([f"({bare})"])))


def names_unit(name: str) -> bool:
    """Whether the name of a column gives a unit: `Weight (kg)`, `Sales in EUR million`."""
    return bool(find_units([name])) or any(is_unit(match[1]) for match in _BRACKETS.finditer(name))


def only_declares(line: str) -> bool:
    """Whether a line says nothing but units."""
    bare = " ".join(line.split())
    return bool(found := find_units([bare])) and len(bare.replace(found, "").strip(" ()[]:*")) < 4


def declares_amounts(units: str) -> bool:
    """Whether declared units are those of amounts of money: "Dollars in millions" and "in thousands", but not "shares in
    thousands"."""
    return bool(re.search(MONEY_WORD, units, re.I) or _OF_AMOUNTS.match(units))


LONGEST = 40  # digits of a figure


@dataclass(frozen=True, slots=True)
class Number:
    """A number as written. `readings` are what its digits may mean, the usual one first: "1.500" has two."""

    text: str
    readings: tuple[Decimal, ...]
    decimals: int = 0
    scale: int | None = None  # 6 for "1.2 million"
    unit: str = ""
    start: int = 0
    end: int = 0  # behind the unit

    @property
    def value(self) -> Decimal:
        """The usual reading, without the scale."""
        return self.readings[0]

    @property
    def values(self) -> frozenset[Decimal]:
        """Every value it may mean, with the scale."""
        return frozenset(each.scaleb(self.scale or 0).normalize() for each in self.readings)

    @property
    def meanings(self) -> tuple[Number, ...]:
        """The number in each of its readings: 1.500, with three decimals, and 1500."""
        if len(self.readings) == 1:
            return (self,)
        return tuple(replace(self, readings=(each,), decimals=-int(each.as_tuple().exponent)) for each in self.readings)


_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty"
ONES: dict[str, int] = dict(
    zip(f"zero two three four five six seven eight nine {_TEENS}".split(), (0, *range(2, 21)), strict=True)
)
ONES |= dict(zip("thirty forty fifty sixty seventy eighty ninety".split(), range(30, 100, 10), strict=True))
_ORDINALS = "second third fourth fifth sixth seventh eighth ninth tenth"  # "first" is too common to count
ORDINALS: dict[str, int] = dict(zip(_ORDINALS.split(), range(2, 11), strict=True))
WORDED = {"one": "1", "once": "1", "twice": "2", "double": "2", "doubled": "2", "tripled": "3", "half": "0.5"}
_number_words = "|".join(sorted({*ONES, *ORDINALS}, key=len, reverse=True))
_sign = r"(?<![\w.)\]%])[-−–]"


def _pattern(separators: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?P<minus>{_sign}(?=US\$|[$€£¥]))?(?P<money>US\$|[$€£¥])?\s?(?P<sign>{_sign}(?=[\d.])|\bminus\s)?"
        r"(?P<digits>(?<![\w.])\.\d+|(?<!\w)(?<!\w\.)"
        rf"(?:\d{{1,3}}(?:[{separators}]\d{{3}}(?!\d))+|\d+)(?:[.,]\d+)?)(?P<power>[eE][-+]?\d{{1,3}}\b)?"
        rf"(?:(?P<ordinal>st|nd|rd|th)\b|[-\s]?(?P<scale>{LONG_SCALE})\b)?"
        rf"|\b(?P<words>(?:{_number_words})(?:[-\s](?:{_number_words}|{LONG_SCALE}|and))*|(?:an?\s)(?:{LONG_SCALE}))\b",
        re.I,
    )


NUMBER, CELL = _pattern(",.’'\u00a0\u202f "), _pattern(",.’'\u00a0\u202f")  # two cells of a table stand side by side
SPACED = re.compile(
    rf"(?:{MONEY_WORD}\s?)?\d{{1,3}}(?: \d{{3}})+(?:[.,]\d+)?(?:\s?(?:{STATED_SCALE})\b\.?)?(?:\s?(?:{_OF}?{MONEY_WORD}|%))?",
    re.I,
)
SHORT = re.compile(r"\s?(m|mm|k|b)\b", re.I)  # a scale only behind money
MONEY = re.compile(rf"{MONEY_WORD}\s?$", re.I)
UNIT = re.compile(r"(?!s\b)[-\s]?(%|°[CF]|[^\W\d_]+|[$€£])")  # not the 1990s


def numbers(text: str) -> list[Number]:
    """Every number in digits or words, except dates; "one" and "first" count as ordinary words."""
    return list(_numbers(text))


@lru_cache(maxsize=4096)  # the same passages are read for every claim
def _numbers(text: str) -> tuple[Number, ...]:
    masked = DATED.sub(lambda match: " " * len(match[0]) if days_of(match) else match[0], text)
    return tuple(_read(masked, NUMBER))


def figures(text: str) -> list[Number]:
    """As `numbers`, but dates count and cells stand side by side: "435 901" are two, unless that is the whole text."""
    return list(_figures(text))


@lru_cache(maxsize=4096)
def _figures(text: str) -> tuple[Number, ...]:
    pattern = NUMBER if SPACED.fullmatch(text.strip()) else CELL
    found = [
        each for each in _read(text, pattern) if _has_digits(each) and len(each.value.as_tuple().digits) <= LONGEST
    ]
    found += [each for each in numbers(text) if not _has_digits(each)]
    worded = (word for word in re.findall(r"[a-z]+", text.lower()) if word in WORDED)
    return (*found, *(Number(word, (Decimal(WORDED[word]),)) for word in worded))


def _has_digits(number: Number) -> bool:
    return any(map(str.isdigit, number.text))


def _read(text: str, pattern: re.Pattern[str]) -> Iterator[Number]:
    for match in pattern.finditer(text):
        start = match.start() + len(match[0]) - len(match[0].lstrip())
        end, scale = match.end(), SCALES.get((match["scale"] or "").lower())
        if scale is None and match["digits"] and (match["money"] or MONEY.search(text[max(0, start - 8) : start])):
            short = SHORT.match(text, end)
            end, scale = (short.end(), SCALES[short[1].lower()]) if short else (end, None)
        own = text[start:end].strip()
        after = UNIT.match(text, end)
        unit = UNITS.get(after[1].lower(), "") if after else ""
        end = after.end() if after and unit else end
        unit = UNITS.get((match["money"] or "").lower(), "") or unit
        if match["words"]:
            yield Number(own, (_spelled(match["words"]),), unit=unit, start=start, end=end)
            continue
        plain = plain_digits(match["digits"])
        sign = "-" if match["sign"] or match["minus"] else ""
        readings = tuple(Decimal(f"{sign}{digits}{match['power'] or ''}") for digits in plain)
        yield Number(own, readings, len(plain[0].partition(".")[2]), scale, unit, start, end)


def plain_digits(digits: str) -> tuple[str, ...]:
    """The digits with a decimal point and nothing else, in each reading they have: "1,500" is 1500, and also 1.5 where a
    comma is the decimal separator."""
    bare = re.sub("[’'\u00a0\u202f ]", "", digits)
    if re.fullmatch(r"\d{1,3}(?:\.\d{3}){2,}|\d{1,3}(?:\.\d{3})+,\d+", bare):
        return (bare.replace(".", "").replace(",", "."),)
    if re.fullmatch(r"\d+,\d{3}", bare):
        return bare.replace(",", ""), bare.replace(",", ".")
    if re.fullmatch(r"\d{1,3}\.\d{3}", bare):
        return bare, bare.replace(".", "")
    if bare.count(",") == 1 and "." not in bare:
        return (bare.replace(",", "."),)
    if bare.count(".") > 1:  # "5.358.13", as a version has it
        whole, _, decimals = bare.replace(",", "").rpartition(".")
        return (f"{whole.replace('.', '')}.{decimals}",)
    return (bare.replace(",", ""),)


def _spelled(words: str) -> Decimal:
    """The value of a spelled-out number: "twenty-five", "two hundred and six", "a thousand"."""
    total = part = 0
    for word in re.split(r"[-\s]+", words.lower()):
        if word in SCALES:
            part = max(part, 1) * 10 ** SCALES[word]
            if SCALES[word] > 2:
                total, part = total + part, 0
        else:
            part += ONES.get(word, ORDINALS.get(word, 0))
    return Decimal(total + part)


def is_number_missing(number: Number, among: Sequence[Number]) -> bool:
    """Whether no number in `among` has the same value. The same value with a different unit is a different number."""
    same = [each for each in among if each.values & number.values]
    return not any(not number.unit or not each.unit or each.unit == number.unit for each in same)


Readings = dict[Decimal, frozenset[int]]  # a value that a text has, and the powers of ten that it may be in


def readings(text: str, places: Sequence[Span]) -> Readings:
    """Every value that may be read from the words at these places, without signs: figures, parts of dates and times. The
    scale is that of the words, or the last one stated above them."""
    found: Readings = {}

    def add(value: Decimal, scale: int | None) -> None:
        found[abs(value)] = found.get(abs(value), frozenset()) | ({scale} if scale is not None else frozenset())

    for start, end in places:
        after = re.match(rf"[\s-]?(?:{STATED_SCALE})\b|\s?%", text[end : end + 20], re.I)
        words = text[start:end] + (after[0] if after else "")
        above = stated_scales(text[: text.find("\n", end) if "\n" in text[end:] else len(text)])[-1:]
        for each in figures(words):
            own = each.scale if each.scale is not None else above[0] if above else None
            for value in {each.value, max(each.readings, key=abs)}:
                add(value, None if each.unit == "%" else own)
                if each.scale is not None:
                    add(value.scaleb(each.scale), 0)
        for part in (part for days in dates(words) for day in days for part in day if part):
            found[Decimal(part)] = frozenset()
    return found
