"""PowerPoint presentations, read from their XML: a slide is a page and a section; tables, charts and notes become text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lxml.etree import _Element as Element

from assay.core.printable import tidy_whitespace
from assay.ingest.formats.archive import (
    CHARACTERS,
    RELATION,
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
    whole,
)
from assay.ingest.formats.table import BarTable
from assay.ingest.formats.text import TextBuilder
from assay.ingest.parsed import FileLimits, HiddenText, Parsed, Refused, Status

_FURNITURE = frozenset({"ftr", "sldNum", "dt", "hdr"})
_HIDEABLE = ("sp", "grpSp", "graphicFrame", "r")
_SMALLEST = 150  # hundredths of a point
_TITLES = frozenset({"title", "ctrTitle"})


def parse(data: bytes, name: str, limits: FileLimits) -> Parsed:
    out = TextBuilder("pptx", limits)
    with refuse_damaged("PPTX"):
        archive = open_archive(data, limits)
        part = archive.linked("", "officeDocument") or "ppt/presentation.xml"
        root = archive.xml(part)
        if root is None:
            raise Refused(Status.corrupt, "It holds no presentation; open it in PowerPoint and save it again.")
        properties = office_properties(archive)
        titled = _write_slides(archive, part, root, out)
    return out.parsed(
        **properties | {"title": properties["title"] or titled, "language": None},
        empty="Its slides hold no text; if they are pictures, save it as PDF and read that with OCR.",
    )


def _write_slides(archive: Archive, part: str, root: Element, out: TextBuilder) -> str:
    """Write all slides and return the title of the first, which is the presentation's title if there is no other."""
    links = archive.links(part)
    size = child(root, "sldSz")
    sheet = whole(attribute(size, "cx")), whole(attribute(size, "cy"))
    titled = ""
    hidden: list[int] = []
    for number, item in enumerate(children(child(root, "sldIdLst")), start=1):
        out.page()
        kind, target = links.get(item.get(RELATION) or "", ("", ""))
        slide = archive.xml(target) if kind == "slide" else None
        if slide is None:
            out.warn(f"Slide {number} is missing from the file.")
        elif attribute(slide, "show") in {"0", "false"}:
            hidden.append(number)
        else:
            title = _Slide(archive, target, sheet).write(slide, number, out)
            titled = titled if number > 1 else title
    if hidden:
        out.warn(f"Hidden slides were left out: {', '.join(map(str, hidden))}.")
    return titled


@dataclass(frozen=True, slots=True)
class _Shape:
    lines: list[str]
    title: bool
    top: int
    left: int
    rows: Sequence[dict[str, Any]] = ()  # if it is a table, as `BarTable.write` takes them


@dataclass(frozen=True, slots=True)
class _Slide:
    archive: Archive
    part: str
    sheet: tuple[int, int]  # width and height

    def write(self, slide: Element, number: int, out: TextBuilder) -> str:
        tree = child(slide, "cSld", "spTree")
        out.hidden += [replace(each, page=number) for each in self._take_hidden(tree)]
        height = self.sheet[1] or 1
        # By rows from the top, and left to right; a row is a twelfth of the slide.
        shapes = sorted(self._shapes(tree, self._places()), key=lambda shape: (shape.top * 12 // height, shape.left))
        title = next((tidy_whitespace(" ".join(shape.lines)).replace("\n", " ") for shape in shapes if shape.title), "")
        rest = [shape for shape in shapes if not shape.title]
        notes = self._notes()
        if title and len(title) < 250:
            out.heading(title, 1)
        elif rest or notes or title:
            out.heading(f"Slide {number}", 1)  # otherwise its text would belong to the section of the previous slide
            out.block(title)
        for shape in rest:
            if shape.rows:
                table = BarTable(out, out.last_lines(), title)
                for row in shape.rows:
                    table.write(**row)
                table.close()
            else:
                out.block("\n".join(shape.lines))
        if notes:
            out.block("Notes: " + "\n".join(notes))
        return title

    def _take_hidden(self, tree: Element | None) -> Iterator[HiddenText]:
        """Remove what the slide does not show from its tree."""
        for part in list(inside(tree, *_HIDEABLE)):
            how = _hidden_run(part) if local_name(part) == "r" else self._hidden_shape(part)
            holder = part.getparent()
            if how and holder is not None:
                yield HiddenText(joined_text(part), how)
                holder.remove(part)

    def _hidden_shape(self, shape: Element) -> str:
        if any(attribute(look, "hidden") in {"1", "true"} for look in shape.findall("*/{*}cNvPr")):
            return "switched off"
        return "outside the slide" if self._outside(shape) else ""

    def _shapes(self, tree: Element | None, places: dict[tuple[str, str], tuple[int, int]]) -> Iterator[_Shape]:
        for element in children(tree, "AlternateContent", "sp", "grpSp", "graphicFrame"):
            name = local_name(element)
            if name == "AlternateContent":
                yield from self._shapes(next(iter(element), None), places)
                continue
            if name == "grpSp":
                yield from self._group(element, places)
                continue
            slot = element.find("*/*/{*}ph")
            kind = attribute(slot, "type")
            if kind in _FURNITURE:
                continue
            lines = _lines(child(element, "txBody")) if name == "sp" else self._graphic(element)
            index = (attribute(slot, "idx") or "0") if slot is not None else ""
            place = _place(element) or places.get((kind, index)) or places.get((kind, "")) or (0, 0)
            if lines:
                yield _Shape(lines, kind in _TITLES, *place, list(_table_rows(element)))

    def _group(self, group: Element, places: dict[tuple[str, str], tuple[int, int]]) -> Iterator[_Shape]:
        """Grouped shapes are read together, at the position of the group."""
        inner = sorted(self._shapes(group, places), key=lambda shape: (shape.top, shape.left))
        lines = [line for shape in inner for line in shape.lines]
        if lines:
            yield _Shape(lines, False, *(_place(group) or (0, 0)))

    def _outside(self, element: Element) -> bool:
        """Whether it is placed outside the slide, where it is not visible."""
        box = next(iter(inside(element, "xfrm")), None)
        start, size = child(box, "off"), child(box, "ext")
        if start is None or size is None or not all(self.sheet) or local_name(element.getparent()) == "grpSp":
            return False
        left, top = whole(attribute(start, "x")), whole(attribute(start, "y"))
        right, bottom = left + whole(attribute(size, "cx")), top + whole(attribute(size, "cy"))
        return right <= 0 or bottom <= 0 or left >= self.sheet[0] or top >= self.sheet[1]

    def _graphic(self, frame: Element) -> list[str]:
        """A table, a chart or a diagram, as lines."""
        links = None
        lines: list[str] = []
        for element in inside(frame, "tbl", "chart", "relIds"):
            name = local_name(element)
            if name == "tbl":
                lines += [" | ".join(row["cells"]).rstrip(" |") for row in _table_rows(frame) if any(row["cells"])]
            else:
                links = links or self.archive.links(self.part)
                _, target = links.get(element.get(RELATION) or attribute(element, "dm"), ("", ""))
                root = self.archive.side_xml(target)
                points = [line for point in inside(root, "pt") for line in _lines(child(point, "t"))]
                lines += _chart(root) if name == "chart" else points
        return lines

    def _notes(self) -> list[str]:
        target = self.archive.linked(self.part, "notesSlide")
        shapes = children(child(self.archive.side_xml(target), "cSld", "spTree"))
        bodies = [shape for shape in shapes if attribute(_slot(shape), "type") == "body"]
        return [line for shape in bodies for line in _lines(child(shape, "txBody"))]

    def _places(self) -> dict[tuple[str, str], tuple[int, int]]:
        """The positions of placeholders in the layout and its master: most slides do not repeat them."""
        places: dict[tuple[str, str], tuple[int, int]] = {}
        layout = self.archive.linked(self.part, "slideLayout")
        master = self.archive.linked(layout, "slideMaster") if layout else ""
        for part in filter(None, (master, layout)):
            for shape in children(child(self.archive.side_xml(part), "cSld", "spTree")):
                slot, place = _slot(shape), _place(shape)
                if slot is not None and place:
                    kind = attribute(slot, "type")
                    places[kind, attribute(slot, "idx") or "0"] = places[kind, ""] = place
        return places


def _table_rows(frame: Element) -> Iterator[dict[str, Any]]:
    table = next(iter(inside(frame, "tbl")), None)
    titled = attribute(child(table, "tblPr"), "firstRow") in {"1", "true"}
    for number, row in enumerate(children(table, "tr")):
        cells = list(children(row, "tc"))
        merged = [{attribute(cell, "hMerge"), attribute(cell, "vMerge")} & {"1", "true"} for cell in cells]
        wide = [whole(attribute(cell, "gridSpan")) or 1 for cell in cells]
        yield {
            "cells": [" ".join(_lines(child(cell, "txBody"))) for cell in cells],
            "spans": [0 if gone else span for span, gone in zip(wide, merged, strict=True)],
            "down": [whole(attribute(cell, "rowSpan")) or 1 for cell in cells],
            "head": titled and number == 0,
        }


def _hidden_run(run: Element) -> str:
    looks = child(run, "rPr")
    if 0 < whole(attribute(looks, "sz")) <= _SMALLEST:
        return "too small to read"
    alphas = [attribute(part, "val") for part in inside(child(looks, "solidFill"), "alpha")]
    clear = any(alpha.isdigit() and int(alpha) <= 5_000 for alpha in alphas)
    return "transparent" if clear or child(looks, "noFill") is not None else ""


def _place(shape: Element) -> tuple[int, int] | None:
    """Top and left, if the shape sets them itself."""
    boxes = (child(shape, "spPr", "xfrm"), child(shape, "grpSpPr", "xfrm"), child(shape, "xfrm"))
    start = child(next((box for box in boxes if box is not None), None), "off")
    return (whole(attribute(start, "y")), whole(attribute(start, "x"))) if start is not None else None


def _lines(body: Element | None) -> list[str]:
    """The paragraphs of a text frame; an indented one is marked as a list item."""
    lines: list[str] = []
    for paragraph in children(body, "p"):
        text = tidy_whitespace("".join(_words(paragraph))).replace("\n", " ")
        deeper = attribute(child(paragraph, "pPr"), "lvl") not in {"", "0"}
        if text:
            lines.append(f"- {text}" if deeper else text)
    return lines


def _words(parent: Element) -> Iterator[str]:
    for element in parent:
        name = local_name(element)
        if name == "t":
            yield element.text or ""
        elif name in CHARACTERS:
            yield CHARACTERS[name]
        elif name == "AlternateContent":
            yield from _words(element[0] if len(element) else element)
        elif name in {"oMath", "oMathPara"}:
            yield f" {formula(element)} "
        elif name in {"r", "fld", "Choice", "m"}:
            yield from _words(element)


def _chart(root: Element | None) -> list[str]:
    """A chart's title, and its values with the names of their category and series."""
    lines = [tidy_whitespace(joined_text(next(iter(inside(root, "title")), None)))]
    for series in inside(root, "ser"):
        name = " ".join(_cached(child(series, "tx")))
        categories = _cached(child(series, "cat")) or _cached(child(series, "xVal"))
        values = _cached(child(series, "val")) or _cached(child(series, "yVal"))
        pairs = [f"{category}: {value}" for category, value in zip(categories, values, strict=False)] or values
        if pairs:
            lines.append(f"{name} | {'; '.join(pairs)}" if name else "; ".join(pairs))
    return [line for line in lines if line]


def _slot(shape: Element) -> Element | None:
    return next(iter(inside(shape, "ph")), None)


def _cached(element: Element | None) -> list[str]:
    return [part.text or "" for part in inside(element, "v")]
