"""Ends the search and records the reason."""

from __future__ import annotations

from collections.abc import AsyncIterator

from assay.agent.context import RunContext
from assay.core.events import (
    ANSWER_NOW,
    Checkpoint,
    Decided,
    Event,
    Gathered,
    Stopped,
    StopReason,
)
from assay.core.run import Run


async def stop(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """End the search; the reason is an event."""
    judged = run.judged
    if run.chose(Checkpoint.searches, ANSWER_NOW) or run.chose(Checkpoint.nothing, ANSWER_NOW):
        yield Stopped(StopReason.person, "the person asked for an answer now")
    elif cut := _cut_short(run):
        yield cut
    elif run.satisfied and judged is not None:
        exhausted = run.every and not (run.examined and run.examined.partly)
        yield Stopped(StopReason.exhausted if exhausted else StopReason.sufficient, judged.why)
    elif limit := context.limits.reached(run):
        yield limit
    elif context.limits.barren(run) and not run.nothing_left:
        yield Stopped(StopReason.nothing_new, "two rounds brought nothing new")
    else:
        yield Stopped(_reason(run), run.nothing_left)


def _cut_short(run: Run) -> Stopped | None:
    """The limit that kept a model from weighing all results, if any: sufficient evidence from half the results is not
    sufficient."""
    for event in run.current:
        if isinstance(event, Gathered) and event.fallback:
            left = "not everything that was found could be weighed"
            return Stopped(StopReason(event.fallback[0].value), f"{event.why}; {left}" if event.why else left)
    return None


def _reason(run: Run) -> StopReason:
    """Why nothing was left to try, according to the last decision."""
    decided = next(event for event in reversed(run.current) if isinstance(event, Decided) and event.is_round)
    return decided.stop or StopReason.nothing_new
