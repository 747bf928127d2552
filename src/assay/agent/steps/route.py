"""Routes a question: direct answer, single look-up, or research. A model decides, having seen what documents are near;
only that no document is near lets it answer without them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from assay.agent import prompt_window
from assay.agent.context import RunContext, mark
from assay.agent.first_look import documents_near, is_near
from assay.agent.turns import conversation, documents_of, render_history
from assay.answer import greetings
from assay.core.events import Checkpoint, Eagerness, Event, Route, Routed, Subject
from assay.core.run import Run
from assay.language import dates
from assay.language.injection import is_suspicious
from assay.language.terms import content_terms
from assay.models.cost import estimate_tokens
from assay.models.llm import Role
from assay.models.meter import NoReply

HINTS = {
    Eagerness.sparing: "The person wants few searches: prefer lookup.",
    Eagerness.normal: "",
    Eagerness.eager: "The person wants everything that can be found: prefer research.",
}


SHOWN = 600  # tokens of the conversation shown to a model
LISTED, LISTED_SMALL = 8, 4  # documents near the question that a model is shown


class Routing(BaseModel):
    model_config = ConfigDict(extra="forbid")

    route: Literal["direct", "lookup", "research"]
    every: bool = False
    readings: list[Annotated[str, Field(max_length=200)]] = Field(default_factory=list, max_length=4)
    query: Annotated[str, Field(max_length=300)] = ""
    why: Annotated[str, Field(max_length=300)] = ""


async def route(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """The person's own choice takes precedence; then the model's proposal, unless it would pass over documents that may
    answer; otherwise research."""
    asked = run.asked
    if run.subject is Subject.answer:
        yield Routed(Route.rework, "it works on the last answer")
        return
    if greetings.is_greeting(run.question):
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
    small = context.small(Role.route)
    near = await documents_near(run, context, LISTED_SMALL if small else LISTED)
    reply = await context.ask(
        Role.route,
        "route",
        Routing,
        lambda room: _build_prompt(run, near, room),
        documents=sorted({*near, *documents_of(conversation(run))}),
        max_tokens=220,
    )
    if isinstance(reply, NoReply):
        yield Routed(Route.research, f"researched: {reply.detail}")
        return
    proposed, by = reply
    route, why = await _allowed(run, context, proposed)
    if asked.route is not None:
        route, why = asked.route, "as the person asked"
    every = proposed.every and route is not Route.direct
    # A small model makes readings up, and adds to a query what nobody asked for.
    readings = distinct_readings(proposed.readings) if route is not Route.direct and not small else ()
    route = Route.research if every else route
    reworded = route is Route.lookup and not small
    query = " ".join(proposed.query.split()) if reworded and not is_suspicious(proposed.query) else ""
    yield Routed(route, why, every=every, readings=readings, by=by, query=query)


def _build_prompt(run: Run, near: Mapping[str, str], room: int) -> dict[str, str]:
    earlier = render_history(conversation(run), mark(run), min(room // 2, SHOWN))
    listed = prompt_window.render_documents(run, near)
    return {
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


def reading_due(run: Run) -> bool:
    """Whether to ask the person which reading is meant: there are several, the person chose to be asked, and was not
    asked yet."""
    asked, routed = run.asked, run.routed
    if asked.may_be_reviewed:  # readings are words of a model: each is answered instead
        return False
    wanted = Checkpoint.reading in asked.checkpoints or asked.eagerness is Eagerness.sparing
    return wanted and routed is not None and bool(routed.readings) and Checkpoint.reading not in run.pauses
