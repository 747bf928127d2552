"""Weighs what was found: ranks new results by rule, passes only the best on to a model, and keeps what bears on the
question as evidence. Where one request weighs all, its reply also says whether there is enough. See
docs/decisions/0008-cost.md."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import BaseModel, Field

from assay.agent import prompt_window
from assay.agent.context import RunContext, mark, one_model, run_before
from assay.agent.steps.draft import reuse_evidence
from assay.agent.steps.read_evidence import past_searches
from assay.agent.toolbox import TOOLS
from assay.agent.toolbox.collection import catalogue
from assay.agent.toolbox.reading import read_rows, row_spans
from assay.answer import weigh
from assay.answer.weigh import JudgedWeights, Sufficiency, Weights
from assay.core.errors import ModelError
from assay.core.events import (
    Critiqued,
    Decided,
    Event,
    Failed,
    Found,
    Gathered,
    Mode,
    ModelReplied,
    Resumed,
    Route,
    Routed,
    StepAnswered,
    ToolRan,
)
from assay.core.run import Run
from assay.core.types import Evidence, Hit, Passage
from assay.index import hop_ranking
from assay.models.cost import estimate_tokens, fit_to_tokens
from assay.models.llm import AnswerModel, Role
from assay.models.meter import NoReply
from assay.models.replies import UnreadableReply, read
from assay.prompts import context_label, fence

ONE_SHOT = 8  # passages that go to the writer as they are
LED = 10  # passages of the search for a step of the plan that are always evidence
SO_FAR = 4  # share of the window for what is known already, in a request that also judges
OF_SET = 3  # times as much in a request about a whole set
SET = 300  # passages weighed for a question about a whole set, at most


def gather(run: Run, context: RunContext) -> AsyncIterator[Event]:
    if run.route is Route.rework:
        return reuse_evidence(run)
    by_rule = not run.asked.has_model and context.assess is None
    return gather_by_rule(run, context) if by_rule else gather_by_model(run, context)


async def gather_by_model(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Evidence from the new passages that sift.py left, batched into requests that fit one context window."""
    waiting = {found.passage.id for found in run.unweighed}
    before = run_before(run, _weighs)
    sent = _in_order(before)
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
    shared = _batches(before, context)
    groups = [group for group in shared if any(found.passage.id in waiting for found in group)]
    judges = _judges_too(before, context, shared)
    work = [asyncio.ensure_future(_weighed(before, context, group, judges=judges)) for group in groups]
    try:
        for done in asyncio.as_completed(work):
            yield await done
    finally:
        for each in work:
            each.cancel()
        await asyncio.gather(*work, return_exceptions=True)


def _best_as_they_are(run: Run, sent: Sequence[Found]) -> Gathered:
    """The first passages of a search as evidence, without weighing: a higher rank is a higher score."""
    rare = weigh.rarity(run.question, [each.passage.text for each in sent])
    evidence = tuple(
        weigh.as_evidence(each.passage, weigh.best_sentence(each.passage, rare), float(10 - place), run.question)
        for place, each in enumerate(sent[:ONE_SHOT])
    )
    return Gathered(evidence, tuple(each.passage.id for each in sent[ONE_SHOT:]))


def _weighs(event: Event) -> bool:
    weighed = isinstance(event, Gathered) and bool(event.evidence or event.dropped)
    return weighed or isinstance(event, ModelReplied | Failed | Resumed)


def _in_order(run: Run) -> list[Found]:
    return sorted(run.unweighed, key=lambda found: (found.rank, -found.score, found.passage.id))


def _batches(run: Run, context: RunContext) -> list[tuple[Found, ...]]:
    """Several passages per request save most of the cost, but small models mix them up. A request may be a quarter longer if
    it then holds all: a second would take a third, to judge what two have weighed."""
    small, width, found = context.small(Role.weigh), context.width, _in_order(run)[:SET]
    if not small and run.every:  # many passages, and of each only whether it belongs to the set
        width = replace(width, tokens=OF_SET * width.tokens, together=OF_SET * width.together)
    limits = replace(width, together=width.alone) if small else width
    longer = replace(limits, tokens=limits.tokens * 5 // 4)
    all_in_one, *more = weigh.batches(found, context.window(Role.weigh), longer)
    return list(weigh.batches(found, context.window(Role.weigh), limits)) if more else [all_in_one]


def _judges_too(run: Run, context: RunContext, groups: Sequence[Sequence[Found]]) -> bool:
    """Whether the request that weighs also asks if there is enough: one request weighs all, and one capable model has
    both roles."""
    if len(groups) != 1 or run.plan is None or not one_model(run, Role.weigh, Role.judge):
        return False
    window = context.window(Role.weigh)
    known = _so_far(run, context.dated_titles(run), window // SO_FAR)
    return weigh.leaves_room(groups[0], window, estimate_tokens(known))


def judged_with_weighing(run: Run, context: RunContext) -> tuple[Sufficiency, str, Mapping[str, Passage]] | None:
    """What the reply that weighed the last results says of the evidence as a whole, and the passages by the ids it was
    shown; None if they were weighed otherwise. The reply is read from its record."""
    before = run_before(run, lambda event: _weighs(event) or isinstance(event, StepAnswered | Routed | Critiqued))
    weighed = next((event for event in reversed(run.events) if isinstance(event, Gathered)), None)
    if weighed is None or not weighed.by.startswith("weigh@") or not before.unweighed:
        return None
    groups = _batches(before, context)
    if not _judges_too(before, context, groups):  # what a reply says of the whole without being asked does not count
        return None
    since = (event for event in reversed(run.events[len(before.events) :]) if isinstance(event, ModelReplied))
    reply = next((event for event in since if event.prompt == "weigh"), None)
    try:
        return (read(JudgedWeights, reply.text), weighed.by, _shown(groups[0])) if reply else None
    except UnreadableReply:
        return None


async def _weighed(run: Run, context: RunContext, group: Sequence[Found], *, judges: bool = False) -> Gathered:
    reply = await _ask(run, context, group, judges=judges)
    if isinstance(reply, NoReply):
        ruled = weigh.weigh_by_words(run.query, prompt_window.wanted_parts(run), group, context.cutoff)
        return replace(ruled, why=reply.detail, fallback=(reply.why,))
    weights, by = reply
    return replace(weigh.read(weights.passages, _shown(group), run.question, context.cutoff), by=by)


def _shown(group: Sequence[Found]) -> dict[str, Passage]:
    return {f"P{place}": each.passage for place, each in enumerate(group, 1)}


async def _ask(run: Run, context: RunContext, group: Sequence[Found], *, judges: bool) -> tuple[Weights, str] | NoReply:
    titles = context.dated_titles(run)
    steps = [step.id for step in (run.plan.steps if run.plan else ())] if judges else []
    parts = () if judges else prompt_window.wanted_parts(run)
    pictures = await context.pictures(Role.weigh, run, _shown(group).items())

    def build_prompt(room: int) -> Mapping[str, str]:
        so_far = _so_far(run, titles, min(room, context.window(Role.weigh) // SO_FAR)) if judges else ""
        return weigh.build_prompt(
            run.question,
            parts,
            group,
            titles,
            mark(run),
            room,
            so_far,
            today=run.asked.today,
            whole_set=run.every,
            pictures=bool(pictures),
        )

    return await context.ask(
        Role.weigh,
        "weigh",
        JudgedWeights if judges else Weights,
        build_prompt,
        schema=weigh.schema(
            len(group), steps, [each.key for each in run.evidence] if judges else (), whole_set=run.every
        ),
        documents=sorted({each.passage.doc_id for each in (*group, *(run.evidence if judges else ()))}),
        max_tokens=150 + weigh.REPLY * len(group) + weigh.JUDGING * (2 if run.every else 1) * judges,
        pictures=[*pictures.values()],
    )


def _so_far(run: Run, titles: Mapping[str, str], room: int) -> str:
    """The steps, what is missing, what was searched for, and the evidence of earlier rounds."""
    parts = [prompt_window.render_steps(run), prompt_window.render_missing(run)]
    parts.append(prompt_window.render_searches(run, room // 4))
    if run.evidence:
        rest = max(100, room - sum(map(estimate_tokens, parts)))
        parts.append(f"Evidence of earlier rounds:\n{prompt_window.render_evidence(run, titles, rest)}")
    return "\n".join(filter(None, parts)) + "\n\n"


async def _by_answer_model(run: Run, context: RunContext, reader: AnswerModel, sent: Sequence[Found]) -> Gathered:
    """Weighed in process. The answer model tells what answers better than a small language model, at no request."""
    ranked = hop_ranking.rank_passages(run.query, await past_searches(run, context), context.hops)
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
    return replace(weigh.weigh_by_readings(run.query, passages, readings, worth, context.cutoff), by=reader.name)


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
    return replace(weigh.read(list(weights), shown, run.question, context.cutoff), by="assessor")


async def gather_by_rule(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Weigh the results by rule: quote what is relevant to the question, skip the rest. What was looked up for a
    computation is evidence as it is."""
    if looked_up := _looked_up(run):
        yield Gathered(looked_up)
        return
    ranked = hop_ranking.rank_passages(run.query, await past_searches(run, context), context.hops)
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
    rows = row_spans(str(call.arguments.get("rows", "")))
    found = run.results[call.id].found
    rare = weigh.rarity(run.question, [each.passage.text for each in found])
    evidence: list[Evidence] = []
    for passage in (each.passage for each in found):
        inside = [row for row in rows if passage.start <= row[0] and row[1] <= passage.end]
        words = weigh.best_sentence(passage, rare)
        if inside:
            words = weigh.quote(passage, inside[0][0] - passage.start, inside[0][1] - passage.start)
        evidence.append(weigh.as_evidence(passage, words, 10.0, run.question))
    return tuple(evidence)


OVERLAP = 0.7  # share of a passage that another one holds, from which on it says nothing new
RERANKED = 40  # passages of the shortlist that a model scores


@dataclass(frozen=True, slots=True)
class SiftLimits:
    """Most passages weighed per round: the best of the run, and the best of each call that was decided on."""

    of_run: int
    of_call: int
    read: int = 8  # of a call that reads within one document
    of_lookup: int = 8  # together, of a look-up: they are weighed in one request


SIFT_LIMITS = {Mode.quick: SiftLimits(6, 3), Mode.balanced: SiftLimits(12, 4), Mode.thorough: SiftLimits(16, 6)}


def sift_due(run: Run) -> bool:
    """Whether several results are unweighed and were not sifted since they came in."""
    if run.route is Route.one_shot or len(run.unweighed) < 2 or (run.every and not _beyond_set(run)):
        return False
    last = next((event for event in reversed(run.events) if isinstance(event, Gathered | ToolRan)), None)
    return isinstance(last, ToolRan)


async def sift(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Skip the unpromising passages; the rest is weighed next."""
    if run.every:
        yield Gathered((), skipped=_beyond_set(run))
        return
    limits = SIFT_LIMITS[run.asked.mode]
    waiting = dict.fromkeys(found.passage.id for found in run.unweighed)
    ranked = [
        each.hit for each in hop_ranking.rank_passages(run.query, await past_searches(run, context), context.hops)
    ]
    if context.reranks and not context.small(Role.weigh):
        ranked = await _rerank(run, context, ranked)
    best: list[str] = []
    for result, called in _of_this_round(run):
        most = limits.read if called in TOOLS and TOOLS[called].reads_one else limits.of_call
        best += [found.passage.id for found in result if found.passage.id in waiting][:most]
    # Ranked over the whole run, so that a later round does not weigh what an earlier one rightly skipped.
    first = [hit.passage.id for hit in ranked[: limits.of_run] if hit.passage.id in waiting]
    kept = _distinct([*best, *first], run)
    if run.route is Route.lookup:
        kept = kept[: max(limits.of_lookup, len(best))]
    yield Gathered((), skipped=tuple(each for each in waiting if each not in kept))


MANY, OF_EACH = 8, 4  # documents of a set from which on the best passages of each are weighed, and how many


def _beyond_set(run: Run) -> tuple[str, ...]:
    """The passages that come after the best of each document, where a search for a set found many documents. A document
    that is then read to its end brings them again."""
    by_document: dict[str, list[str]] = {}
    for found in _in_order(run):
        by_document.setdefault(found.passage.doc_id, []).append(found.passage.id)
    if len(by_document) < MANY:
        return ()
    return tuple(passage for passages in by_document.values() for passage in passages[OF_EACH:])


class Score(BaseModel, extra="forbid"):
    id: str
    score: int = Field(ge=0, le=10)


class Scores(BaseModel, extra="forbid"):
    scores: list[Score] = Field(max_length=RERANKED)


async def _rerank(run: Run, context: RunContext, ranked: Sequence[Hit]) -> list[Hit]:
    """The shortlist in the order of a model's scores; the recorded reply keeps them. Without a reply, as it was."""
    near, rest = ranked[:RERANKED], ranked[RERANKED:]

    def build_prompt(room: int) -> Mapping[str, str]:
        own = max(20, (room - 2 * estimate_tokens(run.question)) // max(1, len(near)) - 40)
        shown = [
            fence(
                mark(run),
                f"P{place}, from {hit.title!r}{context_label(hit.passage)}",
                fit_to_tokens(hit.passage.text, own),
            )
            for place, hit in enumerate(near, 1)
        ]
        return {"question": run.question, "passages": "\n".join(shown)}

    reply = await context.ask(
        Role.weigh,
        "rerank",
        Scores,
        build_prompt,
        documents=sorted({hit.passage.doc_id for hit in near}),
        max_tokens=100 + 20 * len(near),
    )
    if isinstance(reply, NoReply):
        return list(ranked)
    scores = {each.id: each.score for each in reversed(reply[0].scores)}
    order = sorted(enumerate(near, 1), key=lambda pair: (-scores.get(f"P{pair[0]}", 0), pair[0]))
    return [*(hit for _, hit in order), *rest]


def _distinct(passages: Sequence[str], run: Run) -> list[str]:
    """The passages without those that say the same as an earlier one, or as one weighed before: the same words, or mostly
    the same place of a document."""
    found = {found.passage.id: found.passage for found in run.found}
    seen = [each.passage for each in run.evidence]
    kept: list[str] = []
    for each in dict.fromkeys(passages):
        if not any(_is_same(found[each], other) for other in seen):
            seen.append(found[each])
            kept.append(each)
    return kept


def _is_same(one: Passage, other: Passage) -> bool:
    if one.doc_id != other.doc_id:
        return one.text.split() == other.text.split()
    shared = min(one.end, other.end) - max(one.start, other.start)
    return shared >= OVERLAP * (one.end - one.start)


def _of_this_round(run: Run) -> list[tuple[Sequence[Found], str]]:
    """Results of the calls since the last weighing; searches that follow names are ranked with the rest."""
    found: list[tuple[Sequence[Found], str]] = []
    results: dict[str, ToolRan] = run.results
    for event in reversed(run.events):
        if isinstance(event, Gathered) and not event.skipped:
            break
        if isinstance(event, Decided):
            found += [
                (results[call.id].found, call.tool)
                for call in event.calls
                if call.id in results
                if not event.hops or (call.tool in TOOLS and TOOLS[call.tool].reads_one)
            ]
    return found
