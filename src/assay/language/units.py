"""Units, scales and currencies: how texts write them, and how they declare them for the figures around. Pure.

The one place that knows such words. What is found is returned as written, or as a power of ten.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

LONGEST_LINE = 300  # characters of a line that may declare units

SCALES = {
    "hundred": 2,
    **dict.fromkeys(("thousand", "thousands", "tausend", "tsd", "millier", "milliers", "migliaia", "k"), 3),
    **dict.fromkeys(("lakh", "lakhs"), 5),
    **dict.fromkeys(("million", "millions", "millionen", "millones", "milioni", "mn", "mln", "mio", "m", "mm"), 6),
    **dict.fromkeys(("crore", "crores"), 7),
    **dict.fromkeys(("billion", "billions", "milliarden", "milliards", "miliardi", "bn", "mrd", "b"), 9),
    **dict.fromkeys(("trillion", "trillions", "tn"), 12),
}
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

LONG_SCALE = "|".join(  # words for a scale that need no currency before them
    sorted((each for each in SCALES if len(each) > 2 or each in {"mn", "bn", "tn"}), key=len, reverse=True)
)
STATED_SCALE = LONG_SCALE.replace("hundred|", "")
_SHORT_SCALE = r"(?:m|mm|k|b|bn)"
_CODES = "USD|EUR|GBP|CHF|JPY|CNY|RMB|INR|CAD|AUD|SEK|NOK|DKK"
_SIGNS = r"US\$|[$€£¥]"
MONEY_WORD = rf"(?:{_SIGNS}|\b(?:{_CODES}|dollars?|euros?)\b)"
_JOINED = rf"(?<!\w)(?P<joined>[kmt])(?:(?:{_CODES})\b|[€£$])"  # kCHF, TEUR, M€
_POWERS = {"k": 3, "t": 3, "m": 6}


# --- the scale of figures ---------------------------------------------------------------------------------------------

STATED = re.compile(  # in the header of a table, or near it
    r"\b(?:in|of|dollars|amounts|en)\s+(?:[A-Za-z$€£¥.]+\s+){0,3}?"
    r"(?P<many>thousands|millions|billions|trillions|crores|lakhs|mio|mrd|tsd|tausend|milliers|millionen|milliarden|millones"
    r"|milliards|milioni|miliardi|migliaia)\b|\ben\s(?P<spanish>miles)\b"
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


# --- declarations -----------------------------------------------------------------------------------------------------

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
