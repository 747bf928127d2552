"""Tables of PDFs: columns by alignment, merged headers, wrapped labels, signs, units, captions, page breaks."""

from __future__ import annotations

import io

from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

from assay.core.tables import check_tables, table_rows
from assay.core.types import Document, Table
from assay.ingest.parsed import FileLimits
from assay.ingest.pdf.build_text import PdfText
from assay.ingest.pdf.reader import read
from assay.ingest.split import split_passages

RIGHT = (400, 480, 560)  # the right edges of the columns
LEFT = 60


class Page:
    """A canvas that is written from the top."""

    def __init__(self) -> None:
        self.out = io.BytesIO()
        self.canvas = Canvas(self.out, pagesize=A4)
        self.y = 780.0

    def text(self, words: str, x: float = LEFT, *, bold: bool = False, step: float = 14) -> None:
        self.canvas.setFont("Helvetica-Bold" if bold else "Helvetica", 9)
        self.canvas.drawString(x, self.y, words)
        self.y -= step

    def centred(self, words: str, x: float, step: float = 14) -> None:
        self.canvas.setFont("Helvetica", 9)
        self.canvas.drawCentredString(x, self.y, words)
        self.y -= step

    def row(self, label: str, *values: str, indent: float = 0, sign: str = "") -> None:
        self.canvas.setFont("Helvetica", 9)
        self.canvas.drawString(LEFT + indent, self.y, label)
        for right, value in zip(RIGHT, values, strict=False):
            hanging = self.canvas.stringWidth(")", "Helvetica", 9) if value.endswith(")") else 0
            self.canvas.drawRightString(right + hanging, self.y, value)
            if sign and value:
                self.canvas.drawString(right - 50, self.y, sign)
        self.y -= 14

    def prose(self, lines: int = 4) -> None:
        for _ in range(lines):
            self.text(
                "These are sentences that reach over the whole width of the page, as they do in any report that has them."
            )
        self.y -= 14

    def turn(self) -> None:
        self.canvas.showPage()
        self.y = 780.0

    def read(self) -> PdfText:
        self.canvas.save()
        written = read(self.out.getvalue(), FileLimits()).built
        check_tables(written.tables, len(written.text))
        return written


def shown(written: PdfText, table: Table) -> list[tuple[str, ...]]:
    return [(row.label, *(cell.text for cell in row.cells[1:])) for row in table_rows(table, written.text)]


def statement(page: Page) -> None:
    page.prose()
    page.text("Example Company", bold=True)
    page.text("Statement of Cash Flows", bold=True)
    page.text("(In millions, except per share data)")
    page.centred("Years ended December 31,", RIGHT[1] - 15)
    page.row("", "2022", "2021", "2020")
    page.text("Operating activities:", bold=True)
    page.row("Net income", "5,363", "4,869", "5,058", sign="$")
    page.row("Depreciation", "1,488", "—", "1,474", indent=10)
    page.row("Deferred taxes", "(57)", "107", "7", indent=10)
    page.text("Proceeds from issuance of stock pursuant to", x=LEFT + 10)
    page.row("option plans", "485", "734", "804", indent=10)
    page.row("Net cash from operations", "7,279", "5,710", "7,343")
    page.y -= 14
    page.prose()


def test_a_statement_is_a_table_with_names_groups_units_and_caption():
    page = Page()
    statement(page)
    written = page.read()
    (table,) = written.tables
    assert table.columns == ("", *(f"Years ended December 31, {year}" for year in (2022, 2021, 2020)))
    assert table.caption == "Example Company — Statement of Cash Flows"
    assert table.units == "In millions, except per share data"
    assert shown(written, table) == [
        ("Operating activities:", "", "", ""),
        ("Operating activities › Net income", "$5,363", "$4,869", "$5,058"),
        ("Operating activities › Depreciation", "1,488", "—", "1,474"),
        ("Operating activities › Deferred taxes", "(57)", "107", "7"),
        (
            "Operating activities › Proceeds from issuance of stock pursuant to option plans",
            "485",
            "734",
            "804",
        ),
        ("Net cash from operations", "7,279", "5,710", "7,343"),
    ]


def test_cells_are_where_their_offsets_say():
    page = Page()
    statement(page)
    written = page.read()
    rows = table_rows(written.tables[0], written.text)
    cell = rows[1].cells[2]
    assert written.text[cell.start : cell.end].split() == ["$", "4,869"]
    assert written.text[rows[4].start : rows[4].end].split()[0] == "Proceeds"


def test_a_header_over_several_columns_names_each_of_them():
    page = Page()
    page.prose(8)
    page.centred("2022", (RIGHT[0] + RIGHT[1]) / 2 - 15)
    page.row("Segment", "Sales", "Profit", "Share")
    page.row("Safety", "11,604", "1,199", "33.9")
    page.row("Health", "8,421", "1,815", "24.6")
    (table,) = page.read().tables
    assert table.columns == ("Segment", "2022 Sales", "2022 Profit", "Share")


def test_a_table_across_a_page_break_keeps_its_header():
    page = Page()
    page.text("Schedule of items (in thousands)", bold=True)
    page.row("", "2022", "2021", "2020")
    for number in range(50):
        page.row(f"Item {chr(65 + number % 26)}{number}", f"{number + 100}", f"{number + 200}", f"{number + 300}")
    page.turn()
    for number in range(50, 60):
        page.row(f"Item {chr(65 + number % 26)}{number}", f"{number + 100}", f"{number + 200}", f"{number + 300}")
    written = page.read()
    first, second = written.tables
    assert first.columns == second.columns == ("", "2022", "2021", "2020")
    assert (second.caption, second.units) == (first.caption, "in thousands")
    assert shown(written, second)[0] == ("Item Y50", "150", "250", "350")


def test_columns_of_words_are_columns_too():
    page = Page()
    for code, place, count, state in (
        ("Code", "Place", "Count", "State"),
        ("SKU-1", "A-12", "450", "OK"),
        ("SKU-2", "B-07", "289", "LATE"),
        ("SKU-3", "C-15", "17", "OK"),
    ):
        for x, words in ((60, code), (160, place), (260, count), (360, state)):
            page.canvas.drawString(x, page.y, words)
        page.y -= 16
    written = page.read()
    (table,) = written.tables
    assert table.columns == ("Code", "Place", "Count", "State")
    assert shown(written, table)[1] == ("SKU-2", "B-07", "289", "LATE")


def test_leaders_and_footnote_marks_are_not_cells():
    page = Page()
    page.row("", "2022", "2021")
    page.row("Cash .....................................................", "12", "10")
    page.row("Debts (1)", "7", "5")
    page.row("Other", "(1)", "(2)")
    written = page.read()
    assert shown(written, written.tables[0]) == [("Cash", "12", "10"), ("Debts (1)", "7", "5"), ("Other", "(1)", "(2)")]


def test_running_text_with_numbers_is_no_table():
    page = Page()
    for year in range(2001, 2025):
        page.text(
            f"In {year} the company sold 4,{year} items in 12 countries and earned 3.5 million more than in the year before it."
        )
    assert page.read().tables == ()


def test_a_passage_cut_in_the_middle_of_a_table_carries_its_header():
    page = Page()
    page.text("Schedule of items (in thousands)", bold=True)
    page.row("", "2022", "2021", "2020")
    for number in range(45):
        page.row(f"Item number {number} of the schedule", f"{number + 100}", f"{number + 200}", f"{number + 300}")
    written = page.read()
    document = Document(
        "d", "b", "u", "x", "T", written.text, sections=written.sections, pages=written.pages, tables=written.tables
    )
    passages = split_passages(document, lambda text: len(text.split()), size=60, overlap=0)
    rows = {row.start: row for row in table_rows(written.tables[0], written.text)}
    ends = {row.end for row in rows.values()}
    inside = [piece for piece in passages if piece.start > written.tables[0].start]
    assert len(inside) > 3
    for piece in inside:
        assert piece.start in rows and piece.end in ends  # cut between rows
        assert "2022 | 2021 | 2020" in piece.context
        assert "in thousands" in piece.above


def test_long_labels_beside_few_numbers_are_no_columns():
    page = Page()
    page.text("Equity (in thousands)", bold=True)
    page.row("", "2022", "2021")
    page.row("Total liabilities", "7,244", "7,687")
    for words in (
        "Common stock, par value of one cent for each of the shares,",
        "two million shares are authorized, and none of them",
        "was issued in the years that are shown in this table or",
    ):
        page.text(words)
    page.row("in any other year of the company", "9", "9")
    page.row("Retained earnings", "40,636", "39,115")
    page.row("Total equity", "47,889", "46,811")
    written = page.read()
    (table,) = written.tables
    assert shown(written, table)[-3][1:] == ("9", "9")
    assert shown(written, table)[-3][0].endswith("any other year of the company")


def test_units_in_the_sentence_above_a_title_are_those_of_the_table():
    page = Page()
    page.prose()
    page.text("Our obligations at the end of the year were as follows (in thousands):")
    page.text("Payments Due by Period", bold=True)
    page.row("", "2022", "2021", "2020")
    page.row("Leases", "12", "10", "9", sign="$")
    page.row("Notes", "7", "6", "5", sign="$")
    (table,) = page.read().tables
    assert (table.caption, table.units) == ("Payments Due by Period", "in thousands")


def test_units_alone_between_years_and_rows_are_those_of_the_table():
    page = Page()
    page.prose()
    page.row("", "2022", "2021", "2020")
    page.centred("(in millions)", RIGHT[1] - 15)
    page.row("Sales", "12", "10", "9", sign="$")
    page.row("Costs", "7", "6", "5", sign="$")
    assert page.read().tables[0].units == "in millions"
