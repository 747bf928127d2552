"""Write claims that did not hold anew from their evidence, hedge them, or drop them."""

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

REVISED = 6  # claims that a model is asked to write anew; of what is more, nothing can be expected


async def revise(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """What did not hold is written anew from its evidence, hedged, or dropped; then it is checked again, for the last time."""
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
