"""Word documents, read from their XML: headings by style, lists with their numbers, tables, notes, text boxes.

Deleted revisions, comments and hidden text are not visible to a reader, and are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assay.ingest.formats.archive import (
    Archive,
    attribute,
    child,
    local_name,
    office_properties,
    open_archive,
    refuse_damaged,
)
from assay.ingest.formats.ooxml.docx_numbering import Numbering, read_numbering
from assay.ingest.formats.ooxml.docx_styles import Style, numbered, outline, read_styles
from assay.ingest.formats.ooxml.formulas import formula
from assay.ingest.formats.table import BarTable
from assay.ingest.formats.text_builder import TextBuilder
from assay.ingest.parsed import FileLimits, Parsed, Refused, Status
from assay.language.clean import tidy_whitespace

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

_TRANSPARENT = frozenset(
    {"sdt", "sdtContent", "customXml", "smartTag", "ins", "moveTo", "body", "hyperlink", "dir", "bdo"}
)
_LEFT_OUT = frozenset({"del", "moveFrom", "instrText", "delText", "rt", "pPr", "rPr", "tblPr", "tcPr", "trPr", "sdtPr"})


def parse(data: bytes, name: str, limits: FileLimits) -> Parsed:
    out = TextBuilder("docx", limits)
    with refuse_damaged("DOCX"):
        archive = open_archive(data, limits, "DOCX")
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
        mark: _by_id(archive.side_xml(archive.linked(part, kind)))
        for mark, kind in (("footnoteReference", "footnotes"), ("endnoteReference", "endnotes"))
    }
    paper = child(root, "background")
    coloured = paper is not None and attribute(paper, "color").upper() not in {"", "FFFFFF", "AUTO"}
    numbering = read_numbering(archive.side_xml(archive.linked(part, "numbering")))
    return _Reader(out, styles, notes, numbering, coloured)


def _by_id(notes: Element | None) -> dict[str, Element]:
    return {attribute(note, "id"): note for note in (notes if notes is not None else ())}


@dataclass(slots=True)
class _Reader:
    out: TextBuilder
    styles: dict[str, Style]
    notes: dict[str, dict[str, Element]]
    numbering: Numbering
    coloured: bool  # the background is not known to be white
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
            elif name in _TRANSPARENT:
                self.blocks(element)
            elif name == "AlternateContent":
                self.blocks(_alternative(element))

    def paragraph(self, element: Element) -> None:
        style = self._style(element)
        text = tidy_whitespace("".join(self._words(element, style.shaded)))
        label = self.numbering.label(numbered(element) or style.numbered) if text else ""
        aside, self.aside = self.aside, []
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
        for box in aside:
            self.blocks(box)

    def table(self, element: Element) -> None:
        """Rows as lines; a layout table is read cell by cell instead."""
        lines = [row for row in _inside(element, "tr") if child(row, "trPr", "del") is None]
        rows = [list(_inside(line, "tc")) for line in lines]
        if all(len(row) <= 1 for row in rows) or any(self._is_page(cell) for row in rows for cell in row):
            for row in rows:
                for cell in row:
                    self.blocks(cell)
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
        aside, self.aside = self.aside, []
        for box in aside:
            self.blocks(box)

    def _cell(self, cell: Element) -> str:
        coloured, self.coloured = self.coloured, True  # a cell may have a dark background with white text
        texts = []
        for part in _paragraphs(cell):
            style = self._style(part)
            text = tidy_whitespace("".join(self._words(part, True)))
            label = self.numbering.label(numbered(part) or style.numbered) if text else ""
            texts.append(f"{label} {text}".strip())
        self.coloured = coloured
        return " ".join(filter(None, texts)).replace("\n", " ")

    def _is_page(self, cell: Element) -> bool:
        paragraphs = list(_paragraphs(cell))
        length = sum(
            len(text.text or "") for paragraph in paragraphs for text in paragraph.iter() if local_name(text) == "t"
        )
        return length > 1200 or any(self._style(paragraph).level for paragraph in paragraphs)

    def _style(self, paragraph: Element) -> Style:
        named = child(paragraph, "pPr", "pStyle")
        return self.styles.get(attribute(named, "val") if named is not None else "", Style())

    def _words(self, parent: Element, shaded: bool) -> Iterator[str]:
        """The characters of a paragraph; text boxes and notes are collected for later."""
        shaded = shaded or child(parent, "pPr", "shd") is not None
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
                yield from self._words(_alternative(element), shaded)
            elif name in {"oMathPara", "oMath"}:
                yield f" {formula(element)} "
            elif name == "r" and _hidden(element, shaded or self.coloured):
                continue
            elif name not in _LEFT_OUT:
                yield from self._words(element, shaded)


def _alternative(element: Element) -> Element:
    """One of several renderings of the same content: the first that contains text."""
    ways = [way for way in element if local_name(way) in {"Choice", "Fallback"}]
    return next(
        (way for way in ways if any(local_name(part) == "t" for part in way.iter())), ways[0] if ways else element
    )


def _marked(note: Element, number: str) -> Element:
    """A copy of a note that begins with its mark, if the mark itself is not a character."""
    from copy import deepcopy

    copy = deepcopy(note)
    for part in copy.iter():
        if local_name(part) in {"footnoteRef", "endnoteRef"}:
            part.tag = part.tag.rpartition("}")[0] + "}t" if "}" in part.tag else "t"
            part.text = f"[{number}]"
            break
    return copy


def _hidden(run: Element, shaded: bool) -> bool:
    """Hidden by Word's own attribute, white on white, or too small to read."""
    looks = child(run, "rPr")
    if looks is None:
        return False
    run_properties = {local_name(look): attribute(look, "val") for look in looks}
    if any(
        run_properties.get(switch, "0") not in {"0", "false", "off"}
        for switch in ("vanish", "webHidden")
        if switch in run_properties
    ):
        return "webHidden" not in run_properties or "vanish" in run_properties
    if (
        run_properties.get("color", "").upper() == "FFFFFF"
        and not shaded
        and not {"shd", "highlight"} & run_properties.keys()
    ):
        return True
    size = run_properties.get("sz", "")
    return size.isdigit() and int(size) <= 3  # half points


def _count(element: Element | None, unsaid: int) -> int:
    value = attribute(element, "val") if element is not None else ""
    return int(value) if value.isdigit() else unsaid


def _inside(parent: Element, name: str) -> Iterator[Element]:
    for element in parent:
        if local_name(element) == name:
            yield element
        elif local_name(element) in _TRANSPARENT:
            yield from _inside(element, name)


def _paragraphs(cell: Element) -> Iterator[Element]:
    """All paragraphs of a cell, including those of nested tables."""
    for element in cell:
        if local_name(element) == "p":
            yield element
        elif local_name(element) in _TRANSPARENT or local_name(element) in {"tbl", "tr", "tc"}:
            yield from _paragraphs(element)
