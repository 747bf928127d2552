"""Routes a question: direct answer, single look-up, or research. A model proposes; the rules decide."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from assay.agent import prompt_window
from assay.agent.context import RunContext, mark
from assay.agent.turns import conversation, documents_of, render_history
from assay.answer import greetings
from assay.core.events import Checkpoint, Eagerness, Event, Route, Routed, Subject
from assay.core.run import Run
from assay.language import dates
from assay.language.injection import is_suspicious
from assay.language.names import find_names
from assay.language.question_kind import asks_for_several
from assay.language.terms import content_terms, fold_case
from assay.models.llm import Role
from assay.models.meter import NoReply

HINTS = {
    Eagerness.sparing: "The person wants few searches: prefer lookup.",
    Eagerness.normal: "",
    Eagerness.eager: "The person wants everything that can be found: prefer research.",
}


SHOWN = 600  # tokens of the conversation shown to a model
ALL = re.compile(
    r"^\W*(?:[Ll]ist|[Ee]numerate|[Nn]ame (?:all|every|each))\b|\b[Ww]hich all\b|\b(?:complete|full|whole) list\b"
    r"|\b(?:[Ee]very|[Ee]ach) (?:single )?[a-z]+ (?:that|which|who|whose|with|in|of|at|for|from|on|under)\b"
    r"|\b[Aa]ll (?:of )?(?:the|our|my|these|those|their) [a-z]+(?: [a-z]+)?s\b",
)


class Routing(BaseModel):
    model_config = ConfigDict(extra="forbid")

    route: Literal["direct", "lookup", "research"]
    every: bool = False
    readings: list[Annotated[str, Field(max_length=200)]] = Field(default_factory=list, max_length=4)
    query: Annotated[str, Field(max_length=300)] = ""
    why: Annotated[str, Field(max_length=300)] = ""


async def route(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """The person's own choice takes precedence; then the model's proposal if the rules allow it; otherwise research."""
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
    if asked.route is not None:
        yield Routed(asked.route, "as the person asked", every=asks_for_all(run.question))
        return
    reply = await context.ask(
        Role.route,
        "route",
        Routing,
        lambda room: _build_prompt(run, room),
        documents=documents_of(conversation(run)),
        max_tokens=220,
    )
    if isinstance(reply, NoReply):
        yield Routed(Route.research, f"researched: {reply.detail}", every=asks_for_all(run.question))
        return
    proposed, by = reply
    route, why = await _allowed(run, context, proposed)
    every = (
        proposed.every and route is not Route.direct and (asks_for_all(run.question) or asks_for_several(run.question))
    )
    every = every or (route is not Route.direct and asks_for_all(run.question))
    readings = distinct_readings(run.question, proposed.readings) if route is not Route.direct else ()
    if every:
        route = Route.research
    reworded = route is Route.lookup and not context.small(Role.route)  # a small model adds what nobody asked for
    query = " ".join(proposed.query.split()) if reworded and not is_suspicious(proposed.query) else ""
    yield Routed(route, why, every=every, readings=readings, by=by, query=query)


def _build_prompt(run: Run, room: int) -> dict[str, str]:
    earlier = render_history(conversation(run), mark(run), min(room // 2, SHOWN))
    return {
        "history": f"The conversation so far:\n{earlier}\n" if earlier else "",
        "bases": prompt_window.render_bases(run),
        "today": dates.with_weekday(run.asked.today),
        "eagerness": HINTS[run.asked.eagerness],
        "question": run.question,
    }


async def _allowed(run: Run, context: RunContext, proposed: Routing) -> tuple[Route, str]:
    """The route after applying the rules to a proposal. A question about anything in the documents is never answered
    without them."""
    why = proposed.why.strip() or "as the model judged"
    if proposed.route == "direct":
        if not context.general:
            return Route.lookup, "answers that are not from the documents are switched off"
        if known := await name_in_documents(run.question, context):
            return Route.lookup, f"the documents speak of {known}"
        return Route.direct, why
    if run.asked.eagerness is Eagerness.eager:
        return Route.research, why
    return Route(proposed.route), why


async def name_in_documents(question: str, context: RunContext) -> str:
    """A name or number of the question that occurs in the documents; empty if there is none."""
    named = [name.text for name in find_names(question)] + [w for w in question.split() if any(c.isdigit() for c in w)]
    for name in named[:3]:
        wanted = fold_case(name.strip("?!.,;:"))
        for hit in await context.tool_context.retrieve(name, 3):
            if wanted in fold_case(f"{hit.title} {hit.passage.text}"):
                return name.strip("?!.,;:")
    return ""


def asks_for_all(question: str) -> bool:
    """Whether the question explicitly asks for a whole set. "How many" alone may ask for a number stated somewhere."""
    return ALL.search(question) is not None


def distinct_readings(question: str, readings: list[str]) -> tuple[str, ...]:
    """The valid readings: whole questions that keep the question's words, add some, and differ from each other. A
    question that names its subject has only one reading, and a single reading counts as none."""
    asked = frozenset(content_terms(question))
    if find_names(question) or len(asked) > 4:
        return ()
    kept: dict[frozenset[str], str] = {}
    for reading in (each.strip() for each in readings):
        terms = frozenset(content_terms(reading))
        if asked & terms and terms - asked and len(reading.split()) >= 4:
            kept.setdefault(terms, reading)
    return tuple(kept.values()) if len(kept) > 1 else ()


def reading_due(run: Run) -> bool:
    """Whether to ask the person which reading is meant: there are several, the person chose to be asked, and was not
    asked yet."""
    asked, routed = run.asked, run.routed
    if asked.may_be_reviewed:  # readings are words of a model: each is answered instead
        return False
    wanted = Checkpoint.reading in asked.checkpoints or asked.eagerness is Eagerness.sparing
    return wanted and routed is not None and bool(routed.readings) and Checkpoint.reading not in run.pauses
