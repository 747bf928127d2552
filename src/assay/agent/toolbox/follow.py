"""`follow`: the graph hop, from a passage to the documents that its names lead to."""

from __future__ import annotations

from assay.agent.tool import Desk, Result, as_found, tool


@tool
async def follow(desk: Desk, passage: str, name: str, query: str, k: int = 8) -> Result:
    """Go from a passage to what is said elsewhere about a name in it.

    passage: the passage that the name stands in
    name: the person, place, document or thing to follow, as it is written there
    query: the name and what is still open about it
    k: how many passages to read
    """
    hits = await desk.retrieve(query, k)
    return Result(as_found(hits), f"{len(hits)} passages about {name}" if hits else f"nothing more about {name}")
