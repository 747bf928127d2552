"""Spreadsheets and tables at the page: tables where a document is opened, with exactly the cited cells marked."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Iterator
from typing import Any
from xml.sax.saxutils import escape

import openpyxl
import pytest
from browser_session import PHONE, TWO_FRAMES, Desk, Model, Reader, desk
from doubles import Script, enough, keeps, lookup, supported, writes
from playwright.sync_api import Locator, Page, expect

Reads = Callable[..., Reader]

ROWS = 400
SHEETS = 30
COLUMNS = 130
NODES = 30_000
TAG = "<img src=x onerror=window.__owned=1>"
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
RIVERS = """# Rivers

The keeper surveyed the rivers, and wrote their lengths down.

Table 1: Rivers of the valley (in km)

| River | Length | Remark |
|---|---:|---|
| Ash | 1,233 | floods in spring |
| Bourne | 85 | |
| Carrow | 12 | dry in summer |

The Ash is the longest of them.
"""


def workbook() -> bytes:
    book = openpyxl.Workbook(write_only=True)
    readings = book.create_sheet("Readings")
    readings.append(["Reading", "Place", *(f"Probe {n}" for n in range(8)), "Remark"])
    for n in range(ROWS):
        readings.append([f"R{n}", f"Pier {n % 7}", *(n * probe for probe in range(8)), "read" if n % 5 == 0 else None])
    for n in range(SHEETS):
        sheet = book.create_sheet(f"Station {n}")
        for row in (["Item", "2023", "2024"], ["Lamp", None, None], ["Oil", 12 + n, 15], ["Wicks", 3, None]):
            sheet.append(row)
    wide = book.create_sheet("Wide")
    wide.append(["Day", *(f"Gauge {n}" for n in range(1, COLUMNS))])
    wide.append(["Monday", *(1000 + n for n in range(1, COLUMNS))])
    return saved(book)


def saved(book: Any) -> bytes:
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def letter() -> bytes:
    """A Word file: a paragraph, a table with a header, a paragraph."""

    def paragraph(words: str) -> str:
        return f"<w:p><w:r><w:t>{words}</w:t></w:r></w:p>"

    rows = [["Post", "Name"], ["Keeper", "Ada Lund"], ["Mate", "Bo Vik"], ["Cook", TAG]]
    cells = ["".join(f"<w:tc>{paragraph(escape(cell))}</w:tc>" for cell in row) for row in rows]
    table = "<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in cells) + "</w:tbl>"
    body = paragraph("The crew of the light is named below.") + table + paragraph("They serve until spring.")
    kinds = (
        '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" '
        'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
    )
    links = (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" Type='
        '"http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/>'
        "</Relationships>"
    )
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        packed.writestr("[Content_Types].xml", kinds)
        packed.writestr("_rels/.rels", links)
        packed.writestr("word/document.xml", f'<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>')
    return out.getvalue()


def surveyor() -> Script:
    """A model that cites one cell; evidence is the row that it is in."""
    return Script(
        route=lookup(),
        weigh=keeps("1,233"),
        judge=enough(),
        write=writes("The river Ash is 1,233 km long [{1,233}]."),
        check=supported(),
    )


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, _plain_environment: None) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("tables")
    files = {"keeper.xlsx": workbook(), "rivers.md": RIVERS.encode(), "crew.docx": letter()}
    for name, data in files.items():
        (folder / name).write_bytes(data)
    model = Model()
    model.plays(surveyor())
    with desk(folder / "workspace", {"Tower": "The tower is tall."}, model) as opened:
        opened.sends(*(folder / name for name in files))
        yield opened


def address(served: Desk, name: str, quote: str = "", after: str = "") -> str:
    """Where a document is opened at a quotation, the first after these words."""
    document = served.document(name)
    start = 0
    while quote:
        reply = served.api(f"/api/documents/{document}/text", params={"start": start})
        base = reply["text"].find(after)
        found = reply["text"].find(quote, base) if base >= 0 else -1
        if found >= 0:
            return f"#/document/{document}?start={start + found}&end={start + found + len(quote)}"
        assert reply["end"] < reply["characters"], quote
        start = reply["end"] - 1000
    return f"#/document/{document}"


def marked(page: Any) -> list[str]:
    return page.locator(".reading mark").all_inner_texts()


def stands_below_header(cell: Locator) -> bool:
    """Whether a cell is seen in its box, not under the header."""
    return cell.evaluate(
        """cell => {
          const box = cell.closest(".data-table").getBoundingClientRect();
          const head = cell.closest("table").tHead.rows[0].cells[1].getBoundingClientRect();
          const own = cell.getBoundingClientRect();
          return own.top >= head.bottom - 1 && own.top < box.bottom && Math.abs(head.top - box.top) < 3;
        }"""
    )


def test_a_cited_cell_deep_in_a_spreadsheet_is_marked_in_sight_below_the_header(served: Desk, reads: Reads):
    reader = reads(served)
    page = reader.goes(address(served, "keeper.xlsx", "2247", after="R321"))
    cell = page.locator("td.cited")
    expect(cell).to_be_in_viewport()
    expect(cell).to_have_text("2247")
    assert marked(page) == ["2247"]
    table = page.locator(".data-table", has=cell)
    expect(table.get_by_role("columnheader", name="Probe 7")).to_be_in_viewport()
    expect(page.get_by_role("row", name=re.compile("^R321 ")).get_by_role("rowheader")).to_be_in_viewport()
    assert stands_below_header(cell)
    assert cell.evaluate("cell => getComputedStyle(cell).textAlign") == "right"
    reader.accessible("a cited spreadsheet")
    reader.fits()
    reader.pictures("tables-spreadsheet")


def test_more_rows_come_as_one_scrolls_with_the_keyboard_and_the_page_stays_small(served: Desk, reads: Reads):
    reader = reads(served)
    page = reader.goes(address(served, "keeper.xlsx"))
    table = page.get_by_role("region", name="Readings").first
    expect(page.get_by_text("Rows 1 to 100 of 400")).to_be_visible()
    page.locator(".reading").focus()
    for _ in range(3):
        page.keyboard.press("Tab")
        if table.evaluate("box => box === document.activeElement"):
            break
    expect(table).to_be_focused()
    presses_until_there(page, "End", table.get_by_role("rowheader", name="R399", exact=True))
    expect(page.get_by_text("Rows 101 to 400 of 400")).to_be_visible()
    assert table.get_by_role("row").count() <= 301
    assert page.locator("*").count() < NODES
    presses_until_there(page, "Home", table.get_by_role("rowheader", name="R0", exact=True))
    expect(page.get_by_text("Rows 1 to 300 of 400")).to_be_visible()


def presses_until_there(page: Page, key: str, row: Locator) -> None:
    """As a person does: rows that come while the table still moves can end the movement before its goal."""
    for _ in range(200):
        page.keyboard.press(key)
        page.evaluate(TWO_FRAMES)
        if row.count():
            break
    expect(row).to_be_attached()


def test_a_sheet_is_jumped_to_however_far_it_is(served: Desk, reads: Reads):
    reader = reads(served)
    page = reader.goes(address(served, "keeper.xlsx"))
    menu = page.get_by_label("Go to a section")
    menu.select_option("Station 25")
    expect(page.locator(".reading").get_by_role("heading", name="Station 25")).to_be_in_viewport()
    expect(page.get_by_role("region", name="Station 25").get_by_text("37")).to_be_in_viewport()
    menu.select_option("Readings")
    expect(page.get_by_role("rowheader", name="R0", exact=True)).to_be_in_viewport()


def test_the_cited_column_of_a_wide_sheet_is_shown_and_others_are_asked_for(served: Desk, reads: Reads):
    reader = reads(served)
    page = reader.goes(address(served, "keeper.xlsx", "1128", after="Gauge 128"))
    expect(page.locator("td.cited")).to_be_in_viewport()
    table = page.locator(".table-block").last
    expect(table.get_by_role("rowheader", name="Monday")).to_be_in_viewport()
    table.get_by_role("button", name="Columns before").click()
    expect(table.get_by_role("columnheader", name="Gauge 30", exact=True)).to_be_attached()
    assert table.get_by_role("columnheader").count() <= 100


@pytest.mark.parametrize("width", ["laptop", "phone"])
def test_a_quotation_of_words_and_cells_marks_both_in_a_markdown_file(served: Desk, width: str, reads: Reads):
    reader = reads(served, **({"viewport": PHONE, "has_touch": True, "is_mobile": True} if width == "phone" else {}))
    document = address(served, "rivers.md", "Carrow").partition("?")[0]
    text = served.api(f"/api/documents/{served.document('rivers.md')}/text")["text"]
    start, end = text.index("dry in"), text.index("longest") + 7
    page = reader.goes(f"{document}?start={start}&end={end}")
    expect(page.locator(".reading mark")).to_have_count(2)
    assert [words.strip() for words in marked(page)] == ["dry in summer", "The Ash is the longest"]
    expect(page.locator("td.cited")).to_be_in_viewport()
    table = page.get_by_role("table", name=re.compile("Rivers of the valley"))
    expect(table.get_by_role("columnheader")).to_have_text(["River", "Length", "Remark"])
    expect(table.get_by_role("row", name="Bourne").get_by_role("cell").last).to_be_empty()
    reader.fits()
    reader.accessible(f"a Markdown table, {width}")
    reader.picture(f"tables-markdown-{width}")


def test_a_table_of_a_word_file_is_one_and_the_words_around_it_are_text(served: Desk, reads: Reads):
    reader = reads(served, color_scheme="dark")
    page = reader.goes(address(served, "crew.docx", "Bo Vik"))
    expect(page.locator(".cited")).to_have_text("Bo Vik")
    text = page.get_by_role("region", name="Text of the document")
    expect(text.locator("p").first).to_have_text("The crew of the light is named below.")
    expect(text.locator("p").last).to_have_text("They serve until spring.")
    expect(text.get_by_role("row", name="Keeper").get_by_role("cell")).to_have_text(["Ada Lund"])
    expect(text.get_by_role("row", name="Cook").get_by_role("cell")).to_have_text([TAG])
    assert page.evaluate("window.__owned") is None
    reader.accessible("a table of a Word file in the dark")


def test_a_citation_of_a_row_is_the_same_table_beside_the_answer_and_in_the_document(served: Desk, reads: Reads):
    reader = reads(served)
    page = reader.goes()
    turn = reader.asks("How long is the river Ash?")
    expect(turn.locator(".answer")).to_contain_text("1,233")
    turn.get_by_role("button", name=re.compile("^Evidence")).click()
    evidence = page.get_by_role("complementary", name="Evidence")
    beside = evidence.locator(".data-table").first
    expect(beside.get_by_role("columnheader")).to_have_text(["River", "Length", "Remark"])
    expect(beside.locator("tbody tr")).to_have_count(1)
    expect(beside.get_by_role("row", name="Ash")).to_contain_text("1,233")
    reader.pictures("tables-evidence")
    turn.get_by_role("figure").first.locator("figcaption").get_by_role("button").click()
    panel = page.locator(".panel")
    expect(panel.locator(".reading .cited")).to_have_text(
        [
            "River",
            "Length",
            "Remark",
            "Ash",
            "1,233",
            "floods in spring",
            "Bourne",
            "85",
            "Carrow",
            "12",
            "dry in summer",
        ]
    )
    expect(panel.locator(".reading .cited").first).to_be_in_viewport()
    reader.accessible("a table beside an answer")
    reader.pictures("tables-answer")
