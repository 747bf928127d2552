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
    by_router = run.route is Route.lookup and run.asked.route is None
    open_ = run.reopened is None and limits.reached(run) is None
    if by_router and _found_nothing(run):
        return open_
    judgement = run.judgement
    return (
        judgement is not None
        and bool(judgement.missing)
        and bool(judgement.gap)
        and run.asked.mode is not Mode.quick
        and (run.route is Route.research or by_router)
        and open_
    )


def _found_nothing(run: Run) -> bool:
    """Whether the writer found no answer in what was looked up."""
    draft = run.draft
    return draft is not None and draft.by != RULES and not draft.blocks


async def reopen(run: Run, context: RunContext) -> AsyncIterator[Event]:
    judgement, routed, draft = run.judgement, run.routed, run.draft
    assert routed is not None and draft is not None
    if routed.route is not Route.research:
        yield replace(routed, route=Route.research, why="the look-up did not find everything", by=RULES)
    if judgement is None:
        missing = draft.missing or (run.question,)
        yield Critiqued(False, missing[0][:300], by=draft.by, missing=missing)
    else:
        yield Critiqued(False, judgement.gap, by=judgement.by, missing=judgement.missing, beside=judgement.beside)
