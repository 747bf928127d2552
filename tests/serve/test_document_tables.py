"""Documents over HTTP as text and tables in turn: windows of rows, offsets, cited cells, and who may read them."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openpyxl
import pytest
from notes import filled
from sending import read
from serving import NOTES, served, until
from team import team

ROWS = 300


def workbook() -> bytes:
    """Two sheets: a long one, and a short one with groups."""
    book = openpyxl.Workbook(write_only=True)
    long, short = book.create_sheet("Readings"), book.create_sheet("Budget")
    long.append(["Reading", "Place", "Level", "Remark"])
    for n in range(ROWS):
        long.append([f"R{n}", f"Pier {n % 7}", n / 10, "read by the keeper" if n % 5 == 0 else None])
    for row in (["Item", "2023", "2024"], ["Lamp", None, None], ["Oil", 12, 15], ["Wicks", 3, None]):
        short.append(row)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder = tmp_path_factory.mktemp("tables") / "workspace"
    asyncio.run(filled(folder, NOTES))
    with served(folder) as at, at.client() as made:
        assert read(made, [("keeper.xlsx", workbook())])["state"] == "done"
        yield made


def path(client: httpx.Client, *parts: str) -> str:
    (document,) = client.get("/api/documents", params={"q": "keeper.xlsx"}).json()["documents"]
    return "/".join(("/api/documents", document["id"], *parts))


def words(client: httpx.Client, start: int, end: int) -> str:
    return client.get(path(client, "text"), params={"start": start, "end": end}).json()["text"]


def quoted(client: httpx.Client, row: dict[str, Any], cell: str) -> dict[str, int]:
    start = row["start"] + words(client, row["start"], row["end"]).index(cell)
    return {"quote_start": start, "quote_end": start + len(cell)}


def test_a_workbook_is_read_as_headings_and_tables_and_rows_are_where_their_offsets_say(client: httpx.Client):
    reply = client.get(path(client, "blocks")).json()
    assert [block["number"] for block in reply["blocks"]] == [0, 1, 0, 2]
    assert [block["text"].strip() for block in reply["blocks"] if not block["number"]] == ["Readings", "Budget"]
    assert (reply["start"], reply["end"]) == (0, reply["characters"])
    readings, budget = (block["table"] for block in reply["blocks"] if block["number"])
    assert readings["columns"] == ["Reading", "Place", "Level", "Remark"] and readings["numeric"] == [2]
    assert (readings["first"], readings["total"], len(readings["rows"])) == (0, ROWS, 100)
    row = readings["rows"][3]
    assert row["cells"] == ["R3", "Pier 3", "0.3", ""]
    assert "R3" in words(client, row["start"], row["end"]) and "R4" not in words(client, row["start"], row["end"])
    assert [(row["level"], row["cells"]) for row in budget["rows"]] == [
        (0, ["Lamp", "", ""]),
        (1, ["Oil", "12", "15"]),
        (1, ["Wicks", "3", ""]),
    ]


def test_every_row_of_a_long_sheet_comes_once_in_windows(client: httpx.Client):
    seen: list[str] = []
    while len(seen) < ROWS:
        window = client.get(path(client, "tables/1"), params={"first": len(seen)}).json()
        assert window["rows"] and len(window["rows"]) <= 100
        seen += [row["cells"][0] for row in window["rows"]]
    assert seen == [f"R{n}" for n in range(ROWS)]
    assert client.get(path(client, "tables/1"), params={"first": ROWS}).json()["rows"] == []
    few = client.get(path(client, "tables/1"), params={"first": 40, "rows": 2}).json()
    assert [row["cells"][0] for row in few["rows"]] == ["R40", "R41"]


def test_the_cited_rows_are_in_what_is_sent_first_and_exactly_the_cited_cells_are_marked(client: httpx.Client):
    (row,) = client.get(path(client, "tables/1"), params={"first": 265, "rows": 1}).json()["rows"]
    quote = quoted(client, row, "read by the keeper")
    reply = client.get(path(client, "blocks"), params={"at": quote["quote_start"], **quote}).json()
    tables = [block["table"] for block in reply["blocks"] if block["number"]]
    marked = [(row["cells"][0], place) for table in tables for row in table["rows"] for place in row["cited"]]
    assert marked == [("R265", 3)]
    assert reply["start"] == 0  # the heading of the sheet is there, too
    around = client.get(path(client, "tables/1"), params={"at": row["start"]}).json()
    assert "R265" in [each["cells"][0] for each in around["rows"]]


def test_a_quotation_that_runs_over_the_end_of_a_sheet_marks_cells_in_both(client: httpx.Client):
    last = client.get(path(client, "tables/1"), params={"first": ROWS - 1}).json()["rows"][0]
    oil = client.get(path(client, "tables/2")).json()["rows"][1]
    quote = {
        "quote_start": quoted(client, last, "29.9")["quote_start"],
        "quote_end": quoted(client, oil, "12")["quote_end"],
    }
    reply = client.get(path(client, "blocks"), params={"at": quote["quote_start"], **quote}).json()
    tables = [block["table"] for block in reply["blocks"] if block["number"]]
    marked = [row["cells"][place] for table in tables for row in table["rows"] for place in row["cited"]]
    assert marked == ["29.9", "Lamp", "Oil", "12"]


def test_stretches_go_on_where_the_last_one_ended_and_back_from_where_it_began(client: httpx.Client):
    whole = client.get(path(client, "blocks")).json()
    second = whole["blocks"][2]
    after = client.get(path(client, "blocks"), params={"start": second["start"]}).json()
    assert [block["number"] for block in after["blocks"]] == [0, 2]
    before = client.get(path(client, "blocks"), params={"before": second["start"]}).json()
    assert [block["number"] for block in before["blocks"]] == [0, 1]
    assert client.get(path(client, "blocks"), params={"start": 10**9}).json()["blocks"] == []


def test_a_table_that_is_not_there_and_offsets_that_are_none_are_refused(client: httpx.Client):
    assert client.get(path(client, "tables/3")).status_code == 404
    for wrong in ({"first": -1}, {"rows": 0}, {"rows": 101}, {"at": "x"}, {"quote_start": -1}):
        assert client.get(path(client, "tables/1"), params=wrong).status_code == 422
    assert client.get("/api/documents/nobody/blocks").status_code == 404


def test_a_citation_of_a_cell_has_its_row_with_the_cell_marked(client: httpx.Client):
    answer = client.post("/api/ask", json={"question": "What was the level of reading R7?", "model": False}).json()
    tables = [each["table"] for each in answer["evidence"] if each["table"]]
    assert any(row["cells"][0] == "R7" for table in tables for row in table["rows"])
    assert all(table["columns"] == ["Reading", "Place", "Level", "Remark"] for table in tables)


def test_nobody_else_reads_the_rows_of_a_table(folder: Path):
    with team(folder) as people, people.as_("editor") as owner, people.as_("reader") as other:
        sent = owner.post("/api/bases/default/documents", files={"files": ("keeper.xlsx", workbook())}).json()["id"]
        until(lambda: owner.get(f"/api/jobs/{sent}").json()["state"] == "done", 60)
        for part in ("blocks", "tables/1", "tables/2"):
            own = path(owner, part)
            assert owner.get(own).status_code == 200
            refused = other.get(own)
            assert refused.status_code == 404 and "Reading" not in refused.text
