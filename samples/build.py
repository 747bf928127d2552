"""Makes the binary files of the sample corpus from the texts in `source/`.

    python samples/build.py            write them into samples/corpus
    python samples/build.py --check    write nothing; fail if a file would change

Two runs give the same bytes: every time stamp is the date of the document itself, and archives are stored
without compression, so that the bytes do not depend on the compressor. The PDF files carry no embedded fonts.
The picture in the scanned PDF depends on the installed version of Pillow, and the container of the two Office
files on python-pptx and openpyxl; with other versions a check can fail although nothing is wrong.
The text formats in samples/corpus (Markdown, HTML, CSV, e-mail, plain text) are written by hand.
"""

from __future__ import annotations

import calendar
import csv
import io
import os
import random
import re
import sys
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from html import escape
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import reportlab
from openpyxl import Workbook
from openpyxl.styles import Font
from openpyxl.utils import get_column_letter
from PIL import Image, ImageDraw, ImageFont
from pptx import Presentation
from reportlab.lib.pagesizes import A4
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen.canvas import Canvas

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "source"
CORPUS = HERE / "corpus"


# ---------------------------------------------------------------------------------------------------------------
# The source texts


@dataclass(frozen=True)
class Block:
    kind: str  # h1, h2, p, li, note, row, table, chart
    text: str = ""
    cells: tuple[str, ...] = ()


@dataclass(frozen=True)
class Text:
    """A source text: a few `key: value` lines, an empty line, then blocks."""

    meta: dict[str, str]
    blocks: list[Block]

    @property
    def date(self) -> datetime:
        written = self.meta["date"]
        return datetime.strptime(written, "%Y-%m-%d" if written[:4].isdigit() else "%d %B %Y").replace(hour=9)


MARKS = {"# ": "h1", "## ": "h2", "- ": "li", "> ": "note", "table: ": "table", "chart: ": "chart"}


def read(name: str) -> Text:
    head, _, body = (SOURCE / name).read_text(encoding="utf-8").partition("\n\n")
    meta = dict(line.split(": ", 1) for line in head.splitlines())
    blocks: list[Block] = []
    for line in body.splitlines():
        mark = next((mark for mark in MARKS if line.startswith(mark)), None)
        if mark:
            blocks.append(Block(MARKS[mark], line.removeprefix(mark)))
        elif line.startswith("|"):
            blocks.append(Block("row", cells=tuple(cell.strip() for cell in line.strip("|").split("|"))))
        elif line:
            blocks.append(Block("p", line))
    return Text(meta, blocks)


def with_tables(blocks: Iterable[Block]) -> Iterator[Block | list[Block]]:
    """The blocks in order, with neighbouring table rows as one list."""
    rows: list[Block] = []
    for block in blocks:
        if block.kind == "row":
            rows.append(block)
            continue
        if rows:
            yield rows
            rows = []
        yield block
    if rows:
        yield rows


# ---------------------------------------------------------------------------------------------------------------
# PDF


VOWELS = "aeiouy"
PAIRS = ("th", "ch", "sh", "ph", "ck", "gh", "wh", "ng", "st", "tr", "pr", "br", "cr", "dr", "gr", "bl", "pl", "cl")


def hyphenations(word: str) -> list[int]:
    """Where a word may be broken, last place first: between two consonants that stand between vowels."""
    if not word.rstrip(".,;:)").isalpha() or not word[1:].rstrip(".,;:)").islower():
        return []
    return [
        i
        for i in range(len(word.rstrip(".,;:)")) - 4, 2, -1)
        if word[i - 2] in VOWELS
        and word[i - 1] not in VOWELS
        and word[i] not in VOWELS
        and word[i + 1] in VOWELS
        and word[i - 1 : i + 1] not in PAIRS
    ]


def wrap(text: str, font: str, size: float, width: float, hyphenate: bool) -> list[str]:
    lines: list[str] = []
    line = ""
    for word in text.split():
        rest = word
        while rest:
            trial = f"{line} {rest}".strip()
            if stringWidth(trial, font, size) <= width:
                line, rest = trial, ""
                continue
            breaks = hyphenations(rest) if hyphenate else []
            cut = next((i for i in breaks if stringWidth(f"{line} {rest[:i]}-", font, size) <= width), 0)
            if cut and line:
                lines.append(f"{line} {rest[:cut]}-")
                rest = rest[cut:]
            else:
                lines.append(line)
            line = ""
    return [*lines, line] if line else lines


class Page:
    """Text that flows through the columns of a page and on to the next page."""

    def __init__(self, text: Text, out: Path, columns: int) -> None:
        # reportlab takes its time stamp, and with it the identity of the file, from this variable
        os.environ["SOURCE_DATE_EPOCH"] = str(calendar.timegm(text.date.timetuple()))
        self.canvas = Canvas(str(out), pagesize=A4, pageCompression=0)
        self.text, self.columns, self.number = text, columns, 1
        self.margin, self.gap = (54.0, 20.0) if columns > 1 else (78.0, 0.0)
        self.width = (A4[0] - 2 * self.margin - (columns - 1) * self.gap) / columns
        self.top, self.bottom = A4[1] - 80, 72.0
        self.column, self.y = 0, self.top
        self.furnish()

    @property
    def x(self) -> float:
        return self.margin + self.column * (self.width + self.gap)

    def furnish(self) -> None:
        """Running header and footer."""
        self.canvas.setFont("Times-Italic", 9)
        self.canvas.drawString(self.margin, A4[1] - 46, self.text.meta["header"])
        self.canvas.drawString(self.margin, 40, self.text.meta["footer"])
        self.canvas.drawRightString(A4[0] - self.margin, 40, f"Page {self.number}")
        self.canvas.setLineWidth(0.4)
        self.canvas.line(self.margin, A4[1] - 51, A4[0] - self.margin, A4[1] - 51)

    def room(self, height: float) -> None:
        if self.y - height >= self.bottom:
            return
        self.column, self.y = self.column + 1, self.top
        if self.column == self.columns:
            self.canvas.showPage()
            self.number, self.column = self.number + 1, 0
            self.top = A4[1] - 80
            self.y = self.top
            self.furnish()

    def write(
        self, text: str, font: str, size: float, leading: float, *, justify: bool = False, wide: bool = False,
        centre: bool = False, indent: float = 0, before: float = 0, keep: float = 0,
    ) -> None:  # fmt: skip
        width = (A4[0] - 2 * self.margin if wide else self.width) - indent
        lines = wrap(text, font, size, width, hyphenate=justify)
        if self.y != self.top:
            self.y -= before
        self.room(leading * min(len(lines), 2) + keep)
        for number, line in enumerate(lines, 1):
            self.room(leading)
            self.y -= leading
            spare = width - stringWidth(line, font, size)
            drawn = self.canvas.beginText(self.x + indent + (spare / 2 if centre else 0), self.y)
            drawn.setFont(font, size)
            stretched = justify and number < len(lines) and line.count(" ")
            drawn.setWordSpace(spare / line.count(" ") if stretched else 0)
            drawn.textOut(line)
            self.canvas.drawText(drawn)

    def table(self, rows: list[Block], size: float, leading: float) -> None:
        first = max(stringWidth(row.cells[0], "Times-Bold", size) for row in rows) + 14
        other = (self.width - first) / (len(rows[0].cells) - 1)
        self.room(leading * (len(rows) + 1))
        self.y -= 4
        for number, row in enumerate(rows):
            self.y -= leading
            self.canvas.setFont("Times-Bold" if number == 0 else "Times-Roman", size)
            for place, cell in enumerate(row.cells):
                self.canvas.drawString(self.x + (first + other * (place - 1) if place else 0), self.y, cell)
            if number in (0, len(rows) - 1):
                self.canvas.line(self.x, self.y - 3.5, self.x + self.width, self.y - 3.5)
        self.y -= 8

    def chart(self, caption: str) -> None:
        """The three sites of the study as points; a drawing without words in it."""
        height = 118.0
        self.room(height + 30)
        self.y -= height + 6
        left, low, wide, high = self.x + 22, self.y + 14, self.width - 40, height - 24
        self.canvas.setLineWidth(0.7)
        self.canvas.line(left, low, left + wide, low)
        self.canvas.line(left, low, left, low + high)
        points = [
            (left + wide * colour / 100, low + high * drift) for colour, drift in ((28, 0.3), (35, 0.4), (84, 0.9))
        ]
        for start, end in pairwise(points):
            self.canvas.line(*start, *end)
        for point in points:
            self.canvas.circle(*point, 2.6, fill=1)
        self.write(caption, "Times-Italic", 9, 11)
        self.y -= 6

    def save(self) -> None:
        self.canvas.save()


def paper(text: Text, out: Path) -> None:
    """Two columns, as a journal sets them. No title or author in the file's properties, as so often."""
    page = Page(text, out, columns=2)
    page.canvas.setFont("Times-Roman", 10)
    page.write(text.meta["title"], "Times-Bold", 18, 22, wide=True, centre=True)
    for team in text.meta["authors"].split("; "):
        page.write(team, "Times-Roman", 11.5, 15, wide=True, centre=True, before=4)
    page.write(text.meta["date"], "Times-Italic", 11, 15, wide=True, centre=True, before=4)
    page.y -= 14
    page.top = page.y
    body(page, text, 11, 15, justify=True)


def report(text: Text, out: Path) -> None:
    page = Page(text, out, columns=1)
    page.canvas.setTitle(text.meta["title"])
    page.canvas.setAuthor(text.meta["authors"])
    page.write(text.meta["title"], "Helvetica-Bold", 17, 21)
    page.write(text.meta["authors"], "Times-Roman", 11, 15, before=8)
    page.write(text.meta["date"], "Times-Roman", 11, 15)
    body(page, text, 11, 14.5, justify=False)


def body(page: Page, text: Text, size: float, leading: float, justify: bool) -> None:
    bold = "Times-Bold" if justify else "Helvetica-Bold"
    for item in with_tables(text.blocks):
        if isinstance(item, list):
            page.table(item, size - 0.6, leading)
        elif item.kind in ("h1", "h2"):
            larger = 2 if item.kind == "h1" else 0.7
            page.write(item.text, bold, size + larger, leading + 2, before=9, keep=2 * leading)
        elif item.kind == "table":
            page.write(item.text, "Times-Italic", size - 0.6, leading, before=8, keep=5 * leading)
        elif item.kind == "chart":
            page.chart(item.text)
        elif item.kind == "li":
            page.write(f"• {item.text}", "Times-Roman", size, leading, indent=12, before=3)
        else:
            page.write(item.text, "Times-Roman", size, leading, justify=justify, before=5)
    page.save()


def scan(text: str, out: Path, day: datetime) -> None:
    """A typed page as a scanner gives it: black and white, a little askew, with specks. There is no text in it."""
    fonts = Path(reportlab.__file__).parent / "fonts"
    font = ImageFont.truetype(str(fonts / "Vera.ttf"), 30)
    bold = ImageFont.truetype(str(fonts / "VeraBd.ttf"), 34)
    sheet = Image.new("L", (1240, 1754), 255)
    pen = ImageDraw.Draw(sheet)
    for number, line in enumerate(text.splitlines()):
        pen.text((150, 150 + 43 * number), line, fill=0, font=bold if line.isupper() else font)
    pen.rectangle((760, 1480, 1090, 1600), outline=0, width=4)
    pen.text((790, 1520), "17 SEP 1998", fill=0, font=bold)
    sheet = sheet.rotate(0.6, resample=Image.Resampling.BICUBIC, fillcolor=255)
    pen = ImageDraw.Draw(sheet)
    chance = random.Random(1998)
    for _ in range(140):
        x, y, radius = chance.randrange(1240), chance.randrange(1754), chance.choice((0, 0, 1))
        pen.ellipse((x, y, x + radius, y + radius), fill=0)
    stamp = time.gmtime(calendar.timegm(day.timetuple()))
    sheet.point(lambda value: 255 if value > 140 else 0).convert("1").save(
        out, "PDF", resolution=150.0, title="scan0006", creationDate=stamp, modDate=stamp
    )


# ---------------------------------------------------------------------------------------------------------------
# Archives: DOCX and EPUB by hand, PPTX and XLSX by their libraries


def pack(out: Path, members: Iterable[tuple[str, bytes]], day: datetime) -> None:
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members:
            entry = zipfile.ZipInfo(name, day.timetuple()[:6])
            entry.create_system = 3
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data)


def repack(made: io.BytesIO, out: Path, day: datetime) -> None:
    """Rewrites what a library made, with the date of the document in place of today's."""
    moment = day.strftime("%Y-%m-%dT%H:%M:%SZ")
    with zipfile.ZipFile(made) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    pattern = re.compile(rb"(<dcterms:(?:created|modified)[^>]*>)[^<]*")
    dated = [
        (name, pattern.sub(rb"\g<1>" + moment.encode(), data) if name == "docProps/core.xml" else data)
        for name, data in members
    ]
    pack(out, dated, day)


WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'


def docx(text: Text, out: Path) -> None:
    def paragraph(words: str, style: str = "") -> str:
        named = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
        return f'<w:p>{named}<w:r><w:t xml:space="preserve">{escape(words, quote=False)}</w:t></w:r></w:p>'

    styles = {"h1": "Title", "h2": "Heading1", "li": "ListParagraph"}
    parts: list[str] = []
    for item in with_tables(text.blocks):
        if isinstance(item, list):
            rows = "".join(
                f"<w:tr>{''.join(f'<w:tc><w:tcPr/>{paragraph(cell)}</w:tc>' for cell in row.cells)}</w:tr>"
                for row in item
            )
            grid = "<w:gridCol/>" * len(item[0].cells)
            parts.append(
                f'<w:tbl><w:tblPr><w:tblStyle w:val="TableGrid"/></w:tblPr><w:tblGrid>{grid}</w:tblGrid>{rows}</w:tbl>'
            )
        else:
            parts.append(paragraph(item.text, styles.get(item.kind, "")))
    named_styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="{key}"><w:name w:val="{name}"/><w:rPr>{look}</w:rPr></w:style>'
        for key, name, look in (
            ("Title", "Title", '<w:b/><w:sz w:val="36"/>'),
            ("Heading1", "heading 1", '<w:b/><w:sz w:val="28"/>'),
            ("ListParagraph", "List Paragraph", ""),
        )
    )
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml"
    members = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/word/document.xml" ContentType="{kind}.document.main+xml"/>'
        f'<Override PartName="/word/styles.xml" ContentType="{kind}.styles+xml"/>'
        '<Override PartName="/docProps/core.xml"'
        ' ContentType="application/vnd.openxmlformats-package.core-properties+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
        f'<Relationship Id="rId1" Type="{OFFICE}/officeDocument" Target="word/document.xml"/>'
        f'<Relationship Id="rId2" Type="{PACKAGE}/relationships/metadata/core-properties"'
        ' Target="docProps/core.xml"/></Relationships>',
        "word/_rels/document.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
        f'<Relationship Id="rId1" Type="{OFFICE}/styles" Target="styles.xml"/></Relationships>',
        "word/document.xml": f'<w:document xmlns:w="{WORD}"><w:body>{"".join(parts)}'
        '<w:sectPr><w:pgSz w:w="11906" w:h="16838"/></w:sectPr></w:body></w:document>',
        "word/styles.xml": f'<w:styles xmlns:w="{WORD}">{named_styles}<w:style w:type="table" w:styleId="TableGrid">'
        '<w:name w:val="Table Grid"/></w:style></w:styles>',
        "docProps/core.xml": f'<cp:coreProperties xmlns:cp="{PACKAGE}/metadata/core-properties"'
        ' xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/"'
        ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'
        f"<dc:title>{escape(text.meta['title'])}</dc:title><dc:creator>{escape(text.meta['authors'])}</dc:creator>"
        f'<dcterms:created xsi:type="dcterms:W3CDTF">{text.date:%Y-%m-%dT%H:%M:%SZ}</dcterms:created>'
        f'<dcterms:modified xsi:type="dcterms:W3CDTF">{text.date:%Y-%m-%dT%H:%M:%SZ}</dcterms:modified>'
        "</cp:coreProperties>",
    }
    pack(out, ((name, (XML + data).encode()) for name, data in members.items()), text.date)


def epub(text: Text, out: Path) -> None:
    chapters: list[tuple[str, list[str]]] = []
    for block in text.blocks:
        if block.kind == "h1":
            chapters.append((block.text, []))
        else:
            chapters[-1][1].append(f"<p>{escape(block.text, quote=False)}</p>")
    numbers = range(1, len(chapters) + 1)
    html = '<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops" lang="en">'
    links = "".join(
        f'<li><a href="chapter-{number}.xhtml">{escape(name)}</a></li>'
        for number, (name, _) in zip(numbers, chapters, strict=True)
    )
    items = "".join(
        f'<item id="c{number}" href="chapter-{number}.xhtml" media-type="application/xhtml+xml"/>' for number in numbers
    )
    spine = "".join(f'<itemref idref="c{number}"/>' for number in numbers)
    members = {
        "META-INF/container.xml": '<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
        '<rootfiles><rootfile full-path="OEBPS/content.opf" media-type="application/oebps-package+xml"/></rootfiles>'
        "</container>",
        "OEBPS/content.opf": '<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id">'
        '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier id="id">sarrow-visitor-handbook'
        f"</dc:identifier><dc:title>{escape(text.meta['title'])}</dc:title><dc:language>en</dc:language>"
        f"<dc:creator>{escape(text.meta['authors'])}</dc:creator><dc:date>{text.date:%Y-%m-%d}</dc:date>"
        f'<meta property="dcterms:modified">{text.date:%Y-%m-%dT%H:%M:%SZ}</meta></metadata><manifest>'
        '<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>'
        f"{items}</manifest><spine>{spine}</spine></package>",
        "OEBPS/nav.xhtml": f'{html}<head><title>Contents</title></head><body><nav epub:type="toc"><h1>Contents</h1>'
        f"<ol>{links}</ol></nav></body></html>",
    }
    for number, (name, paragraphs) in zip(numbers, chapters, strict=True):
        members[f"OEBPS/chapter-{number}.xhtml"] = (
            f"{html}<head><title>{escape(name)}</title></head><body><h1>{escape(name)}</h1>\n"
            + "\n".join(paragraphs)
            + "\n</body></html>"
        )
    written = [(name, (XML.replace(' standalone="yes"', "") + data).encode()) for name, data in members.items()]
    pack(out, [("mimetype", b"application/epub+zip"), *written], text.date)


def pptx(text: Text, out: Path) -> None:
    deck = Presentation()
    properties = deck.core_properties
    properties.title, properties.author = text.meta["title"], text.meta["authors"]
    properties.last_modified_by = text.meta["authors"]
    properties.created = properties.modified = text.date
    properties.revision, properties.comments = 1, ""
    for owner in (deck.part.package, deck.part):  # a preview picture and printer settings of the library's template
        for key, relation in list(owner._rels.items()):
            if relation.reltype.endswith(("/thumbnail", "/printerSettings")):
                owner._rels.pop(key)
    slide = None
    lines: list[str] = []
    for block in text.blocks:
        if block.kind == "h1":
            slide = deck.slides.add_slide(deck.slide_layouts[1 if len(deck.slides) else 0])
            slide.shapes.title.text = block.text
            lines = []
        elif block.kind == "li":
            lines.append(block.text)
            slide.placeholders[1].text = "\n".join(lines)
        else:
            slide.notes_slide.notes_text_frame.text = block.text
    made = io.BytesIO()
    deck.save(made)
    repack(made, out, text.date)


def xlsx(out: Path, day: datetime, sheets: dict[str, str]) -> None:
    book = Workbook()
    book.remove(book.active)
    for name, source in sheets.items():
        sheet = book.create_sheet(name)
        with (SOURCE / source).open(encoding="utf-8", newline="") as lines:
            rows = list(csv.reader(lines))
        for row in rows:
            sheet.append([cell_value(cell) for cell in row])
        for number, column in enumerate(zip(*rows, strict=True), 1):
            sheet.cell(1, number).font = Font(bold=True)
            sheet.column_dimensions[get_column_letter(number)].width = min(60, max(map(len, column)) + 2)
        for (cell,) in sheet.iter_rows(min_col=5, max_col=5, min_row=2) if sheet.max_column >= 5 else ():
            cell.number_format = "yyyy-mm-dd"
        sheet.freeze_panes = "B2"
    book.properties.title, book.properties.creator = "List of suppliers", "Finance Department, Sarrow Valley Water"
    book.properties.lastModifiedBy = "Finance Department, Sarrow Valley Water"
    made = io.BytesIO()
    book.save(made)
    repack(made, out, day)


def cell_value(written: str) -> str | int | datetime:
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", written):
        return datetime.fromisoformat(written)
    return int(written) if written.isdigit() else written


# ---------------------------------------------------------------------------------------------------------------


def typed(name: str) -> str:
    return (SOURCE / name).read_text(encoding="utf-8")


WORKS: dict[str, Callable[[Path], None]] = {
    "nitrate-probe-drift-study.pdf": lambda out: paper(read("nitrate-probe-drift-study.txt"), out),
    "incident-report-pellam.pdf": lambda out: report(read("incident-report-pellam.txt"), out),
    "records-retention-policy.pdf": lambda out: report(read("records-retention-policy.txt"), out),
    "inspection-record-brackwell-1998.pdf": lambda out: scan(
        typed("inspection-record-brackwell.txt"), out, datetime(2014, 2, 6, 9)
    ),
    "alarm-handling-procedure.docx": lambda out: docx(read("alarm-handling-procedure.txt"), out),
    "procurement-rules-2025.docx": lambda out: docx(read("procurement-rules-2025.txt"), out),
    "capital-programme-2025-2028.pptx": lambda out: pptx(read("capital-programme.txt"), out),
    "suppliers.xlsx": lambda out: xlsx(
        out, datetime(2025, 3, 3, 9), {"Suppliers": "suppliers.csv", "Spending": "spending.csv"}
    ),
    "visitor-handbook.epub": lambda out: epub(read("visitor-handbook.txt"), out),
}


def main() -> int:
    check = "--check" in sys.argv[1:]
    CORPUS.mkdir(exist_ok=True)
    changed = 0
    for name, make in WORKS.items():
        out = CORPUS / name
        with TemporaryDirectory() as folder:
            make(Path(folder) / name)
            made = (Path(folder) / name).read_bytes()
        same = out.exists() and out.read_bytes() == made
        changed += not same
        if not (check or same):
            out.write_bytes(made)
        state = "unchanged" if same else "would change" if check else "written"
        print(f"{len(made):>8} bytes  {state:<12}  {name}")
    return 1 if check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
