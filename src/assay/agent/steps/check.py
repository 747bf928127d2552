"""Checks every claim of the draft against its citations, through the run's judge, and the claims as an answer. What
failed is rewritten, hedged or dropped; then the answer is delivered, or waits for a reviewer, whose words replace
the draft's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from functools import cache
from types import MappingProxyType

from assay.agent.context import RunContext, mark, run_before, run_in_order
from assay.agent.prompt_window import evidence_documents, render_searches
from assay.answer import compose
from assay.answer import draft as drafting
from assay.answer import revise as revising
from assay.answer.checking import cells
from assay.answer.checking.claim_rules import by_rule, unsupported
from assay.answer.checking.judge import (
    Judgement,
    JudgeRequest,
    agree,
    batches,
    by_model,
    needs_model,
    unchanged_evidence,
    verify,
    without_model,
)
from assay.answer.claims import Sources
from assay.core.events import (
    RULES,
    Answered,
    AwaitingReview,
    Checked,
    Critiqued,
    Decision,
    Event,
    Failed,
    Mode,
    ModelReplied,
    Resumed,
    Revised,
    RevisionCause,
    Route,
    Stakes,
    Task,
)
from assay.core.run import Run, seal_of
from assay.core.types import Answer, Claim, Evidence, Verdict
from assay.language.identify import identify_language
from assay.models.llm import Role
from assay.models.meter import NoReply

TRIED = 300  # tokens of the searches so far, for who judges the whole
ANSWERS = 0.3  # probability from which on claims answer the question
Placed = Sequence[tuple[int, Claim]]


async def check(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """The verdicts on the claims, and the judgement of the whole. Where a judgement is due and no reply comes, that is
    recorded too: nobody is asked again."""
    silent = True
    async for event in _verdicts(run, context):
        silent = False
        yield event
    if silent:
        yield Critiqued(True, final=True)


async def _verdicts(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Settle by code what code can settle. A capable model judges the rest, in one request if it fits, and says whether
    the claims answer the question. Each verdict is published as soon as it is known."""
    before = run_before(run, lambda event: isinstance(event, ModelReplied | Checked | Failed | Resumed))
    capable = run.asked.has_model and not context.small(Role.check)
    if facts := _own_facts(before, context):
        for each in facts:
            yield each
        return
    ruled = by_code(before, context)
    unchecked = dict(run.unchecked)
    open_: list[tuple[int, Claim]] = []
    settled = dict(before.checked)
    for place, claim in before.unchecked:
        judged = ruled(place, claim)
        if capable and needs_model(judged):
            open_.append((place, judged))
        else:
            settled[place] = judged if capable else without_model(judged)
            if place in unchecked:
                yield Checked(place, settled[place])
    if not capable:
        if reads_claims(run):
            yield await _read_claims(run, context, _supported(settled))
        return
    groups = groups_of(run, open_)
    if not groups and judgement_due(before):
        groups = [()]  # what was judged while the draft was written is still to be judged as an answer
    if run.asked.brief is not None:
        left = iter(groups)
        async for judgement in run_in_order(judge_group(before, context, group, (), last=False) for group in groups):
            for (place, _), claim in zip(next(left), judgement.claims, strict=True):
                if place in unchecked:
                    yield Checked(place, claim, judgement.by)
        return
    titles = compose.headings(run)
    accepted = _supported({place: claim for place, claim in settled.items() if place not in titles})
    struck = any(
        claim.verdict is not Verdict.supported and not claim.by and place not in before.revised
        for place, claim in settled.items()
    )
    for number, group in enumerate(groups, 1):
        last = number == len(groups) and judges_whole(run) and not struck  # first what code struck is put right
        judgement = await judge_group(before, context, group, accepted, last=last)
        judged = dict(zip((place for place, _ in group), judgement.claims, strict=True))
        accepted += _supported({place: claim for place, claim in judged.items() if place not in titles})
        for (place, _), claim in zip(group, judgement.claims, strict=True):
            if place in unchecked:
                yield Checked(place, claim, judgement.by)
        if last and judgement.by != RULES:
            yield Critiqued(
                complete=judgement.answers and not judgement.missing,
                gap=judgement.search,
                by=judgement.by,
                missing=judgement.missing,
                beside=not judgement.answers,
                final=True,
                conflicts=judgement.conflicts,
            )


def by_code(run: Run, context: RunContext) -> Callable[[int, Claim], Claim]:
    """What code says of a claim of this run, by its place. A table's figure without its cell goes back to its writer once."""
    sources = context.sources(run)
    context.read_evidence(run)
    document = cache(context.document)  # a synthesis has hundreds of claims on few documents
    standing = unchanged_evidence(run.evidence, document)
    shown = run.asked.has_model and run.asked.brief is None and not context.small(Role.check)  # cells, to the writer

    def ruled(place: int, claim: Claim) -> Claim:
        if claim.quote is not None or claim.derived is not None:
            return verify(claim, run.evidence, document)
        judged = by_rule(claim, standing, sources)
        asks = shown and place not in run.revised and not claim.edited and not claim.figure and needs_model(judged)
        why = cells.without_cell(judged, standing, sources.tables) if asks else ""
        return unsupported(judged, why) if why else judged

    return ruled


def _own_facts(run: Run, context: RunContext) -> list[Revised]:
    """What the cells of claims say themselves, in their place, if they were revised and still differ from them."""
    revised = [(place, claim) for place, claim in run.unchecked if place in run.revised and claim.cells]
    tables = context.sources(run).tables
    evidence = unchanged_evidence(run.evidence, cache(context.document)) if revised else ()
    found: list[Revised] = []
    for place, claim in revised:
        differs = cells.check(claim, evidence, tables)[1]
        if differs and (facts := cells.own_facts(claim, evidence, tables)):
            found.append(Revised(place, facts, f"what its cells say, since {differs}"))
    return found


def groups_of(run: Run, open_: Placed) -> list[Placed]:
    """The claims that each request to the judge is about."""
    parts = batches([claim for _, claim in open_], run.evidence, judge_window(run))
    return [open_[each.start : each.stop] for each in parts]


def judgement_due(run: Run) -> bool:
    """Whether claims were judged, and the judgement of the whole is not recorded yet. Where only those were judged that were
    checked while the draft was written, it waits for what has to be put right."""
    for event in reversed((*run.writing, *run.drafting)):
        if isinstance(event, Critiqued):
            return False
        if isinstance(event, Checked) and (event.claim.by or reads_claims(run)):
            return judges_whole(run) and (not run.unsupported or event in run.drafting)
    return False


def judges_whole(run: Run) -> bool:
    """Whether the claims are judged as an answer too: not those of a synthesis, nor those of an answer that was judged
    before and is only put differently."""
    return run.asked.brief is None and run.route is not Route.rework


def reads_claims(run: Run) -> bool:
    """Whether the answer model says if the claims answer the question: those of a model that is too small to say so
    itself. Quotations that rules chose were read before."""
    by_model = run.draft is not None and run.draft.by != RULES and bool(run.draft.blocks)
    small = any(role_model.small for role_model in run.asked.seats if role_model.role == Role.check)
    return by_model and small and judges_whole(run)


def _supported(checked: Mapping[int, Claim]) -> list[Claim]:
    return [
        claim for _, claim in sorted(checked.items(), key=lambda each: each[0]) if claim.verdict is Verdict.supported
    ]


async def _read_claims(run: Run, context: RunContext, standing: Sequence[Claim]) -> Critiqued:
    """Whether a claim, or all of them together, answers the question, as the answer model reads them."""
    model = context.tool_context.search_context.answer_model
    titles = context.titles(run)
    doc = {each.key: each.passage.doc_id for each in run.evidence}
    statements = [f"{titles.get(doc.get(claim.cites[0], ''), '')}: {claim.words}" for claim in standing]
    if model is None or not statements:
        return Critiqued(True, final=True)
    readings = await model.read(run.question, [*statements, " ".join(claim.words for claim in standing)])
    answers = max(reading.answers for reading in readings) >= ANSWERS
    return Critiqued(answers, beside=not answers, final=True)


def judge_window(run: Run) -> int:
    """Tokens of the smallest window among those who judge."""
    return min(
        (role_model.window for role_model in run.asked.seats if role_model.role in (Role.check, Role.judge)),
        default=8192,
    )


async def judge_claims(
    run: Run,
    context: RunContext,
    claims: Sequence[Claim],
    evidence: Sequence[Evidence],
    sources: Sources,
    documents_of: Callable[[Claim], Iterable[str]],
    *,
    headings: Set[int] = frozenset(),
    arguments: Mapping[int, str] = MappingProxyType({}),
) -> list[Claim]:
    """Claims beside those of a draft with their verdicts. `documents_of` a claim are those that it was made from; headings
    and the writer's arguments are by index."""
    ruled = [by_rule(claim, evidence, sources) for claim in claims]
    open_ = [at for at, claim in enumerate(ruled) if needs_model(claim)]
    for batch in batches([ruled[at] for at in open_], evidence, judge_window(run)):
        places = open_[batch.start : batch.stop]
        request = JudgeRequest(
            tuple(ruled[at] for at in places),
            arguments={index: arguments[at] for index, at in enumerate(places) if at in arguments},
            headings=frozenset(index for index, at in enumerate(places) if at in headings),
        )
        documents = sorted({doc for at in places for doc in documents_of(claims[at])})
        judgement = await by_model(request, evidence, sources, context.ask, mark=mark(run), documents=documents)
        for at, claim in zip(places, judgement.claims, strict=True):
            ruled[at] = claim
    return ruled


async def settle_claims(
    run: Run,
    context: RunContext,
    claims: Sequence[Claim],
    evidence: Sequence[Evidence],
    sources: Sources,
    documents_of: Callable[[Claim], Iterable[str]],
    *,
    headings: Set[int] = frozenset(),
) -> list[Claim]:
    """As `judge_claims`; what does not hold is put right once by its writer, on the same citations, and judged again."""
    judged = await judge_claims(run, context, claims, evidence, sources, documents_of, headings=headings)
    failing = [at for at, claim in enumerate(judged) if claim.verdict is not Verdict.supported][:REVISED]
    failed = [judged[at] for at in failing]
    cited = {key for claim in failed for key in claim.cites}
    shown = [each for each in evidence if each.key in cited]
    reply = await _ask_revisions(run, context, failed, shown, sources) if shown else None
    if reply is None or isinstance(reply, NoReply):
        return judged
    same = [
        each.model_copy(update={"cites": list(failed[each.claim - 1].cites)})
        for each in reply[0].revisions
        if 0 < each.claim <= len(failed)
    ]
    anew = revising.read(revising.Revisions(revisions=same), list(enumerate(failed)), shown, reply[1])
    revised = {failing[each.place]: each for each in anew if each.claim is not None}
    again = await judge_claims(
        run,
        context,
        [each.claim for each in revised.values() if each.claim],
        evidence,
        sources,
        documents_of,
        headings={index for index, at in enumerate(revised) if at in headings},
        arguments={index: each.why for index, each in enumerate(revised.values()) if each.cause is RevisionCause.kept},
    )
    for at, claim in zip(revised, again, strict=True):
        judged[at] = claim if claim.verdict is Verdict.supported else judged[at]
    return judged


async def judge_group(
    run: Run, context: RunContext, group: Placed, accepted: Sequence[Claim] = (), *, last: bool = False
) -> Judgement:
    """The model's judgement of these claims. In thorough mode, and where a person reviews the answer, they are judged a
    second time, in another order and without the first verdicts. Without a reply they stay open."""
    opinions, headings, rows = compose.opinions(run), compose.headings(run), compose.columns(run)
    kept = {place: each.why for place, each in run.revised.items() if each.cause is RevisionCause.kept}
    examined = compose.with_titles(run.examined, context.titles(run))
    request = JudgeRequest(
        tuple(claim for _, claim in group),
        run.question if last else "",
        tuple(claim.words for claim in accepted) if last else (),
        {index: kept[place] for index, (place, _) in enumerate(group) if place in kept},
        frozenset(index for index, (place, _) in enumerate(group) if place in opinions),
        frozenset(index for index, (place, _) in enumerate(group) if place in headings),
        run.asked.today,
        context.glossary,
        examined.whole if last and examined else (),
        frozenset(key for claim in accepted for key in claim.cites) if last else frozenset(),
        render_searches(run, TRIED) if last else "",
        {index: rows[place] for index, (place, _) in enumerate(group) if place in rows},
    )

    read_from = {key for _, claim in group if claim.figure for key in claim.cites}
    captions = [(each.key, each.passage) for each in run.evidence if each.key in read_from]

    async def ask(request: JudgeRequest, role: Role) -> Judgement:
        documents, sources = evidence_documents(run), context.sources(run)
        pictures = [*(await context.pictures(role, run, captions)).values()]
        return await by_model(
            request,
            run.evidence,
            sources,
            context.ask,
            mark=mark(run),
            documents=documents,
            role=role,
            pictures=pictures,
        )

    first = await ask(request, Role.check)
    reviewed = run.asked.stakes is not Stakes.normal or run.asked.reviewed
    if first.by == RULES or not (run.asked.mode is Mode.thorough or reviewed):
        return first
    other = Role.judge if context.other_model(Role.check, Role.judge) else Role.check
    again = await ask(_reversed(request), other)
    if again.by == RULES:
        return first
    pairs = zip(first.claims, reversed(again.claims), strict=True)
    claims = tuple(agree(one, two, mark=context.marks_disagreement) for one, two in pairs)
    return replace(first, claims=claims)


def _reversed(request: JudgeRequest) -> JudgeRequest:
    last = len(request.claims) - 1
    return JudgeRequest(
        request.claims[::-1],
        arguments={last - index: words for index, words in request.arguments.items()},
        opinions=frozenset(last - index for index in request.opinions),
        headings=frozenset(last - index for index in request.headings),
        columns={last - index: names for index, names in request.columns.items()},
        today=request.today,
        glossary=request.glossary,
    )


async def deliver(
    run: Run, context: RunContext, complete: Callable[[Answer], Answer] = lambda answer: answer
) -> AsyncIterator[Event]:
    """Yield the answer, or `Failed` if anything in it fails the final check. `complete` says what else is missing."""
    context.read_evidence(run)
    guard = compose.delivery_guard(run, context.document)
    answer = complete(compose.guarded_answer(run, guard, context.titles(run), context.unreadable()))
    if wrong := compose.guarded_faults(answer, run, guard):
        yield Failed("Unverified", f"Nothing is delivered, since not everything in it holds: {'; '.join(wrong)}.")
        return
    yield release(run, context, answer)


def release(run: Run, context: RunContext, answer: Answer) -> Answered | AwaitingReview:
    """The answer, or a review request if the answer needs one and exactly this version is not approved."""
    reasons = context.oversees(run, answer)
    if not reasons and not run.gated and run.asked.stakes is Stakes.normal:
        return Answered(answer)
    decided, waited = run.decided, sum(isinstance(event, AwaitingReview) for event in run.events)
    seal = seal_of(run, answer, max(waited - 1, 0))  # of the answer last queued for review
    if decided and decided.decision is Decision.approve and decided.seal == seal and context.cleared(seal):
        return Answered(answer, seal)
    return AwaitingReview(
        answer, seal_of(run, answer, waited), reasons or ("it was looked at by a reviewer before",), context.four_eyes
    )


async def edit(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Replace the draft's text with a reviewer's; it is checked like any other."""
    reviewed = run.reviews[-1]
    for each in run.edits_due:
        claim = run.claims_by_place.get(each.place)
        text = each.text.strip()
        edited = Claim(text, claim.cites, edited=reviewed.by, figure=claim.figure) if claim and text else None
        why = "edited in review" if edited else "dropped in review"
        yield Revised(each.place, edited, why, f"review: {reviewed.by}", RevisionCause.review)


REVISED = 24  # claims that a model is asked to put right; a draft with more failures is not worth it


async def revise(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Put failed claims right: by their writer, or without one as quotations. Each is then checked one last
    time."""
    sources = context.sources(run)
    if run.rephrased and run.rephrased.task is Task.check:
        for place, claim in run.unsupported:
            yield Revised(place, None, claim.why)  # it was asked whether it holds
        return
    asks = run.asked.has_model and not context.small(Role.write)  # a small one writes only in a synthesis
    due = dict(run.unsupported)
    before = run_before(run, _revises)
    failing = before.unsupported
    revisable = [(place, claim) for place, claim in failing if asks and not (claim.quote or claim.figure)][:REVISED]
    for place, claim in due.items():
        if claim.figure:  # its caption does not say what its picture does not show
            yield Revised(place, None, claim.why)
        elif (place, claim) not in revisable:
            yield revising.quote_instead(place, claim, run)
    if not revisable:
        return
    failed = [claim for _, claim in revisable]
    first = revisable[0][0]  # what stands below it may lean on it, and comes first
    others = [] if run.asked.brief else sorted(before.checked.items(), key=lambda each: (each[0] < first, each[0]))
    standing = [(place, claim) for place, claim in others if _stands(claim)][:REVISED]
    evidence = revising.relevant_evidence(failed, run.evidence)
    reply = await _ask_revisions(run, context, failed, evidence, sources, [claim for _, claim in standing])
    if isinstance(reply, NoReply):
        revised = [revising.quote_instead(place, claim, run) for place, claim in revisable]
    else:
        said = " ".join((run.question, *(claim.text for claim in run.claims_by_place.values())))
        revised = revising.read(reply[0], revisable, run.evidence, reply[1], identify_language(said) or "en")
        for each in revising.read_standing(reply[0], len(failed), standing, run.evidence, reply[1]):
            if each.place not in run.revised:
                yield each
    for each in revised:
        if each.place in due:
            yield each


async def _ask_revisions(
    run: Run,
    context: RunContext,
    failed: Sequence[Claim],
    evidence: Sequence[Evidence],
    sources: Sources,
    standing: Sequence[Claim] = (),
) -> tuple[revising.Revisions, str] | NoReply:
    return await context.ask(
        Role.write,
        "revise",
        revising.Revisions,
        lambda room: revising.build_prompt(run.question, failed, evidence, sources, mark(run), room, standing),
        schema=revising.schema(
            len(failed),
            [each.key for each in evidence],
            len(standing),
            cells=drafting.has_tables(evidence, sources),
        ),
        documents=evidence_documents(run),
        max_tokens=200 + 200 * len(failed) + 100 * len(standing),
    )


def _stands(claim: Claim) -> bool:
    return claim.quote is None and claim.verdict is Verdict.supported


def _revises(event: Event) -> bool:
    revised = isinstance(event, Revised) and event.cause is not RevisionCause.recited
    return revised or isinstance(event, ModelReplied | Failed | Resumed)
