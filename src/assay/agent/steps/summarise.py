"""Sums up the oldest turns of a long conversation, so that none is forgotten: once for every few turns, if there is a
model. The summary only serves to understand what a turn means; it is never evidence."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from assay.agent.context import RunContext, mark
from assay.agent.turns import LATEST, documents_of, render_history
from assay.answer import greetings
from assay.core.events import Event, HistorySummarised
from assay.core.run import Run
from assay.core.types import Exchange
from assay.language import facts
from assay.language.injection import is_suspicious
from assay.models.llm import Role
from assay.models.meter import NoReply

EVERY = 6  # turns between two summaries
SHOWN = 3000  # tokens of the conversation shown to a model
LONGEST = 1500  # characters


class Summary(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    summary: Annotated[str, Field(max_length=LONGEST)]


def summary_due(run: Run) -> bool:
    """Whether as many turns have become old since the last summary as one is made for. Thanks and the like need none."""
    new = [turn for turn in _old(run) if not turn.turns]
    due = bool(new) and len(new) % EVERY == 0
    return due and run.asked.has_model and run.summarised is None and not greetings.is_greeting(run.asked.question)


def _old(run: Run) -> Sequence[Exchange]:
    return run.asked.history[:-LATEST]


async def summarise(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """The old turns in a few sentences. A summary that names anything they do not is not taken; they are then shortened
    as without a model."""
    old = _old(run)
    documents = documents_of(old)
    passages = tuple(dict.fromkeys(passage for turn in old for passage in turn.passages))
    covers = HistorySummarised(
        sum(turn.turns or 1 for turn in old), old[-1].run, documents=tuple(documents), passages=passages
    )
    reply = await context.ask(
        Role.plan,
        "recap",
        Summary,
        lambda room: {"history": render_history(old, mark(run), min(room, SHOWN))},
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
