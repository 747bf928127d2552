"""Recalls results of earlier turns of a conversation before searching. They are weighed again for the new question, and
access is checked again for the person who asks now."""

from __future__ import annotations

from collections.abc import AsyncIterator

from assay.agent.context import RunContext
from assay.agent.toolbox.recall import recall as recall_tool
from assay.core.events import Call, Decided, Event, Route
from assay.core.run import Run

MOST = 60  # passages of earlier turns considered, latest first


def recall_due(run: Run) -> bool:
    """Whether earlier turns have results to recall and nothing was searched yet."""
    earlier = any(turn.passages for turn in run.asked.history)
    return earlier and not run.calls and run.route not in (None, Route.direct) and not run.every


async def recall(run: Run, context: RunContext) -> AsyncIterator[Event]:
    known = dict.fromkeys(passage for turn in reversed(run.asked.history) for passage in turn.passages)
    call = Call("c1", recall_tool.name, {"query": run.question, "passages": tuple(known)[:MOST]})
    yield Decided((call,), "what earlier turns found comes first", recalls=True)
