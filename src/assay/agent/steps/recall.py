"""What earlier turns of a conversation have found is looked at before anything is searched for. It is weighed anew, for the new
question, and read anew, for the person who asks now."""

from __future__ import annotations

from collections.abc import AsyncIterator

from assay.agent.context import RunContext
from assay.agent.toolbox.recall import recall as recall_tool
from assay.core.events import Call, Decided, Event, Route
from assay.core.run import Run

MOST = 60  # passages of earlier turns that are looked at, the latest first


def recall_due(run: Run) -> bool:
    """Whether there is something to bring up, and nothing was searched for yet."""
    earlier = any(turn.passages for turn in run.asked.history)
    return earlier and not run.calls and run.route not in (None, Route.direct) and not run.every


async def recall(run: Run, context: RunContext) -> AsyncIterator[Event]:
    known = dict.fromkeys(passage for turn in reversed(run.asked.history) for passage in turn.passages)
    call = Call("c1", recall_tool.name, {"query": run.question, "passages": tuple(known)[:MOST]})
    yield Decided((call,), "what earlier turns found comes first", recalls=True)
