"""`search`: the best passages for a query, over everything or as a separate tool for one knowledge base."""

from __future__ import annotations

from assay.agent.tool import Brief, Count, Query, Result, Tool, as_found, built_in
from assay.agent.tool_context import ToolContext
from assay.agent.toolbox.documents import shown
from assay.agent.toolbox.filters import build_filter
from assay.core.types import Hit
from assay.index.filters import EVERYTHING, Filter


@built_in(hides_note=True)
async def search(
    context: ToolContext,
    query: Query,
    k: Count = 8,
    since: Brief = "",
    until: Brief = "",
    type: Brief = "",
    base: Brief = "",
    meta: Brief = "",
    undated: bool = False,
) -> Result:
    """Search all documents by words and by meaning.

    query: a few keywords, in the words the documents would use
    k: how many passages to read
    since: only documents from this day on: 2024, 2024-05-17 or "last 12 months"
    until: only documents up to this day
    type: only documents of this type: pdf, csv, email
    base: only this knowledge base
    meta: only documents with this author, organisation, period, kind or tag: author=Ann Lee
    undated: with since or until, also documents without a date
    """
    return await search_filtered(
        context, query, k, *build_filter(context, since, until, type, base, meta, undated=undated)
    )


async def search_filtered(context: ToolContext, query: str, k: int, where: Filter, undated: int) -> Result:
    hits = await context.retrieve(query, k, where)
    note = describe_hits(hits) or nothing(limited=where != EVERYTHING, undated=undated)
    return Result(as_found(hits), note, undated=undated)


def search_in(name: str, base: str, description: str) -> Tool:
    """A search tool restricted to one knowledge base, with the base's description in its docstring."""

    async def body(
        context: ToolContext,
        query: Query,
        k: Count = 8,
        since: Brief = "",
        until: Brief = "",
        type: Brief = "",
        meta: Brief = "",
        undated: bool = False,
    ) -> Result:
        return await search_filtered(
            context, query, k, *build_filter(context, since, until, type, base, meta, undated=undated)
        )

    lines = search.about.partition("\n\n")[2].splitlines()
    arguments = "\n".join(line for line in lines if not line.startswith("base:"))
    about = f"Search the knowledge base {shown(base)!r} by words and by meaning. {shown(description, 300)}".strip()
    return Tool(name, f"{about}\n\n{arguments}", body)


def describe_hits(hits: list[Hit]) -> str:
    """The number of passages and documents found; empty if there are none."""
    documents = len({hit.passage.doc_id for hit in hits})
    return f"{some(len(hits), 'passage')} of {some(documents, 'document')}, best first" if hits else ""


def some(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def nothing(*, limited: bool = False, undated: int = 0) -> str:
    """Suggestions for when nothing was found."""
    if undated:
        return f"nothing was found; since and until leave out {some(undated, 'undated document')}, so try without them"
    return (
        "nothing was found within these limits; try without them" if limited else "nothing was found; try other words"
    )
