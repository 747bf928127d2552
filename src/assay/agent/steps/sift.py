"""Ranks new results by rule and passes only the best on to a model: retrieval is cheap, model calls are not. See
docs/decisions/0008-cost.md."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from assay.agent.context import RunContext
from assay.agent.hops import scoring
from assay.agent.past_searches import past_searches
from assay.agent.toolbox import TOOLS
from assay.core.events import Decided, Event, Found, Gathered, Mode, ToolRan
from assay.core.run import Run


@dataclass(frozen=True, slots=True)
class SiftLimits:
    """Most passages weighed per round: the best of the run, and the best of each call that was decided on."""

    of_run: int
    of_call: int
    read: int = 8  # of a call that reads within one document


SIFT_LIMITS = {Mode.quick: SiftLimits(6, 3), Mode.balanced: SiftLimits(12, 4), Mode.thorough: SiftLimits(16, 6)}


def sift_due(run: Run) -> bool:
    """Whether several results are unweighed and were not sifted since they came in."""
    if run.every or len(run.unweighed) < 2:
        return False
    last = next((event for event in reversed(run.events) if isinstance(event, Gathered | ToolRan)), None)
    return isinstance(last, ToolRan)


async def sift(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Skip the unpromising passages; the rest is weighed next."""
    limits = SIFT_LIMITS[run.asked.mode]
    waiting = dict.fromkeys(found.passage.id for found in run.unweighed)
    ranked = scoring.rank_passages(run.question, await past_searches(run, context), context.hops)
    # Ranked over the whole run, so that a later round does not weigh what an earlier one rightly skipped.
    best = [each.hit.passage.id for each in ranked[: limits.of_run] if each.hit.passage.id in waiting]
    for result, called in _of_this_round(run):
        most = limits.read if called in TOOLS and TOOLS[called].reads_one else limits.of_call
        best += [found.passage.id for found in result if found.passage.id in waiting][:most]
    kept = set(best)
    yield Gathered((), skipped=tuple(each for each in waiting if each not in kept))


def _of_this_round(run: Run) -> list[tuple[Sequence[Found], str]]:
    """Results of the last calls decided on, except those that follow names."""
    decided = next(
        (event for event in reversed(run.events) if isinstance(event, Decided) and event.calls and not event.hops), None
    )
    results: dict[str, ToolRan] = run.results
    calls = decided.calls if decided else ()
    return [(results[call.id].found, call.tool) for call in calls if call.id in results]
