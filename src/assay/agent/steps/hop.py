"""Follows names in the results by rule: searching is cheap and needs no model. See docs/decisions/0008-cost.md."""

from __future__ import annotations

from collections.abc import AsyncIterator

from assay.agent.context import RunContext
from assay.agent.hops import leads
from assay.agent.past_searches import build_calls, past_searches
from assay.core.events import Decided, Event, Gathered
from assay.core.run import Run


def hop_due(run: Run) -> bool:
    """Whether names in the results are still to be followed: once after each decision that found something."""
    if run.every or run.stopped is not None:
        return False
    for event in reversed(run.events):
        if isinstance(event, Decided):
            return bool(event.calls) and event.is_round
        if isinstance(event, Gathered):
            return False
    return False


async def hop(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Searches suggested by names in the best passages. An empty set is recorded as a decision too."""
    following = leads.next_searches(run.question, await past_searches(run, context), context.hops)
    why = "; ".join(lead.reason for lead in following.leads) or following.why
    yield Decided(build_calls(run, following.leads), why, hops=True)
