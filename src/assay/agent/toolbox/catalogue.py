"""`catalogue`: the documents that a question about the collection is about. Only the rules use it."""

from __future__ import annotations

import asyncio

from assay.agent.tool import Query, Result, as_found, built_in
from assay.agent.tool_context import ToolContext
from assay.agent.toolbox.search import some
from assay.core.types import Hit
from assay.lookup.catalogue import CatalogueQuestion, Limit, Listed, mentions, parse, select

DEEP = 400  # passages read in search of a mention
MOST = 200  # documents of an answer


@built_in()
async def catalogue(context: ToolContext, question: Query) -> Result:
    """Find the documents that a question about the collection is about.

    question: the question
    """
    asked = parse(question)
    if asked is None:
        return Result((), "it is not about the collection")
    listed = [
        Listed(entry.id, entry.name, entry.title, entry.authors, entry.date, entry.kind) for entry in context.sources()
    ]
    mentioning = await _mentioning(context, asked)
    selected = select(asked, listed, list(mentioning))
    if not selected or len(selected) > MOST:
        return Result((), f"{some(len(selected), 'document')}")
    hits = await asyncio.gather(*(_opening(context, each.id, mentioning) for each in selected))
    found = [hit for hit in hits if hit is not None]
    if len(found) < len(selected):
        return Result((), "some of the documents have no text")
    return Result(
        as_found(found), f"{asked.wanted} of {some(len(selected), 'document')}", tuple(x.id for x in selected)
    )


async def _mentioning(context: ToolContext, asked: CatalogueQuestion) -> dict[str, Hit]:
    """The first passage of each document that contains the words."""
    if asked.limit not in {Limit.mention, Limit.about}:
        return {}
    hits = await context.retrieve(asked.words, DEEP, deep=True)
    found: dict[str, Hit] = {}
    for hit in hits:
        if mentions(hit.passage.text, asked.words):
            found.setdefault(hit.passage.doc_id, hit)
    return found


async def _opening(context: ToolContext, document: str, mentioning: dict[str, Hit]) -> Hit | None:
    if document in mentioning:
        return mentioning[document]
    passages = await context.passages(document)
    return passages[0] if passages else None
