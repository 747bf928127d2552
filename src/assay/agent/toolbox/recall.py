"""`recall`: passages cited in earlier turns of a conversation. Only the rules use it; it is never offered to a model."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from assay.agent.tool import Query, Result, Within, as_found, tool
from assay.agent.tool_context import ToolContext
from assay.index.filters import EVERYTHING, matches
from assay.index.retrieve import fetch, query_vectors

KEPT = 8  # passages returned
MOST = 60  # passages considered
Passages = Annotated[tuple[str, ...], Within(1, MOST)]
NEAR = 0.3  # minimum cosine similarity; below it a passage is off topic


@tool
async def recall(context: ToolContext, query: Query, passages: Passages, every: bool = False) -> Result:
    """Passages that earlier turns cited and that bear on this question too.

    query: the question
    passages: their ids
    every: all that can still be read, whether or not they bear on the question
    """
    hits = await fetch(context.search_context, list(passages), context.scope())
    if every:
        context.seen.update({hit.passage.id: hit for hit in hits})
        return Result(as_found(hits), f"{len(hits)} passages of the last answer")
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
