"""Word documents, read from their XML: headings by style, lists with their numbers, tables, notes, text boxes.

Deleted revisions and hidden text are kept apart, since no reader sees them; comments are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assay.core.printable import tidy_whitespace
from assay.ingest.formats.archive import (
    Archive,
    attribute,
    child,
    children,
    formula,
    inside,
    joined_text,
    local_name,
    office_properties,
    open_archive,
    refuse_damaged,
)
from assay.ingest.formats.docx_styles import (
    CUT_OFF,
    OFF_THE_PAGE,
    VANISHED,
    Ground,
    Numbering,
    Style,
    StyleSheet,
    ground_of,
    hidden_paragraph,
    hidden_text,
    numbered,
    outline,
    paragraph_look,
    read_numbering,
    read_styles,
)
from assay.ingest.formats.html_hidden import hides_text
from assay.ingest.formats.table import BarTable
from assay.ingest.formats.text import TextBuilder
from assay.ingest.parsed import FileLimits, HiddenText, Parsed, Refused, Status

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

_TRANSPARENT = frozenset(
    {"sdt", "sdtContent", "customXml", "smartTag", "ins", "moveTo", "body", "hyperlink", "dir", "bdo"}
)
_DELETED = frozenset({"del", "moveFrom"})
DELETED = "deleted in a tracked change"
_FAR = 8_000_000  # in drawings, of which 12,700 are a point: about the width of a page
_LEFT_OUT = frozenset({"instrText", "delText", "rt", "pPr", "rPr", "tblPr", "tcPr", "trPr", "sdtPr"})


def parse(data: bytes, name: str, limits: FileLimits) -> Parsed:
    out = TextBuilder("docx", limits)
    with refuse_damaged("DOCX"):
        archive = open_archive(data, limits)
        part = archive.linked("", "officeDocument") or "word/document.xml"
        root = archive.xml(part)
        body = child(root, "body")
        if root is None or body is None:
            raise Refused(Status.corrupt, "It holds no document; open it in Word and save it again.")
        properties = office_properties(archive)
        reader = _reader(archive, part, root, out)
        reader.blocks(body)
    return out.parsed(
        title=reader.title or properties.title,
        authors=properties.authors,
        date=properties.date,
        language=properties.language,
        empty="There is no text in it; if its pages are pictures, save it as PDF and read that with OCR.",
    )


def _reader(archive: Archive, part: str, root: Element, out: TextBuilder) -> _Reader:
    styles = read_styles(archive.side_xml(archive.linked(part, "styles")))
    notes = {
        f"{kind}Reference": {
            attribute(note, "id"): note for note in children(archive.side_xml(archive.linked(part, f"{kind}s")))
        }
        for kind in ("footnote", "endnote")
    }
    paper = child(root, "background")
    ground = ground_of(attribute(paper, "color"), "FFFFFF")
    numbering = read_numbering(archive.side_xml(archive.linked(part, "numbering")))
    return _Reader(out, styles, notes, numbering, ground)


@dataclass(slots=True)
class _Reader:
    out: TextBuilder
    styles: StyleSheet
    notes: dict[str, dict[str, Element]]
    numbering: Numbering
    ground: Ground  # of the page or the cell
    table_style: Style = field(default_factory=Style)
    title: str = ""
    in_list: bool = False
    aside: list[Element] = field(default_factory=list)  # text boxes and notes found inside a paragraph

    def blocks(self, parent: Element) -> None:
        for element in parent:
            name = local_name(element)
            if name == "p":
                self.paragraph(element)
            elif name == "tbl":
                self.table(element)
            elif name in _TRANSPARENT or name == "AlternateContent":
                self.blocks(_alternative(element) if name == "AlternateContent" else element)

    def paragraph(self, element: Element) -> None:
        style = self.styles.paragraph(element)
        label, text = self._labelled(element, style)
        if text:
            level = outline(element) or style.level
            if style.title and not self.title:
                self.title = text.replace("\n", " ")
            # A long paragraph in a heading style is still a paragraph.
            if level and len(text) < 250:
                self.out.heading(f"{label} {text}" if label not in {"", "-"} else text, level)
            else:
                self.out.block(f"{label} {text}".lstrip(), "\n" if label and self.in_list else "\n\n")
            self.in_list = bool(label) and not level
        self._write_aside()

    def _labelled(self, paragraph: Element, style: Style) -> tuple[str, str]:
        """The label of a list item, empty for other paragraphs, and the text."""
        text = self._text(paragraph, style)
        return self.numbering.label(numbered(paragraph) or style.numbered) if text else "", text

    def _write_aside(self) -> None:
        aside, self.aside = self.aside, []
        for box in aside:
            self.blocks(box)

    def table(self, element: Element) -> None:
        around = self.table_style, self.ground
        self.table_style = self.styles.table(element)
        if self.table_style.shaded or child(element, "tblPr", "shd") is not None:
            self.ground = None
        self._rows(element)
        self.table_style, self.ground = around

    def _rows(self, element: Element) -> None:
        """Rows as lines; a layout table is read cell by cell instead."""
        lines = [row for row in _inside(element, "tr") if not self._hide(row, _hidden_row(row))]
        rows = [list(_inside(line, "tc")) for line in lines]
        if all(len(row) <= 1 for row in rows) or any(self._is_page(cell) for row in rows for cell in row):
            for row in rows:
                for cell in row:
                    around, self.ground = self.ground, self._ground(cell)
                    self.blocks(cell)
                    self.ground = around
            return
        above: dict[int, str] = {}
        table = BarTable(self.out, self.out.last_lines())
        gap = "\n\n"
        for line, row in zip(lines, rows, strict=True):
            texts: list[str] = []
            spans: list[int] = []
            first = column = _count(child(line, "trPr", "gridBefore"), 0)
            for cell in row:
                merged = child(cell, "tcPr", "vMerge")
                text = self._cell(cell)
                if merged is not None and attribute(merged, "val") != "restart":
                    text = above.get(column, "")  # the cell continues from the row above
                above[column] = text
                texts.append(text)
                spans.append(_count(child(cell, "tcPr", "gridSpan"), 1))
                column += spans[-1]
            if table.write(texts, gap, first=first, spans=spans, head=child(line, "trPr", "tblHeader") is not None):
                gap = "\n"
        table.close()
        self.in_list = False
        self._write_aside()

    def _cell(self, cell: Element) -> str:
        around, self.ground = self.ground, self._ground(cell)
        texts = [" ".join(self._labelled(part, self.styles.paragraph(part))).strip() for part in _paragraphs(cell)]
        self.ground = around
        return " ".join(filter(None, texts)).replace("\n", " ")

    def _is_page(self, cell: Element) -> bool:
        paragraphs = list(_paragraphs(cell))
        length = sum(len(joined_text(paragraph, by="")) for paragraph in paragraphs)
        return length > 1200 or any(self.styles.paragraph(paragraph).level for paragraph in paragraphs)

    def _ground(self, cell: Element) -> Ground:
        return ground_of(attribute(child(cell, "tcPr", "shd"), "fill"), self.ground)

    def _hide(self, element: Element, how: str) -> bool:
        """Keep the text of an element apart, if it is hidden."""
        if how:
            self.out.hidden.append(HiddenText(joined_text(element, "t", "delText"), how))
        return bool(how)

    def _text(self, paragraph: Element, style: Style) -> str:
        look = {**style.paragraph, **paragraph_look(child(paragraph, "pPr"))}
        if self._hide(paragraph, hidden_paragraph(look)):
            return ""
        ground = ground_of(look.get("shd", ""), self.ground)
        return tidy_whitespace("".join(self._words(paragraph, style, ground)))

    def _words(self, parent: Element, style: Style, ground: Ground) -> Iterator[str]:
        """The characters of a paragraph; text boxes and notes are collected for later."""
        for element in parent:
            name = local_name(element)
            if name == "t":
                yield element.text or ""
            elif name in {"tab", "ptab"}:
                yield " "
            elif name in {"br", "cr"}:
                yield "\n"
            elif name == "noBreakHyphen":
                yield "-"
            elif name == "txbxContent":
                self.aside.append(element)
            elif name in self.notes:
                number = attribute(element, "id")
                note = self.notes[name].get(number)
                if note is not None:
                    yield f"[{number}]"
                    self.aside.append(_marked(note, number))
            elif name == "AlternateContent":
                yield from self._words(_alternative(element), style, ground)
            elif name in {"oMathPara", "oMath"}:
                yield f" {formula(element)} "
            elif name in _DELETED:
                self._hide(element, DELETED)
            elif (
                name == "r"
                and self._hide(element, hidden_text(self.styles.text(element, style, self.table_style), ground))
            ) or (name in {"drawing", "pict"} and self._hide(element, _hidden_drawing(element))):
                continue
            elif name not in _LEFT_OUT:
                yield from self._words(element, style, ground)


def _alternative(element: Element) -> Element:
    """One of several renderings of the same content: the first that contains text."""
    ways = list(children(element, "Choice", "Fallback"))
    return next((way for way in ways if way.find(".//{*}t") is not None), ways[0] if ways else element)


def _marked(note: Element, number: str) -> Element:
    """A copy of a note that begins with its mark, if the mark itself is not a character."""
    from copy import deepcopy

    copy = deepcopy(note)
    for part in list(inside(copy, "footnoteRef", "endnoteRef"))[:1]:
        part.tag = part.tag.replace(local_name(part), "t")
        part.text = f"[{number}]"
    return copy


def _hidden_row(row: Element) -> str:
    looks = child(row, "trPr")
    if child(looks, "del") is not None:
        return DELETED
    if (switch := child(looks, "hidden")) is not None and attribute(switch, "val") not in {"0", "false", "off"}:
        return VANISHED
    height = child(looks, "trHeight")
    return CUT_OFF if attribute(height, "hRule") == "exact" and _count(height, 100) <= 20 else ""


def _hidden_drawing(drawing: Element) -> str:
    """How a drawing with its text boxes is hidden; empty if it is not."""
    for part in drawing.iter():
        name = local_name(part)
        if name == "txbxContent":
            break
        if name == "docPr" and attribute(part, "hidden") in {"1", "true"}:
            return VANISHED
        if name == "extent" and min(_whole(attribute(part, side)) for side in ("cx", "cy")) < 12_700:
            return CUT_OFF
        if name == "posOffset" and abs(_whole(part.text or "")) > _FAR:
            return OFF_THE_PAGE
        if "style" in part.attrib and hides_text(attribute(part, "style")):
            return VANISHED
    return ""


def _whole(value: str) -> int:
    return int(value) if value.strip().lstrip("-").isdigit() else 12_700


def _count(element: Element | None, unsaid: int) -> int:
    count = attribute(element, "val")
    return int(count) if count.isdigit() else unsaid


def _inside(parent: Element, name: str) -> Iterator[Element]:
    for element in children(parent, name, *_TRANSPARENT):
        yield from [element] if local_name(element) == name else _inside(element, name)


def _paragraphs(cell: Element) -> Iterator[Element]:
    """All paragraphs of a cell, including those of nested tables."""
    for element in children(cell, "p", "tbl", "tr", "tc", *_TRANSPARENT):
        yield from [element] if local_name(element) == "p" else _paragraphs(element)
