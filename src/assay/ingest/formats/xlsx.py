"""Excel workbooks: a section per sheet, values as Excel last showed them, parsed as a stream.

Only cells with content cost time, so a sheet with a million formatted blanks is as fast as its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from lxml.etree import _Element as Element
from lxml.etree import iterparse

from assay.ingest.formats.archive import (
    RELATION,
    SAME_COLOUR,
    Archive,
    attribute,
    child,
    children,
    inside,
    joined_text,
    office_properties,
    open_archive,
    refuse_damaged,
    same_colour,
)
from assay.ingest.formats.table import left_out, write_rows
from assay.ingest.formats.text import TextBuilder
from assay.ingest.parsed import FileLimits, HiddenText, Parsed, Refused, Status

_MERGED = 20_000  # cells filled from the merged cell that they belong to
_DATES = frozenset([*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)])
_PERCENT = frozenset({9, 10})


def parse(data: bytes, name: str, limits: FileLimits) -> Parsed:
    out = TextBuilder("xlsx", limits)
    with refuse_damaged("XLSX"):
        archive = open_archive(data, limits)
        properties = office_properties(archive)
        look, sheets = _workbook(archive)
        title = _write_workbook(archive, look, sheets, out)
    return out.parsed(
        **properties | {"title": properties["title"] or title, "language": None},
        empty="Its sheets are empty; check that this is the file you meant.",
    )


def first_sheet(data: bytes, limits: FileLimits) -> list[tuple[int, dict[int, str]]]:
    """The rows of the first visible sheet: their numbers, and their values by column."""
    with refuse_damaged("XLSX"):
        archive = open_archive(data, limits)
        look, sheets = _workbook(archive)
        target = next((each.target for each in sheets if not each.hidden and each.target), "")
        return list(_rows(archive, target, look)) if target else []


@dataclass(frozen=True, slots=True)
class _Sheet:
    title: str
    target: str  # its part of the archive; empty for a chart
    hidden: bool


def _workbook(archive: Archive) -> tuple[_Look, list[_Sheet]]:
    workbook = archive.linked("", "officeDocument") or "xl/workbook.xml"
    root = archive.xml(workbook)
    if root is None:
        raise Refused(Status.corrupt, "It holds no workbook; open it in Excel and save it again.")
    links = archive.links(workbook)
    kinds = dict(links.values())
    styles = _styles(archive.side_xml(kinds.get("styles", "xl/styles.xml")))
    strings = _strings(archive, kinds.get("sharedStrings", "xl/sharedStrings.xml"))
    since_1904 = attribute(child(root, "workbookPr"), "date1904") in {"1", "true"}
    epoch = datetime(1904, 1, 1) if since_1904 else datetime(1899, 12, 30)
    look = _Look(strings, styles, epoch)
    found: list[_Sheet] = []
    for sheet in children(child(root, "sheets")):
        kind, target = links.get(sheet.get(RELATION) or attribute(sheet, "id"), ("", ""))
        hidden = attribute(sheet, "state") in {"hidden", "veryHidden"}
        there = kind == "worksheet" and target in archive
        found.append(_Sheet(attribute(sheet, "name"), target if there else "", hidden))
    return look, found


def _write_workbook(archive: Archive, look: _Look, sheets: list[_Sheet], out: TextBuilder) -> str:
    """Write the sheets. Returns the title that all of them have, as far as they have one."""
    cells = 0
    titles: set[str] = set()
    for sheet in sheets:
        if sheet.target and not sheet.hidden:
            cells, title = _write_sheet(archive, sheet, look, cells, out)
            titles |= {title} - {""}
    out.hidden += look.hidden
    hidden = [sheet.title for sheet in sheets if sheet.hidden]
    if hidden:
        out.warn(f"Hidden sheets were left out: {', '.join(hidden)}.")
    return titles.pop() if len(titles) == 1 else ""


@dataclass(frozen=True, slots=True)
class _Look:
    """What is needed to format a stored value as Excel shows it."""

    strings: list[str]
    styles: list[tuple[str, str]]  # date, percent or nothing; and how it hides a value, or nothing
    epoch: datetime
    hidden: list[HiddenText] = field(default_factory=list)  # values that no reader sees


def _write_sheet(archive: Archive, sheet: _Sheet, look: _Look, cells: int, out: TextBuilder) -> tuple[int, str]:
    """Write a sheet. Returns the number of cells so far, and the title above its tables."""
    merged, coloured = _merged(archive, sheet.target)
    if coloured:
        look = replace(look, styles=[(form, how if how != SAME_COLOUR else "") for form, how in look.styles])
    rows: list[tuple[int, dict[int, str]]] = []
    for number, row in _rows(archive, sheet.target, look):
        cells += len(row)
        if cells > out.limits.cells or out.limits.late:
            out.warn(left_out(out.limits))
            break
        rows.append((number, row))
    if not rows:
        return cells, ""
    out.heading(sheet.title, 1)
    return cells, write_rows(_laid_out(rows, merged), out, caption=sheet.title)


def _laid_out(
    rows: list[tuple[int, dict[int, str]]], merged: dict[tuple[int, int], tuple[int, int]]
) -> Iterator[list[str]]:
    """Rows as lists over the columns in use; any gap becomes one empty row."""
    columns = sorted({column for _, row in rows for column in row})
    values = {(number, column): row[column] for number, row in rows for column in row} if merged else {}
    before = 0
    for number, row in rows:
        if before and number > before + 1:
            yield []
        before = number
        yield [row.get(column) or values.get(merged.get((number, column), (0, 0)), "") for column in columns]


def _rows(archive: Archive, target: str, look: _Look) -> Iterator[tuple[int, dict[int, str]]]:
    """Row number, and values by column; only rows with visible content."""
    hidden_columns: set[int] = set()
    number = 0
    with archive.open(target) as stream:
        # Only rows and column settings are visited one by one: a sheet may have millions of cells.
        safe = {"resolve_entities": False, "no_network": True, "huge_tree": False, "remove_comments": True}
        for _, element in iterparse(stream, tag=("{*}row", "{*}col"), **safe):
            hidden = element.get("hidden") in {"1", "true"}
            if element.tag.endswith("row"):
                number = int(element.get("r") or number + 1)
                row = _row(element, hidden_columns, look)
                if hidden and row:
                    look.hidden.append(HiddenText(" ".join(row.values()), "in hidden rows"))
                    row = {}
                element.clear()
                while element.getprevious() is not None:  # otherwise a million empty rows stay in memory
                    del element.getparent()[0]
                if row:
                    yield number, row
            elif hidden:
                last = min(int(element.get("max") or 0), 16_384)
                hidden_columns.update(range(int(element.get("min") or 0), last + 1))


def _row(element: Element, hidden_columns: set[int], look: _Look) -> dict[int, str]:
    row: dict[int, str] = {}
    column = 0
    for cell in element:
        column = _column(cell.get("r") or "") or column + 1
        if not len(cell):
            continue
        style = cell.get("s", "0")
        form, how = look.styles[int(style)] if style.isdigit() and int(style) < len(look.styles) else ("", "")
        shown = _shown(cell, form, look)
        if shown and (column in hidden_columns or how):
            look.hidden.append(HiddenText(shown, how or "in hidden columns"))
        elif shown:
            row[column] = shown
    return row


def _column(reference: str) -> int:
    number = 0
    for letter in reference.rstrip("0123456789$"):
        number = number * 26 + ord(letter) - 64
    return number


def _shown(cell: Element, form: str, look: _Look) -> str:
    kind = cell.get("t", "n")
    if kind == "inlineStr":
        return joined_text(cell, by="")
    raw = next((part.text or "" for part in cell if part.tag.endswith("}v") or part.tag == "v"), "")
    if kind == "s":
        return look.strings[int(raw)] if raw.strip().isdigit() and int(raw) < len(look.strings) else ""
    if kind == "b":
        return "TRUE" if raw == "1" else "FALSE"
    if kind in {"str", "d"} or not raw:
        return raw
    if kind == "e":
        return ""  # an error value such as `#REF!` has no content
    return _number(raw, form, look.epoch)


def _number(raw: str, style: str, epoch: datetime) -> str:
    try:
        value = float(raw)
    except ValueError:
        return raw
    if style == "date" and 0 <= value < 2_958_466:
        moment = epoch + timedelta(seconds=round(value * 86_400))
        if value < 1:
            return moment.strftime("%H:%M:%S").removesuffix(":00")
        return moment.isoformat(" ", "minutes") if moment.hour or moment.minute else moment.date().isoformat()
    if style == "percent":
        return f"{value * 100:.10g}%"
    return f"{value:.15g}" if abs(value) < 1e15 else raw


def _styles(root: Element | None) -> list[tuple[str, str]]:
    """Per style: date, percent or nothing; and how it hides a value. Of a theme only its first colour is known: white."""
    codes = {attribute(form, "numFmtId"): attribute(form, "formatCode") for form in inside(root, "numFmt")}
    inks = [_shade(child(font, "color"), "000000") for font in children(child(root, "fonts"))]
    grounds: list[str | None] = []
    for fill in children(child(root, "fills")):
        pattern = child(fill, "patternFill")
        kind = attribute(pattern, "patternType") if pattern is not None else "gradient"
        plain = _shade(child(pattern, "fgColor"), "000000") if kind == "solid" else None
        grounds.append("FFFFFF" if kind in {"", "none"} else plain)
    found: list[tuple[str, str]] = []
    for style in children(child(root, "cellXfs")):
        form, font, fill = (attribute(style, name) for name in ("numFmtId", "fontId", "fillId"))
        ink = inks[int(font)] if font.isdigit() and int(font) < len(inks) else None
        ground = grounds[int(fill)] if fill.isdigit() and int(fill) < len(grounds) else "FFFFFF"
        blank = re.fullmatch(r";;;+", codes.get(form, "").strip())
        how = "formatted as nothing" if blank else SAME_COLOUR if same_colour(ink or "", ground) else ""
        found.append((_form(int(form or 0), codes.get(form)), how))
    return found


def _shade(colour: Element | None, unsaid: str) -> str | None:
    if colour is None:
        return unsaid
    if attribute(colour, "tint").strip("0.-"):
        return None
    return attribute(colour, "rgb")[-6:] or ("FFFFFF" if attribute(colour, "theme") == "0" else None)


def _form(number: int, code: str | None) -> str:
    """Whether a number format shows a date or a percentage; `code` is that of the file, if the number is not a built-in one."""
    bare = re.sub(r'"[^"]*"|\\.|\[(?!h|m|s)[^\[\]]*+\]|_.|\*.', "", code or "", flags=re.IGNORECASE).split(";")[0]
    if number in _PERCENT or "%" in bare:
        return "percent"
    digits = re.search(r"[0#?]", bare.replace(".0", "").replace("ss.00", ""))
    dated = re.search(r"[dmyhs]", bare, re.IGNORECASE) and not digits
    return "date" if dated or (number in _DATES and code is None) else ""


def _strings(archive: Archive, member: str) -> list[str]:
    """The shared strings, without the phonetic guides (`rPh`) of East Asian ones."""
    return [
        "".join(text.text or "" for text in item.xpath("*[local-name()='t'] | *[local-name()='r']/*[local-name()='t']"))
        for item in children(archive.xml(member))
    ]


def _merged(archive: Archive, target: str) -> tuple[dict[tuple[int, int], tuple[int, int]], bool]:
    """(row, column) → the cell whose value it shares, and whether more than the styles of cells colours the sheet. Both are
    at the end of the sheet, so they are read first."""
    found: dict[tuple[int, int], tuple[int, int]] = {}
    coloured = False
    tail = b""
    with archive.open(target) as stream:
        while piece := stream.read(1 << 20):
            tail += piece
            coloured = coloured or b"conditionalFormatting" in tail or b"tablePart" in tail or b"<picture" in tail
            for match in re.finditer(rb'<(?:\w+:)?mergeCell\s+ref="([A-Z]+)(\d+):([A-Z]+)(\d+)"', tail):
                left, right = _column(match[1].decode()), _column(match[3].decode())
                top, bottom = int(match[2]), int(match[4])
                if (right - left + 1) * (bottom - top + 1) + len(found) > _MERGED:
                    continue
                found |= {(r, c): (top, left) for r in range(top, bottom + 1) for c in range(left, right + 1)}
            tail = tail[-100:]
    return found, coloured
