"""Checks, revises and delivers the text of a synthesis, by the same steps and the same judge as an answer. The judge is told
by which names and labels sentences call the documents."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from functools import cache

from assay.agent.context import RunContext
from assay.agent.steps import check as steps
from assay.answer.checking.judge import unchanged_evidence
from assay.core.events import RULES, Event, Revised
from assay.core.run import Run
from assay.core.synthesis import RelationType
from assay.core.types import Answer, Claim, Outcome
from assay.synthesis import state
from assay.synthesis.material import document_names, labelled_sources


async def check(run: Run, context: RunContext) -> AsyncIterator[Event]:
    async for event in steps.check(run, _naming(run, context)):
        yield event


def _naming(run: Run, context: RunContext) -> RunContext:
    """The context, with titles that begin with the names and labels of the documents."""
    titles = labelled_sources(run, context).titles
    return replace(context, titled=lambda ids: {doc: titles.get(doc, "") for doc in ids}, _titles={}, _dates={})


async def revise(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Revise unsupported claims as in any answer. A claim that is dropped becomes a quotation, if its document would
    otherwise not appear, or if it told one side of a contradiction that nothing else tells."""
    async for event in steps.revise(run, _naming(run, context)):
        kept = event
        if isinstance(event, Revised) and event.claim is None and not run.gated:
            kept = _quote_instead(run, event, context)
        run = run.then(kept)
        yield kept


def _quote_instead(run: Run, dropped: Revised, context: RunContext) -> Revised:
    failed = dict(run.unsupported)
    others = [claim for place, claim in run.claims_by_place.items() if place not in failed]
    cited = {key for claim in others for key in claim.cites}
    evidence = {each.key: each for each in unchanged_evidence(run.evidence, cache(context.document))}
    spoken = {evidence[key].quote.doc_id for key in cited if key in evidence}
    gone = failed[dropped.place]
    disputed = {
        side.key: side.quote
        for each in state.relations(run)
        if each.by == RULES and each.type is RelationType.contradiction
        for side in (each.left, each.right)
        if {each.left.key, each.right.key} & set(gone.cites) and side.key not in cited
    }
    unspoken = [key for key in gone.cites if key in evidence and evidence[key].quote.doc_id not in spoken]
    for key, words in (*disputed.items(), *((key, evidence[key].quote) for key in unspoken)):
        if key in evidence and words != gone.quote:
            why = f"the document's own words, since {gone.why}"
            return Revised(dropped.place, Claim("", (key,), quote=words), why, RULES)
    return dropped


async def deliver(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Deliver the text; if any claim does not hold, deliver none. A document with evidence that the text does not cover is
    listed as a gap, and any uncovered document makes the outcome partial."""

    def complete(answer: Answer) -> Answer:
        where = {each.key: each.quote.doc_id for each in run.evidence}
        spoken = {where[key] for claim in answer.claims for key in claim.cites if key in where}
        silent = [doc for doc in state.brief(run).documents if doc in set(where.values()) - spoken]
        names = document_names(run)
        gaps = tuple(f"nothing that {names[doc]} says could be told" for doc in silent)
        whole = answer.outcome is not Outcome.answered or spoken.issuperset(state.brief(run).documents)
        return replace(answer, gaps=(*answer.gaps, *gaps), outcome=answer.outcome if whole else Outcome.partial)

    async for event in steps.deliver(run, context, complete):
        yield event
