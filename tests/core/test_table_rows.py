"""Tables: packed offsets, rows with labels, and what a passage of a table needs."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from assay.core.codec import dumps, from_json, to_json
from assay.core.tables import (
    RowSpan,
    check_tables,
    pack_rows,
    row_spans,
    table_rows,
    tables_within,
)
from assay.core.types import Document, Passage, Table
from assay.tables.labels import passage_context

LINES = [
    "Balance sheet (in millions)",
    "\t2022\t2021",
    "Assets:",
    "Cash and\t$ 12\t$ 10",
    "equivalents",
    "Total assets\t40\t38",
]
TEXT = "Before the table.\n\n" + "\n".join(LINES) + "\n\nAfter it."


def span(words: str, column: int, after: str = "") -> tuple[int, int, int]:
    start = TEXT.index(words, TEXT.index(after))
    return column, start, start + len(words)


def balance_sheet() -> Table:
    start, end = TEXT.index("\t2022"), TEXT.index("38") + 2
    cash, equivalents = span("Cash and", 0), span("equivalents", 0)
    rows = [
        RowSpan(TEXT.index("Assets:"), TEXT.index("Assets:") + 7, (span("Assets:", 0),)),
        RowSpan(cash[1], equivalents[2], (cash, span("$ 12", 1), span("$ 10", 2), equivalents), group=1),
        RowSpan(TEXT.index("Total"), end, (span("Total assets", 0), span("40", 1), span("38", 2))),
    ]
    return Table(start, end, ("", "2022", "2021"), "Balance sheet", "in millions", pack_rows(rows, start))


def document() -> Document:
    return Document("d1", "b", "a.txt", "", "A", TEXT, tables=(balance_sheet(),))


def test_rows_have_labels_cells_and_offsets():
    rows = table_rows(balance_sheet(), TEXT)
    assert [row.label for row in rows] == ["Assets:", "Assets › Cash and equivalents", "Total assets"]
    assert [[cell.text for cell in row.cells] for row in rows] == [
        ["Assets:", "", ""],
        ["Cash and equivalents", "$12", "$10"],
        ["Total assets", "40", "38"],
    ]
    cell = rows[1].cells[2]
    assert TEXT[cell.start : cell.end] == "$ 10"
    assert TEXT[rows[1].start : rows[1].end] == "Cash and\t$ 12\t$ 10\nequivalents"


def test_a_table_survives_its_json_form_and_is_left_out_when_there_is_none():
    one = document()
    assert from_json(Document, json.loads(dumps(to_json(one)))) == one
    assert "tables" not in to_json(Document("d", "b", "u", "", "t", "x"))
    assert "context" not in to_json(Passage("p", "d", "x", 0, 1))
    assert to_json(Passage("p", "d", "x", 0, 1, context="Sales"))["context"] == "Sales"


def test_a_part_of_a_table_is_given_what_it_does_not_say():
    one = document()
    start = TEXT.index("Cash and")
    context = passage_context(one, start, len(TEXT), "")
    assert context == "Balance sheet — in millions\n2022 | 2021\nAssets"
    assert passage_context(one, 0, len(TEXT), "") == ""
    assert passage_context(one, 0, TEXT.index("Balance"), "") == ""
    assert passage_context(one, TEXT.index("After"), len(TEXT), "") == ""


def test_tables_are_found_by_offset():
    first, second = Table(5, 10, ("a",)), Table(20, 30, ("b",))
    assert tables_within((first, second), 0, 5) == []
    assert tables_within((first, second), 9, 21) == [first, second]
    assert tables_within((first, second), 10, 20) == []


@pytest.mark.parametrize(
    "table",
    [
        Table(0, 99, ("a",)),
        Table(5, 3, ("a",)),
        Table(0, 5, ()),
        Table(0, 5, ("a",), layout=pack_rows([RowSpan(0, 9, ())], 0)),
        Table(0, 5, ("a",), layout=pack_rows([RowSpan(0, 5, ((1, 0, 2),))], 0)),
        Table(0, 5, ("a",), layout=pack_rows([RowSpan(0, 5, ((0, 4, 2),))], 0)),
        Table(0, 5, ("a",), layout=pack_rows([RowSpan(0, 5, (), group=1)], 0)),
    ],
)
def test_offsets_that_do_not_fit_are_refused(table: Table):
    with pytest.raises(ValueError, match="fit"):
        check_tables((table,), 10)


def test_a_large_table_stays_compact():
    """A hundred thousand rows of eight cells: less than two bytes a cell, and one row is found quickly."""
    rows, at = [], 0
    for number in range(100_000):
        start, cells = at, []
        for column in range(8):
            at += 8
            size = 3 + (number * 7 + column) % 5
            cells.append((column, at, at + size))
            at += size
        rows.append(RowSpan(start, at, tuple(cells)))
        at += 1
    table = Table(0, at, tuple("abcdefgh"), layout=pack_rows(rows, 0))
    assert len(row_spans(table)) == 100_000
    assert len(table.layout) < 2 * 800_000
    assert len(table_rows(table, "x" * at, rows[50_000].start, rows[50_000].end)) == 1


def test_a_long_caption_does_not_push_units_and_period_out_of_the_context():
    table = replace(
        balance_sheet(), caption="Balance sheet of " + "the company and its many branches " * 8, period="June 2023"
    )
    start = TEXT.index("Total assets")
    context = passage_context(replace(document(), tables=(table,)), start, len(TEXT), "")
    assert context.splitlines()[0].endswith("… — in millions — June 2023")
