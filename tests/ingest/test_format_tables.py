"""Tables as objects: the same rows, columns, units and captions from every format, with offsets into the text."""

from __future__ import annotations

import io
import zipfile

import pytest

from assay.core.tables import check_tables, table_rows
from assay.core.types import Table
from assay.ingest.formats import docx, html, plain, pptx, xlsx
from assay.ingest.parsed import FileLimits, Parsed
from assay.language.quantities import find_units
from assay.tables.build import caption_above

LIMITS = FileLimits()
GRID = [
    ["", "First quarter", "First quarter"],
    ["", "2022", "2021"],
    ["Germany", "$12", "$10"],
    ["France", "5", "(4)"],
]


def shown(parsed: Parsed) -> list[tuple[str, ...]]:
    """Each row of the only table as label and cells; every cell must be where its offsets say."""
    (table,) = checked(parsed)
    return [(row.label, *(cell.text for cell in row.cells[1:])) for row in table_rows(table, parsed.text)]


def checked(parsed: Parsed) -> tuple[Table, ...]:
    check_tables(parsed.tables, len(parsed.text))
    for table in parsed.tables:
        for row in table_rows(table, parsed.text):
            for cell in row.cells:
                written = parsed.text[cell.start : cell.end]
                assert not cell.text or written.replace(" ", "") in cell.text.replace(" ", "")
                assert not cell.text or written
    return parsed.tables


def page(body: str) -> Parsed:
    return html.parse(f"<body>{body}</body>".encode(), "a.html", LIMITS)


def word(body: str) -> Parsed:
    file = io.BytesIO()
    namespace = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("word/document.xml", f"<w:document {namespace}><w:body>{body}</w:body></w:document>")
    return docx.parse(file.getvalue(), "a.docx", LIMITS)


def paragraph(words: str) -> str:
    return f"<w:p><w:r><w:t>{words}</w:t></w:r></w:p>"


def slide(title: str, rows: list[list[str]], merged: tuple[tuple[int, int], tuple[int, int]] | None = None) -> Parsed:
    from pptx import Presentation
    from pptx.util import Inches

    show = Presentation()
    one = show.slides.add_slide(show.slide_layouts[5])
    one.shapes.title.text = title
    grid = one.shapes.add_table(len(rows), len(rows[0]), Inches(1), Inches(2), Inches(4), Inches(1)).table
    for y, row in enumerate(rows):
        for x, words in enumerate(row):
            grid.cell(y, x).text = words
    if merged:
        kept = grid.cell(*merged[0]).text
        grid.cell(*merged[1]).text = ""
        grid.cell(*merged[0]).merge(grid.cell(*merged[1]))
        grid.cell(*merged[0]).text = kept
    file = io.BytesIO()
    show.save(file)
    return pptx.parse(file.getvalue(), "a.pptx", LIMITS)


def sheet(rows: list[list[object]], *merged: str) -> Parsed:
    from openpyxl import Workbook

    book = Workbook()
    book.active.title = "Sales"
    for row in rows:
        book.active.append(row)
    for cells in merged:
        book.active.merge_cells(cells)
    file = io.BytesIO()
    book.save(file)
    return xlsx.parse(file.getvalue(), "a.xlsx", LIMITS)


# --- one table in every format ----------------------------------------------------------------------------------------


def as_html() -> Parsed:
    rows = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in GRID[2:])
    return page(
        "<table><caption>Sales by country (in millions)</caption><thead><tr><td></td><th colspan=2>First quarter</th></tr>"
        f"<tr><td></td><th>2022</th><th>2021</th></tr></thead>{rows}</table>"
    )


def as_docx() -> Parsed:
    def row(*cells: str) -> str:
        return "<w:tr>" + "".join(f"<w:tc>{cell}</w:tc>" for cell in cells) + "</w:tr>"

    wide = '<w:tcPr><w:gridSpan w:val="2"/></w:tcPr>' + paragraph("First quarter")
    rows = row(paragraph(""), wide) + "".join(row(*map(paragraph, cells)) for cells in GRID[1:])
    return word(paragraph("Sales by country (in millions)") + f"<w:tbl>{rows}</w:tbl>")


def as_pptx() -> Parsed:
    return slide("Sales by country (in millions)", GRID, ((0, 1), (0, 2)))


def as_xlsx() -> Parsed:
    return sheet([["Sales by country (in millions)"], *GRID], "B2:C2")


@pytest.mark.parametrize("parsed", [as_html, as_docx, as_pptx, as_xlsx])
def test_a_table_is_the_same_in_every_format(parsed):
    found = parsed()
    assert shown(found)[-2:] == [("Germany", "$12", "$10"), ("France", "5", "(4)")]
    (table,) = found.tables
    assert table.caption == "Sales by country (in millions)"
    assert table.units == "in millions"


@pytest.mark.parametrize("parsed", [as_html, as_docx, as_xlsx])
def test_header_rows_are_merged_into_one_name_for_each_column(parsed):
    (table,) = parsed().tables
    assert table.columns == ("", "First quarter 2022", "First quarter 2021")


def test_a_slide_says_that_only_its_first_row_is_the_header():
    assert as_pptx().tables[0].columns == ("", "First quarter", "First quarter")


def test_a_csv_file_has_one_table():
    parsed = plain.parse_delimited(b"Name;Age;Town\nAnn;31;Bonn\nBob;;Oslo\n", "people.csv", LIMITS)
    assert shown(parsed) == [("Ann", "31", "Bonn"), ("Bob", "", "Oslo")]
    assert parsed.tables[0].columns == ("Name", "Age", "Town")


def test_a_markdown_table_is_one_too():
    parsed = plain.parse(
        b"# Fruit\n\n**Prices (in EUR)**\n\n| Item | 2020 |\n|---|---:|\n| Apple | 1 |\n| Pear | |\n\nEnd.",
        "a.md",
        LIMITS,
    )
    assert shown(parsed) == [("Apple", "1"), ("Pear", "")]
    assert (parsed.tables[0].columns, parsed.tables[0].units) == (("Item", "2020"), "in EUR")


# --- what files do to tables ------------------------------------------------------------------------------------------


def test_signs_in_cells_of_their_own_join_their_number():
    row = "<tr><td>{}</td><td>$</td><td>({}</td><td>)</td><td>$</td><td>{}</td><td>%</td></tr>"
    parsed = page(
        f"<table><tr><td></td><td></td><td>2020</td><td></td><td></td><td>2019</td></tr>{row.format('Net', 4, 8)}</table>"
    )
    assert shown(parsed) == [("Net", "$(4)", "$8%")]
    assert parsed.tables[0].columns == ("", "2020", "2019")


def test_a_cell_merged_downwards_belongs_to_every_row_it_covers():
    parsed = page(
        "<table><tr><th>Town</th><th>Year</th><th>m</th></tr><tr><td rowspan=2>Bonn</td><td>2020</td><td>3</td></tr>"
        "<tr><td>2021</td><td>4</td></tr></table>"
    )
    assert shown(parsed) == [("Bonn", "2020", "3"), ("Bonn", "2021", "4")]


def test_a_row_with_only_a_label_names_the_group_of_the_rows_below():
    parsed = sheet([["", 2022, 2021], ["Assets"], ["Cash", 1, 2], ["Debts"], ["Loans", 3, 4]])
    assert [row[0] for row in shown(parsed)] == ["Assets", "Assets › Cash", "Debts", "Debts › Loans"]


def test_tables_separated_by_an_empty_row_are_two():
    first, second = checked(sheet([["River", "km", "m"], ["Rhine", 1233, 3], [], ["Name", "Ada"], ["Place", "Bonn"]]))
    assert first.columns == ("River", "km", "m") and first.caption == "Sales"
    assert second.columns == ("", "")


def test_a_table_inside_a_mail_keeps_its_offsets():
    from email.message import EmailMessage

    from assay.ingest.formats import mail

    message = EmailMessage()
    message["Subject"] = "Levels"
    message.set_content("See the file.")
    message.add_attachment(b"River,km\nRhine,1233\nMaas,925\n", maintype="text", subtype="csv", filename="rivers.csv")
    parsed = mail.parse(bytes(message), "a.eml", LIMITS)
    assert shown(parsed) == [("Rhine", "1233"), ("Maas", "925")]


def test_a_long_sheet_of_words_keeps_its_header():
    lines = ["name,town"] + [f"person {chr(97 + n % 26)},town {chr(97 + n % 7)}" for n in range(2500)]
    parsed = plain.parse_delimited("\n".join(lines).encode(), "a.csv", LIMITS)
    (table,) = checked(parsed)
    rows = table_rows(table, parsed.text)
    assert len(rows) == 2500 and table.columns == ("name", "town")
    assert parsed.text.endswith(f"name: {rows[-1].label}; town: {rows[-1].cells[1].text}")


def test_the_offsets_of_a_large_sheet_are_a_fraction_of_its_text():
    lines = ["id,name,town,level"] + [f"{n},person {n},town {n % 50},{n % 97}.5" for n in range(20_000)]
    parsed = plain.parse_delimited("\n".join(lines).encode(), "a.csv", LIMITS)
    assert sum(len(table.layout) for table in parsed.tables) < 0.15 * len(parsed.text)


# --- units and captions -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "units"),
    [
        ("Consolidated Balance Sheets (In millions, except per share data)", "In millions, except per share data"),
        ("(Dollars in thousands)", "Dollars in thousands"),
        ("$ in millions", "$ in millions"),
        ("Amounts in EUR million", "Amounts in EUR million"),
        ("Year ended December 31 (in %)", "in %"),
        ("(Angaben in Mio. €)", "Angaben in Mio. €"),
        ("We sold millions of items", ""),
        ("Notes (see page 12 of millions)", ""),
        ("Growth (unaudited)", ""),
    ],
)
def test_units_are_found_as_they_are_written(line: str, units: str):
    assert find_units([line]) == units


@pytest.mark.parametrize(
    ("lines", "caption"),
    [
        (["Balance sheets", "(in millions)"], "Balance sheets"),
        (["In general it rained.", "Table 3. Rain in May."], "Table 3. Rain in May."),
        (["The rain is shown below."], ""),
        (["Rain by month:"], "Rain by month:"),
    ],
)
def test_the_line_above_a_table_is_its_caption_unless_it_is_a_sentence(lines: list[str], caption: str):
    assert caption_above(lines) == caption


def test_a_unit_under_the_name_of_one_column_is_not_that_of_the_table():
    rows = "<tr><td>Granted</td><td>12</td><td>10</td></tr><tr><td>Vested</td><td>7</td><td>6</td></tr>"
    two = "<tr><th></th><th>Shares</th><th>Price</th></tr><tr><th></th><th>(in millions)</th><th></th></tr>"
    (table,) = page(f"<table>{two}{rows}</table>").tables
    assert (table.columns, table.units) == (("", "Shares (in millions)", "Price"), "")
    over = "<tr><th></th><th colspan=2>(in millions)</th></tr><tr><th></th><th>North</th><th>South</th></tr>"
    assert page(f"<table>{over}{rows}</table>").tables[0].units == "in millions"
