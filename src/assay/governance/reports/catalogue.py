"""Reports by name, made from the records and from what was spent, and from nothing else."""

from __future__ import annotations

from datetime import date, timedelta
from enum import StrEnum

from assay.core.run import Run
from assay.governance.reports.figures import RunFigures, figures
from assay.governance.reports.forecasts import forecasts
from assay.governance.reports.health import health
from assay.governance.reports.iterations import iterations
from assay.governance.reports.overrides import overrides
from assay.governance.reports.report import Report
from assay.governance.reports.runs import by_week, of_one
from assay.governance.reports.thresholds import DAYS
from assay.governance.reports.tools import tools
from assay.store.database import Store
from assay.store.runs import figures as told
from assay.store.runs import records


class Kind(StrEnum):
    runs = "runs"
    tools = "tools"
    overrides = "overrides"
    iterations = "iterations"
    forecasts = "forecasts"
    health = "health"


NEEDS = {Kind.tools: ("Asked", "Decided", "ToolRan"), Kind.overrides: ("Reviewed",)}  # the others need every record


def made(store: Store, kind: Kind, since: str = "", until: str = "", who: str | None = None) -> Report:
    """A report on the runs that were begun in a time, both days included: everybody's, or one person's. The one on health
    looks at the last days whatever is asked for, as the alert rules do."""
    if kind is Kind.forecasts:
        return forecasts(told.foreseen(store, since, until, who))
    if kind is Kind.health:
        since, until = (date.fromisoformat(store.now()[:10]) - timedelta(days=DAYS - 1)).isoformat(), ""
    runs = list(figures(told.facts(store, since, until, who, NEEDS.get(kind, ()))))
    match kind:
        case Kind.runs:
            return by_week(runs, told.spent(store, since, until, who))
        case Kind.tools:
            return tools(runs)
        case Kind.overrides:
            return overrides(runs)
        case Kind.iterations:
            return iterations(runs, told.spent(store, since, until, who))
        case _:
            return health(runs)


def account(store: Store, run: Run) -> Report:
    """The account of one run, which the caller may see."""
    own = next(iter(figures(told.of_run(store, run.id))), RunFigures(run.id))
    return of_one(run, own, told.spent_by(store, run.id), list(records.faults(store, run.id)))
