"""`search_by_source`: the best passages of one document."""

from __future__ import annotations

from assay.agent.tool import Count, Query, Result, as_found, built_in
from assay.agent.tool_context import ToolContext
from assay.agent.toolbox.documents import document_named, shown
from assay.agent.toolbox.search import some
from assay.index.filters import Eq


@built_in(hides_note=True, reads_one=True)
async def search_by_source(context: ToolContext, query: Query, source: str, k: Count = 8) -> Result:
    """Look inside one document. Use when you know which document should hold the answer.

    query: a few keywords, in the words the document would use
    source: the document's name, as list_sources gives it
    k: how many passages to read
    """
    entry = document_named(context, source)
    hits = await context.retrieve(query, k, Eq("doc", entry.id), deep=True)
    if not hits:
        return Result((), f"nothing was found in {shown(entry.title)}; try other words or get_document", (entry.id,))
    return Result(as_found(hits), f"{some(len(hits), 'passage')} of {shown(entry.title)}, best first", (entry.id,))
