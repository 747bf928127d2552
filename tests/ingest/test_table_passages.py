"""A passage of a table carries caption, header and units: in the index, in prompts, in the record and on the page."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import select, update

from assay.answer.claims import Sources, quotations
from assay.answer.weigh import build_prompt
from assay.core.codec import from_json, to_json
from assay.core.events import Found
from assay.core.tables import table_rows
from assay.core.types import Answer, Block, Claim, Evidence, Outcome, Passage, Quote
from assay.evaluate.plain_text import WordEmbedder
from assay.ingest.formats import html
from assay.ingest.parsed import FileLimits, Parsed
from assay.serve.run_views import answer_view, evidence_view
from assay.store import documents
from assay.store.schema import tables
from assay.workspace.facade import Workspace, open_workspace

ROWS = "".join(f"<tr><td>Station {n} beside the weir</td><td>{n + 100}</td><td>{n + 500}</td></tr>" for n in range(120))
PAGE = (
    "<h1>River report</h1><table><caption>Discharge of the Sarrow (in litres, thousands)</caption>"
    f"<tr><th>Gauge</th><th>Snowmelt</th><th>Drought</th></tr>{ROWS}</table>"
)


class Html:
    async def read(self, data: Path | bytes, name: str) -> Parsed:
        return html.parse(data if isinstance(data, bytes) else data.read_bytes(), name, FileLimits())


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Workspace]:
    (tmp_path / "report.html").write_text(PAGE)
    with open_workspace(tmp_path / "workspace", create=True) as workspace:
        workspace.embedder = WordEmbedder()
        from assay.ingest.sources import find_sources

        asyncio.run(workspace.documents.add_sources(find_sources([tmp_path / "report.html"]), reader=Html()))
        yield workspace


def passage_of(opened: Workspace, words: str) -> Passage:
    hits = asyncio.run(opened.search(words, 20))
    return next(hit.passage for hit in hits if words in hit.passage.text)


def test_a_row_far_from_the_header_is_found_by_its_column(opened: Workspace):
    passage = passage_of(opened, "Station 97 beside the weir")
    assert "Snowmelt" not in passage.text
    assert passage.context == "Discharge of the Sarrow (in litres, thousands)\nGauge | Snowmelt | Drought"
    (hit, *_) = asyncio.run(opened.search("snowmelt discharge at station 97", 3))
    assert "Station 97 " in hit.passage.text


def test_the_store_has_the_tables_and_loses_them_with_the_document(opened: Workspace):
    passage = passage_of(opened, "Station 97 beside the weir")
    scope = opened.scope()
    document = opened.documents.get(passage.doc_id)
    assert document is not None
    (table,) = document.tables
    assert table_rows(table, document.text)[97].cells[1].text == "197"
    documents.remove(opened.store, [passage.doc_id], scope.named("default"))
    with opened.store.read() as connection:
        assert connection.execute(select(tables)).all() == []


def test_the_period_of_a_table_is_stored_and_older_tables_have_none(opened: Workspace):
    document = opened.documents.get(passage_of(opened, "Station 97 beside the weir").doc_id)
    assert document is not None
    with opened.store.write() as connection:
        (body,) = connection.execute(select(tables.c.body)).one()
        assert body[0][6] == document.tables[0].period == ""
        connection.execute(update(tables).values(body=[[*body[0][:6], "June 2023"]]))
    again = opened.documents.get(document.id)
    assert again is not None and again.tables == (replace(document.tables[0], period="June 2023"),)
    with opened.store.write() as connection:
        connection.execute(update(tables).values(body=[body[0][:6]]))
    assert opened.documents.get(document.id) == document


def test_the_record_gets_the_context_back_from_the_document(opened: Workspace):
    passage = passage_of(opened, "Station 97 beside the weir")
    stored = json.loads(json.dumps(to_json(passage, words=False)))
    assert "Snowmelt" not in json.dumps(stored)
    assert from_json(Passage, stored, texts=documents.texts_for(opened.store, opened.scope())) == passage


def test_a_model_is_shown_the_header_of_a_row(opened: Workspace):
    passage = passage_of(opened, "Station 97 beside the weir")
    start = passage.text.index("Station 97")
    quote = Quote(passage.doc_id, passage.start + start, passage.start + start + 26, passage.text[start : start + 26])
    evidence = Evidence("k1", passage, quote, 9.0, "q")
    shown = quotations([evidence], Sources(), "mark", 2000)
    assert "key k1" in shown and "context: Discharge of the Sarrow" in shown and "Gauge | Snowmelt | Drought" in shown
    weighed = build_prompt("q", (), [Found(passage, 1, 1.0)], {}, "mark", 2000)["passages"]
    assert "Gauge | Snowmelt | Drought" in weighed


def test_the_page_gets_the_row_as_a_table(opened: Workspace):
    passage = passage_of(opened, "Station 97 beside the weir")
    line = next(each for each in passage.text.split("\n") if "Station 97 " in each)
    start = passage.start + passage.text.index(line)
    evidence = Evidence("k1", passage, Quote(passage.doc_id, start, start + len(line), line), 9.0, "q")
    answer = Answer("q", (Block((Claim("It was 197.", ("k1",)),)),), Outcome.answered)
    (citation,) = answer_view(answer, (evidence,), opened.documents.get).citations
    assert citation.table is not None
    assert citation.table.columns == ("Gauge", "Snowmelt", "Drought")
    assert [row.cells for row in citation.table.rows] == [("Station 97 beside the weir", "197", "597")]
    (piece,) = evidence_view((evidence,), {"k1"}, opened.documents.get)
    assert piece.table == citation.table and piece.context == passage.context
    assert (
        answer_view(
            answer, (replace(evidence, quote=Quote(passage.doc_id, 0, 12, "River report")),), opened.documents.get
        )
        .citations[0]
        .table
        is None
    )
