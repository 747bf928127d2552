"""`catalogue`: the documents that a question about the collection is about. Only the rules use it."""

from __future__ import annotations

import asyncio

from assay.agent.tool import Query, Result, as_found, built_in
from assay.agent.tool_context import ToolContext
from assay.agent.toolbox.search import some
from assay.answer.derived import LISTED
from assay.core.types import Hit, file_name
from assay.lookup.catalogue import CatalogueQuestion, Limit, Listed, mentions, parse, select

DEEP = 400  # passages read in search of a mention
LAST = 100  # of them that must have none: else there may be more


@built_in()
async def catalogue(context: ToolContext, question: Query) -> Result:
    """Find the documents that a question about the collection is about.

    question: the question
    """
    asked = parse(question)
    if asked is None:
        return Result((), "it is not about the collection")
    listed = [
        Listed(each.id, file_name(each.uri), each.title, tuple(each.authors), each.date, each.kind)
        for each in sorted(context.traits(), key=lambda each: each.uri)
    ]
    mentioning = await _mentioning(context, asked)
    selected = select(asked, listed, list(mentioning or ()))
    if mentioning is None or not selected:
        return Result((), some(len(selected), "document") if mentioning is not None else "there may be more mentions")
    named = selected[:LISTED]
    hits = await asyncio.gather(*(_opening(context, each.id, mentioning) for each in named))
    found = [hit for hit in hits if hit is not None]
    if len(found) < len(named):
        return Result((), "some of the documents have no text")
    note = f"{asked.wanted} of {some(len(selected), 'document')}"
    return Result(as_found(found), note, tuple(each.id for each in named), left=len(selected) - len(named))


async def _mentioning(context: ToolContext, asked: CatalogueQuestion) -> dict[str, Hit] | None:
    """The first passage of each document that contains the words; None if not all of them may have been found."""
    if asked.limit not in {Limit.mention, Limit.about}:
        return {}
    hits = await context.retrieve(asked.words, DEEP, deep=True)
    having = [(place, hit) for place, hit in enumerate(hits) if mentions(hit.passage.text, asked.words)]
    if having and having[-1][0] >= DEEP - LAST:
        return None
    found: dict[str, Hit] = {}
    for _, hit in having:
        found.setdefault(hit.passage.doc_id, hit)
    return found


async def _opening(context: ToolContext, document: str, mentioning: dict[str, Hit]) -> Hit | None:
    if document in mentioning:
        return mentioning[document]
    passages = await context.passages(document)
    return passages[0] if passages else None
