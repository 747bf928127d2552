"""Rewrites failed claims from their evidence, hedges them, or drops them."""

from __future__ import annotations

from collections.abc import AsyncIterator

from assay.agent.context import RunContext, mark
from assay.agent.prompt_window import evidence_documents
from assay.answer import revise as revising
from assay.core.events import (
    Event,
    Revised,
)
from assay.core.run import Run
from assay.core.types import Claim
from assay.models.llm import Role
from assay.models.meter import NoReply

REVISED = 6  # claims a model is asked to rewrite; with more failures, rewriting is not worth it


async def revise(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Rewrite failed claims from their evidence, hedge them, or drop them. Each is then checked one last time."""
    for number, (place, claim) in enumerate(run.unsupported):
        yield await _revise_claim(run, context, place, claim, asks=len(run.revised) + number < REVISED)


async def _revise_claim(run: Run, context: RunContext, place: int, claim: Claim, *, asks: bool) -> Revised:
    sources = context.sources(run)
    if not asks or not run.asked.has_model or claim.quote is not None:
        return revising.without_model(place, claim, run, sources)
    if context.small(Role.write):
        return revising.quote_closest_sentence(place, claim, run, sources)
    evidence = revising.relevant_evidence(claim, run.evidence)
    reply = await context.ask(
        Role.write,
        "revise",
        revising.Revision,
        lambda room: revising.build_prompt(run.question, claim, evidence, sources, mark(run), room),
        schema=revising.schema([each.key for each in evidence]),
        documents=evidence_documents(run),
        max_tokens=250,
    )
    if isinstance(reply, NoReply):
        return revising.without_model(place, claim, run, sources)
    revision, by = reply
    return revising.read(revision, place, claim, run.evidence, by)
