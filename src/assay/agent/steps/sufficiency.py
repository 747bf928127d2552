"""Enough? What is missing? What did each step find? And, when a draft stands: is it complete?"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from functools import cache
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from assay.agent import prompt_window
from assay.agent.context import RunContext
from assay.agent.limits import Limits
from assay.core.events import Critiqued, Event, Judged, Mode, Route, Routed, StepAnswered
from assay.core.run import Run
from assay.language.injection import is_suspicious
from assay.language.terms import fold_case
from assay.models.llm import Role
from assay.models.meter import NoReply

Short = Annotated[str, Field(max_length=200)]


class Found(BaseModel):
    model_config = ConfigDict(extra="forbid")

    step: str
    value: Short
    key: str


class Sufficiency(BaseModel):
    model_config = ConfigDict(extra="forbid")

    answers: list[Found] = Field(default_factory=list, max_length=12)
    enough: bool
    missing: list[Short] = Field(default_factory=list, max_length=6)
    surprise: bool = False


class Critique(BaseModel):
    model_config = ConfigDict(extra="forbid")

    complete: bool
    gap: Short = ""


async def judge(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """After each round. With no evidence there is nothing to ask a model about; a look-up that found nothing becomes
    research, and one that found something is enough."""
    strong = [each for each in run.evidence if each.score >= context.cutoff]
    if not strong:
        if run.route is Route.lookup and run.asked.route is None:
            routed = run.routed
            assert routed is not None
            yield Routed(
                Route.research, "the look-up found nothing", routed.since, routed.until, routed.every, routed.readings
            )
        yield Judged(False, (run.question,), "nothing relevant was found")
        return
    if run.route is Route.lookup:
        searched = run.rounds > 0  # what earlier turns found is no search
        yield Judged(
            searched, (), "a look-up takes what one search finds" if searched else "nothing was searched for yet"
        )
        return
    if run.every:
        left = run.examined.left if run.examined else 0
        yield Judged(not left, (), "everything that matches was looked at" if not left else f"{left} passages are left")
        return
    before = _as_begun(run)
    reply = await context.ask(
        Role.judge,
        "judge",
        Sufficiency,
        lambda room: _lay_out(before, context, room),
        schema=schema(before),
        documents=sorted({each.passage.doc_id for each in run.evidence}),
        max_tokens=400,
    )
    if isinstance(reply, NoReply):
        yield Judged(False, (), reply.detail, fallback=(reply.why,))
        return
    judged, by = reply
    for each in bindings(before, judged):
        if each[0] not in run.bound:
            yield StepAnswered(*each, by)
    missing = tuple(each.strip() for each in judged.missing if each.strip() and not is_suspicious(each))
    yield Judged(judged.enough, () if judged.enough else missing, "", by, judged.surprise)


def _as_begun(run: Run) -> Run:
    """The run without what a judgement that was broken off has bound already: it is shown what it was shown then."""
    events = run.events
    while isinstance(events[-1], StepAnswered):
        events = events[:-1]
    return Run(run.id, events)


def _lay_out(run: Run, context: RunContext, room: int) -> Mapping[str, str]:
    fixed = {"question": run.question, "steps": prompt_window.steps(run)}
    rest = max(100, room - sum(prompt_window.estimate_tokens(each) for each in fixed.values()) - 40)
    return fixed | {
        "evidence": prompt_window.evidence(run, context.titles(run), rest * 3 // 4),
        "searched": prompt_window.searched(run, rest // 4),
    }


@cache
def _form() -> str:
    return json.dumps(Sufficiency.model_json_schema())


def schema(run: Run) -> dict[str, Any]:
    """The reply's form, with the steps and keys that there are."""
    made = json.loads(_form())
    found = made["$defs"]["Found"]["properties"]
    found["step"] = {"type": "string", "enum": [step.id for step in (run.plan.steps if run.plan else ())] or ["s1"]}
    found["key"] = {"type": "string", "enum": [each.key for each in run.evidence]}
    made["required"] = ["answers", "enough", "missing", "surprise"]
    return made


def bindings(run: Run, judged: Sufficiency) -> list[tuple[str, str, tuple[str, ...]]]:
    """Answers of steps that can be believed: the step is there and open, and the value stands in the evidence it names."""
    steps = {step.id for step in (run.plan.steps if run.plan else ())} - run.bound.keys()
    known = {each.key: each for each in run.evidence}
    good: dict[str, tuple[str, str, tuple[str, ...]]] = {}
    for each in judged.answers:
        value, evidence = each.value.strip(), known.get(each.key)
        if each.step not in steps or each.step in good or evidence is None or not value:
            continue
        if fold_case(value) in fold_case(evidence.passage.text) and not is_suspicious(value):
            good[each.step] = (each.step, value, (each.key,))
    return list(good.values())


# --- the draft as a whole -------------------------------------------------------------------------------------------


def wants_critique(run: Run, limits: Limits) -> bool:
    """Once a run, where somebody took the trouble to research, and where a gap could still be searched for."""
    return (
        run.asked.has_model
        and run.asked.mode is not Mode.quick
        and run.route is Route.research
        and run.critiqued is None
        and bool(run.checked)
        and limits.reached(run) is None
    )


async def critique(run: Run, context: RunContext) -> AsyncIterator[Event]:
    claims = [claim.words for _, claim in sorted(run.checked.items()) if claim.verdict == "supported"]

    def build_prompt(room: int) -> Mapping[str, str]:
        from assay.models.token_estimate import fit_to_tokens
        from assay.prompts.fence import fence, fence_mark

        rest = max(100, room - prompt_window.estimate_tokens(run.question) - 60)
        shown = fence(
            fence_mark(run.id), "the draft", fit_to_tokens("\n".join(f"- {each}" for each in claims), rest * 2 // 3)
        )
        return {"question": run.question, "draft": shown, "searched": prompt_window.searched(run, rest // 3)}

    reply = await context.ask(
        Role.judge,
        "critique",
        Critique,
        build_prompt,
        documents=sorted({each.passage.doc_id for each in run.evidence}),
        max_tokens=150,
    )
    if isinstance(reply, NoReply):
        yield Critiqued(True, "", f"not reviewed: {reply.detail}")
        return
    verdict, by = reply
    gap = verdict.gap.strip()
    yield Critiqued(verdict.complete or not gap, "" if verdict.complete else gap, "", by)
