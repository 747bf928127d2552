"""Dates as people write them: days and ranges of days ("the last 12 months", "this week"), and every date of a text.
Pure."""

from __future__ import annotations

import calendar
import re
from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from itertools import repeat

from assay.core.errors import UserError
from assay.language.terms import data_lines

MONTHS = {
    name: int(number)
    for number, _, names in map(str.partition, data_lines("months"), repeat(":"))
    for name in names.split()
}
WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
NUMBERS = {word: number for number, word in enumerate(WORDS, 1)}

_count = r"(?:(\d{1,3}|" + "|".join(NUMBERS) + r")\s+)?"
_name = "|".join(sorted(MONTHS, key=len, reverse=True))
LAST = re.compile(
    rf"(?:(?:in|within|over|during|from) )?(?:the )?(?:last|past|previous) {_count}(day|week|month|quarter|year)(s?)",
    re.I,
)
THIS = re.compile(r"this (week|month|quarter|year)", re.I)


def _last(count: int, unit: str, day: date, *, rolling: bool) -> tuple[str, str]:
    """ "the last 3 months" counts back from today; "last month" is the calendar month before this one."""
    if rolling or unit == "day":
        return _back(day, count, unit).isoformat(), day.isoformat()
    begin = _begin(unit, day)
    return _back(begin, 1, unit).isoformat(), (begin - timedelta(days=1)).isoformat()


def _back(day: date, count: int, unit: str) -> date:
    if unit in {"day", "week"}:
        return day - timedelta(days=count * (7 if unit == "week" else 1))
    months = day.year * 12 + day.month - 1 - count * {"month": 1, "quarter": 3, "year": 12}[unit]
    if months < 12:
        return date.min
    year, month = divmod(months, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def _begin(unit: str, day: date) -> date:
    if unit == "week":
        return day - timedelta(days=day.weekday())
    month = {"month": day.month, "quarter": (day.month - 1) // 3 * 3 + 1, "year": 1}[unit]
    return day.replace(month=month, day=1)


def with_weekday(day: str) -> str:
    """A day as a prompt gives it: "this week" cannot be understood without its weekday."""
    try:
        return f"{date.fromisoformat(day):%A}, {day}"
    except ValueError:
        return day


def first_day(words: str, today: str) -> str:
    """The first day of the range that `words` name: for `--since`."""
    return _parse(words, today)[0]


def last_day(words: str, today: str) -> str:
    """The last day of the range that `words` name: for `--until`."""
    return _parse(words, today)[1]


def _parse(words: str, today: str) -> tuple[str, str]:
    words, day = " ".join(words.split()), date.fromisoformat(today)
    if words.lower() in {"today", "yesterday"}:
        one = (day - timedelta(days=words.lower() == "yesterday")).isoformat()
        return one, one
    if match := LAST.fullmatch(words):
        number = (match[1] or "one").lower()
        return _last(NUMBERS.get(number) or int(number), match[2].lower(), day, rolling=bool(match[1] or match[3]))
    if match := THIS.fullmatch(words):
        return _begin(match[1].lower(), day).isoformat(), today
    if days := parse_written_date(words):
        return days
    raise UserError(f"{words!r} is not a date that Assay knows. Write 2024, 2024-05, 2024-05-17 or 'last 12 months'.")


def parse_written_date(words: str) -> tuple[str, str] | None:
    """First and last day of a written date."""
    if re.fullmatch(r"\d{4}", words):
        return _first_and_last(int(words), 0, 0)
    match = DATED.fullmatch(words)
    days = days_of(match) if match else frozenset[Day]()
    return _first_and_last(*min(days)) if len(days) == 1 else None


PERIOD_ENDED = re.compile(r"(?P<span>year|quarter|period) ended (?P<end>\d{4}-\d\d(?:-\d\d)?)")
MONTHS_OF = {"year": 12, "quarter": 3, "period": 6}
PERIOD = re.compile(r"(?:Q(?P<quarter>[1-4]) )?(?P<fiscal>FY ?)?(?P<year>\d{4})(?:\s*\(.*)?", re.I)


def parse_period(period: str) -> tuple[str, str] | None:
    """First and last day of the period that a document covers, such as `FY2023 (year ended 2023-06-30)`, `Q2 2023` or
    `2021-05`. Unless its end is known, a fiscal year counts as the calendar year of its number, and so do its quarters."""
    if (ended := PERIOD_ENDED.search(period)) and (days := parse_written_date(ended["end"])):
        following = date.fromisoformat(days[1]) + timedelta(days=1)
        return _back(following, MONTHS_OF[ended["span"]], "month").isoformat(), days[1]
    if (match := PERIOD.fullmatch(period)) and match["quarter"] and not match["fiscal"]:
        first = parse_written_date(f"{match['year']}-{3 * int(match['quarter']) - 2:02}")
        last = parse_written_date(f"{match['year']}-{3 * int(match['quarter']):02}")
        return (first[0], last[1]) if first and last else None
    return parse_written_date(match["year"] if match else period)


def _first_and_last(year: int, month: int, day: int) -> tuple[str, str] | None:
    try:
        first = date(year, month or 1, day or 1)
    except ValueError:
        return None
    if day:
        return first.isoformat(), first.isoformat()
    last_month = month or 12
    return first.isoformat(), date(year, last_month, calendar.monthrange(year, last_month)[1]).isoformat()


Day = tuple[int, int, int]  # year, month, day; 0 where not given

_named = rf"(?:{_name})\b\.?"
_counted = r"\b(?=[^\W\d_]{3,12}\.?,?\s(?:del?\s)?\d)"  # a word before a number: only then are the names tried
YEAR = re.compile(r"\b(?:19|20)\d\d\b")
DATED = re.compile(
    r"\b(?P<iso>\d{4}-\d{1,2}(?:-\d{1,2})?)\b(?!-)"
    r"|\b(?P<dots>\d{1,2}(?P<mark>[./-])\s?\d{1,2}(?P=mark)\s?\d{4})\b"
    r"|(?P<cjk>\d{4}\s?[年년]\s?\d{1,2}\s?[月월](?:\s?\d{1,2}\s?[日일])?)"
    rf"|\b(?P<d1>\d{{1,2}})(?:st|nd|rd|th|er|º|\.)?\s(?:of\s|de\s)?(?P<m1>{_named})(?:,?\s(?:del?\s)?(?P<y1>\d{{4}})\b)?"
    rf"|{_counted}(?P<m2>{_named})\s(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?\b(?!\d)(?:,?\s(?P<y2>\d{{4}})\b)?"
    rf"|{_counted}(?P<m3>{_named}),?\s(?:del?\s)?(?P<y3>\d{{4}})\b",
    re.I,
)


def dates(words: str) -> list[frozenset[Day]]:
    """Every date with its possible meanings: 03/04/2024 has two."""
    return [days for match in DATED.finditer(words) if (days := days_of(match))]


def days_of(match: re.Match[str]) -> frozenset[Day]:
    """What a match of `DATED` may mean; empty if it is no date."""
    if whole := match["iso"] or match["cjk"]:
        year, month, *day = map(int, re.findall(r"\d+", whole))
        return _valid_days({(year, month, day[0] if day else 0)})
    if match["dots"]:
        one, two, year = map(int, re.findall(r"\d+", match["dots"]))
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
