"""Is the evidence enough? A model, or rules, say what is missing; the search stops, with its reason, or is reopened
once for what the judge of the draft found missing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from assay.agent import prompt_window
from assay.agent.context import RunContext, run_before
from assay.agent.steps.decide import COMPUTED, computes, matching_unread, tried_to_read
from assay.agent.steps.gather import judged_with_weighing
from assay.agent.toolbox.documents import some
from assay.answer.weigh import JUDGING, VALUES, Sufficiency, evidence_key, judgement_schema, judging_instructions
from assay.core.events import (
    ANSWER_NOW,
    RULES,
    Checkpoint,
    Critiqued,
    Decided,
    Event,
    Gathered,
    Judged,
    Route,
    Routed,
    StepAnswered,
    Stopped,
    StopReason,
)
from assay.core.run import Run
from assay.core.types import Passage
from assay.language.dates import with_weekday
from assay.language.injection import is_suspicious
from assay.language.terms import content_terms, fold_case
from assay.models.llm import Role
from assay.models.meter import NoReply


async def sufficiency(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Judge after each round: as the reply that weighed its results says, or in a request of its own. Unchanged evidence
    is not judged again. A look-up that does not find everything becomes research."""
    if not run.asked.has_model:  # no rule says that the evidence is enough, or what it lacks
        yield Judged(False, (), COMPUTED["answer"] if computes(run) else "")
        return
    said = judged_with_weighing(run, context)
    searches = proposed_searches(said[0].searches) if said else ()
    strong = [each for each in run.evidence if each.score >= context.cutoff]
    if not strong:
        if run.route is Route.one_shot:
            yield Judged(True, (run.question,), "one search found nothing")
            return
        if becomes_research(run):
            yield _as_research(run, "the look-up found nothing")
        yield Judged(False, (run.question,), "nothing relevant was found", searches=searches)
        return
    if run.route is Route.one_shot or (run.route is Route.lookup and (said is None or not becomes_research(run))):
        yield Judged(True, (), "a look-up takes what one search finds")
        return
    news = (each for each in reversed(run.events) if isinstance(each, Judged | Gathered))
    last = next((each for each in news if isinstance(each, Judged) or each.evidence), None)
    if said is None and run.judged is not None and isinstance(last, Judged):
        if run.every and not run.judged.missing:
            yield _judge_set(run, matching_unread(run))
        else:
            yield Judged(run.judged.enough, run.judged.missing, "nothing new was found")
        return
    before = run_before(run, lambda event: isinstance(event, StepAnswered))
    reply = said[:2] if said else await _ask(before, context)
    if isinstance(reply, NoReply):
        yield Judged(False, (), reply.detail, fallback=(reply.why,))
        return
    judged, by = reply
    for each in bindings(before, judged, said[2] if said else {}):
        if each[0] not in run.bound:
            yield StepAnswered(*each, by)
    if judged.enough and (read := _documents_to_read(run, judged, said[2] if said else {})):
        yield replace(_judge_set(run, read), by=by, read=read)
        return
    if run.route is Route.lookup and not judged.enough:
        yield _as_research(run, "the look-up did not find everything")
    missing = tuple(each.strip() for each in judged.missing if each.strip() and not is_suspicious(each))
    searches = () if judged.enough else proposed_searches(judged.searches)
    yield Judged(judged.enough, () if judged.enough else missing, "", by, judged.surprise, searches=searches)


async def _ask(run: Run, context: RunContext) -> tuple[Sufficiency, str] | NoReply:
    steps = [step.id for step in (run.plan.steps if run.plan else ())]
    return await context.ask(
        Role.judge,
        "judge",
        Sufficiency,
        lambda room: _build_prompt(run, context, room),
        schema=judgement_schema(Sufficiency, steps, [each.key for each in run.evidence], whole_set=run.every),
        documents=sorted({each.passage.doc_id for each in run.evidence}),
        max_tokens=JUDGING * (2 if run.every else 1),
    )


def proposed_searches(queries: Sequence[str]) -> tuple[str, ...]:
    """The queries that can be searched for."""
    plain = (" ".join(each.split()) for each in queries)
    return tuple(dict.fromkeys(each for each in plain if content_terms(each) and not is_suspicious(each)))


def becomes_research(run: Run) -> bool:
    """Whether a look-up may go on as research: a model chose it, and something was searched for."""
    return run.route is Route.lookup and run.asked.route is None and bool(run.rounds)


def _as_research(run: Run, why: str) -> Routed:
    assert run.routed is not None
    return replace(run.routed, route=Route.research, why=why, by=RULES)


def _documents_to_read(run: Run, judged: Sufficiency, shown: Mapping[str, Passage]) -> tuple[str, ...]:
    """The documents that a judge wants read to their end, and that were not tried."""
    passages = {each.key: each.passage for each in run.evidence} | dict(shown)
    wanted = dict.fromkeys(passages[each].doc_id for each in judged.read if each in passages)
    return tuple(each for each in wanted if run.every and each not in tried_to_read(run))


def _judge_set(run: Run, unread: Sequence[str]) -> Judged:
    """A whole set is complete when every document with evidence was read to its end, as far as that can be done."""
    if unread:
        return Judged(False, (), f"{some(len(unread), 'document')} that match are still to be read to the end")
    examined = run.examined
    partly = len(examined.partly) if examined else 0
    why = f"{some(partly, 'document')} that match are too long to be read to the end"
    return Judged(True, (), why if partly else "every document that matches was read to its end")


def _build_prompt(run: Run, context: RunContext, room: int) -> Mapping[str, str]:
    fixed = {
        "enough": judging_instructions(whole_set=run.every),
        "question": run.question,
        "today": with_weekday(run.asked.today),
        "steps": prompt_window.render_steps(run),
    }
    rest = max(100, room - sum(prompt_window.estimate_tokens(each) for each in fixed.values()) - 40)
    return fixed | {
        "evidence": prompt_window.render_evidence(run, context.dated_titles(run), rest * 3 // 4),
        "searched": prompt_window.render_searches(run, rest // 4),
    }


def bindings(
    run: Run, judged: Sufficiency, shown: Mapping[str, Passage] = MappingProxyType({})
) -> list[tuple[str, str, tuple[str, ...]]]:
    """The step answers that can be trusted: the step exists and is open, and each value occurs in the evidence it names,
    by its key or by the id of a passage that was shown. A step that found several things has all of them."""
    steps = {step.id for step in (run.plan.steps if run.plan else ())} - run.bound.keys()
    known = {each.key: each for each in run.evidence}
    known |= {id: known[key] for id, passage in shown.items() if (key := evidence_key(passage)) in known}
    good: dict[str, dict[str, str]] = {}  # step → values, each with its key
    for each in judged.answers:
        value, evidence = each.value.strip(), known.get(each.key)
        if each.step not in steps or evidence is None or not value:
            continue
        if fold_case(value) in fold_case(evidence.passage.text) and not is_suspicious(value):
            good.setdefault(each.step, {}).setdefault(value, evidence.key)
    found: list[tuple[str, str, tuple[str, ...]]] = []
    for step, values in good.items():
        *most, last = list(values)[:VALUES]
        said = " and ".join(filter(None, (", ".join(most), last)))
        found.append((step, said, tuple(dict.fromkeys(list(values.values())[:VALUES]))))
    return found


async def stop(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """End the search; the reason is an event."""
    judged = run.judged
    cut = next((each for each in run.current if isinstance(each, Gathered) and each.fallback), None)
    if run.chose(Checkpoint.searches, ANSWER_NOW) or run.chose(Checkpoint.nothing, ANSWER_NOW):
        yield Stopped(StopReason.person, "the person asked for an answer now")
    elif cut and cut.fallback:
        # A limit kept a model from weighing all results: sufficient evidence from half of them is not sufficient.
        why = "; ".join(filter(None, (cut.why, "not everything that was found could be weighed")))
        yield Stopped(StopReason(cut.fallback[0].value), why)
    elif run.satisfied and judged is not None:
        exhausted = run.every and not (run.examined and run.examined.partly)
        yield Stopped(StopReason.exhausted if exhausted else StopReason.sufficient, judged.why)
    elif limit := context.limits.reached(run):
        yield limit
    elif context.limits.barren(run) and not run.nothing_left:
        yield Stopped(StopReason.nothing_new, "two rounds brought nothing new")
    else:
        decided = next(event for event in reversed(run.current) if isinstance(event, Decided) and event.is_round)
        yield Stopped(decided.stop or StopReason.nothing_new, run.nothing_left)


async def reopen(run: Run, context: RunContext) -> AsyncIterator[Event]:
    judgement, routed, draft = run.judgement, run.routed, run.draft
    assert routed is not None and draft is not None
    if routed.route is not Route.research:
        yield replace(routed, route=Route.research, why="the look-up did not find everything", by=RULES)
    if judgement is None:
        missing = draft.missing or (run.question,)
        yield Critiqued(False, missing[0][:300], by=draft.by, missing=missing)
    else:
        yield Critiqued(False, judgement.gap, by=judgement.by, missing=judgement.missing, beside=judgement.beside)
