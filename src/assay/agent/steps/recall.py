"""What earlier turns of a conversation have found is looked at before anything is searched for. It is weighed anew, for the new
question, and read anew, for the person who asks now."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

from assay.agent.context import RunContext
from assay.agent.tool import Result, as_found, tool
from assay.agent.tool_context import ToolContext
from assay.core.events import Call, Decided, Event, Route
from assay.core.run import Run
from assay.index.filters import EVERYTHING, matches
from assay.index.retrieve import fetch, query_vectors

TOOL = "recall"
MOST = 60  # passages of earlier turns that are looked at, the latest first
KEPT = 8  # of them that are brought up
NEAR = 0.3  # of cosine: below, they speak of something else


def recall_due(run: Run) -> bool:
    """Whether there is something to bring up, and nothing was searched for yet."""
    earlier = any(turn.passages for turn in run.asked.history)
    return earlier and not run.calls and run.route not in (None, Route.direct) and not run.every


async def recall(run: Run, context: RunContext) -> AsyncIterator[Event]:
    known = dict.fromkeys(passage for turn in reversed(run.asked.history) for passage in turn.passages)
    call = Call("c1", TOOL, {"query": run.question, "passages": tuple(known)[:MOST]})
    yield Decided((call,), "what earlier turns found comes first", recalls=True)


@tool
async def brought_up(context: ToolContext, query: str, passages: tuple[str, ...]) -> Result:
    """Passages that earlier turns cited and that bear on this question too.

    query: the question
    passages: their ids
    """
    hits = await fetch(context.search_context, list(passages), context.scope())
    (vector,) = await query_vectors(context.search_context, [query])
    near = [
        (float(hit.vector @ vector), hit)
        for hit in hits
        if context.where == EVERYTHING or matches(context.where, hit.fields)
    ]
    best = sorted(near, key=lambda pair: (-pair[0], pair[1].passage.id))[:KEPT]
    found = [replace(hit, scores={**hit.scores, "fused": score}) for score, hit in best if score >= NEAR]
    context.seen.update({hit.passage.id: hit for hit in found})
    return Result(
        as_found(found), f"{len(found)} passages of earlier turns" if found else "nothing earlier bears on it"
    )
