"""Answers that are computed without a model, from the question to the delivered answer and its replay."""

from __future__ import annotations

import asyncio

import pytest

from assay.core.events import Route
from assay.core.run import Run
from assay.core.types import Outcome
from assay.workspace.facade import Workspace


def ask(opened: Workspace, question: str) -> Run:
    async def last() -> Run:
        found = None
        async for run, _ in opened.ask(question):
            found = run
        assert found is not None
        return found

    return asyncio.run(last())


def said(run: Run) -> str:
    assert run.answer is not None
    return run.answer.said or (run.answer.claims[0].words if run.answer.claims else "")


@pytest.mark.long
def test_a_table_is_looked_up_with_its_row_cited_and_the_run_replays_to_the_same_answer(filled: Workspace):
    run = ask(filled, "Which supplier's contract ends first?")
    assert run.answer is not None
    assert run.answer.outcome is Outcome.answered
    assert said(run) == "It is Lowfen Haulage (Contract ends: 2025-10-31)."
    [shown] = run.answer.claims[0].carried_by
    assert "Lowfen Haulage" in shown.text and "Grayle" not in shown.text
    replayed = asyncio.run(filled.questions.replay(filled.questions.run(run.id)))
    assert replayed.same, replayed.differences


def test_a_question_about_the_collection_is_answered_from_the_catalogue_and_cites_the_documents(filled: Workspace):
    run = ask(filled, "Which documents mention Clearhelm?")
    assert run.answer is not None
    assert run.answer.outcome is Outcome.answered
    assert all(
        name in said(run) for name in ("coagulant-delivery.eml", "suppliers.xlsx", "procurement-rules-2025.docx")
    )
    assert len(run.answer.claims[0].cites) == 3
    assert asyncio.run(filled.questions.replay(filled.questions.run(run.id))).same


def test_the_catalogue_counts_only_what_the_person_may_read(filled: Workspace):
    before = said(ask(filled, "How many e-mails are there?"))
    asyncio.run(filled.documents.remove(["coagulant-delivery.eml"]))
    after = said(ask(filled, "How many e-mails are there?"))
    assert before.startswith("There are 2 documents") and after.startswith("There is 1 document")
    assert "coagulant" not in after


def test_thanks_are_not_searched_for(filled: Workspace):
    run = ask(filled, "Thank you very much!")
    assert run.answer is not None
    assert (run.route, run.answer.outcome, run.calls) == (Route.direct, Outcome.direct, ())
