"""Searches for the questions in the documents that are too long to be read whole: a diverse search, reranked to a few
passages; or, by setting, a short agent run for each question."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from assay.agent import loop
from assay.agent.context import ROUNDS, RunContext, run_in_order
from assay.core.errors import ModelError
from assay.core.events import (
    Eagerness,
    Event,
    Failed,
    Found,
    Mode,
    ModelReplied,
    PassagesChosen,
    Route,
    SearchFilters,
    Stopped,
)
from assay.core.run import Run
from assay.core.synthesis import Approach, Brief, Question
from assay.core.types import Hit
from assay.index.filters import In
from assay.index.fusion import capped
from assay.index.hop_ranking import HOP_SETTINGS
from assay.index.retrieve import retrieve
from assay.models.reranker import Reranker, late_interaction
from assay.synthesis import state

DIVERSITY = 0.3  # penalty for similarity to a better passage when the pool is selected
OF_ONE = 2  # passages per document
READ_MORE = 4  # factor: with the reranker llm, the model that reads chooses among so many more
AT_ONCE = 4  # concurrent searches; each keeps a pool of passages with their vectors in memory


def searched_documents(run: Run) -> tuple[str, ...]:
    """The documents that are searched: those that were read in part. All of them, if rerankers are to be compared or the
    agent is to search."""
    brief, opened = state.brief(run), state.opened(run)
    if brief.compare or brief.approach is Approach.agent:
        return tuple(opened)
    return tuple(doc for doc, event in opened.items() if len(event.found) < event.considered)


def open_questions(run: Run) -> tuple[Question, ...]:
    """The questions to search for. Without a capable model there are none: nobody reads what they find."""
    if not state.is_capable(run) or not searched_documents(run):
        return ()
    known = state.chosen_passages(run)
    return tuple(question for question in state.questions(run) if question.id not in known)


async def search(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Yield what was found for each question that has not been searched for yet."""
    within, questions = searched_documents(run), open_questions(run)
    if state.brief(run).approach is Approach.agent:
        found = run_in_order(_research_question(run, context, each, within) for each in questions)
    else:
        found = run_in_order((_search_question(run, context, each, within) for each in questions), AT_ONCE)
    async for event in found:
        yield event


async def _search_question(run: Run, context: RunContext, question: Question, within: Sequence[str]) -> PassagesChosen:
    brief, able = state.brief(run), context.tool_context.search_context
    able = replace(able, reranker=None, diversity=DIVERSITY, per_document=0, pool=max(able.pool, brief.pool))
    hits = await retrieve(able, question.text, brief.pool, context.tool_context.scope(), In("doc", tuple(within)))
    ranked = {
        name: await _select_passages(context, brief, question, hits, name)
        for name in dict.fromkeys((brief.reranker, *brief.compare))
    }
    found = tuple(
        Found(hit.passage, rank, hit.scores.get("fused", 0.0)) for rank, hit in enumerate(ranked[brief.reranker], 1)
    )
    others = {name: tuple(hit.passage.id for hit in few) for name, few in ranked.items() if name != brief.reranker}
    return PassagesChosen(question.id, found, len(hits), brief.reranker, others)


async def _select_passages(
    context: RunContext, brief: Brief, question: Question, hits: Sequence[Hit], name: str
) -> list[Hit]:
    reranker = _reranker(context, name)
    if reranker and hits:
        ranked = await reranker.rerank(question.text, hits)
    else:  # the pool itself is ordered by diversity
        ranked = sorted(hits, key=lambda hit: (-hit.scores.get("fused", 0.0), hit.passage.id))
    most = brief.top * (READ_MORE if name == "llm" else 1)
    return list(capped(ranked, OF_ONE if len(brief.documents) > 1 else 0)[:most])


def _reranker(context: RunContext, name: str) -> Reranker | None:
    search = context.tool_context.search_context
    return late_interaction(search.embedder) if name in ("late", "llm") else search.reranker if name == "set" else None


# --- by the agent ---------------------------------------------------------------------------------------------------


async def _research_question(
    run: Run, context: RunContext, question: Question, within: Sequence[str]
) -> PassagesChosen:
    """Run the agent briefly for one question, in memory; of its events only the model replies are recorded in the
    synthesis. After a resume the same steps are taken again, and no recorded request is repeated."""
    meter = context.meter
    assert meter is not None

    def record(run: Run, event: Event) -> Run:
        if isinstance(event, ModelReplied):
            meter.record(event)
        return run.then(event)

    asked = replace(
        run.asked,
        question=question.text,
        brief=None,
        mode=Mode.quick,
        eagerness=Eagerness.sparing,
        route=Route.research,
        where=SearchFilters(bases=run.asked.where.bases, documents=tuple(within)),
    )
    own = replace(
        context,
        record=record,
        limits=replace(context.limits, rounds=ROUNDS[Mode.quick]),
        hops=HOP_SETTINGS[Mode.quick],
    )
    child = Run(run.id, (asked,))
    async for event in loop.carry_on(child, own):
        child = child.then(event)
        if isinstance(event, Failed):
            raise ModelError(event.detail)
        if isinstance(event, Stopped):
            break
    kept = {each.passage.id for each in child.evidence}
    considered = {each.passage.id: each for each in child.found}
    found = tuple(each for id, each in considered.items() if id in kept)
    return PassagesChosen(question.id, found, len(considered), "agent", searched=child.searched)
