"""Rows, cells and quotations of a `Table`. Pure: a table and the text of its document in, values out.

A table stores the offsets of its cells and no text, packed, because a spreadsheet has a million cells.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate, pairwise

from assay.core.types import BETWEEN, Table, TableCell, TableRow

_SIGNS = re.compile(
    r"(?<=[($€£¥]) (?=[\d(.])|(?<=[\d—–-]) (?=[)%])|(?<=\)) (?=%)"
)  # blanks between a number and its signs
LINES = " — "  # between the lines of a caption
_UNTIDY = re.compile(r"[^\S ]|  |[$€£¥()%]")
MOST_BYTES = 200_000_000  # of an unpacked layout


@dataclass(frozen=True, slots=True)
class RowSpan:
    """Where a row is written. `group` is the distance, in rows, to the row that names its group; 0 if there is none.

    `cells` are (column, start, end). A column may occur twice, as a label over two lines does; a cell may be in the row
    above, if it is merged over both.
    """

    start: int
    end: int
    cells: tuple[tuple[int, int, int], ...]
    group: int = 0


@dataclass(slots=True)
class RowPacker:
    """Packs rows one by one, relative to `origin`. Distances compress better than offsets."""

    origin: int
    heads: list[int] = field(default_factory=list)
    cells: list[int] = field(default_factory=list)
    row_end: int = -1
    cell_end: int = -1

    def add(self, row: RowSpan) -> None:
        row_end, cell_end = (self.row_end, self.cell_end) if self.heads else (self.origin, self.origin)
        self.heads += (row.start - row_end, row.end - row.start, row.group, len(row.cells))
        self.row_end = row.end
        for column, start, end in row.cells:
            self.cells += (column, start - cell_end, end - start)
            cell_end = end
        self.cell_end = cell_end

    def packed(self) -> str:
        body = json.dumps([self.heads, self.cells], separators=(",", ":")).encode()
        return base64.b64encode(zlib.compress(body, 6)).decode()


def pack_rows(rows: Sequence[RowSpan], origin: int) -> str:
    """The offsets of rows and cells as one string."""
    packer = RowPacker(origin)
    for row in rows:
        packer.add(row)
    return packer.packed()


@dataclass(frozen=True, slots=True)
class _Layout:
    """The unpacked offsets, as columns; `first[i]` is the first cell of row i."""

    starts: list[int]
    ends: list[int]
    groups: list[int]
    first: list[int]
    columns: list[int]
    cell_starts: list[int]
    cell_ends: list[int]


@lru_cache(maxsize=32)
def _unpack(packed: str, origin: int) -> _Layout:
    if not packed:
        return _Layout([], [], [], [0], [], [], [])
    engine = zlib.decompressobj()
    body = engine.decompress(base64.b64decode(packed), MOST_BYTES)
    if not engine.eof:
        raise ValueError("the layout of a table is too large")
    heads, cells = json.loads(body)
    starts, ends = _spans(heads[0::4], heads[1::4], origin)
    cell_starts, cell_ends = _spans(cells[1::3], cells[2::3], origin)
    first = list(accumulate(heads[3::4], initial=0))
    if first[-1] != len(cell_starts):
        raise ValueError("the layout of a table does not fit its cells")
    return _Layout(starts, ends, heads[2::4], first, cells[0::3], cell_starts, cell_ends)


def _spans(gaps: list[int], lengths: list[int], origin: int) -> tuple[list[int], list[int]]:
    steps = (gap + length for gap, length in zip(gaps, lengths, strict=True))
    ends = list(accumulate(steps, initial=origin))[1:]
    return [end - length for end, length in zip(ends, lengths, strict=True)], ends


def check_tables(tables: Sequence[Table], length: int) -> None:
    """Raise `ValueError` unless the tables are in order, and their offsets, too, inside a text of this length."""
    if any(before.end > after.start for before, after in pairwise(tables)):
        raise ValueError("the tables overlap")
    for table in tables:
        _check(table, length)


def _check(table: Table, length: int) -> None:
    layout = _unpack(table.layout, table.start)
    inside = 0 <= table.start <= table.end <= length and table.columns
    edges = [table.start, *(edge for row in zip(layout.starts, layout.ends, strict=True) for edge in row), table.end]
    ordered = all(before <= after for before, after in pairwise(edges)) and all(
        table.start <= start <= end <= table.end
        for start, end in zip(layout.cell_starts, layout.cell_ends, strict=True)
    )
    named = all(0 <= column < len(table.columns) for column in layout.columns)
    grouped = all(0 <= group <= index for index, group in enumerate(layout.groups))
    if not (inside and ordered and named and grouped):
        raise ValueError("the offsets of a table do not fit the text")


def header_end(table: Table) -> int:
    """Where the first row begins."""
    return _unpack(table.layout, table.start).starts[0]


def row_spans(table: Table) -> list[tuple[int, int]]:
    """Where each row is in the text."""
    layout = _unpack(table.layout, table.start)
    return list(zip(layout.starts, layout.ends, strict=True))


def table_rows(table: Table, text: str, start: int = 0, end: int | None = None) -> list[TableRow]:
    """The rows of a table, in order; with `start` and `end`, only those that touch `text[start:end]`."""
    layout = _unpack(table.layout, table.start)
    low = bisect_right(layout.ends, start)
    high = len(layout.starts) if end is None else bisect_left(layout.starts, end)
    return [_row(table, text, layout, index) for index in range(low, high)]


def _row(table: Table, text: str, layout: _Layout, index: int) -> TableRow:
    parts: list[list[int]] = [[] for _ in table.columns]
    for cell in range(layout.first[index], layout.first[index + 1]):
        parts[layout.columns[cell]].append(cell)
    at = layout.starts[index]
    cells = tuple(_cell(text, layout, found, at) for found in parts)
    label = BETWEEN.join(filter(None, (*_groups(text, layout, index), cells[0].text)))
    return TableRow(label, at, layout.ends[index], cells)


def _cell(text: str, layout: _Layout, parts: Sequence[int], at: int) -> TableCell:
    if not parts:
        return TableCell("", at, at)
    start, end = layout.cell_starts[parts[0]], layout.cell_ends[parts[0]]
    words = text[start:end]
    if len(parts) > 1 or _UNTIDY.search(words):  # most cells are tidy, and there may be a million
        words = " ".join(text[layout.cell_starts[part] : layout.cell_ends[part]] for part in parts)
        words = _SIGNS.sub("", " ".join(words.split()))
    return TableCell(words, start, end)


def _groups(text: str, layout: _Layout, index: int) -> list[str]:
    """The labels of the groups around a row, outermost first."""
    found: list[str] = []
    while layout.groups[index]:
        index -= layout.groups[index]
        parts = range(layout.first[index], layout.first[index + 1])
        label = _cell(text, layout, [part for part in parts if layout.columns[part] == 0], 0).text
        found.append(label.rstrip(" :"))
    return found[::-1]


def tables_within(tables: Sequence[Table], start: int, end: int) -> list[Table]:
    """The tables that touch `text[start:end]`. Tables are in the order of the text and do not overlap."""
    low = bisect_right(tables, start, key=lambda table: table.end)
    high = bisect_left(tables, end, key=lambda table: table.start)
    return list(tables[low:high])
