"""Word, PowerPoint, Excel and CSV: what the page, the slide or the sheet shows."""

from __future__ import annotations

import io
import zipfile
from datetime import date, datetime

import pytest

from assay.ingest.formats import detect, plain
from assay.ingest.formats import docx as docx_parser
from assay.ingest.formats import pptx as pptx_parser
from assay.ingest.formats import xlsx as xlsx_parser
from assay.ingest.parsed import FileLimits, Parsed, Refused, Status

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
STYLES = f"""<w:styles {W}>
  <w:style w:type="paragraph" w:styleId="T"><w:name w:val="Title"/></w:style>
  <w:style w:type="paragraph" w:styleId="H1"><w:name w:val="heading 1"/></w:style>
  <w:style w:type="paragraph" w:styleId="Mine"><w:name w:val="My head"/><w:basedOn w:val="H1"/></w:style>
  <w:style w:type="paragraph" w:styleId="H2"><w:name w:val="heading 2"/></w:style>
</w:styles>"""
NUMBERING = f"""<w:numbering {W}><w:abstractNum w:abstractNumId="0">
  <w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>
  <w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="%1.%2)"/></w:lvl>
  </w:abstractNum><w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum>
  <w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>
</w:numbering>"""
NOTES = f"""<w:footnotes {W}><w:footnote w:id="2"><w:p><w:r><w:footnoteRef/></w:r>
  <w:r><w:t xml:space="preserve"> As measured at the gauge.</w:t></w:r></w:p></w:footnote></w:footnotes>"""
RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
RELS = "http://schemas.openxmlformats.org/package/2006/relationships"


def rels(**kinds: str) -> str:
    links = "".join(f'<Relationship Id="{kind}" Type="{RELATION}/{kind}" Target="{to}"/>' for kind, to in kinds.items())
    return f'<Relationships xmlns="{RELS}">{links}</Relationships>'


def zipped(members: dict[str, str | bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def docx_bytes(body: str, core: str = "", **more: str) -> bytes:
    return zipped(
        {
            "_rels/.rels": rels(officeDocument="word/document.xml"),
            "word/_rels/document.xml.rels": rels(
                styles="styles.xml", numbering="numbering.xml", footnotes="footnotes.xml"
            ),
            "word/document.xml": f'<w:document {W} xmlns:m="urn:m" xmlns:mc="urn:mc"><w:body>{body}</w:body></w:document>',
            "word/styles.xml": STYLES,
            "word/numbering.xml": NUMBERING,
            "word/footnotes.xml": NOTES,
            "docProps/core.xml": f'<p xmlns:dc="urn:dc">{core}</p>',
            **more,
        }
    )


def p(text: str = "", style: str = "", run: str = "", extra: str = "", props: str = "") -> str:
    style = f'<w:pStyle w:val="{style}"/>' if style else ""
    looks = f"<w:rPr>{run}</w:rPr>" if run else ""
    words = f'<w:r>{looks}<w:t xml:space="preserve">{text}</w:t></w:r>' if text else ""
    return f"<w:p><w:pPr>{style}{props}</w:pPr>{words}{extra}</w:p>"


def listed(text: str, number: int, depth: int = 0) -> str:
    return p(text, props=f'<w:numPr><w:ilvl w:val="{depth}"/><w:numId w:val="{number}"/></w:numPr>')


def table(*rows: list[str]) -> str:
    cells = "".join(f"<w:tr>{''.join(f'<w:tc>{p(cell)}</w:tc>' for cell in row)}</w:tr>" for row in rows)
    return f"<w:tbl>{cells}</w:tbl>"


def docx(body: str, core: str = "", limits: FileLimits | None = None, **more: str) -> Parsed:
    parsed = docx_parser.parse(docx_bytes(body, core, **more), "a.docx", limits or FileLimits())
    assert [parsed.text[s.start : s.end] for s in parsed.sections] == [s.title for s in parsed.sections]
    return parsed


# --- Word -----------------------------------------------------------------------------------------------------------


def test_headings_are_found_by_style_and_by_what_a_style_is_based_on():
    rain, wind = p("Rain", "H1") + p("It rained."), p("Wind", "Mine") + p("Gusts", "H2") + p("Text.")
    parsed = docx(p("Flood report", "T") + rain + wind)
    assert [(s.level, s.title) for s in parsed.sections] == [(1, "Rain"), (1, "Wind"), (2, "Gusts")]
    assert parsed.title == "Flood report"
    assert parsed.text == "Flood report\n\nRain\n\nIt rained.\n\nWind\n\nGusts\n\nText."


def test_lists_carry_the_numbers_that_word_counts():
    body = listed("First", 1) + listed("Part", 1, 1) + listed("Other", 1, 1) + listed("Second", 1) + listed("Dot", 2)
    assert docx(body).text == "1. First\n1.a) Part\n1.b) Other\n2. Second\n- Dot"


def test_tables_are_rows_and_a_cell_merged_downwards_is_repeated():
    merged = (
        "<w:tbl><w:tr><w:tc><w:tcPr><w:vMerge w:val='restart'/></w:tcPr>" + p("Rhine") + "</w:tc>"
        "<w:tc>" + p("upper") + "</w:tc></w:tr><w:tr><w:tc><w:tcPr><w:vMerge/></w:tcPr>" + p() + "</w:tc>"
        "<w:tc>" + p("lower") + "</w:tc></w:tr></w:tbl>"
    )
    assert docx(table(["River", "km"], ["Rhine", "1233"])).text == "River | km\nRhine | 1233"
    assert docx(merged).text == "Rhine | upper\nRhine | lower"


def test_a_table_that_only_places_text_is_read_as_text():
    assert docx(table(["A framed paragraph."])).text == "A framed paragraph."


def test_footnotes_follow_the_paragraph_that_refers_to_them():
    body = p("The river rose", extra='<w:r><w:footnoteReference w:id="2"/></w:r>') + p("Next.")
    assert docx(body).text == "The river rose[2]\n\n[2] As measured at the gauge.\n\nNext."


def test_a_text_box_is_read_once_though_the_file_holds_it_twice():
    box = f"<w:txbxContent>{p('Boxed words.')}</w:txbxContent>"
    body = p("Around.", extra=f"<w:r><mc:AlternateContent><mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback>"
             "</mc:AlternateContent></w:r>")  # fmt: skip
    assert docx(body).text == "Around.\n\nBoxed words."


@pytest.mark.parametrize(
    "hidden",
    [
        "<w:p><w:del><w:r><w:delText>SECRET</w:delText></w:r></w:del></w:p>",
        "<w:p><w:moveFrom><w:r><w:t>SECRET</w:t></w:r></w:moveFrom></w:p>",
        p("SECRET", run="<w:vanish/>"),
        p("SECRET", run='<w:color w:val="FFFFFF"/>'),
        p("SECRET", run='<w:sz w:val="2"/>'),
        "<w:p><w:r><w:instrText>SECRET</w:instrText></w:r></w:p>",
    ],
)
def test_what_word_does_not_show_is_not_read(hidden):
    assert docx(p("Seen.") + hidden).text == "Seen."


def test_white_text_on_a_dark_ground_is_read():
    white = '<w:color w:val="FFFFFF"/>'
    shaded = p("SHOWN", run=white + '<w:shd w:fill="000000"/>')
    dark = '<w:tcPr><w:shd w:fill="000080"/></w:tcPr>'
    cell = f"<w:tbl><w:tr><w:tc>{dark}{p('A', run=white)}</w:tc><w:tc>{p('B')}</w:tc></w:tr></w:tbl>"
    assert docx(shaded + cell).text == "SHOWN\n\nA | B"


def test_inserted_revisions_and_links_are_text():
    body = "<w:p><w:ins><w:r><w:t>New </w:t></w:r></w:ins><w:hyperlink><w:r><w:t>link</w:t></w:r></w:hyperlink></w:p>"
    assert docx(body).text == "New link"


def test_a_formula_is_a_line_of_text():
    power = "<m:sSup><m:e><m:r><m:t>mc</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup>"
    assert docx(f"<w:p><m:oMath><m:r><m:t>E=</m:t></m:r>{power}</m:oMath></w:p>").text == "E=mc^2"


def test_title_and_author_come_from_the_properties_unless_a_program_wrote_them():
    said = "<dc:title>Flood report</dc:title><dc:creator>Ada Obi</dc:creator><created>2024-05-17T00:00:00Z</created>"
    parsed = docx(p("Text."), said)
    assert (parsed.title, parsed.authors, parsed.date) == ("Flood report", ("Ada Obi",), "2024-05-17")
    rubbish = (
        "<dc:title>Document1</dc:title><dc:creator>python-docx</dc:creator><created>2013-12-23T23:15:00Z</created>"
    )
    parsed = docx(p("Text."), rubbish)
    assert (parsed.title, parsed.authors, parsed.date) == ("", (), None)


def test_a_file_that_grew_out_of_an_older_one_has_its_last_date():
    said = "<created>2011-01-12T00:00:00Z</created><modified>2023-07-20T00:00:00Z</modified>"
    assert docx(p("Text."), said).date == "2023-07-20"


# --- what is wrong with a file --------------------------------------------------------------------------------------


def refused(data: bytes, limits: FileLimits | None = None, read=docx_parser.parse) -> Status:
    with pytest.raises(Refused) as caught:
        read(data, "a", limits or FileLimits())
    assert caught.value.why.endswith(".")
    return caught.value.status


@pytest.mark.parametrize("read", [docx_parser.parse, pptx_parser.parse, xlsx_parser.parse])
def test_damaged_files_are_refused_as_damaged(read):
    whole = docx_bytes(p("Text."))
    broken = zipped({"word/document.xml": "<a><b>"})
    for data in (b"PK\x03\x04 rubbish", whole[: len(whole) // 2], zipped({"a.txt": "x"}), broken):
        assert refused(data, read=read) == Status.corrupt


def test_a_file_with_a_password_is_refused_as_encrypted():
    container = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\x00" * 600
    assert refused(container + "EncryptedPackage\0".encode("utf-16-le"), read=detect.read) == Status.encrypted
    assert refused(container + "WordDocument\0".encode("utf-16-le"), read=detect.read) == Status.unsupported


def test_a_file_that_unpacks_to_far_more_than_its_size_is_refused_before_it_is_unpacked():
    bomb = docx_bytes(p("x"), **{"word/media/a.bin": "0" * 60_000_000})
    assert refused(bomb) == Status.too_large
    assert refused(docx_bytes(p("Text.")), FileLimits(expanded_bytes=100)) == Status.too_large


def test_xml_entities_are_refused():
    document = f"<w:document {W}><w:body>{p('Text &b;')}</w:body></w:document>"
    bomb = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>' + document
    for data in (bomb, ('<?xml version="1.0" encoding="utf-16"?>' + bomb).encode("utf-16")):
        assert refused(zipped({"word/document.xml": data})) == Status.corrupt


def test_a_document_without_words_is_refused_as_empty():
    assert refused(docx_bytes(p())) == Status.empty


def test_a_document_with_too_much_text_is_refused():
    assert refused(docx_bytes(p("word " * 100)), FileLimits(characters=50)) == Status.too_large


# --- PowerPoint -----------------------------------------------------------------------------------------------------


def slides() -> bytes:
    from pptx import Presentation
    from pptx.chart.data import CategoryChartData
    from pptx.enum.chart import XL_CHART_TYPE
    from pptx.util import Inches

    show = Presentation()
    show.core_properties.title = "PowerPoint Presentation"
    one = show.slides.add_slide(show.slide_layouts[1])
    one.shapes.title.text = "Rainfall"
    one.placeholders[1].text = "It rained"
    below = one.placeholders[1].text_frame.add_paragraph()
    below.text, below.level = "all night", 1
    one.notes_slide.notes_text_frame.text = "Mention the gauge."
    two = show.slides.add_slide(show.slide_layouts[6])
    for left, top, words in ((5, 1, "right"), (1, 1, "left"), (1, 4, "bottom"), (30, 1, "BESIDE THE SLIDE")):
        two.shapes.add_textbox(Inches(left), Inches(top), Inches(2), Inches(1)).text_frame.text = words
    hidden = show.slides.add_slide(show.slide_layouts[6])
    hidden.shapes.add_textbox(0, 0, Inches(2), Inches(1)).text_frame.text = "SECRET"
    hidden._element.set("show", "0")
    four = show.slides.add_slide(show.slide_layouts[5])
    four.shapes.title.text = "Figures"
    grid = four.shapes.add_table(2, 2, Inches(1), Inches(2), Inches(4), Inches(1)).table
    for at, words in enumerate(("River", "km", "Rhine", "1233")):
        grid.cell(at // 2, at % 2).text = words
    data = CategoryChartData()
    data.categories = ["2023", "2024"]
    data.add_series("Level", (3, 7))
    four.shapes.add_chart(XL_CHART_TYPE.BAR_CLUSTERED, Inches(1), Inches(5), Inches(4), Inches(2), data)
    file = io.BytesIO()
    show.save(file)
    return file.getvalue()


def test_a_slide_is_a_page_and_a_section_and_is_read_from_top_left():
    parsed = pptx_parser.parse(slides(), "a.pptx", FileLimits())
    assert parsed.text == (
        "Rainfall\n\nIt rained\n- all night\n\nNotes: Mention the gauge.\n\n"
        "Slide 2\n\nleft\n\nright\n\nbottom\n\n"
        "Figures\n\nRiver | km\nRhine | 1233\n\nLevel | 2023: 3; 2024: 7"
    )
    assert [section.title for section in parsed.sections] == ["Rainfall", "Slide 2", "Figures"]
    assert parsed.title == "Rainfall"


def test_pages_keep_the_numbers_of_the_slides_when_one_is_hidden():
    from assay.core.types import Document

    parsed = pptx_parser.parse(slides(), "a.pptx", FileLimits())
    doc = Document("d", "b", "u", "x", parsed.title, parsed.text, pages=parsed.pages, kind="pptx")
    assert [doc.page_at(parsed.text.index(words)) for words in ("Rainfall", "Notes", "left", "Figures")] == [1, 1, 2, 4]
    assert "Hidden slides were left out: 3." in parsed.warnings


def test_too_many_slides_are_refused():
    assert refused(slides(), FileLimits(pages=3), pptx_parser.parse) == Status.too_large


# --- Excel and CSV --------------------------------------------------------------------------------------------------


def workbook(fill) -> bytes:
    from openpyxl import Workbook

    book = Workbook()
    fill(book)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def xlsx(fill) -> Parsed:
    return xlsx_parser.parse(workbook(fill), "a.xlsx", FileLimits())


@pytest.mark.long
def test_each_row_repeats_its_column_names_and_values_look_as_in_excel():
    def fill(book):
        sheet = book.active
        sheet.title = "Levels"
        sheet.append(["River", "Day", "Level", "Change", "Safe"])
        sheet.append(["Rhine", date(2024, 5, 17), 3.25, 0.5, True])
        sheet.append(["Rhône", datetime(2024, 5, 18, 6, 30), 4, None, False])
        sheet["D2"].number_format = "0%"

    parsed = xlsx(fill)
    assert parsed.text == (
        "Levels\n\nRiver: Rhine; Day: 2024-05-17; Level: 3.25; Change: 50%; Safe: TRUE\n"
        "River: Rhône; Day: 2024-05-18 06:30; Level: 4; Safe: FALSE"
    )
    assert [section.title for section in parsed.sections] == ["Levels"]


def test_hidden_sheets_rows_and_columns_are_left_out():
    def fill(book):
        sheet = book.active
        for row in (["a", "b", "c"], [1, "SECRET", 2], ["SECRET", 3, 4], [5, "SECRET", 6]):
            sheet.append(row)
        sheet.column_dimensions["B"].hidden = True
        sheet.row_dimensions[3].hidden = True
        book.create_sheet("Back").append(["SECRET"])
        book["Back"].sheet_state = "hidden"

    parsed = xlsx(fill)
    assert "SECRET" not in parsed.text
    assert parsed.warnings[0] == "Hidden sheets were left out: Back."


def test_merged_cells_lend_their_value_to_the_rows_they_span():
    def fill(book):
        sheet = book.active
        for row in (["Region", "River", "km"], ["West", "Rhine", 1233], [None, "Maas", 925]):
            sheet.append(row)
        sheet.merge_cells("A2:A3")

    assert "Region: West; River: Maas; km: 925" in xlsx(fill).text


def test_a_title_above_a_table_is_a_line_and_a_form_is_not_taken_for_a_table():
    def fill(book):
        sheet = book.active
        for row in (
            ["Report on floods"],
            ["River", "Town", "m"],
            ["Rhine", "Bonn", 3],
            [],
            ["Name", "Ada"],
            ["Place", "Bonn"],
        ):
            sheet.append(row)

    assert xlsx(fill).text == "Sheet\n\nReport on floods\nRiver: Rhine; Town: Bonn; m: 3\n\nName | Ada\nPlace | Bonn"


def test_the_last_result_of_a_formula_is_its_value():
    sheet = (
        '<worksheet><sheetData><row r="1"><c r="A1" t="str"><f>UPPER("x")</f><v>TOTAL</v></c><c r="B1"><f>1+1</f><v>2</v></c>'
        '<c r="C1" t="e"><v>#REF!</v></c><c r="D1" t="inlineStr"><is><t>inline</t></is></c></row></sheetData></worksheet>'
    )
    book = f'<workbook xmlns:r="{RELATION}"><sheets><sheet name="S" r:id="worksheet"/></sheets></workbook>'
    data = zipped(
        {"xl/workbook.xml": book, "xl/_rels/workbook.xml.rels": rels(worksheet="sheet1.xml"), "xl/sheet1.xml": sheet}
    )
    assert xlsx_parser.parse(data, "a.xlsx", FileLimits()).text == "S\n\nTOTAL | 2 | inline"


@pytest.mark.long
@pytest.mark.timeout(30)
def test_a_million_painted_blank_cells_cost_little():
    blanks = "".join(f'<row r="{row}">' + '<c s="1"/>' * 100 + "</row>" for row in range(2, 10_002))
    sheet = f'<worksheet><sheetData><row r="1"><c r="A1"><v>7</v></c></row>{blanks}</sheetData></worksheet>'
    book = f'<workbook xmlns:r="{RELATION}"><sheets><sheet name="S" r:id="worksheet"/></sheets></workbook>'
    data = zipped(
        {"xl/workbook.xml": book, "xl/_rels/workbook.xml.rels": rels(worksheet="sheet1.xml"), "xl/sheet1.xml": sheet}
    )
    assert xlsx_parser.parse(data, "a.xlsx", FileLimits(expansion=10_000)).text == "S\n\n7"


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_of_a_csv_is_found(separator):
    rows = [["River", "Note", "km"], ["Rhine", "long, and; wide", "1233"], ["Maas", "a | b", "925"]]
    data = "\n".join(separator.join(f'"{cell}"' for cell in row) for row in rows).encode()
    assert plain.parse_delimited(data, "a.csv", FileLimits()).text == (
        "River: Rhine; Note: long, and; wide; km: 1233\nRiver: Maas; Note: a | b; km: 925"
    )


def test_a_csv_in_an_older_encoding_or_with_one_column_is_read():
    assert (
        plain.parse_delimited("Stadt;Höhe\nKöln;37\n".encode("cp1252"), "a.csv", FileLimits()).text
        == "Stadt: Köln; Höhe: 37"
    )
    assert plain.parse_delimited(b"Rhine\nMaas\n", "a.csv", FileLimits()).text == "Rhine\nMaas"


def test_every_row_of_a_long_csv_carries_its_names():
    data = "id,name\n" + "".join(f"{n},river {n}\n" for n in range(5000))
    text = plain.parse_delimited(data.encode(), "a.csv", FileLimits()).text
    assert text.endswith("id: 4999; name: river 4999") and text.count("id: ") == 5000
