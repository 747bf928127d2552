"""Checks every claim of the draft against its citations, through the run's judge."""

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

TOGETHER = 6  # claims per request


async def check(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Check every claim by string comparison and by rule. Claims that the rules leave open, and more where the mode
    requires it, also go to a model. Each verdict is published as soon as it is known."""
    sources = context.sources(run)
    opinions = compose.opinions(run)
    document = cache(context.document)  # a synthesis has hundreds of claims on few documents
    standing = unchanged_evidence(run.evidence, document)
    asks = run.asked.has_model and not context.small(
        Role.check
    )  # a small model cannot settle what the rules leave open
    unchecked = dict(run.unchecked)
    open_: list[tuple[int, Claim]] = []
    for place, claim in _before_checks(run).unchecked:
        opinion = place in opinions
        if claim.quote is not None or claim.derived is not None:
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
    """The run as it was before the first of these claims was checked. After a resume, the same claims are batched into
    the same requests, so that recorded replies match."""
    events = run.events
    while isinstance(events[-1], ModelReplied | Checked | Failed | Resumed):
        events = events[:-1]
    return Run(run.id, events)


async def _check_by_model(run: Run, context: RunContext, group: Sequence[tuple[int, Claim]]) -> list[Checked]:
    """The model's verdicts on these claims. Without a reply the rules' verdicts remain, and claims they left open are
    not delivered unchanged."""
    claims = [claim for _, claim in group]
    judged, by = await context.judge.by_model(
        claims, run.evidence, context.sources(run), context.ask, mark=mark(run), documents=evidence_documents(run)
    )
    return [Checked(place, claim, by) for (place, _), claim in zip(group, judged, strict=True)]
