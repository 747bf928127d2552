"""What of the documents is near a question: the documents, whether they may answer it at all, and how likely they do."""

from __future__ import annotations

from dataclasses import replace

from assay.agent.context import RunContext
from assay.agent.toolbox.documents import shown
from assay.core.run import Run
from assay.core.types import Hit
from assay.index.retrieve import query_vectors
from assay.index.search_filter import filter_for

FIRST_SEARCH = 50  # passages that the first search of a run asks for
LISTED = 15  # documents that a model is shown, at most
LONGEST = 200  # characters of the identity of one
READ = 8  # passages that the answer model reads
# From these on the documents are near a question: cosine, cosine without a reading, probability of an answer. See decision 26.
SIMILAR, SAME_THING, NEAR = 0.2, 0.4, 0.1


async def look(run: Run, context: RunContext, query: str) -> list[Hit]:
    """The passages nearest to a query that this person may read, within the limits of the search."""
    tools = replace(context.tool_context, where=filter_for(run.where, context.tool_context.traits))
    return await tools.retrieve(query, FIRST_SEARCH)


async def documents_near(run: Run, context: RunContext, most: int = LISTED) -> dict[str, str]:
    """The documents nearest to the question, best first: id → title, organisation, kind, period and date. More would tell
    a model about documents that this run does not need."""
    found = list(dict.fromkeys(hit.passage.doc_id for hit in await look(run, context, run.query)))[:most]
    titles, dates = context.tool_context.titles(found), context.tool_context.dates(found)
    return {each: f"{shown(titles[each], LONGEST)}, {dates.get(each) or 'no date'}" for each in found if each in titles}


async def is_near(run: Run, context: RunContext, question: str) -> bool:
    """Whether the documents may answer a question: a passage is about the same thing, or it is similar and the answer model
    does not rule out that one answers it. Without such a model, similar is enough."""
    hits = await look(run, context, question)
    (vector,) = await query_vectors(context.tool_context.search_context, [question])
    similar = max((float(hit.vector @ vector) for hit in hits), default=-1.0)
    if not SIMILAR <= similar < SAME_THING:
        return similar >= SAME_THING
    probability = await probability_of_answer(run, context, question)
    return probability is None or probability >= NEAR


async def probability_of_answer(run: Run, context: RunContext, question: str) -> float | None:
    """How likely the passage that answers a question best is to answer it, by the answer model; None without one."""
    reader = context.tool_context.search_context.answer_model
    if reader is None:
        return None
    hits = (await look(run, context, question))[:READ]
    readings = await reader.read(question, [f"{hit.title}: {hit.passage.text}" for hit in hits])
    return max((each.answers for each in readings), default=0.0)
