"""Retrieval is cheap and a model's attention is not: names in what was found are followed by rule, and of all that came
back only what these rules think best is shown to a model. See docs/decisions/0008-cost.md."""

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
    """How many passages of a round are weighed, at most: the best of the run, and the best of each call that was decided on."""

    of_run: int
    of_call: int
    read: int = 8  # of a call that reads in one document


SIFT_LIMITS = {Mode.quick: SiftLimits(6, 3), Mode.balanced: SiftLimits(12, 4), Mode.thorough: SiftLimits(16, 6)}


def sift_due(run: Run) -> bool:
    """Whether there is more to weigh than is worth it, and nobody has chosen yet since it came back."""
    if run.every or len(run.unweighed) < 2:
        return False
    last = next((event for event in reversed(run.events) if isinstance(event, Gathered | ToolRan)), None)
    return isinstance(last, ToolRan)


async def sift(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Pass over what is hopeless; what is left is weighed next."""
    limits = SIFT_LIMITS[run.asked.mode]
    waiting = dict.fromkeys(found.passage.id for found in run.unweighed)
    ranked = scoring.rank_passages(run.question, await past_searches(run, context), context.hops)
    # The best of the whole run, so that a later round does not go on to what the first rightly passed over.
    best = [each.hit.passage.id for each in ranked[: limits.of_run] if each.hit.passage.id in waiting]
    for result, called in _of_this_round(run):
        most = limits.read if called in TOOLS and TOOLS[called].reads_one else limits.of_call
        best += [found.passage.id for found in result if found.passage.id in waiting][:most]
    kept = set(best)
    yield Gathered((), skipped=tuple(each for each in waiting if each not in kept))


def _of_this_round(run: Run) -> list[tuple[Sequence[Found], str]]:
    """Results of the calls that were last decided on, other than by following names."""
    decided = next(
        (event for event in reversed(run.events) if isinstance(event, Decided) and event.calls and not event.hops), None
    )
    results: dict[str, ToolRan] = run.results
    calls = decided.calls if decided else ()
    return [(results[call.id].found, call.tool) for call in calls if call.id in results]
