"""What a report is: a table with a line on each column, and charts of the same figures. `reports.py` makes them."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from statistics import median
from typing import TypeVar

T = TypeVar("T")

Cell = str | int | float | None
NOTHING = "Nothing was recorded in this time."


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    about: str


@dataclass(frozen=True, slots=True)
class Series:
    name: str
    y: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """`threshold` is where an alarm would be raised."""

    title: str
    kind: str  # bar, line
    x: tuple[str, ...]
    series: tuple[Series, ...]
    threshold: float | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """An empty one says so in `about`, and is no error."""

    title: str
    about: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    charts: tuple[Chart, ...] = ()


def report(
    title: str,
    about: str,
    columns: Sequence[tuple[str, str]],
    rows: Iterable[Sequence[Cell]],
    charts: Sequence[Chart] = (),
) -> Report:
    lines = tuple(tuple(row) for row in rows)
    told = about if lines else f"{NOTHING} {about}"
    return Report(title, told, tuple(Column(*each) for each in columns), lines, tuple(charts) if lines else ())


def as_csv(made: Report) -> str:
    """The table as other programs read it; a cell that a spreadsheet would take for a formula is kept from being one."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow([column.name for column in made.columns])
    writer.writerows([[_inert(cell) for cell in row] for row in made.rows])
    return out.getvalue()


def _inert(cell: Cell) -> Cell:
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell


def by(things: Iterable[T], key: Callable[[T], str]) -> dict[str, list[T]]:
    """Things apart, by a name that each has."""
    apart: dict[str, list[T]] = {}
    for each in things:
        apart.setdefault(key(each), []).append(each)
    return apart


# --- times and shares -----------------------------------------------------------------------------------------------


def week_of(moment: str) -> str:
    year, week, _ = date.fromisoformat(moment[:10]).isocalendar()
    return f"{year}-W{week:02}"


def weeks_of(moments: Iterable[str]) -> tuple[str, ...]:
    """Every week from the first of these to the last, also those in which nothing happened."""
    days = sorted({moment[:10] for moment in moments})
    if not days:
        return ()
    day, last = date.fromisoformat(days[0]), date.fromisoformat(days[-1])
    found = dict.fromkeys([week_of(days[0])])
    while day < last:
        day += timedelta(days=7)
        found[week_of(min(day, last).isoformat())] = None
    return tuple(found)


def month_of(moment: str) -> str:
    return moment[:7]


def share(part: float, whole: float) -> float | None:
    """None of nothing: no share is not the same as a share of nought."""
    return part / whole if whole else None


def rounded(value: float | None, places: int = 2) -> float | None:
    return None if value is None else round(value, places)


def middle(values: Sequence[float]) -> float | None:
    return median(values) if values else None


# --- what stands out ------------------------------------------------------------------------------------------------

FAR = 3.5  # so many robust standard deviations from the middle stand out
SCALE = 1.4826  # by which the median deviation of a bell curve is smaller than its standard deviation
ENOUGH = 5  # of fewer nothing can be said
OUTLIERS = (
    f"What stands out: more than {FAR} robust standard deviations from the median (the median absolute deviation times "
    f"{SCALE}, and at least 1), among at least {ENOUGH}."
)


def outliers(values: Sequence[float]) -> tuple[bool, ...]:
    """Which of these stand out from the others, by a rule that a few of them cannot bend: `OUTLIERS` says it in words."""
    if len(values) < ENOUGH:
        return (False,) * len(values)
    centre = median(values)
    spread = max(median(abs(value - centre) for value in values), 1.0) * SCALE
    return tuple(abs(value - centre) > FAR * spread for value in values)
