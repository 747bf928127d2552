"""Says what a turn of a conversation is about, and rewrites a question as a self-contained one. A model does both; a
rewriting that names anything not mentioned before is rejected. Without a model nothing is rewritten: a turn that does not
stand alone is searched for with the words of the turn before it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from assay.agent.context import RunContext, mark
from assay.agent.first_look import probability_of_answer
from assay.agent.turns import LATEST, conversation, documents_of, is_talk, render_history
from assay.answer import greetings
from assay.core.events import Event, Rephrased, Subject, Task
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


class Turn(BaseModel):
    """The latest turn as a model reads it: what it is about, and as a question that stands alone."""

    model_config = ConfigDict(strict=True, extra="forbid")

    about: Literal["question", "answer", "talk"] = "question"
    doubt: bool = False
    question: Annotated[str, Field(max_length=LONGEST)]


async def rephrase(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Say what the turn is about, and rewrite it as a question that needs no conversation to be understood. A turn that
    the passages of the last answer could not serve is read again, as a question to the documents."""
    asked, history = run.asked.question, conversation(run)
    if greetings.is_greeting(asked):
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
    if proposed.about == "answer" and (again := _asked_again(run)):
        return replace(again, by=by)
    return Rephrased(run.asked.question, by=by, on=Subject.talk) if proposed.about != "question" else None


def _asked_again(run: Run) -> Rephrased | None:
    """The last question once more, if its answer cannot be worked on: it had none, or it is only known in short."""
    asked = (turn.question for turn in reversed(run.asked.history) if turn.question and not is_talk(turn))
    question = next(asked, "")
    return Rephrased(question, "the last question, looked up again") if question else None


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
