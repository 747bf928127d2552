"""Reopens the search for what the judge of the draft found missing, once. A look-up then becomes research."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

from assay.agent.context import RunContext
from assay.agent.limits import Limits
from assay.core.events import RULES, Critiqued, Event, Mode, Route
from assay.core.run import Run


def reopen_due(run: Run, limits: Limits) -> bool:
    """Whether something is missing that a search could find: once per run, if the limits allow it, and unless the person
    asked for one search only."""
    judgement = run.judgement
    allowed = run.route is Route.research or (run.route is Route.lookup and run.asked.route is None)
    return (
        judgement is not None
        and bool(judgement.missing)
        and bool(judgement.gap)
        and run.asked.mode is not Mode.quick
        and allowed
        and run.reopened is None
        and limits.reached(run) is None
    )


async def reopen(run: Run, context: RunContext) -> AsyncIterator[Event]:
    judgement = run.judgement
    routed = run.routed
    assert judgement is not None and routed is not None
    if routed.route is not Route.research:
        yield replace(routed, route=Route.research, why="the look-up did not find everything", by=RULES)
    yield Critiqued(False, judgement.gap, by=judgement.by, missing=judgement.missing, beside=judgement.beside)
