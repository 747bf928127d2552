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


async def seek(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """For failed claims: first look for other evidence of this run that they repeat, then search once for what the judge
    names."""
    standing = unchanged_evidence(run.evidence, context.document)
    open_: list[tuple[int, Claim]] = []
    for place, claim in run.unsupported:
        if right := revising.correct_citations(claim, standing):
            yield Revised(place, right, f"{RECITED}: {claim.why}", cause=RevisionCause.recited)
        else:
            open_.append((place, claim))
    judgement = run.judgement
    if open_ and judgement is not None:
        call = Call(f"c{len(run.calls) + 1}", "search", {"query": judgement.gap[:300], "k": WIDTH})
        calls = () if already_called(run, call) else (call,)
        yield Decided(calls, "support of a claim is searched for", seeks=tuple(place for place, _ in open_))
