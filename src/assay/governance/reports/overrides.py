"""The report on overrides: how often reviewers did not let an answer through as it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from assay.governance.reports.figures import RunFigures
from assay.governance.reports.report import Chart, Report, Series, by, month_of, report, rounded, share
from assay.governance.reports.thresholds import BY_NAME

COLUMNS = (
    ("month", "the month of the decision"),
    ("decided", "decisions of reviewers"),
    ("approved", "let through as it was"),
    ("edited", "changed, and checked again"),
    ("rejected", "not delivered"),
    ("override rate", "edited and rejected, of those decided"),
)


def overrides(runs: Sequence[RunFigures]) -> Report:
    """The share of reviewers' decisions that changed or rejected an answer, by month."""
    months = by((each for run in runs for each in run.decisions), lambda each: month_of(each[0]))
    counts = {month: Counter(decision for _, decision in months[month]) for month in sorted(months)}
    rates = {month: overridden(list(count.elements())) for month, count in counts.items()}
    rows = [
        (month, count.total(), count["approve"], count["edit"], count["reject"], rounded(rates[month], 4))
        for month, count in counts.items()
    ]
    rate = Series("override rate", tuple(rounded(each, 4) for each in rates.values()))
    charts = [Chart("Override rate by month", "line", tuple(counts), (rate,), BY_NAME["overrides"].limit)]
    return report("Reviewers' decisions by month", "An edit counts each time that one is made.", COLUMNS, rows, charts)


def overridden(decisions: Sequence[str]) -> float | None:
    """Edits and rejections, of all decisions; none where nothing was decided."""
    return share(sum(each != "approve" for each in decisions), len(decisions))
