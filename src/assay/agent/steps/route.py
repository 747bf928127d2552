"""Decides how a question is answered: direct, by a look-up or by research; a capable model plans the searches in the same
reply. One search before it says which documents are near; a person may be asked at the checkpoints they chose."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from assay import prompts
from assay.agent import prompt_window
from assay.agent.context import RunContext, mark, one_model
from assay.agent.near import LISTED, documents_near, is_near
from assay.agent.prompt_window import conversation, documents_of, render_history
from assay.agent.steps.plan import MOST, Proposed, build_plan, one_step, render_measures
from assay.core.events import (
    ANSWER_NOW,
    EACH,
    GO_ON,
    MORE_SOURCES,
    OTHER_WORDS,
    Checkpoint,
    Eagerness,
    Event,
    Paused,
    Planned,
    Route,
    Routed,
    Subject,
)
from assay.core.run import Run
from assay.core.types import Plan
from assay.language import dates
from assay.language.injection import is_suspicious
from assay.language.terms import content_terms, fold_case
from assay.models.cost import estimate_tokens
from assay.models.llm import Role
from assay.models.meter import NoReply

HINTS = {
    Eagerness.sparing: "The person wants few searches: prefer lookup.",
    Eagerness.normal: "",
    Eagerness.eager: "The person wants everything that can be found: prefer research.",
}

SHOWN = 600  # tokens of the conversation shown to a model
NEAREST, NEAREST_SMALL = 8, 4  # documents near the question that a model is shown which does not plan


class Routing(BaseModel, extra="forbid"):
    route: Literal["direct", "lookup", "research"]
    every: bool = False
    readings: list[Annotated[str, Field(max_length=200)]] = Field(default_factory=list, max_length=4)
    why: Annotated[str, Field(max_length=300)] = ""


class RoutingWithPlan(Routing):
    """The route, and the steps of a question to the documents."""

    steps: list[Proposed] = Field(default_factory=list, max_length=MOST)


async def route(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """The person's own choice takes precedence; then the model's proposal, unless it would pass over documents that may
    answer; otherwise research."""
    asked = run.asked
    if run.subject is Subject.answer:
        yield Routed(Route.rework, "it works on the last answer")
        return
    if is_greeting(run.question):
        yield Routed(Route.direct, "a greeting asks for nothing")
        return
    if run.subject is Subject.talk:
        chosen, why = await _allowed(run, context, Routing(route="direct", why="it asks the documents nothing"))
        yield Routed(chosen, why)
        return
    if not asked.has_model:
        yield Routed(asked.route or Route.research, "no model: researched by rule")
        return
    if asked.route is not None and asked.route is not Route.research:  # research is still asked for sets and readings
        yield Routed(asked.route, "as the person asked")
        return
    small, plans = context.small(Role.route), one_model(run, Role.route, Role.plan)
    near = await documents_near(run, context, LISTED if plans else NEAREST_SMALL if small else NEAREST)
    reply = await context.ask(
        Role.route,
        "route",
        RoutingWithPlan if plans else Routing,
        lambda room: _build_prompt(run, context, near, room, plans=plans),
        documents=sorted({*near, *documents_of(conversation(run))}),
        max_tokens=700 if plans else 220,
    )
    if isinstance(reply, NoReply):
        yield Routed(Route.research, f"researched: {reply.detail}")
        return
    proposed, by = reply
    route, why = await _allowed(run, context, proposed)
    steps = build_plan(proposed.steps, run.asked.today).steps if isinstance(proposed, RoutingWithPlan) else ()
    every = proposed.every and route is not Route.direct
    if route is not Route.direct and (every or len(steps) > 1):
        route = Route.research
    if asked.route is not None:
        route, why = asked.route, "as the person asked"
    # A small model makes readings up.
    readings = distinct_readings(proposed.readings) if route is not Route.direct and not small else ()
    routed = run.routed  # a process may have died before it could record the plan
    if routed is None:
        routed = Routed(route, why, every=every, readings=readings, by=by)
        yield routed
    if plans and not routed.readings and routed.route is not Route.direct:
        yield Planned(Plan(steps) if steps else one_step(run), by)


def route_due(run: Run) -> bool:
    """Whether the question has no route yet, or the plan is not recorded that came in the same reply."""
    routed = run.routed
    if routed is None:
        return True
    searches = routed.route is not Route.direct and not routed.readings and run.plan is None
    return searches and routed.by.startswith("route@") and one_model(run, Role.route, Role.plan)


def _build_prompt(run: Run, context: RunContext, near: Mapping[str, str], room: int, *, plans: bool) -> dict[str, str]:
    earlier = render_history(conversation(run), mark(run), min(room // 2, SHOWN))
    listed = prompt_window.render_documents(run, near)
    return {
        "and_plan": ", and plan its searches" if plans else "",
        "steps": prompts.template("steps") if plans else "",
        "measures": render_measures(run.question, context) if plans else "",
        "history": f"The conversation so far:\n{earlier}\n" if earlier else "",
        "bases": prompt_window.render_bases(run),
        "documents": f"{listed}\n" if listed and estimate_tokens(listed) <= room // 3 else "",
        "today": dates.with_weekday(run.asked.today),
        "eagerness": HINTS[run.asked.eagerness],
        "question": run.question,
    }


async def _allowed(run: Run, context: RunContext, proposed: Routing) -> tuple[Route, str]:
    """The route that a proposal leads to. A question that the documents may answer is never answered without them."""
    why = proposed.why.strip() or "as the model judged"
    if proposed.route == "direct":
        if not context.general:
            return Route.lookup, "answers that are not from the documents are switched off"
        if await is_near(run, context, run.query):
            return Route.lookup, "the documents may answer it"
        return Route.direct, why
    if run.asked.eagerness is Eagerness.eager:
        return Route.research, why
    return Route(proposed.route), why


def distinct_readings(readings: Sequence[str]) -> tuple[str, ...]:
    """The readings that differ in their words. A single reading counts as none."""
    kept: dict[frozenset[str], str] = {}
    for reading in (" ".join(each.split()) for each in readings):
        if reading and not is_suspicious(reading):
            kept.setdefault(frozenset(content_terms(reading)), reading)
    return tuple(kept.values()) if len(kept) > 1 else ()


PAUSES: Mapping[Checkpoint, tuple[str, tuple[str, ...]]] = {
    Checkpoint.searches: ("Three searches were made. Go on, or answer from what there is?", (GO_ON, ANSWER_NOW)),
    Checkpoint.nothing: (
        "Nothing relevant was found. Try other words, or have the gap said?",
        (OTHER_WORDS, ANSWER_NOW),
    ),
    Checkpoint.sources: ("These are the sources. Answer from them, or look for more?", (ANSWER_NOW, MORE_SOURCES)),
}


def pause_due(run: Run) -> Checkpoint | None:
    """The checkpoint to pause at now, if any. Each checkpoint pauses a run at most once."""
    chosen = (
        {Checkpoint.reading, *run.asked.checkpoints}
        if run.asked.eagerness is Eagerness.sparing
        else run.asked.checkpoints
    )
    wanted = frozenset(chosen) - run.pauses
    if run.asked.may_be_reviewed:  # sources are the reviewer's to see first; of several readings, each is answered
        wanted -= {Checkpoint.sources, Checkpoint.reading}
    if run.plan is None:
        several = run.routed is not None and bool(run.routed.readings)
        return Checkpoint.reading if several and Checkpoint.reading in wanted else None
    if run.stopped is None:
        if Checkpoint.searches in wanted and len(run.results) >= 3 and not run.round_unjudged:
            return Checkpoint.searches
    elif run.draft is None:
        if Checkpoint.nothing in wanted and not run.evidence:
            return Checkpoint.nothing
        if Checkpoint.sources in wanted and run.evidence:
            return Checkpoint.sources
    elif Checkpoint.nothing in wanted and not run.asked.has_model and not run.draft.blocks:
        return Checkpoint.nothing  # rules find something near to any question: whether it answers is known only now
    return None


async def pause(run: Run, context: RunContext) -> AsyncIterator[Event]:
    at = pause_due(run)
    assert at is not None
    if at is Checkpoint.reading:
        yield Paused(at, "The question can be read in several ways. Which is meant?", (*run.readings, EACH))
    else:
        yield Paused(at, *PAUSES[at])


GREETING = frozenset("hi hello hey greetings morning afternoon evening hallo".split())
THANKS = frozenset("thanks thank thx cheers bye goodbye".split())
BESIDE = frozenset(
    "good there you very much so many a lot for your help that all everyone again day and to the".split()
)
GREETING_WORDS = 8  # words


def is_greeting(question: str) -> bool:
    """Whether a question only greets or thanks."""
    words = re.findall(r"[^\W_]+", fold_case(question))
    greets = not (GREETING | THANKS).isdisjoint(words)
    return greets and len(words) <= GREETING_WORDS and (GREETING | THANKS | BESIDE).issuperset(words)


def reply_to_greeting(question: str) -> str:
    words = set(re.findall(r"[^\W_]+", fold_case(question)))
    return "You are welcome." if words & THANKS else "Hello. Ask a question about your documents."
