"""Weighs the results: each passage once, several per request, requests in parallel, each assessment published as it
arrives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace

from assay.agent import prompt_window
from assay.agent.context import RunContext, mark
from assay.agent.hops import scoring
from assay.agent.past_searches import past_searches
from assay.agent.steps.read_evidence import LED
from assay.agent.steps.rework import reuse_evidence
from assay.agent.toolbox.collection import catalogue
from assay.agent.toolbox.read_rows import read_rows
from assay.answer import weigh
from assay.answer.weigh import BatchLimits, Weighed, Weights
from assay.core.errors import ModelError
from assay.core.events import (
    RULES,
    Call,
    Event,
    Failed,
    Found,
    Gathered,
    ModelReplied,
    Resumed,
    Route,
)
from assay.core.run import Run
from assay.core.types import Evidence
from assay.language.injection import is_suspicious
from assay.models.llm import AnswerModel, Role
from assay.models.meter import NoReply

ONE_SHOT = 8  # passages that go to the writer as they are
USELESS = 2  # batches of a set question in a row that hold nothing, before the rest is skipped
SET = 300  # passages weighed for a question about a whole set, at most


def gather(run: Run, context: RunContext) -> AsyncIterator[Event]:
    if run.route is Route.rework:
        return reuse_evidence(run)
    by_rule = not run.asked.has_model and context.assess is None
    return gather_by_rule(run, context) if by_rule else gather_by_model(run, context)


async def gather_by_model(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Evidence from the new passages that sift.py left, batched into requests that fit one context window."""
    waiting = {found.passage.id for found in run.unweighed}
    sent = sorted(_before_weighing(run).unweighed, key=lambda found: (found.rank, -found.score, found.passage.id))
    if len(sent) > SET:
        yield Gathered((), skipped=tuple(found.passage.id for found in sent[SET:]))
        sent = sent[:SET]
    if context.assess is not None:
        yield await _by_the_team(run, context, sent)
        return
    if run.route is Route.one_shot:
        yield _best_as_they_are(run, sent)
        return
    reader = context.tool_context.search_context.answer_model if context.small(Role.weigh) else None
    if reader is not None:
        yield await _by_answer_model(run, context, reader, sent)
        return
    shared = weigh.batches(sent, context.window(Role.weigh), _width(context))
    groups = [group for group in shared if any(found.passage.id in waiting for found in group)]
    if run.every:
        async for event in _weigh_in_turn(run, context, groups):
            yield event
        return
    work = [asyncio.ensure_future(_weighed(run, context, group)) for group in groups]
    try:
        for done in asyncio.as_completed(work):
            yield await done
    finally:
        for each in work:
            each.cancel()
        await asyncio.gather(*work, return_exceptions=True)


async def _weigh_in_turn(run: Run, context: RunContext, groups: Sequence[Sequence[Found]]) -> AsyncIterator[Event]:
    """The batches of an exhaustive search, best first. When two in a row hold nothing of use, the rest is skipped."""
    useless = 0
    for number, group in enumerate(groups):
        weighed = await _weighed(run, context, group)
        yield weighed
        useless = 0 if weighed.evidence else useless + 1
        rest = [found.passage.id for later in groups[number + 1 :] for found in later]
        if useless == USELESS and rest:
            yield Gathered((), skipped=tuple(rest))
            return


def _best_as_they_are(run: Run, sent: Sequence[Found]) -> Gathered:
    """The first passages of a search as evidence, without weighing: a higher rank is a higher score."""
    rare = weigh.rarity(run.question, [each.passage.text for each in sent])
    evidence = tuple(
        Evidence(
            weigh.evidence_key(each.passage),
            each.passage,
            weigh.best_sentence(each.passage, rare),
            float(10 - place),
            run.question,
            flagged=is_suspicious(f"{each.passage.context}\n{each.passage.text}"),
        )
        for place, each in enumerate(sent[:ONE_SHOT])
    )
    return Gathered(evidence, tuple(each.passage.id for each in sent[ONE_SHOT:]))


def _before_weighing(run: Run) -> Run:
    """The run as it was before the first of these passages was weighed. After a resume, the same passages are batched
    into the same requests, so that recorded replies match."""
    events = run.events
    while isinstance(last := events[-1], ModelReplied | Failed | Resumed) or _weighs(last):
        events = events[:-1]
    return Run(run.id, events)


def _weighs(event: Event) -> bool:
    return isinstance(event, Gathered) and bool(event.evidence or event.dropped)


def _width(context: RunContext) -> BatchLimits:
    """Batching limits: several passages per request save most of the cost, but small models mix them up."""
    return replace(context.width, together=context.width.alone) if context.small(Role.weigh) else context.width


async def _weighed(run: Run, context: RunContext, group: Sequence[Found]) -> Gathered:
    titles = context.dated_titles(run)
    parts = prompt_window.wanted_parts(run)
    shown = {f"P{place}": each.passage for place, each in enumerate(group, 1)}

    def build_prompt(room: int) -> Mapping[str, str]:
        return weigh.build_prompt(run.question, parts, group, titles, mark(run), room)

    reply = await context.ask(
        Role.weigh,
        "weigh",
        Weights,
        build_prompt,
        schema=weigh.schema(len(group)),
        documents=sorted({each.passage.doc_id for each in group}),
        max_tokens=150 + weigh.REPLY * len(group),
    )
    if isinstance(reply, NoReply):
        ruled = _gathered(weigh.weigh_by_words(run.query, parts, group, context.cutoff), RULES)
        return replace(ruled, why=reply.detail, fallback=(reply.why,))
    weights, by = reply
    return _gathered(weigh.read(weights.passages, shown, run.question, context.cutoff), by)


async def _by_answer_model(run: Run, context: RunContext, reader: AnswerModel, sent: Sequence[Found]) -> Gathered:
    """Weighed in process. The answer model tells what answers better than a small language model, at no request."""
    ranked = scoring.rank_passages(run.query, await past_searches(run, context), context.hops)
    worth = {each.hit.passage.id: each.score for each in ranked}
    passages = sorted((each.passage for each in sent), key=lambda each: -worth.get(each.id, 0.0))
    titles = context.dated_titles(run)
    texts = [f"{titles.get(each.doc_id, '')} › {each.heading}: {each.text}" for each in passages]
    above = [len(text) - len(each.text) for text, each in zip(texts, passages, strict=True)]
    asked = [await reader.read(question, texts) for question in (run.query, *prompt_window.wanted_parts(run))]
    best = [max(of, key=lambda each: each.answers) for of in zip(*asked, strict=True)]
    readings = [
        replace(each, span=(max(0, each.span[0] - left), max(0, each.span[1] - left)))
        for each, left in zip(best, above, strict=True)
    ]
    return _gathered(weigh.weigh_by_readings(run.query, passages, readings, worth, context.cutoff), reader.name)


async def _by_the_team(run: Run, context: RunContext, sent: Sequence[Found]) -> Gathered:
    assert context.assess is not None
    titles = context.dated_titles(run)
    shown = {each.passage.id: each.passage for each in sent}
    try:
        weights = await context.assess(
            run.question,
            prompt_window.wanted_parts(run),
            [(each, titles.get(each.doc_id, "")) for each in shown.values()],
        )
    except Exception as error:  # a custom assessor may raise anything; the run can be resumed after a fix
        raise ModelError(f"The assessor failed ({type(error).__name__}: {error}).") from error
    return _gathered(weigh.read(list(weights), shown, run.question, context.cutoff), "assessor")


def _gathered(weighed: Weighed, by: str) -> Gathered:
    return Gathered(weighed.evidence, weighed.dropped, by, inexact=weighed.inexact)


async def gather_by_rule(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Weigh the results by rule: quote what is relevant to the question, skip the rest. What was looked up for a
    computation is evidence as it is."""
    if looked_up := _looked_up(run):
        yield Gathered(looked_up)
        return
    ranked = scoring.rank_passages(run.query, await past_searches(run, context), context.hops)
    led = found_by_steps(run)
    best = ranked[: weigh.KEPT] + [each for each in ranked[weigh.KEPT :] if each.hit.passage.id in led]
    evidence = weigh.by_rule(run.query, [(each.hit, each.score) for each in best], run.evidence)
    kept = {each.passage.id for each in evidence} | {each.passage.id for each in run.evidence}
    dropped = tuple(found.passage.id for found in run.unweighed if found.passage.id not in kept)
    yield Gathered(evidence, dropped)


def found_by_steps(run: Run) -> frozenset[str]:
    """The best passages of each search for a step of the plan: ranked for the whole question, those of one step may all
    come late."""
    asked = {step.question for step in (run.plan.steps if run.plan else ())}
    calls = [call.id for call in run.calls if call.arguments.get("query") in asked and call.id in run.results]
    return frozenset(each.passage.id for call in calls for each in run.results[call].found[:LED])


def _looked_up(run: Run) -> tuple[Evidence, ...]:
    """Evidence from the last call, if it looked something up for a computation: the rows it was for, or the sentence
    that speaks of the question most."""
    call = run.calls[-1] if run.calls else None
    if call is None or call.tool not in {catalogue.name, read_rows.name} or call.id not in run.results:
        return ()
    rows = [(int(start), int(end)) for start, _, end in (each.partition("-") for each in _rows(call))]
    found = run.results[call.id].found
    rare = weigh.rarity(run.question, [each.passage.text for each in found])
    evidence: list[Evidence] = []
    for passage in (each.passage for each in found):
        inside = [row for row in rows if passage.start <= row[0] and row[1] <= passage.end]
        words = weigh.best_sentence(passage, rare)
        if inside:
            words = weigh.quote(passage, inside[0][0] - passage.start, inside[0][1] - passage.start)
        key, flagged = weigh.evidence_key(passage), is_suspicious(f"{passage.context}\n{passage.text}")
        evidence.append(Evidence(key, passage, words, 10.0, run.question, flagged=flagged))
    return tuple(evidence)


def _rows(call: Call) -> list[str]:
    return str(call.arguments.get("rows", "")).split()
