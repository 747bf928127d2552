"""The report on tools: how often each was called in each week, how often that went wrong, and what stands out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assay.governance.reports.figures import RunFigures
from assay.governance.reports.report import (
    OUTLIERS,
    Cell,
    Chart,
    Report,
    Series,
    by,
    middle,
    outliers,
    report,
    rounded,
    week_of,
    weeks_of,
)
from assay.governance.reports.report import share as part
from assay.governance.reports.thresholds import BY_NAME

COLUMNS = (
    ("week", "the ISO week in which the runs were begun"),
    ("tool", "the tool"),
    ("calls", "how often it was called"),
    ("errors", "how often that went wrong: it refused, or failed"),
    ("error rate", "errors for each call"),
    ("runs", "runs that called it"),
    ("median in a run", "calls in a run that called it, in the middle"),
    ("most in a run", "calls in the run that called it most"),
    ("stands out", "this week's calls, its error rate, or single runs, by the rule above"),
)
SHOWN = 8  # tools in a chart; the others are in the table


def tools(runs: Sequence[RunFigures]) -> Report:
    """Calls of tools by week, with what stands out."""
    weeks = weeks_of(run.started for run in runs)
    apart = by(runs, lambda run: week_of(run.started))
    totals: dict[str, int] = {}
    for run in runs:
        for tool, count in run.tools.items():
            totals[tool] = totals.get(tool, 0) + count
    names = sorted(totals, key=lambda tool: (-totals[tool], tool))
    calls = {tool: [_count(apart.get(week, []), tool) for week in weeks] for tool in names}
    odd_weeks = {tool: _odd_weeks(calls[tool]) for tool in names}
    odd_runs = _odd_runs(runs, names)
    rows = [
        _row(week, tool, apart.get(week, []), odd=odd_weeks[tool][place], odd_runs=odd_runs[tool])
        for place, week in enumerate(weeks)
        for tool in names
        if calls[tool][place]
    ]
    limit = BY_NAME["tool_errors"]
    rates = [
        part(sum(run.failed_calls for run in apart.get(week, [])), sum(run.calls for run in apart.get(week, [])))
        for week in weeks
    ]
    charts = [
        Chart(
            "Calls of tools by week",
            "bar",
            weeks,
            tuple(Series(tool, tuple(float(each) for each in calls[tool])) for tool in names[:SHOWN]),
        ),
        Chart(
            "Share of calls that went wrong",
            "line",
            weeks,
            (Series("error rate", tuple(rounded(each, 4) for each in rates)),),
            limit.limit,
        ),
    ]
    return report("Calls of tools by week", f"{OUTLIERS} An error rate {limit.said} does too.", COLUMNS, rows, charts)


def _odd_weeks(calls: Sequence[int]) -> tuple[bool, ...]:
    """The first and the last week may be there in part: few calls in them say nothing, many do."""
    odd = outliers(calls)
    centre = middle(calls) or 0
    edges = (0, len(calls) - 1)
    return tuple(out and (place not in edges or calls[place] > centre) for place, out in enumerate(odd))


def _count(runs: Sequence[RunFigures], tool: str) -> int:
    return sum(run.tools.get(tool, 0) for run in runs)


def _odd_runs(runs: Sequence[RunFigures], names: Sequence[str]) -> Mapping[str, frozenset[str]]:
    """Of each tool, the runs that called it far more often, or less, than others did."""
    found: dict[str, frozenset[str]] = {}
    for tool in names:
        called = [run for run in runs if run.tools.get(tool)]
        odd = outliers([run.tools[tool] for run in called])
        found[tool] = frozenset(run.id for run, out in zip(called, odd, strict=True) if out)
    return found


def _row(week: str, tool: str, runs: Sequence[RunFigures], *, odd: bool, odd_runs: frozenset[str]) -> list[Cell]:
    called = [run for run in runs if run.tools.get(tool)]
    counts = [run.tools[tool] for run in called]
    errors = sum(run.errors.get(tool, 0) for run in called)
    rate = part(errors, sum(counts))
    strange = [run.id for run in called if run.id in odd_runs]
    said = [
        *(["calls"] if odd else []),
        *(["error rate"] if BY_NAME["tool_errors"].breached(rate) else []),
        *([f"runs {', '.join(strange[:3])}{' …' if len(strange) > 3 else ''}"] if strange else []),
    ]
    return [
        week,
        tool,
        sum(counts),
        errors,
        rounded(rate, 4),
        len(called),
        middle([float(each) for each in counts]),
        max(counts),
        "; ".join(said),
    ]
