"""Checks every claim of the draft against its citations, through the run's judge, and the claims as an answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import cache

from assay.agent.context import RunContext, mark
from assay.agent.prompt_window import evidence_documents
from assay.answer import compose
from assay.answer.checking.judge import unchanged_evidence
from assay.answer.checking.model_rulings import Judgement, JudgeRequest, agree
from assay.core.events import (
    RULES,
    Checked,
    Critiqued,
    Event,
    Failed,
    Mode,
    ModelReplied,
    Resumed,
    RevisionCause,
    Stakes,
)
from assay.core.run import Run
from assay.core.types import Claim, Verdict
from assay.models.llm import Role
from assay.models.token_estimate import estimate_tokens

TOGETHER = 24  # claims per request
PASSAGES = 16_000  # tokens of passages per request
Placed = Sequence[tuple[int, Claim]]


async def check(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Settle by code what code can settle. A capable model judges the rest, in one request if it fits, and says whether
    the claims answer the question. Each verdict is published as soon as it is known."""
    before = _before_checks(run)
    sources = context.sources(run)
    opinions = compose.opinions(run)
    document = cache(context.document)  # a synthesis has hundreds of claims on few documents
    standing = unchanged_evidence(run.evidence, document)
    capable = run.asked.has_model and not context.small(Role.check)
    unchecked = dict(run.unchecked)
    open_: list[tuple[int, Claim]] = []
    for place, claim in before.unchecked:
        if claim.quote is not None or claim.derived is not None:
            ruled = context.judge.verify(claim, run.evidence, document)
        else:
            ruled = context.judge.by_rule(claim, standing, sources, opinion=place in opinions)
        if capable and context.judge.needs_model(ruled):
            open_.append((place, ruled))
        elif place in unchecked:
            yield Checked(place, ruled if capable else context.judge.without_model(ruled, standing, sources))
    groups = list(_groups(open_, before, context))
    if run.asked.brief is not None:
        async for event in _judge_side_by_side(before, context, groups):
            if event.place in unchecked:
                yield event
        return
    accepted = [claim for _, claim in sorted(before.checked.items()) if claim.verdict is Verdict.supported]
    for number, group in enumerate(groups, 1):
        judgement = await _judge(before, context, group, accepted, last=number == len(groups))
        accepted += [claim for claim in judgement.claims if claim.verdict is Verdict.supported]
        for (place, _), claim in zip(group, judgement.claims, strict=True):
            if place in unchecked:
                yield Checked(place, claim, judgement.by)
        if number == len(groups) and judgement.by != RULES:
            yield Critiqued(
                complete=judgement.answers and not judgement.missing,
                gap=judgement.search,
                by=judgement.by,
                missing=judgement.missing,
                beside=not judgement.answers,
                final=True,
            )


def judgement_due(run: Run) -> bool:
    """Whether a model has judged claims, and its judgement of the whole is not recorded yet."""
    for event in reversed(run.drafting):
        if isinstance(event, Critiqued):
            return False
        if isinstance(event, Checked) and event.claim.by:
            return run.asked.brief is None
    return False


def _before_checks(run: Run) -> Run:
    """The run as it was before the first of these claims was checked. After a resume, the same claims are batched into
    the same requests, so that recorded replies match."""
    events = run.events
    while isinstance(events[-1], ModelReplied | Checked | Failed | Resumed):
        events = events[:-1]
    return Run(run.id, events)


def _groups(open_: Placed, run: Run, context: RunContext) -> list[list[tuple[int, Claim]]]:
    """The claims in as few requests as show every cited passage whole."""
    most = min(PASSAGES, context.limits.room // 2) if context.limits.room else PASSAGES
    costs = {each.key: estimate_tokens(each.passage.text) + 40 for each in run.evidence}
    groups: list[list[tuple[int, Claim]]] = []
    shown: set[str] = set()
    for place, claim in open_:
        wider = shown | set(claim.cites)
        full = bool(groups) and (len(groups[-1]) >= TOGETHER or sum(costs.get(key, 0) for key in wider) > most)
        if not groups or full:
            groups.append([])
            wider = set(claim.cites)
        groups[-1].append((place, claim))
        shown = wider
    return groups


async def _judge_side_by_side(run: Run, context: RunContext, groups: Sequence[Placed]) -> AsyncIterator[Checked]:
    """The verdicts on a synthesis, which answers no single question."""
    work = [asyncio.ensure_future(_judge(run, context, group, (), last=False)) for group in groups]
    found = dict(zip(work, groups, strict=True))
    try:
        for done in work:
            judgement = await done
            for (place, _), claim in zip(found[done], judgement.claims, strict=True):
                yield Checked(place, claim, judgement.by)
    finally:
        for each in work:
            each.cancel()
        await asyncio.gather(*work, return_exceptions=True)


async def _judge(run: Run, context: RunContext, group: Placed, accepted: Sequence[Claim], *, last: bool) -> Judgement:
    """The model's judgement of these claims. In thorough mode, and where a person reviews the answer, they are judged a
    second time, in another order and without the first verdicts. Without a reply they stay open."""
    opinions = compose.opinions(run)
    kept = {place: each.why for place, each in run.revised.items() if each.cause is RevisionCause.kept}
    request = JudgeRequest(
        tuple(claim for _, claim in group),
        run.question if last else "",
        tuple(claim.words for claim in accepted) if last else (),
        {index: kept[place] for index, (place, _) in enumerate(group) if place in kept},
        frozenset(index for index, (place, _) in enumerate(group) if place in opinions),
    )
    first = await _ask(run, context, request, Role.check)
    if first.by == RULES or (run.asked.mode is not Mode.thorough and run.asked.stakes is Stakes.normal):
        return first
    other = Role.judge if context.other_model(Role.check, Role.judge) else Role.check
    again = await _ask(run, context, _reversed(request), other)
    if again.by == RULES:
        return first
    pairs = zip(first.claims, reversed(again.claims), strict=True)
    claims = tuple(agree(one, two, mark=context.marks_disagreement) for one, two in pairs)
    return Judgement(claims, first.by, first.answers, first.missing, first.search)


async def _ask(run: Run, context: RunContext, request: JudgeRequest, role: Role) -> Judgement:
    return await context.judge.by_model(
        request,
        run.evidence,
        context.sources(run),
        context.ask,
        mark=mark(run),
        documents=evidence_documents(run),
        role=role,
    )


def _reversed(request: JudgeRequest) -> JudgeRequest:
    last = len(request.claims) - 1
    return JudgeRequest(
        request.claims[::-1],
        arguments={last - index: words for index, words in request.arguments.items()},
        opinions=frozenset(last - index for index in request.opinions),
    )
