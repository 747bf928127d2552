"""Cells with their places → a `Table`: columns from cells that are merged or split, merged header rows, groups of rows,
units.

Used by every format, PDF included. Pure.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from assay.core.tables import RowSpan, pack_rows
from assay.core.types import Table
from assay.language.quantities import find_units, is_unit, only_declares

SLIGHT = 0.5  # a difference of indent that only ranks groups: bold ones above others
LONGEST_NAME = 300  # characters of a caption or of a column name
_BEFORE = re.compile(r"[$€£¥(]|US\$")  # a cell of its own before its number
_AFTER = re.compile(r"[)%]|\)%|pts?|bps|x")  # and after it
NUMERIC_CELL = re.compile(
    r"[-+–—(]?\s*+[$€£¥]?\s*+[-+–(]?\d[\d.,'’ \u202f]*+\s*+%?\s*+\)?\s*+%?|[-–—]+|\d{4}-\d\d-\d\d.*"
)
YEAR = re.compile(r"(?:19|20)\d\d")
YEAR_IN = re.compile(rf"(?<!\d){YEAR.pattern}(?!\d)")

CAPTION = re.compile(
    r"(?:table|tab\.|tabelle|tableau|tabla|tabella|exhibit|schedule|annex|appendix|figure)\s*[\dA-Z]", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class GridCell:
    """A cell with text: its first column, how many columns it covers, and where its text is."""

    text: str
    column: int
    start: int
    end: int
    span: int = 1


@dataclass(frozen=True, slots=True)
class GridRow:
    """A row of cells; `indent` is how far its label is indented, if the format says so."""

    cells: tuple[GridCell, ...]
    start: int
    end: int
    indent: float = 0.0


def build_table(
    head: Sequence[GridRow], body: Sequence[GridRow], *, caption: str = "", above: Sequence[str] = ()
) -> Table | None:
    """A table of these header rows and rows; `above` are lines above it that may say its units. None if it is no table."""
    joined = [_join_signs(row) for row in body]
    keys = sorted({key for row in joined for key, _ in row})
    if len(keys) < 2 or not any(len(row) > 1 for row in joined):
        return None
    place = {key: index for index, key in enumerate(keys)}
    names = [_name(head, key, keys[0]) for key in keys]
    cells = [[(cell.text, cell.column, cell.column + cell.span - 1) for cell in row.cells] for row in head]
    units = header_units(cells, keys) or find_units([*above, caption])  # what is nearer counts
    if units and find_units([names[0]]) == units:
        names[0] = ""
    start = min(row.start for row in (*head, *body))
    labelled = [
        len(cells) == 1 and cells[0][0] == keys[0] and any(map(str.isalpha, "".join(cell.text for cell in row.cells)))
        for row, cells in zip(body, joined, strict=True)
    ]
    groups = find_groups(list(zip(labelled, [row.indent for row in body], strict=True)))
    spans = [
        RowSpan(row.start, row.end, tuple((place[key], *span) for key, parts in cells for span in parts), group)
        for row, cells, group in zip(body, joined, groups, strict=True)
    ]
    return Table(
        start,
        max(row.end for row in (*head, *body)),
        tuple(names),
        caption[:LONGEST_NAME],
        units,
        pack_rows(spans, start),
    )


def _join_signs(row: GridRow) -> list[tuple[int, list[tuple[int, int]]]]:
    """The cells of a row by column: a cell is found by its right edge, a label by its left. Signs join their number."""
    found: list[tuple[int, list[tuple[int, int]]]] = []
    pending: list[tuple[int, int]] = []
    alone = len(row.cells) == 1
    for index, cell in enumerate(row.cells):
        span = (cell.start, cell.end)
        if index and _BEFORE.fullmatch(cell.text) and index + 1 < len(row.cells):
            pending.append(span)
        elif index > 1 and _AFTER.fullmatch(cell.text):
            found[-1][1].append(span)
        else:
            key = cell.column if cell.column == 0 or alone else cell.column + cell.span - 1
            if found and found[-1][0] == key:
                found[-1][1].extend([*pending, span])
            else:
                found.append((key, [*pending, span]))
            pending = []
    return found


def _name(head: Sequence[GridRow], key: int, first: int) -> str:
    """The header of a column: the cells above it, from top to bottom."""
    above = [
        cell.text
        for row in head
        for cell in row.cells
        if cell.column <= key < cell.column + cell.span and (key == first or cell.column > 0 or cell.span == 1)
    ]
    return " ".join(" ".join(dict.fromkeys(above)).split())[:LONGEST_NAME]


def find_groups(rows: Sequence[tuple[bool, float]]) -> list[int]:
    """For each row (has it only a label? its indent) the distance to the row that names its group; 0 if there is none."""
    open_groups: list[tuple[int, float]] = []
    distances: list[int] = []
    last = max((index for index, (only, _) in enumerate(rows) if not only), default=-1)
    for index, (only, indent) in enumerate(rows):
        while open_groups and _ends_group(rows, open_groups[-1], index):
            open_groups.pop()
        distances.append(index - open_groups[-1][0] if open_groups else 0)
        if only and index < last:
            open_groups.append((index, indent))
    return distances


def _ends_group(rows: Sequence[tuple[bool, float]], group: tuple[int, float], index: int) -> bool:
    """A group ends at a row that is indented less, or as little as the group if the rows inside are indented."""
    (only, indent), (first, outer) = rows[index], group
    if indent < outer or (only and indent == outer):
        return True
    return indent <= outer + SLIGHT and any(rows[at][1] > outer + SLIGHT for at in range(first + 1, index))


HeaderRow = Sequence[tuple[str, int, int]]  # cells: words, first and last column


def header_units(head: Sequence[HeaderRow], columns: Sequence[int]) -> str:
    """The units that a header states for the whole table: above the labels, alone in a row over several columns, or in each
    of them. A unit above one column among others is only in its name."""
    first, *others = columns
    found = [(units, low, high, len(row)) for row in head for words, low, high in row if (units := find_units([words]))]
    for units, low, high, cells in found:
        over_all = bool(others) and low <= others[0] and others[-1] <= high
        if low <= first or over_all or (cells == 1 and (low < high or _all_years(head, others))):
            return units
    in_column: dict[int, set[str]] = {}
    for units, low, high, _ in found:
        for at in others[bisect_left(others, low) : bisect_right(others, high)]:
            in_column.setdefault(at, set()).add(units)
    common = set.union(*in_column.values()) if len(in_column) == len(others) > 0 else set[str]()
    return common.pop() if len(common) == 1 else ""


def _all_years(head: Sequence[HeaderRow], columns: Sequence[int]) -> bool:
    """Whether each column has a year above it: then they are of one kind."""
    spans = [(low, high) for row in head for words, low, high in row if YEAR_IN.search(words)]
    return len(
        {at for low, high in spans for at in columns[bisect_left(columns, low) : bisect_right(columns, high)]}
    ) == len(columns)


def caption_above(lines: Sequence[str]) -> str:
    """Of the lines directly above a table, nearest last, the one that is its title; empty if it has none."""
    for line in reversed(lines[-2:]):
        bare = " ".join(line.split())
        if only_declares(bare):
            continue
        if CAPTION.match(bare) and len(bare) <= LONGEST_NAME:
            return bare
        return bare if is_title(bare) else ""
    return ""


def is_title(line: str) -> bool:
    """Whether a line may be a title: short, and no sentence."""
    return 2 < len(line) <= 120 and line[-1] not in ".;," and any(map(str.isalpha, line))


def find_header(rows: Sequence[Sequence[str]], *, pairs_named: bool = False) -> tuple[int, int]:
    """The first header row and the first row below the header; equal if there is no header. Rows above it are titles.

    `pairs_named`: tables of two columns always have names.
    """
    for place, row in enumerate(rows[:10]):
        filled = [cell for cell in row if cell]
        below = rows[place + 1 :]
        if len(set(filled)) < 2:
            if filled and not row[0] and is_name(filled) and _numbers_below(below):
                return place, _header_end(rows, place)
            continue  # a title, a note, or one merged cell
        if not below or not is_name(filled):
            break
        if len(set(filled)) < len(filled):  # names that span columns: the row below tells them apart
            if not is_name([cell for cell in below[0] if cell]) or len(below) < 2:
                break
            return place, _header_end(rows, place + 1)
        if len(filled) == 2 and row[0] and not pairs_named and not _numbers_below(below):
            break
        return place, _header_end(rows, place)
    return 0, 0


def _header_end(rows: Sequence[Sequence[str]], last: int) -> int:
    """The first row below the header: rows of names without a label still belong to it, and a row of units."""
    end = last + 1
    while end + 1 < len(rows) and rows[end]:
        unlabelled = not rows[end][0] and is_name([cell for cell in rows[end] if cell])
        if not unlabelled and not _are_units(rows[end], rows[end + 1]):
            break
        end += 1
    return end


def _are_units(row: Sequence[str], below: Sequence[str]) -> bool:
    """Whether a row gives the units of the numbers below it."""
    pairs = [(cell, number) for cell, number in zip(row[1:], below[1:], strict=False) if cell]
    return bool(pairs) and all(is_unit(cell) and NUMERIC_CELL.fullmatch(number) for cell, number in pairs)


def is_name(cells: Sequence[str]) -> bool:
    """Whether cells look like column names: words or years, not numbers or sentences."""
    return bool(cells) and all(
        len(cell) < 100 and (not NUMERIC_CELL.fullmatch(cell) or not re.search(r"\d", cell) or YEAR.fullmatch(cell))
        for cell in cells
    )


def _numbers_below(below: Sequence[Sequence[str]]) -> bool:
    """Two columns have names if there are numbers below the second; otherwise they may be a form: `Name | Jane`."""
    seconds = [filled[1] for row in below if len(filled := [cell for cell in row if cell]) > 1]
    return bool(seconds) and sum(bool(NUMERIC_CELL.fullmatch(cell)) for cell in seconds) > 0.8 * len(seconds)
