"""A synthesis ends, whatever its model replies and whatever its documents hold, and its ledger names every document."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, member
from typing import Any

import numpy as np
import pytest
from doubles import supported, verdicts
from wharf import A, B, Model, context, document, ids, opened, passages

from assay.agent.context import Limits, RunContext
from assay.agent.loop import run_steps
from assay.agent.tool import ToolContext
from assay.core.events import Described, Event, Failed, Found, InsightsDrawn, PassagesChosen, Stopped
from assay.core.run import Run
from assay.core.synthesis import Brief, Question
from assay.core.types import Document, Hit
from assay.models.llm import Prompt, Reply
from assay.synthesis import pipeline, search, state
from assay.synthesis.account import account
from assay.synthesis.coverage import NOT_FOUND, NOT_REACHED

TABLE = "\n".join(f"| pump {row} | {row * 7} | {row * 11} | closed |" for row in range(12))
HUGE = "\n".join(f"Paragraph {n} says that the crane of berth {n} moved {n * 3} containers." for n in range(90))
SOUND = (document("a", A), document("b", B))
DOCUMENTS: Mapping[str, tuple[Document, ...]] = {
    "a table, an empty and a huge one": (
        *SOUND,
        document("table", TABLE),
        document("empty", " \n"),
        document("huge", HUGE),
    ),
    "tables alone": (document("odd", TABLE), document("more", TABLE.replace("pump", "valve"))),
}
WRONG = {  # well formed, and of no use: keys, labels and numbers that were never shown, or everything at once
    "read": {"documents": [{"document": each, "points": [{"key": "ffffffff", "words": "x"}], "questions": ["?"]}
                           for each in ("D9", "D1", "D1")]},
    "relate": {"relations": [{"left": 1, "right": 1, "type": "parallel", "reason": ""}] * 9,
               "comparisons": [{"question": "Why?", "points": [999]}], "theme": "", "paragraphs": [{"points": [-1]}]},
    "narrate": {"paragraphs": [{"sentences": [{"text": "Not so. So it is.", "cites": ["ffffffff"]}]}]},
    "polish": {"paragraphs": [{"sentences": [{"text": "", "sources": [1, 1, 77], "points": [0]}]}]},
    "check": {"rulings": [{"claim": 1, "verdict": each, "words": ["x"]} for each in ("supported", "contradicted")]},
    "revise": {"revisions": [{"claim": each, "action": "rewrite", "text": "Not so.", "cites": ["ffffffff"]}
                             for each in (1, 1, 99, -1)]},
    "translate": {"sentences": [{"text": "Not so.", "claims": [0, 99]}], "analogy": "like a sea"},
}  # fmt: skip
NOTHING = {
    "read": {"documents": [{"document": f"D{n}", "points": []} for n in range(1, 5)]},
    "relate": {"relations": [], "comparisons": [], "theme": "", "paragraphs": []},
    "narrate": {"paragraphs": []},
    "polish": {"paragraphs": []},
    "check": {"rulings": []},
    "revise": {"revisions": []},
    "translate": {"sentences": [], "analogy": ""},
}
REPLIES: Mapping[str, Callable[[str], str]] = {
    "empty": lambda name: "",
    "nothing found": lambda name: json.dumps(NOTHING[name]),
    "unusable": lambda name: '{"documents": [[[',
    "contradictory": lambda name: json.dumps(WRONG[name]),
    "endless": lambda name: '{"documents": [' + '{"document": "D1", "points": []}, ' * 400,
    "a refusal": lambda name: "I am sorry, but I cannot help with that.",
}
STEPS = 150  # of the longest of these runs, with a margin


@dataclass
class Bad(Model):
    """A model that replies well, except to one prompt."""

    spoilt: str = ""
    kind: str = ""

    async def complete(self, prompt: Prompt, seconds: float) -> Reply:
        name = prompt.messages[0].text.split("\n")[0].split(" · ")[-1]
        if name != self.spoilt:
            return await super().complete(prompt, seconds)
        self.prompts.append((name, prompt))
        return Reply(REPLIES[self.kind](name))


class Tools(ToolContext):
    documents: Mapping[str, Document]

    async def passages(self, document: str) -> list[Hit]:
        return [Hit(each, np.zeros(1), {}) for each in passages(self.documents[document])]


@pytest.fixture(autouse=True)
def no_index(monkeypatch: pytest.MonkeyPatch):
    """A search finds the last passages of the documents."""

    async def found(able: RunContext, brief: Brief, question: Question, within: Sequence[str]) -> PassagesChosen:
        hits = [hit.passage for doc in within for hit in (await able.tool_context.passages(doc))[-2:]]
        return PassagesChosen(question.id, tuple(Found(each, 1, 1.0) for each in hits), len(hits), "none")

    monkeypatch.setattr(search, "_search_question", found)


async def carried_to_its_end(run: Run, documents: tuple[Document, ...], model: Model, **more: Any) -> Run:
    left = STEPS

    def counting(now: Run) -> Run:
        nonlocal left
        left -= 1
        assert left, "the run takes more steps than any run needs"
        return now

    made = context(documents, run, model)
    tools = Tools(made.tool_context.search_context, made.tool_context.scope)
    object.__setattr__(tools, "documents", {each.id: each for each in documents})
    made = replace(made, tool_context=tools, current=counting, **more)
    async for event in pipeline.carry_on(run, made):
        run = run.then(event)
    return run


def begun(documents: tuple[Document, ...], **more: Any) -> Run:
    run = opened(documents, window=4096, audiences=("expert", "plain"), **more)
    return Run(run.id, run.events[:1])


@pytest.mark.parametrize("odd", DOCUMENTS)
@pytest.mark.parametrize("kind", REPLIES)
@pytest.mark.parametrize("stage", NOTHING)
async def test_a_run_ends_whatever_a_stage_is_replied(stage: str, kind: str, odd: str):
    documents = DOCUMENTS[odd]
    doubts = verdicts("partial", "supported") if stage == "revise" else supported()
    model = Bad(spoilt=stage, kind=kind, judges=doubts)
    run = await carried_to_its_end(begun(documents), documents, model)
    assert run.delivered and not any(isinstance(event, Failed) for event in run.events)
    made = account(run, {each.id: each for each in documents}.get)
    assert [row.doc_id for row in made.ledger] == list(ids(documents))
    assert all(row.claims or row.reason for row in made.ledger)
    described = {event.portrait.doc_id for event in run.events if isinstance(event, Described)}
    assert described == set(ids(documents))
    read = {event.doc_id for event in run.events if isinstance(event, InsightsDrawn)}
    assert read | {doc for doc, each in state.portraits(run).items() if each.empty} >= set(ids(documents))


async def test_a_document_that_is_one_table_is_read_and_said_to_have_nothing_to_quote():
    documents = (*SOUND, document("odd", "| a |"))
    run = await carried_to_its_end(begun(documents), documents, Bad(spoilt="read", kind="nothing found"))
    row = account(run, {each.id: each for each in documents}.get).ledger[-1]
    assert (row.claims, row.reason) == (0, state.portraits(run)["odd"].empty or NOT_FOUND)


@pytest.mark.parametrize("after", range(0, 8, 2))
async def test_a_run_whose_time_is_used_up_tells_what_it_has_read_and_names_the_rest(after: int):
    documents = (*SOUND, document("huge", HUGE))
    clock = iter([100.0] * (2 * after + 1))
    limits = Limits(seconds=100.0, seconds_left=lambda: next(clock, 1.0))
    run = await carried_to_its_end(begun(documents), documents, Bad(), limits=limits)
    assert run.delivered and sum(isinstance(event, Stopped) for event in run.events) == 1
    rows = account(run, {each.id: each for each in documents}.get).ledger
    assert [row.doc_id for row in rows] == list(ids(documents)) and all(row.claims or row.reason for row in rows)
    assert any(row.reason == NOT_REACHED for row in rows)


async def test_a_step_that_records_nothing_fails_the_run_instead_of_being_taken_for_ever():
    async def nothing(run: Run, context: RunContext) -> AsyncIterator[Event]:
        for event in ():
            yield event

    class Steps(Enum):
        IDLE = member(nothing)

    run = begun(SOUND)
    over = lambda now: None if now.failed else Steps.IDLE  # noqa: E731
    (failed,) = [event async for event in run_steps(run, context(SOUND, run), over)]
    assert isinstance(failed, Failed) and failed.error == "Stalled" and "idle" in failed.detail
