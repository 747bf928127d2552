"""`recall`: passages cited in earlier turns of a conversation. Only the rules use it; it is never offered to a model."""

from __future__ import annotations

from dataclasses import replace

from assay.agent.tool import Result, as_found, tool
from assay.agent.tool_context import ToolContext
from assay.index.filters import EVERYTHING, matches
from assay.index.retrieve import fetch, query_vectors

KEPT = 8  # passages returned
NEAR = 0.3  # minimum cosine similarity; below it a passage is off topic


@tool
async def recall(context: ToolContext, query: str, passages: tuple[str, ...]) -> Result:
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
