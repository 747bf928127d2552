"""While a run works, its evidence is told with the pages on which the quotations stand, not those of their passages."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from terminal import Typed

from assay.core.events import Gathered
from assay.core.events.describe import pages_in_words
from assay.core.types import Evidence, Passage, Quote
from assay.serve.stream import build_frame
from assay.store import documents
from assay.workspace.facade import Workspace, open_workspace

PDF = Path(__file__).parents[2] / "samples" / "corpus" / "incident-report-pellam.pdf"
QUESTION = "How many calls did the customer desk answer in four days?"


@pytest.fixture
def report(tmp_path: Path) -> Workspace:
    with open_workspace(tmp_path / "workspace", create=True) as opened:
        asyncio.run(opened.add([PDF]))
    return open_workspace(tmp_path / "workspace")


@pytest.mark.long
def test_the_page_of_a_quotation_is_told_on_the_command_line_and_in_the_stream(typed: Typed, report: Workspace):
    done = typed("ask", QUESTION)
    assert "1,120" in done.out
    assert "weighed as evidence: page" in done.err
    run = report.questions.run(json.loads(typed("runs", "--json").out)[0]["run"])
    gathered = next(event for event in run.events if isinstance(event, Gathered) and event.evidence)
    frame = json.loads(build_frame(report, 1, "", gathered, {}).body)
    source = report.documents.get(gathered.evidence[0].quote.doc_id)
    assert source is not None
    assert frame["pages"] == {each.key: source.page_at(each.quote.start) for each in gathered.evidence}
    assert pages_in_words(gathered.evidence, frame["pages"]) in frame["line"]
    report.close()


def test_a_quotation_after_the_turn_of_the_page_has_its_own_page(report: Workspace):
    (entry,) = report.documents.listing()
    source = report.documents.get(entry.id)
    assert source is not None
    start = source.text.index("The customer desk")
    passage = Passage("p1", entry.id, source.text, 0, len(source.text), page=1)
    evidence = Evidence("k1", passage, Quote(entry.id, start, start + 17, source.text[start : start + 17]), 9.0, "")
    assert documents.quoted_pages(report.store, [evidence], report.scope()) == {"k1": 2}
    report.close()


def piece(key: str, document: str) -> Evidence:
    return Evidence(key, Passage(key, document, "x", 0, 1, page=1), Quote(document, 0, 1, "x"), 5.0, "")


@pytest.mark.parametrize(
    ("pages", "words"),
    [
        ({}, ""),
        ({"a": 4}, "page 4"),
        ({"a": 7, "b": 4}, "pages 4 and 7"),
        ({"a": 4, "b": 7, "c": 2}, "pages 4 and 7 of one document, page 2 of another"),
    ],
)
def test_pages_are_said_by_document(pages: dict[str, int], words: str):
    assert pages_in_words([piece("a", "d1"), piece("b", "d1"), piece("c", "d2")], pages) == words
