"""The loop: look at the events so far → name the next step (pure) → do it, writing each event down before anyone sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator

from assay.agent.limits import Limits
from assay.agent.steps import STEPS, Kit, Step
from assay.events import Event, Route
from assay.run import Run


async def carry_on(run: Run, kit: Kit) -> AsyncIterator[Event]:
    """Carry a run forward until it is delivered."""
    while (step := next_step(run, kit.limits)) is not None:
        async for event in STEPS[step](run, kit):
            run = kit.record(run, event)  # on disk before anyone sees it
            yield event


async def play(run: Run, kit: Kit) -> Run:
    """A run carried as far as it goes."""
    async for event in carry_on(run, kit):
        run = run.then(event)
    return run


def next_step(run: Run, limits: Limits) -> Step | None:
    if run.delivered or run.failed:
        return None
    if run.route is None:
        return Step.ROUTE
    if run.route is not Route.direct and run.stopped is None:
        return next_search_step(run, limits)
    if run.draft is None:
        return Step.DRAFT
    return Step.CHECK if run.unchecked else Step.DELIVER


def next_search_step(run: Run, limits: Limits) -> Step:
    if run.plan is None:
        return Step.PLAN
    if run.calls_waiting:
        return Step.CALL
    if run.unweighed:
        return Step.GATHER
    if run.round_unjudged:
        return Step.JUDGE
    if run.nothing_left or run.satisfied or limits.reached(run):
        return Step.STOP
    return Step.DECIDE
