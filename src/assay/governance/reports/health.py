"""The report on health: each figure that is watched, over the last days, and whether it passes its threshold."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

from assay.governance.reports.figures import RunFigures
from assay.governance.reports.iterations import at_cap
from assay.governance.reports.overrides import overridden
from assay.governance.reports.report import Report, report, rounded, share
from assay.governance.reports.thresholds import DAYS, THRESHOLDS, quantile, shown

COLUMNS = (
    ("figure", "what is watched"),
    ("value", "over these days; empty where nothing happened"),
    ("alarm", "where an alarm is raised"),
    ("goal", "what to aim for"),
    ("state", "ok, alarm, or – where there is nothing to judge"),
    ("about", "in words"),
)


def health(runs: Sequence[RunFigures]) -> Report:
    """The same figures, and the same thresholds, as the alert rules have."""
    values = measured(runs)
    rows = [
        (
            each.name,
            rounded(value, 4),
            each.said,
            shown(each.goal, each.unit),
            "–" if value is None else "alarm" if each.breached(value) else "ok",
            each.about,
        )
        for each in THRESHOLDS
        for value in [values[each.name]]
    ]
    return report(f"The last {DAYS} days", "Figures of what was delivered, from the records.", COLUMNS, rows)


def measured(runs: Sequence[RunFigures]) -> dict[str, float | None]:
    """Every watched figure by its name; none where nothing happened that it could be taken of."""
    delivered = [run for run in runs if run.delivered]
    asked = [run for run in delivered if run.by != "synthesis"]
    told = [run for run in asked if not run.erased]  # of what was erased nobody can count the rounds
    return {
        "iterations": mean(run.rounds for run in told) if told else None,
        "cap_hits": at_cap(told),
        "session_p95": quantile([run.seconds for run in asked], 0.95),
        "tool_errors": share(sum(run.failed_calls for run in runs), sum(run.calls for run in runs)),
        "overrides": overridden([decision for run in runs for _, decision in run.decisions]),
        "trace_completeness": share(sum(run.complete for run in delivered), len(delivered)),
    }
