"""Cases drafted from reviews, from feedback and from documents."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.core.errors import UserError
from assay.core.events import Decision, FeedbackKind, Stakes
from assay.core.run import Run
from assay.evaluate import cases as case_drafts
from assay.evaluate.cases import Case, load_cases, write_cases
from assay.evaluate.plain_text import WordEmbedder
from assay.workspace.facade import Workspace, open_workspace
from assay.workspace.types import AskOptions

QUESTION = "How tall is the tower at Carrow Point?"
NOTE = """# Carrow Point

The tower at Carrow Point is 31 metres tall. Ines Tallow tends the beacon.

| pump | flow rate |
|---|---|
| P-1 | 40 |
| P-2 | 55 |
"""


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Workspace]:
    (tmp_path / "tower.md").write_text(NOTE)
    with open_workspace(tmp_path / "w", create=True) as found:
        found.embedder = WordEmbedder()
        asyncio.run(found.add([tmp_path / "tower.md"]))
        yield found


def ask(opened: Workspace, **more: object) -> Run:
    async def last() -> Run:
        return [run async for run, _ in opened.ask(QUESTION, AskOptions(model=False, **more))][-1]  # pyright: ignore

    return asyncio.run(last())


def test_an_approved_answer_becomes_a_case_and_a_rejected_one_waits_for_its_answer(opened: Workspace):
    approved, rejected = (ask(opened, stakes=Stakes.high).id for _ in range(2))
    service = opened.reviews
    service.decide(approved, Decision.approve, service.sheet(approved).seal)
    service.decide(rejected, Decision.reject, service.sheet(rejected).seal, note="It was measured again.")
    right, wrong = case_drafts.from_reviews(opened)
    assert right.question == QUESTION and right.documents == ("tower.md",) and right.grade is True
    assert "31 metres" in right.points[0] and "31 metres" in right.given and right.is_complete
    assert wrong.grade is False and wrong.note == "It was measured again." and not wrong.is_complete


def test_feedback_becomes_one_case_for_each_answer_and_an_objection_outweighs_praise(opened: Workspace):
    praised, doubted = ask(opened), ask(opened)
    for run, kind in (
        (praised, FeedbackKind.helpful),
        (doubted, FeedbackKind.wrong),
        (doubted, FeedbackKind.helpful),
    ):
        opened.questions.give_feedback(run, kind, words="It is 30." if kind is FeedbackKind.wrong else "")
    right, wrong = case_drafts.from_feedback(opened)
    assert right.grade is True and right.points and right.documents == ("tower.md",)
    assert wrong.grade is False and wrong.note == "It is 30." and not wrong.is_complete


def test_suggested_questions_have_their_place_and_the_cell_that_answers_them(opened: Workspace):
    (case,) = case_drafts.suggested(opened, 1)
    assert case.question == "What is the flow rate of P-1?" and case.answer == "40" and case.documents == ("tower.md",)
    assert "P-1" in case.note
    assert case_drafts.suggested(opened, 1) == [case]


def test_a_workspace_without_documents_suggests_nothing(tmp_path: Path):
    with open_workspace(tmp_path / "w", create=True) as empty, pytest.raises(UserError, match="suggest no questions"):
        case_drafts.suggested(empty, 3)


@pytest.mark.parametrize("name", ["c.csv", "c.tsv", "c.jsonl"])
def test_what_is_written_is_read_again_and_no_cell_is_a_formula(tmp_path: Path, name: str):
    cases = [
        Case("How tall?", "-31", documents=("a.md", "b.md"), pages=("a.md:3",), tags=("x",), given="=1+1", grade=False),
        Case("Who?", abstain=True, note="@here"),
    ]
    write_cases(tmp_path / name, cases)
    assert load_cases(tmp_path / name) == cases
    text = (tmp_path / name).read_text("utf-8-sig")
    assert name == "c.jsonl" or not any(
        cell[:1] in "=+-@" for line in text.splitlines() for cell in line.replace("\t", ",").split(",") if cell
    )
