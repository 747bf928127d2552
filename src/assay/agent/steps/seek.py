"""Finds support for claims that failed their check: in other evidence of the run, then by one search."""

from __future__ import annotations

from collections.abc import AsyncIterator

from assay.agent.context import RunContext
from assay.agent.steps.decide import WIDTH, already_called
from assay.answer import revise as revising
from assay.answer.checking.judge import unchanged_evidence
from assay.core.events import (
    Call,
    Decided,
    Event,
    Revised,
    RevisionCause,
)
from assay.core.run import Run
from assay.core.types import Claim

RECITED = "cited anew, since other evidence says it"
SOUGHT = 3  # claims to search support for


async def seek(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """For failed claims: first look for other evidence of this run that supports them, then search once."""
    standing = unchanged_evidence(run.evidence, context.document)
    sources = context.sources(run)
    first = len(run.calls) + 1
    open_: list[tuple[int, Claim]] = []
    for place, claim in run.unsupported:
        if right := revising.correct_citations(claim, standing, sources, context.judge):
            yield Revised(place, right, f"{RECITED}: {claim.why}", cause=RevisionCause.recited)
        else:
            open_.append((place, claim))
    calls: list[Call] = []
    for _, claim in open_[:SOUGHT]:
        call = Call(f"c{first + len(calls)}", "search", {"query": claim.words[:300], "k": WIDTH})
        if not already_called(run, call) and claim.words.strip():
            calls.append(call)
    if open_:
        why = "; ".join(claim.why for _, claim in open_[:SOUGHT])
        yield Decided(tuple(calls), f"a claim did not hold: {why}", seeks=tuple(place for place, _ in open_[:SOUGHT]))
