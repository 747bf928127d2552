"""What stands above the tables of a sheet reaches their rows: titles, units, period."""

from __future__ import annotations

import io
from collections.abc import Sequence

from assay.core.tables import table_rows
from assay.core.types import Document
from assay.ingest.formats import plain
from assay.ingest.formats.detect import read
from assay.ingest.parsed import FileLimits, Parsed
from assay.ingest.split import split_passages
from assay.tables.parts import quoted_part

LIMITS = FileLimits()
Rows = Sequence[Sequence[object]]


def workbook(**sheets: Rows) -> Parsed:
    from openpyxl import Workbook

    book = Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(list(row))
    file = io.BytesIO()
    book.save(file)
    return read(file.getvalue(), "half-year.xlsx", LIMITS)


def half_year(period: str, first: int) -> Rows:
    return [
        ["In millions of CHF", None, None, period],
        [None, "Sales", "Profit", "Depreciation"],
        [],
        ["Zone North", first, 30, 4],
        ["Zone South", 90, 20, 3],
    ]


def as_document(parsed: Parsed) -> Document:
    return Document(
        "d1",
        "b",
        "a.xlsx",
        "",
        parsed.title,
        parsed.text,
        sections=parsed.sections,
        kind=parsed.kind,
        tables=parsed.tables,
    )


def test_two_tables_of_one_sheet_are_told_apart_by_their_period():
    parsed = workbook(
        Results=[
            *(["Segments"], [], ["Revenue and results"], []),
            *half_year("January–June 2023", 120),
            [],
            *half_year("January–June 2022", 110),
        ]
    )
    first, second = parsed.tables
    assert (first.units, first.period) == ("In millions of CHF", "January–June 2023")
    assert (second.units, second.period) == ("In millions of CHF", "January–June 2022")
    assert first.columns == second.columns == ("", "Sales", "Profit", "Depreciation")
    assert first.caption == second.caption == "Segments — Revenue and results"
    assert table_rows(second, parsed.text)[0].cells[1].text == "110"
    assert "In millions of CHF | " in parsed.text and "January–June 2022" in parsed.text


def test_every_row_and_its_citation_carry_units_and_period():
    parsed = workbook(Results=[*half_year("January–June 2023", 120), [], *half_year("January–June 2022", 110)])
    one = as_document(parsed)
    contexts = [
        piece.context
        for piece in split_passages(one, lambda text: len(text.split()), 12, 0)
        if "Zone South" in piece.text
    ]
    assert ["In millions of CHF — January–June 2023" in context for context in contexts] == [True, False]
    assert "In millions of CHF — January–June 2022" in contexts[1]
    start = parsed.text.rindex("110")
    excerpt = quoted_part(one, start, start + 3)
    assert excerpt is not None
    assert (excerpt.caption, excerpt.units, excerpt.period) == ("Results", "In millions of CHF", "January–June 2022")


def test_the_title_above_the_tables_is_the_title_of_the_file():
    rows: Rows = [["Annual water report"], [], ["River", "Level"], ["Rhine", 3], ["Maas", 2]]
    assert workbook(Levels=rows).title == "Annual water report"
    assert workbook(Levels=rows, Again=rows).title == "Annual water report"
    assert workbook(Levels=rows, Other=[["Another report"], *rows[1:]]).title == ""
    assert workbook(Levels=rows[2:]).title == ""
    assert plain.parse_delimited(b"Rivers\nName,km\nRhine,1233\nMaas,925\n", "a.csv", LIMITS).title == "Rivers"


def test_the_caption_of_the_first_of_several_tables_is_not_the_title_of_the_file():
    rows: Rows = [["Rivers"], ["Name", "km"], ["Rhine", 1233], [], ["Lakes"], ["Name", "km²"], ["Como", 146]]
    parsed = workbook(Waters=rows)
    assert parsed.title == ""
    assert [table.caption for table in parsed.tables] == ["Rivers", "Lakes"]


def test_units_above_the_first_table_hold_for_the_sheet_until_others_are_declared():
    parsed = workbook(
        Report=[
            *(["Key figures"], ["in thousand euros"], []),
            *(["Region", "Sales"], ["North", 12], ["South", 9], []),
            *(["Region", "Costs"], ["North", 7], ["South", 8], []),
            *(["Region", "Weight (kg)"], ["North", 3], ["South", 2], []),
            *(["in millions"], ["Region", "Visitors"], ["North", 1], ["South", 2]),
        ],
        Other=[["Region", "Sales"], ["North", 12], ["South", 9]],
    )
    assert [table.units for table in parsed.tables] == ["in thousand euros", "in thousand euros", "", "in millions", ""]


def test_a_period_above_several_columns_names_each_of_them():
    parsed = workbook(
        Other=[
            ["In millions of CHF", None, "January–June 2023", None, "January–June 2022"],
            [None, "Goodwill", "Other assets", "Goodwill", "Other assets"],
            [],
            ["Zone North", 1, 2, 3, 4],
            ["Zone South", 5, 6, 7, 8],
        ]
    )
    (table,) = parsed.tables
    assert table.columns == (
        "",
        "January–June 2023 Goodwill",
        "January–June 2023 Other assets",
        "January–June 2022 Goodwill",
        "January–June 2022 Other assets",
    )
    assert (table.units, table.period) == ("In millions of CHF", "")


def test_the_unit_of_one_column_is_not_that_of_the_table():
    header = ["Plan", "Options (in thousands)", "Price"]
    (table,) = workbook(Plans=[header, ["A", 20, 5], ["B", 30, 6]]).tables
    assert (table.columns, table.units) == (tuple(header), "")
    (table,) = workbook(Plans=[["Plan", "2023 (kCHF)", "2022 (kCHF)"], ["A", 20, 5], ["B", 30, 6]]).tables
    assert table.units == "kCHF"


def test_a_row_of_units_belongs_to_the_header():
    rows: Rows = [["Site", "Nitrate", "Depth"], ["Unit", "mg/L", "m"], ["Pellam", 5, 3], ["Quay", 4, 2]]
    (table,) = workbook(Samples=rows).tables
    assert table.columns == ("Site Unit", "Nitrate mg/L", "Depth m")


def test_a_table_of_words_above_an_empty_row_stays_a_table():
    rows: Rows = [["Name", "Town", "Trade"], ["Ann", "Bonn", "baker"], ["Bob", "Oslo", "smith"], [], ["End"]]
    (table,) = workbook(People=rows).tables
    assert table.columns == ("Name", "Town", "Trade")
