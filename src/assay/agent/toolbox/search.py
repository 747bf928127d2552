"""`search`: the best passages for a few words."""

from __future__ import annotations

from assay.agent.tool import Desk, Result, as_found, tool


@tool
async def search(desk: Desk, query: str, k: int = 8, name: str = "") -> Result:
    """Search all documents by words and by meaning.

    query: a few keywords, in the words the documents would use
    k: how many passages to read
    name: the name in the question that the search is about, if it is about one
    """
    hits = await desk.retrieve(query, k)
    return Result(as_found(hits), f"{len(hits)} passages" if hits else "nothing was found; try other words")
