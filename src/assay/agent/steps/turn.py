"""Turns of a conversation: sums up the oldest ones, says what the latest is about and rewrites it as a question that
stands alone, and recalls what earlier turns cited. A rewriting that names anything not mentioned before is rejected;
without a model a turn is searched for with the words of the turn before it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from assay.agent.context import RunContext, mark
from assay.agent.near import probability_of_answer
from assay.agent.prompt_window import LATEST, conversation, documents_of, is_talk, render_history
from assay.agent.steps.route import is_greeting
from assay.agent.toolbox.search import MOST
from assay.agent.toolbox.search import recall as recall_tool
from assay.core.events import Call, Decided, Event, HistorySummarised, Rephrased, Route, Subject, Task
from assay.core.run import Run
from assay.core.types import Exchange
from assay.language import facts
from assay.language.injection import is_suspicious
from assay.language.sentences import split_sentences
from assay.language.terms import content_terms
from assay.models.cost import estimate_tokens, fit_to_tokens
from assay.models.llm import Role
from assay.models.meter import NoReply

SHOWN = 1200  # tokens of the conversation shown to a model
LONGEST = 400  # characters of a question
ALONE = 0.9  # probability of an answer to a turn's own words from which on it stands alone: see docs/decisions/0012
SHORT = 25  # characters of an earlier question that may not say what it is about


class Turn(BaseModel, extra="forbid"):
    """The latest turn as a model reads it: what it is about, and as a question that stands alone."""

    about: Literal["question", "answer", "talk"] = "question"
    doubt: bool = False
    question: Annotated[str, Field(max_length=LONGEST)]


async def rephrase(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Say what the turn is about, and rewrite it as a question that needs no conversation to be understood. A turn that
    the passages of the last answer could not serve is read again, as a question to the documents."""
    asked, history = run.asked.question, conversation(run)
    if is_greeting(asked):
        yield Rephrased(asked, on=Subject.talk)
        return
    if not run.asked.has_model:
        yield await in_own_words(run, context)
        return
    reply = await context.ask(
        Role.plan,
        "standalone",
        Turn,
        lambda room: _build_prompt(asked, history, mark(run), min(room, SHOWN)),
        documents=documents_of(history),
        max_tokens=150,
    )
    if isinstance(reply, NoReply):
        yield await in_own_words(run, context)
        return
    proposed, by = reply
    again = run.rephrased is not None
    alone = " ".join(proposed.question.split())
    if about := None if again else _about(run, proposed, by):
        yield about
    elif adds_nothing(alone, asked, history):
        yield Rephrased(alone, "" if alone != asked else "it stands alone", by)
    else:
        own = await in_own_words(run, context)
        yield replace(own, why=f"what the model made of it names what nobody has named; {own.why}")


def _about(run: Run, proposed: Turn, by: str) -> Rephrased | None:
    """What the turn is about if the model reads it as no question to the documents."""
    last = run.last_answer
    if proposed.about == "answer" and last is not None:
        return Rephrased(last.question, by=by, on=Subject.answer, task=Task.check if proposed.doubt else Task.rewrite)
    # The last answer cannot be worked on: it had none, or it is only known in short.
    asked = (turn.question for turn in reversed(run.asked.history) if turn.question and not is_talk(turn))
    if proposed.about == "answer" and (question := next(asked, "")):
        return Rephrased(question, "the last question, looked up again", by)
    return Rephrased(run.asked.question, by=by, on=Subject.talk) if proposed.about != "question" else None


def adds_nothing(alone: str, asked: str, history: Sequence[Exchange]) -> bool:
    """Whether a rewritten question adds nothing to the turn and its history: it is a single question, introduces no new
    name or number, and drops none that was asked for."""
    if not content_terms(alone) or is_suspicious(alone) or len(split_sentences(alone)) > 2:
        return False
    told = "\n".join(f"{turn.question}\n{turn.answer}" for turn in history)
    return not facts.missing_facts(alone, f"{asked}\n{told}") and not facts.missing_facts(
        asked, alone, facts.lowercase_stems(asked)
    )


def _build_prompt(asked: str, history: Sequence[Exchange], mark: str, room: int) -> dict[str, str]:
    return {
        "history": render_history(history, mark, room - estimate_tokens(asked) - 40),
        "question": fit_to_tokens(" ".join(asked.split()), max(room // 3, 32)),
    }


# --- without a model ------------------------------------------------------------------------------------------------


async def in_own_words(run: Run, context: RunContext) -> Rephrased:
    """The turn as it was said. It is searched for as it is if the documents answer it so, by the answer model's reading;
    otherwise with the words of the turn before it."""
    asked = run.asked.question
    query = with_earlier_words(asked, run.asked.history)
    if query == asked:
        return Rephrased(asked, "it stands alone")
    if (await probability_of_answer(run, context, asked) or 0.0) >= ALONE:
        return Rephrased(asked, "the documents answer it as it stands")
    return Rephrased(asked, "searched for with the words of the turn before", query=query)


def with_earlier_words(asked: str, history: Sequence[Exchange]) -> str:
    """The turn, followed by the last question; where that is short, by the one before it too: a chain of short turns keeps
    its subject."""
    earlier = ""
    for turn in reversed(history[-LATEST:]):
        if len(earlier) < SHORT and turn.question and not is_talk(turn):
            earlier = f"{earlier} {turn.question}".strip()
    return f"{asked} {earlier[:LONGEST]}".strip()


def recall_due(run: Run) -> bool:
    """Whether earlier turns have results to recall and nothing was searched yet."""
    return not run.calls and run.route not in (None, Route.direct) and not run.every and bool(_passages(run))


async def recall(run: Run, context: RunContext) -> AsyncIterator[Event]:
    reworks = run.route is Route.rework
    given = {"query": run.query, "passages": _passages(run)} | ({"every": True} if reworks else {})
    why = "what the last answer rests on" if reworks else "what earlier turns found comes first"
    yield Decided((Call("c1", recall_tool.name, given),), why, recalls=True)


def _passages(run: Run) -> tuple[str, ...]:
    """The passages that earlier turns cite, latest first: for work on the last answer its own; for a question those of
    turns that share a word with it."""
    if run.route is Route.rework:
        return run.last_answer.passages[:MOST] if run.last_answer else ()
    asked = set(content_terms(run.query))
    near = [turn for turn in run.asked.history if asked & set(content_terms(f"{turn.question} {turn.answer}"))]
    return tuple(dict.fromkeys(passage for turn in reversed(near) for passage in turn.passages))[:MOST]


EVERY = 6  # turns between two summaries
SUMMARISED = 3000  # tokens of the conversation shown to a model
LONGEST_SUMMARY = 1500  # characters


class Summary(BaseModel, extra="forbid"):
    summary: Annotated[str, Field(max_length=LONGEST_SUMMARY)]


def summary_due(run: Run) -> bool:
    """Whether as many turns have become old since the last summary as one is made for. Thanks and the like need none."""
    new = [turn for turn in run.asked.history[:-LATEST] if not turn.turns]
    due = bool(new) and len(new) % EVERY == 0
    return due and run.asked.has_model and run.summarised is None and not is_greeting(run.asked.question)


async def summarise(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """The old turns in a few sentences. A summary that names anything they do not is not taken; they are then shortened
    as without a model."""
    old = run.asked.history[:-LATEST]
    documents = documents_of(old)
    passages = tuple(dict.fromkeys(passage for turn in old for passage in turn.passages))
    covers = HistorySummarised(
        sum(turn.turns or 1 for turn in old), old[-1].run, documents=tuple(documents), passages=passages
    )
    reply = await context.ask(
        Role.plan,
        "recap",
        Summary,
        lambda room: {"history": render_history(old, mark(run), min(room, SUMMARISED))},
        documents=documents,
        max_tokens=500,
    )
    if isinstance(reply, NoReply):
        yield replace(covers, why=reply.detail)
        return
    words, by = " ".join(reply[0].summary.split()), reply[1]
    known = "\n".join(f"{turn.question}\n{turn.answer}" for turn in old)
    if not words or is_suspicious(words) or facts.missing_facts(words, known, facts.lowercase_stems(known)):
        yield replace(covers, why="the summary names what nobody has named")
        return
    yield replace(covers, words=words, by=by)
