"""Reopens the search for what the judge of the draft found missing, once."""

from __future__ import annotations

from collections.abc import AsyncIterator

from assay.agent.context import RunContext
from assay.agent.limits import Limits
from assay.core.events import Critiqued, Event, Mode, Route
from assay.core.run import Run


def reopen_due(run: Run, limits: Limits) -> bool:
    """Whether something is missing that a search could find: once per run, if the question was routed to research and
    the limits allow it."""
    judgement = run.judgement
    return (
        judgement is not None
        and bool(judgement.missing)
        and bool(judgement.gap)
        and run.asked.mode is not Mode.quick
        and run.route is Route.research
        and run.reopened is None
        and limits.reached(run) is None
    )


async def reopen(run: Run, context: RunContext) -> AsyncIterator[Event]:
    judgement = run.judgement
    assert judgement is not None
    yield Critiqued(False, judgement.gap, by=judgement.by, missing=judgement.missing, beside=judgement.beside)
