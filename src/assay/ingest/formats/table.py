"""Rows of cells → lines of text and a `Table`.

Spreadsheets repeat the column names in every row, because a passage contains few rows: `River: Rhine; km: 1233`. Tables of
pages and slides are shorter, and stay as they look: `Rhine | 1233`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from assay.core.printable import tidy_whitespace
from assay.core.tables import LINES, RowPacker, RowSpan
from assay.core.types import Table
from assay.ingest.formats.text import TextBuilder
from assay.ingest.metadata.file_fields import plausible_title
from assay.ingest.parsed import FileLimits
from assay.language.quantities import find_units, names_unit, only_declares
from assay.tables.build import (
    LONGEST_NAME,
    YEAR_IN,
    GridCell,
    GridRow,
    build_table,
    caption_above,
    find_header,
    header_units,
    is_name,
    is_title,
)

MOST_TITLES = 10  # lines above the tables of a sheet that are looked at

_LONGEST_PERIOD = 40  # characters
_TITLES = 3  # lines of a caption


@dataclass(frozen=True, slots=True)
class Header:
    """The names of the columns, and what header rows say of the table as a whole. `line` is what says it, as it is shown."""

    names: tuple[str, ...]
    units: str = ""
    period: str = ""
    line: str = ""


def read_header(rows: Sequence[Sequence[str]]) -> Header:
    """The header in these rows of equal width. A row above the names with a unit and one period is about the whole table."""
    header, kept = Header(()), list(rows)
    for row in rows[:-1]:
        first, *others = list(filter(None, row)) or [""]
        if only_declares(first) and (not others or (len(others) == 1 and is_period(others[0]))):
            header = Header((), find_units([first]), "".join(others), " | ".join([first, *others]))
            kept.remove(row)
    names = [" ".join(dict.fromkeys(filter(None, cells))) for cells in zip(*_spread(kept), strict=True)]
    if names and only_declares(names[0]):
        header = replace(header, units=find_units(names[:1]), line=header.line or names[0])
        names[0] = ""
    return replace(header, names=tuple(names))


def _spread(rows: list[Sequence[str]]) -> list[Sequence[str]]:
    """Header rows in which a cell above columns of the same names is repeated above each: `2023` above `Sales | Costs`. It is
    written above the first of them, or the last."""
    for place, (above, below) in enumerate(pairwise(rows)):
        named = [column for column, name in enumerate(below) if name and column]
        over = [column for column, name in enumerate(above) if name and column]
        if len({below[column] for column in named}) == len(named) or not 1 < len(over) < len(named):
            continue
        ends = over[0] > named[0]
        nearest = {
            column: min((at for at in over if at >= column), default=None)
            if ends
            else max((at for at in over if at <= column), default=None)
            for column in named
        }
        filled = [above[at] if (at := nearest.get(column)) is not None else name for column, name in enumerate(above)]
        rows = [*rows[:place], filled, *rows[place + 1 :]]
    return rows


def is_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether rows are only a header, with an empty row between it and its table."""
    *above, last = [[cell for cell in row if cell] for row in rows]
    names = len(last) > 2 and len(set(last)) > 1 and all(map(is_name, (*above, last)))
    return names and all(len(row) < len(last) for row in above)


def is_period(words: str) -> bool:
    """Whether a short text names a year, and may so be the period of a table."""
    return len(words) <= _LONGEST_PERIOD and YEAR_IN.search(words) is not None


def _period(lines: Sequence[str]) -> str:
    """The nearest line below the title that names a year."""
    return next((line for line in reversed(lines[1:]) if is_period(line) and not only_declares(line)), "")


def write_rows(
    rows: Iterable[Sequence[str]], out: TextBuilder, *, always_named: bool = False, caption: str = ""
) -> str:
    """Write consecutive tables: an empty row ends a table. `always_named`: tables of two columns have names too.
    Returns the title that stands above them; empty if there is none."""
    writer = _SheetWriter(out, always_named, caption)
    block: list[list[str]] = []
    for row in rows:
        cells = [tidy_whitespace(cell).replace("\n", " ") for cell in row]
        if any(cells):
            block.append(cells)
        # A table may be as long as the file: after this many rows its header is known.
        if len(block) >= 1000:
            writer.write(block)
            block = []
        elif not any(cells):
            writer.end(block)
            block = []
    writer.write(block)
    writer.close()
    return plausible_title(writer.sheet_title())


def first_rows(rows: Iterable[list[str]], out: TextBuilder) -> Iterator[list[str]]:
    """The rows within the limits on cells and time, with a warning if there are more."""
    cells = 0
    for row in rows:
        cells += sum(map(bool, row))
        if cells > out.limits.cells or out.limits.late:
            out.warn(left_out(out.limits))
            return
        yield row


def left_out(limits: FileLimits) -> str:
    """Why rows are missing."""
    if limits.late:
        return (
            f"Only the beginning was read: the rest would take more than {limits.seconds:.0f} seconds; split the file."
        )
    return (
        f"Only the first {limits.cells:,} cells were read; split the file to read the rest, or raise `file_max_cells`."
    )


@dataclass(slots=True)
class _SheetWriter:
    """Writes the tables of a sheet. A title, a unit or a period above its first table, apart from it, holds for all of it;
    what is above a later table is its own."""

    out: TextBuilder
    always_named: bool
    name: str
    first: tuple[str, ...] = ()  # the lines above the first table
    lines: tuple[str, ...] = ()  # those since the last one
    tables: int = 0
    columns: tuple[str, ...] = ()  # of the last table, and the lines above it
    above: tuple[str, ...] = ()
    first_titles: tuple[str, ...] = ()  # the lines above the first table, in its block
    header: Header | None = None  # of the open table; without names if it has none
    titles: tuple[str, ...] = ()  # the lines above the open table, in its block
    packer: RowPacker | None = None
    group: int = -1  # the row that names the group of those below it
    rows: int = 0
    width: int = 0
    wide_rows: int = 0  # rows with more than one cell
    single: tuple[str, ...] = ()  # the first rows with one cell

    def sheet_title(self) -> str:
        """The first line of the sheet, unless that is only the caption of the first of several tables."""
        lines = self.first or (self.first_titles if self.tables == 1 else ())
        return next((line for line in lines[:1] if is_title(line) and not only_declares(line)), "")

    def write(self, block: list[list[str]]) -> None:
        """Write a part of a table."""
        before = self.header
        opens = not self.rows and bool(block)
        gap = "\n" if before else "\n\n"
        if before is None or (opens and is_name([cell for cell in block[0] if cell])):
            first, below = find_header(block, pairs_named=self.always_named)
            if first < below:
                self.header = read_header(_padded(block[first:below]))
                self.titles = tuple(_bars(row)[0] for row in block[:first])
                for line in filter(None, (*self.titles, self.header.line)):
                    self.out.block(line, gap)
                    gap = "\n"
                block = block[below:]
            elif before is None:
                self.header = Header(())
        for cells in block:
            self._row(cells, gap)
            gap = "\n"

    def end(self, block: list[list[str]]) -> None:
        """Write the rest of a table, or a header whose table is below an empty row, and end it."""
        if not block and not self.rows:
            return
        if self.header is None and block and is_header(block):
            titles = [row for row in block[:-1] if len(set(filter(None, row))) == 1]
            for place, row in enumerate(block):
                self.out.block(_bars(row)[0], "\n" if place else "\n\n")
            self._keep(_bars(row)[0] for row in titles)
            self.header = read_header(_padded([row for row in block if row not in titles]))
            return
        self.write(block)
        self.close()

    def _row(self, cells: list[str], gap: str) -> None:
        line, spans = _named(cells, self.header.names if self.header else ())
        start = self.out.block(line, gap)
        if self.out.length - start != len(line):  # the text was cleaned once more: its offsets are unknown
            return
        self.packer = self.packer or RowPacker(start)
        if len(spans) == 1:
            spans = [(0, *spans[0][1:])]
        group = self.rows - self.group if len(spans) > 1 and self.group >= 0 else 0
        self.packer.add(
            RowSpan(start, self.out.length, tuple((at, start + low, start + high) for at, low, high in spans), group)
        )
        if len(spans) == 1 and not self.always_named and any(map(str.isalpha, line)):
            self.group = self.rows
        if len(spans) == 1 and self.rows < MOST_TITLES:
            self.single += (line,)
        self.rows += 1
        self.width = max(self.width, 1 + max((at for at, _, _ in spans), default=0))
        self.wide_rows += len(spans) > 1

    def close(self) -> None:
        """End the open table."""
        header = self.header or Header(())
        if self.packer is not None and self.wide_rows > (not header.names):
            columns = header.names + ("",) * (self.width - len(header.names))
            own = (*self.lines, *self.titles)
            # One without lines above it has those of the last one, if it has the same columns.
            above = own if own or header.names != self.columns else self.above
            caption, units, period = self._describe(header, above)
            self.out.tables.append(
                Table(self.packer.origin, self.out.length, columns, caption, units, self.packer.packed(), period)
            )
            self.first_titles = self.first_titles if self.tables else self.titles
            self.lines, self.columns, self.above = (), header.names, above
            self.tables += 1
        else:
            self._keep((*self.titles, *self.single))
        self.header, self.packer, self.titles, self.single = None, None, (), ()
        self.group, self.rows, self.width, self.wide_rows = -1, 0, 0, 0

    def _keep(self, lines: Iterable[str]) -> None:
        """Keep lines that are no table for those below them."""
        self.lines += tuple(line for line in lines if is_title(line) or only_declares(line))
        self.first = self.first if self.tables else self.lines

    def _describe(self, header: Header, above: Sequence[str]) -> tuple[str, str, str]:
        """Caption, units and period of a table with these lines above it."""
        named = [[(name, at, at) for at, name in enumerate(header.names) if name]]
        units = header.units or header_units(named, range(max(1, len(header.names)))) or find_units(reversed(above))
        if not units and not any(map(names_unit, header.names)):
            units = find_units(reversed(self.first))
        period = header.period or _period(above)
        if not period and not any(map(YEAR_IN.search, header.names)):
            period = _period(self.first)
        titled = [line for line in above if not only_declares(line) and line != period]
        return LINES.join(dict.fromkeys(titled[-_TITLES:]))[:LONGEST_NAME] or self.name, units, period


def _padded(rows: Sequence[list[str]]) -> list[list[str]]:
    width = max(map(len, rows), default=0)
    return [row + [""] * (width - len(row)) for row in rows]


Spans = list[tuple[int, int, int]]  # column, start and end in the line


def _named(cells: list[str], names: Sequence[str]) -> tuple[str, Spans]:
    """A row with its column names, and where its cells are."""
    if not names or len(set(filter(None, cells))) < 2:
        return _bars(cells)
    parts: list[str] = []
    spans: Spans = []
    at, before = 0, ""
    for column, cell in enumerate(cells):
        name = names[column] if column < len(names) else ""
        if cell and (name or cell != before):  # an unnamed repetition is one cell merged across columns
            lead = ("; " if parts else "") + (f"{name.rstrip(': ')}: " if name else "")
            at += len(lead)
            spans.append((column, at, at + len(cell)))
            at += len(cell)
            parts += (lead, cell)
        before = cell
    return "".join(parts), spans


def _bars(cells: Sequence[str]) -> tuple[str, Spans]:
    """Cells side by side; a cell merged across the row appears once."""
    filled = [(column, cell) for column, cell in enumerate(cells) if cell]
    if len({cell for _, cell in filled}) == 1:
        return filled[0][1], [(filled[0][0], 0, len(filled[0][1]))]
    line = " | ".join(cells)
    spans, at = [], len(line.lstrip(" |")) - len(line)
    for column, cell in enumerate(cells):
        if cell:
            spans.append((column, max(0, at), min(at + len(cell), len(line.strip(" |")))))
        at += len(cell) + 3
    return line.strip(" |"), spans


@dataclass(slots=True)
class BarTable:
    """A table that is written row by row as `a | b | c`; `close` records it."""

    out: TextBuilder
    above: tuple[str, ...] = ()  # the lines directly above it
    caption: str = ""
    gap: str = "\n\n"  # before the next row
    rows: list[GridRow] = field(default_factory=list)
    heads: list[bool] = field(default_factory=list)  # which rows the file calls header rows
    _open: dict[int, tuple[int, GridCell]] = field(default_factory=dict)  # column → rows left, cell merged downwards

    def write(
        self,
        cells: Sequence[str],
        *,
        first: int = 0,
        spans: Sequence[int] = (),
        down: Sequence[int] = (),
        head: bool = False,
    ) -> None:
        """Write one row that begins in column `first`, unless it has no text. `spans` and `down`: how many columns and rows
        each cell covers; 0 columns for the place of a cell that is merged into another."""
        line = " | ".join(cells).rstrip(" |")
        if not line.strip():
            return
        start = self.out.block(line, self.gap)
        self.gap = "\n"
        at = start - (len(line) - len(line.lstrip()))
        if self.out.length - at != len(line):  # the text was cleaned once more: its offsets are unknown
            return
        found: list[GridCell] = []
        column = first
        for index, text in enumerate(cells):
            column = self._merged(column, found)
            span = spans[index] if spans else 1
            cell = GridCell(text, column, at, at + len(text), span)
            if text:
                found.append(cell)
            if down and down[index] > 1:
                self._open[column] = (down[index] - 1, cell)
            column += span
            at += len(text) + 3
        self._merged(column, found)
        self.rows.append(GridRow(tuple(found), start, self.out.length))
        self.heads.append(head)

    def _merged(self, column: int, found: list[GridCell]) -> int:
        """Add the cells that continue from the rows above at this column; returns the next free column."""
        while column in self._open:
            left, cell = self._open.pop(column)
            if cell.text:
                found.append(cell)
            if left > 1:
                self._open[column] = (left - 1, cell)
            column += cell.span
        return column

    def close(self) -> None:
        """Record what was written as a table, if it is one."""
        heads = next((index for index, head in enumerate(self.heads) if not head), 0)
        first, below = (0, heads) if heads else find_header([_texts(row) for row in self.rows])
        titles = [row.cells[0].text for row in self.rows[:first] if row.cells]
        lines = (*self.above, *titles)
        table = build_table(
            self.rows[first:below], self.rows[below:], caption=self.caption or caption_above(lines), above=lines
        )
        if table is not None:
            self.out.tables.append(table)


def _texts(row: GridRow) -> list[str]:
    texts = [""] * max((cell.column + cell.span for cell in row.cells), default=0)
    for cell in row.cells:
        texts[cell.column : cell.column + cell.span] = [cell.text] * cell.span
    return texts
