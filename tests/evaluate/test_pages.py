"""`evaluate pages`: which pages a passage touches, and the figures over real PDFs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from reportlab.pdfgen.canvas import Canvas

from assay.core.errors import UserError
from assay.core.types import Document, Passage
from assay.evaluate.pages import load, measure, pages_of

TEXT = "a" * 30
BETWEEN = "This page is about the weather and about nothing else."  # so that no passage touches both other pages


@pytest.mark.parametrize(("start", "end", "pages"), [(0, 10, {1}), (5, 11, {1, 2}), (9, 30, {1, 2, 3}), (20, 30, {3})])
def test_a_passage_counts_for_every_page_it_touches(start: int, end: int, pages: set[int]):
    document = Document("d", "b", "/shelf/Report.pdf", "x", "", TEXT, pages=(0, 10, 20), kind="pdf")
    passage = Passage("p", "d", TEXT[start:end], start, end)
    assert pages_of(passage, document) == {("Report", page) for page in pages}


def write_pdf(path: Path, pages: list[str]) -> None:
    canvas = Canvas(str(path))
    for words in pages:  # more than a passage on each
        for line in range(40):
            canvas.drawString(72, 780 - 18 * line, words)
        canvas.showPage()
    canvas.save()


@pytest.mark.long
async def test_pages_are_found_and_counted_from_nought(tmp_path: Path):
    (tmp_path / "pdfs").mkdir()
    write_pdf(
        tmp_path / "pdfs" / "harbour.pdf",
        ["The ferry leaves at noon.", BETWEEN, "The crane lifts forty tonnes of coal."],
    )
    write_pdf(
        tmp_path / "pdfs" / "orchard.pdf",
        ["Apples are picked in autumn.", BETWEEN, "The cider press was built of oak."],
    )
    questions = [("How much does the crane lift?", "harbour", 2), ("When are apples picked?", "orchard", 2)]
    lines = [
        json.dumps(
            {"doc_name": name, "question": question, "evidence": [{"doc_name": name, "evidence_page_num": page}]}
        )
        for question, name, page in questions
    ]
    (tmp_path / "questions.jsonl").write_text("\n".join(lines), encoding="utf-8")
    found = await measure(tmp_path, tmp_path / "workspace")
    assert found["n"] == 2
    assert found["document@1"] == 1.0
    assert found["page@1"] == 0.5  # apples are on the other page
    assert found["page@10"] == 1.0


def test_a_folder_without_questions_is_refused(tmp_path: Path):
    with pytest.raises(UserError, match=r"questions\.jsonl"):
        load(tmp_path)
