"""`follow`: a graph hop from a passage to the documents that the names in it lead to."""

from __future__ import annotations

from typing import Annotated

from assay.agent.tool import LONG_QUERY, Count, Result, Within, as_found, built_in
from assay.agent.tool_context import ToolContext
from assay.agent.toolbox.documents import shown
from assay.agent.toolbox.search import describe_hits


@built_in(hides_note=True)
async def follow(
    context: ToolContext, passage: str, name: str, query: Annotated[str, Within(0, LONG_QUERY)] = "", k: Count = 8
) -> Result:
    """Go from a passage to what is said elsewhere about a name in it.

    passage: the key of the passage that the name stands in
    name: the person, place, document or thing to follow, as it is written there
    query: the name and what is still open about it
    k: how many passages to read
    """
    context.passage(passage)  # raises unless this run has found the passage
    hits = await context.retrieve(query.strip() or name, k)
    about = shown(name)
    return Result(as_found(hits), f"{describe_hits(hits)}, about {about}" if hits else f"nothing more about {about}")
