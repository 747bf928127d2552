"""Which citations are shown in one place."""

from __future__ import annotations

from dataclasses import replace

from assay.answer.citations import Citation, join_extracts
from assay.core.types import Quote
from assay.tables.parts import PartRow, TablePart


def cited(number: int, start: int, period: str) -> Citation:
    part = TablePart(
        "Products", "In millions", period, ("", "Sales"), (PartRow(start, start + 9, ("PetCare", "9373")),)
    )
    quote = Quote("d1", start, start + 9, "PetCare 9373")
    return Citation(number, "k1", "d1", "Segments", (), None, "/a.xlsx", None, quote, table=part)


def test_rows_of_one_table_are_shown_below_one_header():
    one, other = cited(1, 0, "2023"), replace(cited(2, 20, "2023"), key="k2")
    (shown,) = join_extracts([one, other])
    assert shown.table is not None and [row.start for row in shown.table.rows] == [0, 20]


def test_tables_of_two_periods_are_not_shown_below_one_header():
    assert [each.numbers() for each in join_extracts([cited(1, 0, "2023"), cited(2, 20, "2022")])] == [(1,), (2,)]
