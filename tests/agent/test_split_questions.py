"""Questions that describe a thing instead of naming it: how they are split, and what is answered."""

from __future__ import annotations

import asyncio

import pytest

from assay.agent.steps.plan import split_question
from assay.core.events import StepAnswered
from assay.core.run import Run
from assay.core.types import Outcome
from assay.workspace.facade import Workspace


@pytest.mark.parametrize(
    ("question", "first", "second"),
    [
        (
            "Which port is home to the ferry that sank in 1921?",
            "Which ferry sank in 1921?",
            "Which port is home to {s1}?",
        ),
        (
            "Who is the author of the book that won the prize?",
            "Which book won the prize?",
            "Who is the author of {s1}?",
        ),
        (
            "When does the lease end with the tenant whose boat was damaged?",
            "Which tenant’s boat was damaged?",
            "When does the lease end with {s1}?",
        ),
        ("How old is the pier that the storm broke?", "Which pier is it that the storm broke?", "How old is {s1}?"),
        (
            "How high is the tower where the bell hangs?",
            "In which tower the bell hangs?",
            "How high is {s1}?",
        ),
        (
            "Where did the keeper who lit the first lamp live before?",
            "Which keeper lit the first lamp?",
            "Where did {s1} live before?",
        ),
        (
            "How many berths does the quay have at which the Tern lies?",
            "At which quay the Tern lies?",
            "How many berths does {s1} have?",
        ),
        (
            "In which town is the yard that built the Gannet located?",
            "Which yard built the Gannet?",
            "In which town is {s1} located?",
        ),
        (
            "How much does the house at the end of Mole Street cost?",
            "Which house is at the end of Mole Street?",
            "How much does {s1} cost?",
        ),
    ],
)
def test_a_described_thing_is_asked_for_first(question: str, first: str, second: str):
    split = split_question(question)
    assert split is not None
    assert (split.first, split.second) == (first, second)


@pytest.mark.parametrize(
    "question",
    [
        "How long is raw telemetry kept?",
        "What is the price of the blue ferry?",
        "Which sensors run firmware 4.1?",
        "Which ferries belong to the companies that went bankrupt?",  # several things
        "What supports the claim that the pier is old?",  # describes nothing
        "The pier that broke",  # asks nothing
    ],
)
def test_other_questions_are_not_split(question: str):
    assert split_question(question) is None


def ask(opened: Workspace, question: str) -> Run:
    """The run for a question, with the bundled answer model."""
    opened.context.parts.answer_model = None

    async def last() -> Run:
        found = None
        async for run, _ in opened.ask(question):
            found = run
        assert found is not None
        return found

    return asyncio.run(last())


@pytest.mark.long
def test_the_second_document_answers_for_what_the_first_one_names(filled: Workspace):
    run = ask(filled, "What model is the sensor that raised the first alarm in the Pellam incident?")
    assert run.answer is not None and run.answer.outcome is Outcome.answered
    computed, *_, found = run.answer.claims
    assert computed.words == "It is Orrin Clarus 3 (TS-114, model)."
    assert "The first alarm was raised at 03:12 by the turbidity sensor TS-114." in found.words
    assert [mark.text for mark in found.marks] == ["TS-114"]
    assert [event.value for event in run.events if isinstance(event, StepAnswered)] == ["TS-114"]
    replayed = asyncio.run(filled.questions.replay(filled.questions.run(run.id)))
    assert replayed.same, replayed.differences


@pytest.mark.long
def test_a_chain_whose_end_is_not_found_is_not_answered(filled: Workspace):
    run = ask(filled, "What is the phone number of the company that makes the Heron gateway software?")
    assert run.answer is not None and run.answer.outcome is Outcome.abstained
