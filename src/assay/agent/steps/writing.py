"""From evidence to answer: draft, check claim by claim, seek what failed, revise, deliver. The parts are in `answer/`; here
they are joined. A model writes where there is one and a budget for it; otherwise the answer is quoted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from functools import cache

from assay.agent.context import RunContext, mark
from assay.agent.steps import by_rule
from assay.agent.steps.decide import WIDTH, made_before
from assay.answer import compose
from assay.answer import draft as drafting
from assay.answer import revise as revising
from assay.answer.checking.judge import unchanged_evidence
from assay.answer.extractive import completion, extract
from assay.core.events import (
    RULES,
    Answered,
    AwaitingReview,
    Call,
    Checked,
    Decided,
    Decision,
    Drafted,
    Event,
    Failed,
    ModelReplied,
    Resumed,
    Revised,
    RevisionCause,
    Route,
    Stakes,
)
from assay.core.run import Run, seal_of
from assay.core.types import Answer, Claim, Shape, Verdict
from assay.models.llm import Role
from assay.models.meter import NoReply

TOGETHER = 6  # claims that one request checks
LONG, SHORT = 12_000, 1_200  # tokens of evidence that a writer is shown; a small model is lost in more
RECITED = "cited anew, since other evidence says it"
REVISED = 6  # claims that a model is asked to write anew; of what is more, nothing can be expected
SOUGHT = 3  # claims that support is searched for


async def draft(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """What would be said, from the evidence alone; extracted if there is no model or no budget."""
    if run.route is Route.direct:
        yield await _directly(run, context)
        return
    if not run.asked.has_model:
        async for event in by_rule.draft(run, context):
            yield event
        return
    if falls_back(run):
        async for event in by_rule.draft(run, context):
            yield extract.only_if_whole(event, run.question, run.evidence, context.titles(run))
        return
    if not run.evidence:
        yield Drafted((), Shape.prose, missing=(run.question,))
        return
    sources = context.sources(run)
    most = SHORT if context.small(Role.write) else LONG
    judged = run.judged
    missing = judged.missing if judged else ()
    reply = await context.ask(
        Role.write,
        "write",
        drafting.Writing,
        lambda room: drafting.build_prompt(
            run.question, run.evidence, sources, mark(run), min(room, most), run.readings, missing
        ),
        schema=drafting.schema([each.key for each in run.evidence]),
        documents=_documents(run),
        max_tokens=1500,
    )
    if isinstance(reply, NoReply):
        async for event in by_rule.draft(run, context):
            yield replace(event, fallback=(reply.why,))
        return
    written, by = reply
    drafted = drafting.read(written, run.question, run.evidence, by, sources)
    small = context.small(Role.write)
    yield completion.completed(drafted, run.question, run.evidence, sources) if small else drafted


def falls_back(run: Run) -> bool:
    """Whether nothing that a model wrote has held, though there is evidence: then the answer is quoted, if it can be."""
    draft = run.draft
    if draft is None or not run.asked.has_model or draft.by == RULES or not draft.blocks or not run.evidence:
        return False
    return not any(claim.verdict is Verdict.supported for claim in run.checked.values())


async def _directly(run: Run, context: RunContext) -> Drafted:
    """An answer that is not from the documents, and will say so."""
    reply = await context.ask(
        Role.write, "direct", drafting.Direct, lambda room: {"question": run.question}, max_tokens=300
    )
    return Drafted((), Shape.prose) if isinstance(reply, NoReply) else drafting.said(*reply)


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
    for place, claim in _as_begun(run).unchecked:
        opinion = place in opinions
        if claim.quote is not None:
            ruled = context.judge.verify(claim, run.evidence, document)
        else:
            ruled = context.judge.by_rule(claim, standing, sources, opinion=opinion)
            if ruled.verdict is Verdict.partial:
                ruled = revising.completed(claim, standing, sources, context.judge) or ruled
        if asks and context.judge.needs_model(ruled, run.asked.mode, run.evidence, opinion=opinion):
            open_.append((place, ruled))
        elif place in unchecked:
            yield Checked(place, ruled)
    together = [open_[at : at + TOGETHER] for at in range(0, len(open_), TOGETHER)]
    groups = [group for group in together if any(place in unchecked for place, _ in group)]
    work = [asyncio.ensure_future(_checked(run, context, group)) for group in groups]
    try:
        for done in asyncio.as_completed(work):
            for event in await done:
                if event.place in unchecked:
                    yield event
    finally:
        for each in work:
            each.cancel()
        await asyncio.gather(*work, return_exceptions=True)


def _as_begun(run: Run) -> Run:
    """The run as it was before the first of these claims was checked. When checking is carried on, the same claims share a
    request as before: the replies that are recorded are to those."""
    events = run.events
    while isinstance(events[-1], ModelReplied | Checked | Failed | Resumed):
        events = events[:-1]
    return Run(run.id, events)


async def _checked(run: Run, context: RunContext, group: Sequence[tuple[int, Claim]]) -> list[Checked]:
    """What a model makes of these claims. Without its word the verdict of the rules stands: what they left open is not
    delivered as it is."""
    claims = [claim for _, claim in group]
    judged, by = await context.judge.by_model(
        claims, run.evidence, context.sources(run), context.ask, mark=mark(run), documents=_documents(run)
    )
    return [Checked(place, claim, by) for (place, _), claim in zip(group, judged, strict=True)]


async def seek(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """For the claims that did not hold: first look whether other evidence of this run says so, then search once."""
    standing = unchanged_evidence(run.evidence, context.document)
    sources = context.sources(run)
    first = len(run.calls) + 1
    open_: list[tuple[int, Claim]] = []
    for place, claim in run.unsupported:
        if right := revising.recited(claim, standing, sources, context.judge):
            yield Revised(place, right, f"{RECITED}: {claim.why}", cause=RevisionCause.recited)
        else:
            open_.append((place, claim))
    calls: list[Call] = []
    for _, claim in open_[:SOUGHT]:
        call = Call(f"c{first + len(calls)}", "search", {"query": claim.words[:300], "k": WIDTH})
        if not made_before(run, call) and claim.words.strip():
            calls.append(call)
    if open_:
        why = "; ".join(claim.why for _, claim in open_[:SOUGHT])
        yield Decided(tuple(calls), f"a claim did not hold: {why}", seeks=tuple(place for place, _ in open_[:SOUGHT]))


async def revise(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """What did not hold is written anew from its evidence, hedged, or dropped; then it is checked again, for the last time."""
    for number, (place, claim) in enumerate(run.unsupported):
        yield await _revised(run, context, place, claim, asks=len(run.revised) + number < REVISED)


async def _revised(run: Run, context: RunContext, place: int, claim: Claim, *, asks: bool) -> Revised:
    sources = context.sources(run)
    if not asks or not run.asked.has_model or claim.quote is not None:
        return revising.without_model(place, claim, run, sources)
    if context.small(Role.write):
        return revising.in_its_words(place, claim, run, sources)
    evidence = revising.relevant(claim, run.evidence)
    reply = await context.ask(
        Role.write,
        "revise",
        revising.Revision,
        lambda room: revising.build_prompt(run.question, claim, evidence, sources, mark(run), room),
        schema=revising.schema([each.key for each in evidence]),
        documents=_documents(run),
        max_tokens=250,
    )
    if isinstance(reply, NoReply):
        return revising.without_model(place, claim, run, sources)
    revision, by = reply
    return revising.read(revision, place, claim, run.evidence, by)


async def deliver(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """The answer; and, should anything in it not hold after all, none."""
    answer = compose.answer(run, context.document, context.titles(run), context.unreadable(), context.judge)
    if wrong := compose.faults(answer, run, context.document, context.judge):
        yield Failed("Unverified", f"Nothing is delivered, since not everything in it holds: {'; '.join(wrong)}.")
        return
    yield released(run, context, answer)


def released(run: Run, context: RunContext, answer: Answer) -> Answered | AwaitingReview:
    """The answer; or, where a person has to look at it first and has not approved exactly this, its waiting for them."""
    reasons = context.oversees(run, answer)
    if not reasons and not run.gated and run.asked.stakes is Stakes.normal:
        return Answered(answer)
    decided, waited = run.decided, sum(isinstance(event, AwaitingReview) for event in run.events)
    seal = seal_of(run, answer, max(waited - 1, 0))  # of the answer that waited last
    if decided and decided.decision is Decision.approve and decided.seal == seal and context.cleared(seal):
        return Answered(answer, seal)
    return AwaitingReview(
        answer, seal_of(run, answer, waited), reasons or ("it was looked at by a reviewer before",), context.four_eyes
    )


async def edit(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """A reviewer's words in the place of the draft's; they are checked like any other."""
    reviewed = run.reviews[-1]
    for each in run.edits_due:
        claim = run.written.get(each.place)
        if claim is not None and each.text.strip():
            told = Claim(each.text.strip(), claim.cites, edited=reviewed.by)
            yield Revised(each.place, told, "edited in review", f"review: {reviewed.by}", RevisionCause.review)
        else:
            yield Revised(each.place, None, "dropped in review", f"review: {reviewed.by}", RevisionCause.review)


def _documents(run: Run) -> list[str]:
    return sorted({each.passage.doc_id for each in run.evidence})
