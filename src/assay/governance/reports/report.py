"""The renderer of reports, and the monitored figures with their thresholds. A report is a table, made from a list of fields,
with charts of the same figures. The alert rules for Prometheus and the dashboard for Grafana in `data` have the same limits;
a test compares."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from importlib import resources
from statistics import median
from typing import Generic, TypeVar

T = TypeVar("T")

Cell = str | int | float | None
NOTHING = "Nothing was recorded in this time."


@dataclass(frozen=True, slots=True)
class ReportColumn:
    name: str
    about: str


@dataclass(frozen=True, slots=True)
class Series:
    name: str
    y: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """`threshold` is the value at which an alarm is raised."""

    title: str
    kind: str  # bar, line
    x: tuple[str, ...]
    series: tuple[Series, ...]
    threshold: float | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """An empty report says so in `about`. It is not an error."""

    title: str
    about: str
    columns: tuple[ReportColumn, ...]
    rows: tuple[tuple[Cell, ...], ...]
    charts: tuple[Chart, ...] = ()


@dataclass(frozen=True, slots=True)
class ReportField(Generic[T]):
    """One column: its heading, what it means, and how its cell is computed from the thing that a row is about. Floats are
    rounded to `places`."""

    name: str
    about: str
    value: Callable[[T], Cell]
    places: int | None = None

    def cell(self, subject: T) -> Cell:
        value = self.value(subject)
        return round(value, self.places) if self.places is not None and isinstance(value, float) else value


def render_report(
    title: str, about: str, fields: Sequence[ReportField[T]], subjects: Iterable[T], charts: Sequence[Chart] = ()
) -> Report:
    """One row for each subject, one column for each field."""
    rows = tuple(tuple(field.cell(subject) for field in fields) for subject in subjects)
    columns = tuple(ReportColumn(field.name, field.about) for field in fields)
    return Report(title, about if rows else f"{NOTHING} {about}", columns, rows, tuple(charts) if rows else ())


def draw_chart(
    title: str,
    kind: str,
    x: Iterable[str],
    series: Mapping[str, Iterable[float | None]],
    threshold: float | None = None,
    places: int = 2,
) -> Chart:
    drawn = tuple(Series(name, tuple(rounded(value, places) for value in values)) for name, values in series.items())
    return Chart(title, kind, tuple(x), drawn, threshold)


def to_csv(report: Report) -> str:
    """The table as CSV."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow([column.name for column in report.columns])
    writer.writerows([[escape_formula(cell) for cell in row] for row in report.rows])
    return out.getvalue()


def escape_formula(cell: Cell) -> Cell:
    """The cell with a leading apostrophe if a spreadsheet would run it as a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell


def group_by(things: Iterable[T], key: Callable[[T], str]) -> dict[str, list[T]]:
    groups: dict[str, list[T]] = {}
    for thing in things:
        groups.setdefault(key(thing), []).append(thing)
    return groups


def iso_week(moment: str) -> str:
    year, week, _ = date.fromisoformat(moment[:10]).isocalendar()
    return f"{year}-W{week:02}"


def iso_weeks(moments: Iterable[str]) -> tuple[str, ...]:
    """Every week from the earliest moment to the latest, including weeks in which nothing happened."""
    days = sorted({moment[:10] for moment in moments})
    if not days:
        return ()
    day, last = date.fromisoformat(days[0]), date.fromisoformat(days[-1])
    weeks = dict.fromkeys([iso_week(days[0])])
    while day < last:
        day += timedelta(days=7)
        weeks[iso_week(min(day, last).isoformat())] = None
    return tuple(weeks)


def share(part: float, whole: float) -> float | None:
    """None if the whole is zero: a share of nothing is not the same as a share of 0."""
    return part / whole if whole else None


def rounded(value: float | None, places: int = 2) -> float | None:
    return None if value is None else round(value, places)


def median_or_none(values: Sequence[float]) -> float | None:
    return median(values) if values else None


FAR = 3.5  # an outlier is more robust standard deviations than this from the median
SCALE = 1.4826  # the standard deviation of a normal distribution, divided by its median absolute deviation
ENOUGH = 5  # among fewer values there are no outliers
OUTLIERS = (
    f"What stands out: more than {FAR} robust standard deviations from the median (the median absolute deviation times "
    f"{SCALE}, and at least 1), among at least {ENOUGH}."
)


def find_outliers(values: Sequence[float]) -> tuple[bool, ...]:
    """For each value, whether it is an outlier by the rule that `OUTLIERS` states."""
    if len(values) < ENOUGH:
        return (False,) * len(values)
    centre = median(values)
    spread = max(median(abs(value - centre) for value in values), 1.0) * SCALE
    return tuple(abs(value - centre) > FAR * spread for value in values)


DAYS = 7  # length of the observed period


@dataclass(frozen=True, slots=True)
class Threshold:
    """A figure is bad above `limit` or, with `falls`, below it; `limit` itself is fine."""

    name: str
    about: str
    limit: float
    unit: str = ""  # empty, "s", "%"
    goal: float | None = None
    falls: bool = False  # small values are bad

    def breached(self, value: float | None) -> bool:
        """Whether the value is beyond the limit. No data is not a breach."""
        if value is None:
            return False
        return value < self.limit if self.falls else value > self.limit

    @property
    def words(self) -> str:
        """The limit in words."""
        return f"{'under' if self.falls else 'over'} {format_figure(self.limit, self.unit)}"


def format_figure(value: float | None, unit: str) -> str:
    """A figure with its unit; shares are shown in per cent."""
    if value is None:
        return "–"
    return f"{value * 100:.4g} %" if unit == "%" else f"{value:.4g}{f' {unit}' if unit else ''}"


THRESHOLDS = (
    Threshold("iterations", "rounds of searching per question, on average", 8.0),
    Threshold(
        "cap_hits",
        "share of questions to a model whose search ended because a limit was reached",
        0.10,
        unit="%",
        goal=0.05,
    ),
    Threshold("session_p95", "seconds at work that 95 of 100 questions stay within", 30.0, unit="s", goal=20.0),
    Threshold("tool_errors", "share of tool calls that went wrong", 0.02, unit="%"),
    Threshold("overrides", "share of reviewed answers that were changed or rejected", 0.30, unit="%"),
    Threshold("trace_completeness", "share of delivered runs whose record is complete", 1.0, unit="%", falls=True),
)
BY_NAME: Mapping[str, Threshold] = {each.name: each for each in THRESHOLDS}


def quantile(values: Sequence[float], share: float) -> float | None:
    """The smallest value that at least this share of the values do not exceed; None if there are no values."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[max(0, -(-round(share * 1_000_000) * len(ordered) // 1_000_000) - 1)]


def monitoring_file(name: str) -> str:
    """A file for the monitoring of a server: the alert rules for Prometheus, or the dashboard for Grafana."""
    return (resources.files("assay.governance.reports") / "data" / name).read_text(encoding="utf-8")
