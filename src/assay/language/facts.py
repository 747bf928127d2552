"""Extracts facts that do not depend on wording from a sentence: numbers, dates and names. Pure.

A claim must not contain a fact that is missing from its citations; `claim_rules.py` applies that rule.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache

from assay.language.dates import MONTHS
from assay.language.names import find_abbreviations, find_names
from assay.language.sentences import split_sentences
from assay.language.terms import fold_case, stem_word
from assay.language.words import stop_words

# --- numbers --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Number:
    """A number as written: every value it may mean ("1.500" has two), and its unit, if any."""

    text: str
    values: frozenset[Decimal]
    unit: str = ""


ONES: dict[str, int] = dict(
    zip(
        (
            "zero two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
            "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety"
        ).split(),
        (0, *range(2, 21), *range(30, 100, 10)),
        strict=True,
    )
)
ORDINALS: dict[str, int] = dict(
    zip("second third fourth fifth sixth seventh eighth ninth tenth".split(), range(2, 11), strict=True)
)  # "first" is too common to count
SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "bn": 10**9, "trillion": 10**12}
UNITS = {
    **dict.fromkeys(("%", "percent", "percentage", "pct"), "%"),
    **dict.fromkeys(("$", "usd", "dollar", "dollars", "us$"), "$"),
    **dict.fromkeys(("€", "eur", "euro", "euros"), "€"),
    **dict.fromkeys(("£", "gbp", "pound", "pounds"), "£"),
    **dict.fromkeys(("second", "seconds", "sec", "secs", "s"), "s"),
    **dict.fromkeys(("minute", "minutes", "min", "mins"), "min"),
    **dict.fromkeys(("hour", "hours", "hr", "hrs", "h"), "h"),
    **dict.fromkeys(("day", "days"), "day"),
    **dict.fromkeys(("week", "weeks"), "week"),
    **dict.fromkeys(("month", "months"), "month"),
    **dict.fromkeys(("year", "years", "yr", "yrs"), "year"),
    **dict.fromkeys(("gram", "grams", "g"), "g"),
    **dict.fromkeys(("kilogram", "kilograms", "kg"), "kg"),
    **dict.fromkeys(("milligram", "milligrams", "mg"), "mg"),
    **dict.fromkeys(("microgram", "micrograms", "µg", "μg", "mcg"), "µg"),
    **dict.fromkeys(("tonne", "tonnes", "ton", "tons", "t"), "t"),
    **dict.fromkeys(("metre", "metres", "meter", "meters", "m"), "m"),
    **dict.fromkeys(("kilometre", "kilometres", "kilometer", "kilometers", "km"), "km"),
    **dict.fromkeys(("centimetre", "centimetres", "centimeter", "centimeters", "cm"), "cm"),
    **dict.fromkeys(("millimetre", "millimetres", "millimeter", "millimeters", "mm"), "mm"),
    **dict.fromkeys(("mile", "miles"), "mile"),
    **dict.fromkeys(("foot", "feet", "ft"), "ft"),
    **dict.fromkeys(("litre", "litres", "liter", "liters", "l"), "l"),
    **dict.fromkeys(("millilitre", "millilitres", "milliliter", "milliliters", "ml"), "ml"),
    **dict.fromkeys(("watt", "watts", "w"), "W"),
    **dict.fromkeys(("kilowatt", "kilowatts", "kw"), "kW"),
    **dict.fromkeys(("megawatt", "megawatts", "mw"), "MW"),
    **dict.fromkeys(("kwh",), "kWh"),
    **dict.fromkeys(("volt", "volts", "v"), "V"),
    **dict.fromkeys(("°c", "celsius"), "°C"),
    **dict.fromkeys(("°f", "fahrenheit"), "°F"),
    **dict.fromkeys(("bar", "bars"), "bar"),
    **dict.fromkeys(("ppm",), "ppm"),
}
_number_words = "|".join(sorted({*ONES, *ORDINALS}, key=len, reverse=True))
_scale = "|".join(SCALES)
NUMBER = re.compile(
    r"(?P<money>US\$|[$€£])?\s?"
    r"(?P<sign>(?<![\w.)\]%])[-−–](?=[\d.])|\bminus\s)?"
    r"(?P<digits>(?<![\w.])\.\d+|(?<![A-Za-z_\d])(?<![A-Za-z_\d]\.)"
    r"(?:\d{1,3}(?:[,.’'\u00a0\u202f ]\d{3}(?!\d))+|\d+)(?:[.,]\d+)?)"
    rf"(?:(?P<ordinal>st|nd|rd|th)\b|[-\s]?(?P<scale>{_scale})\b)?"
    rf"|\b(?P<words>(?:{_number_words})(?:[-\s](?:{_number_words}|{_scale}|and))*|(?:an?\s)(?:{_scale}))\b",
    re.I,
)
UNIT = re.compile(r"(?!s\b)[-\s]?(%|°[CF]|[^\W\d_]+|[$€£])")  # not the 1990s
CODE = re.compile(r"[^\W_]+(?:[-./_][^\W_]+)*")


def numbers(words: str) -> list[Number]:
    """Every number in digits or words, except dates; "one" and "first" count as ordinary words."""
    rest = DATED.sub(lambda match: " " * len(match[0]) if _days(match) else match[0], words)
    found: list[Number] = []
    for match in NUMBER.finditer(rest):
        values = _spelled(match["words"]) if match["words"] else _figures(match)
        if not values:
            continue
        after = UNIT.match(rest, match.end())
        unit = UNITS.get(after[1].lower(), "") if after else ""
        found.append(Number(match[0].strip(), values, UNITS.get((match["money"] or "").lower(), "") or unit))
    return found


def _figures(match: re.Match[str]) -> frozenset[Decimal]:
    """The possible values: "1,500" is 1500, and also 1.5 where a comma is the decimal separator."""
    digits = re.sub(r"[’'\u00a0\u202f ]", "", match["digits"])
    readings = {digits.replace(",", "")}
    if digits.count(",") == 1 and "." not in digits:
        readings.add(digits.replace(",", "."))
        if re.fullmatch(r"\d+,\d{3}", digits) is None:
            readings.discard(digits.replace(",", ""))
    if digits.count(".") == 1 and re.fullmatch(r"\d{1,3}\.\d{3}", digits):
        readings.add(digits.replace(".", ""))
    if digits.count(".") > 1 or re.fullmatch(r"\d{1,3}(?:\.\d{3})+,\d+", digits):
        readings = {digits.replace(".", "").replace(",", ".")}
    factor = SCALES.get((match["scale"] or "").lower(), 1) * (-1 if match["sign"] else 1)
    values: set[Decimal] = set()
    for reading in readings:
        try:
            values.add((Decimal(reading) * factor).normalize())
        except InvalidOperation:  # more digits than a number can have
            continue
    return frozenset(values)


def _spelled(words: str) -> frozenset[Decimal]:
    """The value of a spelled-out number: "twenty-five", "two hundred and six", "a thousand"."""
    total = part = 0
    for word in re.split(r"[-\s]+", words.lower()):
        if word in SCALES:
            part = max(part, 1) * SCALES[word]
            if SCALES[word] > 100:
                total, part = total + part, 0
        else:
            part += ONES.get(word, ORDINALS.get(word, 0))
    return frozenset({Decimal(total + part).normalize()})


def is_number_missing(number: Number, among: Sequence[Number]) -> bool:
    """Whether no number in `among` has the same value. The same value with a different unit is a different number."""
    same = [each for each in among if each.values & number.values]
    return not any(not number.unit or not each.unit or each.unit == number.unit for each in same)


# --- dates ----------------------------------------------------------------------------------------------------------

Day = tuple[int, int, int]  # year, month, day; 0 where not given

_month = "(?:" + "|".join(sorted(MONTHS, key=len, reverse=True)) + r")\b\.?"
DATED = re.compile(
    r"\b(?P<iso>\d{4}-\d{1,2}(?:-\d{1,2})?)\b(?!-)"
    r"|\b(?P<dots>\d{1,2}[./]\d{1,2}[./]\d{4})\b"
    rf"|\b(?P<d1>\d{{1,2}})(?:st|nd|rd|th)?\s(?:of\s)?(?P<m1>{_month})(?:,?\s(?P<y1>\d{{4}})\b)?"
    rf"|\b(?P<m2>{_month})\s(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?\b(?!\d)(?:,?\s(?P<y2>\d{{4}})\b)?"
    rf"|\b(?P<m3>{_month}),?\s(?P<y3>\d{{4}})\b",
    re.I,
)


def dates(words: str) -> list[frozenset[Day]]:
    """Every date with its possible meanings: 03/04/2024 has two."""
    return [days for match in DATED.finditer(words) if (days := _days(match))]


def _days(match: re.Match[str]) -> frozenset[Day]:
    if match["iso"]:
        year, month, *day = (int(part) for part in match["iso"].split("-"))
        return _valid_days({(year, month, day[0] if day else 0)})
    if match["dots"]:
        one, two, year = (int(part) for part in re.split("[./]", match["dots"]))
        return _valid_days({(year, two, one), (year, one, two)})
    for number in "123":
        if name := match[f"m{number}"]:
            day = int(match[f"d{number}"]) if number != "3" and match[f"d{number}"] else 0
            return _valid_days({(int(match[f"y{number}"] or 0), MONTHS[name.lower().rstrip(".")], day)})
    return frozenset()


def _valid_days(days: set[Day]) -> frozenset[Day]:
    return frozenset(each for each in days if 1 <= each[1] <= 12 and each[2] <= 31)


def is_date_missing(days: frozenset[Day], among: Sequence[frozenset[Day]]) -> bool:
    """Whether no date in `among` is at least as specific: 17 May 2024 covers "May 2024", but not the reverse."""
    return not any(
        all(not part or part == other for part, other in zip(day, other_day, strict=True))
        for day in days
        for each in among
        for other_day in each
    )


def years(words: str) -> frozenset[Decimal]:
    """The years of a text's dates: a claim may give the year alone."""
    return frozenset(Decimal(day[0]) for each in dates(words) for day in each if day[0])


# --- names ----------------------------------------------------------------------------------------------------------

# Words often capitalised only because they start a sentence.
OPENERS = frozenset(
    (
        "active additional adult adults analysis annual answer any approximately article articles author authors "
        "average based big case cases certain change changes children claim claims common companies company compared "
        "complete consumers costs countries country current customers data days demand despite details different "
        "direct document documents doses drugs due early effects elevated employees energy even everybody everyone "
        "evidence excess exercise experts extra far female figure figures finding findings first following food full "
        "general given global government health high higher history households human humans ice income increased "
        "individuals instead key large larger late later levels limited local long low lower main major male measures "
        "members men model models modern money multiple natural nearly new newer none normal notably note numerous "
        "observed office old older only operators option options overall owners paper papers part participants parts "
        "passage passages patients people personnel plants poor power present previous primary prior problems "
        "production products professional profits public quotation quotations rain rates raw readers recent reduced "
        "report reports research researcher researchers residents result results review rising risk rules safe sales "
        "satellite satellites schools science scientific scientists sea second section senior services several severe "
        "short side similar simple single small smaller social some source sources special staff standard state "
        "states strong students studies study supply support survey systems table tables taxes teachers team teams "
        "tests text theory third thousands three today total trade trial trials true two type types typical unlike "
        "users various visitors voters wages warm warmer waste water wild winter women wood work workers world yes "
        "young younger "
    ).split()
)
COMMON = re.compile(r"(?:ly|ing|tions?|ments?|ness|ities|ity|ists|ers)$")
DEMONYM = re.compile(r"(?:ians?|ans?|ns?|ese|ish|s)$")
WORD = re.compile(r"[^\W_]+")


def names(words: str, ordinary: Collection[str] = ()) -> list[str]:
    """Names, and designations such as KX-40. A word capitalised at the start of a sentence is not a name if it is
    listed, looks like a common noun, or its stem is in `ordinary`: words seen elsewhere in lower case."""
    starts = {start for start, _ in split_sentences(words)}
    found: list[str] = []
    for name in find_names(words):
        first = WORD.match(name.text)
        own = name.text
        if first and name.start in starts and first[0][1:].islower() and is_plain(first[0].lower(), ordinary):
            own = own[first.end() :].strip(" -")
        if any(part[0].isupper() or part[0].isdigit() for part in WORD.findall(own)) and own.lower() not in UNITS:
            found.append(own)
    coded = (
        code
        for code in CODE.findall(DATED.sub(" ", words))
        if any(sign.isdigit() for sign in code) and sum(sign.isalpha() for sign in code) and not _is_measure(code)
    )
    return list(dict.fromkeys(name for name in (*found, *coded) if len(name) > 1))


def is_plain(word: str, ordinary: Collection[str] = ()) -> bool:
    """Whether a capital at the start of a sentence says nothing about this word."""
    return word in OPENERS or COMMON.search(word) is not None or stem_word(word) in ordinary


def lowercase_stems(words: str) -> frozenset[str]:
    """The stems of words that a text writes in lower case."""
    return frozenset(stem_word(fold_case(word)) for word in WORD.findall(words) if word.islower())


def _is_measure(code: str) -> bool:
    """Whether a code is a number with a suffix: "90-day", "5kg", "3rd", "1990s"."""
    return re.fullmatch(r"[\d.,]+[-–]?[^\W\d_]*(?:-[^\W\d_]+)*", code) is not None


def is_name_missing(name: str, words: Collection[str], abbreviated: Collection[str] = ()) -> bool:
    """Whether some part of a name is missing. `words` are case-folded. An initial matches a word that starts with it,
    and a lower-case part ("Aire-expressing") is ignored."""
    if fold_case(name) in abbreviated:
        return False
    parts = [fold_case(part) for part in WORD.findall(name) if not part.islower()]
    return any(part not in stop_words() and not _has_name_part(part, words) for part in parts)


def _has_name_part(part: str, words: Collection[str]) -> bool:
    """Also matches demonyms: Canadian for Canada."""
    if part in words or f"{part}s" in words:
        return True
    if len(part) == 1:
        return part.isalpha() and any(word.startswith(part) for word in words)
    if not part.isalpha():
        return False
    root = DEMONYM.sub("", part)
    return len(root) >= 4 and any(
        word.startswith(root) and len(DEMONYM.sub("", word)) - len(root) <= 1 for word in words
    )


def short_forms(words: str) -> frozenset[str]:
    """Abbreviations that the names in a text would have, and those it defines: WHO for World Health Organization."""
    found = {fold_case(short) for short in find_abbreviations(words)}
    for name in find_names(words):
        capitals = [part[0] for part in WORD.findall(name.text) if part[0].isupper()]
        if len(capitals) >= 2:
            found.add(fold_case("".join(capitals)))
    return frozenset(found)


# --- together -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Facts:
    """All facts of a text that a claim about it may contain."""

    numbers: tuple[Number, ...]
    dates: tuple[frozenset[Day], ...]
    years: frozenset[Decimal]
    words: frozenset[str]  # case-folded
    short: frozenset[str]


@lru_cache(maxsize=4096)  # the same passages are read for every claim, and again before delivery
def facts_of(words: str) -> Facts:
    terms = frozenset(WORD.findall(fold_case(words)))
    return Facts(tuple(numbers(words)), tuple(dates(words)), years(words), terms, short_forms(words))


def missing_facts(words: str, known: str, ordinary: Collection[str] = ()) -> list[str]:
    """The numbers, dates and names in `words` that are missing from `known`, as written."""
    there = facts_of(known)
    found = [
        number.text
        for number in numbers(words)
        if is_number_missing(number, there.numbers) and not number.values & there.years
    ]
    for match in DATED.finditer(words):
        if any(is_date_missing(each, there.dates) for each in dates(match[0])):
            found.append(match[0])
    return found + [name for name in names(words, ordinary) if is_name_missing(name, there.words, there.short)]


MEASURED = re.compile(rf"(?<=0 )\W*(?:{'|'.join(sorted(map(re.escape, UNITS), key=len, reverse=True))})\b", re.I)
LEFT = re.compile(r"\b\w+n['’]t\b|(?<= )0(?= )")


def remove_numbers_and_dates(words: str) -> str:
    """The words without numbers, units of measure, dates, and the remainder of "doesn't"."""
    return LEFT.sub(" ", MEASURED.sub(" ", NUMBER.sub(" 0 ", DATED.sub(" ", words))))
