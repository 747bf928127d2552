"""Check every claim of the draft against what it cites, through the judge of the run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import cache

from assay.agent.context import RunContext, mark
from assay.agent.prompt_window import evidence_documents
from assay.answer import compose
from assay.answer import revise as revising
from assay.answer.checking.judge import unchanged_evidence
from assay.core.events import (
    Checked,
    Event,
    Failed,
    ModelReplied,
    Resumed,
)
from assay.core.run import Run
from assay.core.types import Claim, Verdict
from assay.models.llm import Role

TOGETHER = 6  # claims that one request checks


async def check(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Every claim by string and by rule; those that the rules leave open, and more of them where the mode asks for it, by a
    model as well. Each verdict is seen as soon as it is there."""
    sources = context.sources(run)
    opinions = compose.opinions(run)
    document = cache(context.document)  # a synthesis has hundreds of claims on few documents
    standing = unchanged_evidence(run.evidence, document)
    asks = run.asked.has_model and not context.small(
        Role.check
    )  # what the rules leave open, a small model cannot settle
    unchecked = dict(run.unchecked)
    open_: list[tuple[int, Claim]] = []
    for place, claim in _before_checks(run).unchecked:
        opinion = place in opinions
        if claim.quote is not None:
            ruled = context.judge.verify(claim, run.evidence, document)
        else:
            ruled = context.judge.by_rule(claim, standing, sources, opinion=opinion)
            if ruled.verdict is Verdict.partial:
                ruled = revising.add_citation(claim, standing, sources, context.judge) or ruled
        if asks and context.judge.needs_model(ruled, run.asked.mode, run.evidence, opinion=opinion):
            open_.append((place, ruled))
        elif place in unchecked:
            yield Checked(place, ruled)
    together = [open_[at : at + TOGETHER] for at in range(0, len(open_), TOGETHER)]
    groups = [group for group in together if any(place in unchecked for place, _ in group)]
    work = [asyncio.ensure_future(_check_by_model(run, context, group)) for group in groups]
    try:
        for done in asyncio.as_completed(work):
            for event in await done:
                if event.place in unchecked:
                    yield event
    finally:
        for each in work:
            each.cancel()
        await asyncio.gather(*work, return_exceptions=True)


def _before_checks(run: Run) -> Run:
    """The run as it was before the first of these claims was checked. When checking is carried on, the same claims share a
    request as before: the replies that are recorded are to those."""
    events = run.events
    while isinstance(events[-1], ModelReplied | Checked | Failed | Resumed):
        events = events[:-1]
    return Run(run.id, events)


async def _check_by_model(run: Run, context: RunContext, group: Sequence[tuple[int, Claim]]) -> list[Checked]:
    """What a model makes of these claims. Without its word the verdict of the rules stands: what they left open is not
    delivered as it is."""
    claims = [claim for _, claim in group]
    judged, by = await context.judge.by_model(
        claims, run.evidence, context.sources(run), context.ask, mark=mark(run), documents=evidence_documents(run)
    )
    return [Checked(place, claim, by) for (place, _), claim in zip(group, judged, strict=True)]
