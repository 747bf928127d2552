"""A document as it is read: text and tables in turn, and some rows of a table with the cells that a quotation covers.
Pure.

A spreadsheet may have a million cells: a part has as many as a page can show.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from assay.core.tables import row_spans, table_rows, tables_within
from assay.core.types import BETWEEN, Document, Table, TableCell, TableRow

MOST_ROWS = 100
MOST_COLUMNS = 100
MOST_CELLS = 4_000  # in a part
MOST_READ = 100_000  # cells that are read for a part, with those of columns that it leaves out
LEAD = 5  # rows, or columns, before those that are looked for
SAMPLE = 50  # rows that tell which columns are numeric
QUOTED_ROWS = 20  # of a quotation; a longer one is shown as text

_DASHES = ("-", "–", "—")
_RANGE = re.compile(r"\d\s*[-–/:]\s*\d|\d\.\d+\.\d{4}$")

Span = tuple[int, int]
Turn = tuple[int, int, int]  # from, to, the number of the table


@dataclass(frozen=True, slots=True)
class PartRow:
    """A row. `level` counts the groups around it, `cited` are the places of the cells that the quotation covers.

    Text between two rows that is in no cell is a row with one cell.
    """

    start: int
    end: int
    cells: tuple[str, ...]
    level: int = 0
    cited: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TablePart:
    """Rows of a table: from row `first` of `total` on, in the first column and those from `column` of `width` on."""

    caption: str
    units: str  # empty if the caption states them
    period: str  # likewise
    columns: tuple[str, ...]
    rows: tuple[PartRow, ...]
    numeric: tuple[int, ...] = ()  # places of columns
    cited: tuple[int, ...] = ()  # column names that the quotation covers
    first: int = 0
    total: int = 0
    column: int = 1
    width: int = 0


def table_part(
    table: Table,
    text: str,
    quote: Span | None = None,
    *,
    at: int | None = None,
    first: int | None = None,
    most: int = MOST_ROWS,
    column: int | None = None,
) -> TablePart:
    """The rows from `first` on, or those around the offset `at`; with many columns those from `column` on, or the cited."""
    spans, width = row_spans(table), len(table.columns)
    most = max(1, min(most, MOST_ROWS, MOST_CELLS // min(width, MOST_COLUMNS), MOST_READ // width))
    if first is None:
        first = max(0, min(row_at(spans, at) - LEAD, len(spans) - most)) if at is not None else 0
    taken = spans[first : first + most]
    rows = table_rows(table, text, taken[0][0], taken[-1][1]) if taken else []
    above = spans[min(first, len(spans)) - 1][1] if first and spans else _names_end(table, text)
    cited = [_covered(row, text, quote) for row in rows]
    if column is None:
        leftmost = min((place for of in cited for place in of if place), default=0)
        column = leftmost - LEAD if leftmost >= MOST_COLUMNS else 1
    column = max(1, min(column, width - MOST_COLUMNS + 1))
    places = [0, *range(column, min(width, column + MOST_COLUMNS - 1))]
    shown: list[PartRow] = []
    for row, of in zip(rows, cited, strict=True):
        shown += _between(text, above, row.start)
        cells = tuple(row.cells[place].text for place in places)
        marked = tuple(index for index, place in enumerate(places) if place in of)
        shown.append(PartRow(row.start, row.end, cells, _level(row), marked))
        above = row.end
    if first + len(rows) >= len(spans):
        shown += _between(text, above, table.end)
    part = _part(table, text, places, shown)
    names = _cited_names(table, text, quote, places)
    return replace(part, cited=names, first=first, column=column, width=width)


def _part(table: Table, text: str, places: Sequence[int], rows: Sequence[PartRow]) -> TablePart:
    """Rows in the columns at these places."""
    units, period = (words if words not in table.caption else "" for words in (table.units, table.period))
    columns, numeric = tuple(table.columns[place] for place in places), _numeric(table, text, places)
    total = len(row_spans(table))
    return TablePart(table.caption, units, period, columns, tuple(rows), numeric, total=total, width=len(places))


def row_at(spans: Sequence[Span], offset: int) -> int:
    """The row at an offset, or the next one; the last, if there is none."""
    return min(bisect_right(spans, offset, key=lambda span: span[1]), max(0, len(spans) - 1))


def quoted_part(document: Document, start: int, end: int, marks: Sequence[Span] = ()) -> TablePart | None:
    """The rows that the quotation `text[start:end]` touches, each with the label of its group; None if it is not from few
    rows of one table. A quotation of nothing less than these rows marks no cells in them, but those of `marks`."""
    for table in tables_within(document.tables, start, end):
        rows = table_rows(table, document.text, start, end)
        if 0 < len(rows) <= QUOTED_ROWS and table.start <= start and end <= table.end:
            return rows_part(table, document.text, rows, *(marks or [(start, end)]))
    return None


def rows_part(table: Table, text: str, rows: Sequence[TableRow], *quotes: Span) -> TablePart:
    """These rows apart from the others: in columns that they use, with the groups in their labels."""
    used = [place for place, name in enumerate(table.columns) if name or any(row.cells[place].text for row in rows)]
    cited = [frozenset().union(*(_covered(row, text, quote) for quote in quotes)) for row in rows]
    whole = all(place in of for row, of in zip(rows, cited, strict=True) for place in used if row.cells[place].text)
    shown = [
        PartRow(
            row.start,
            row.end,
            tuple(row.cells[place].text if place else row.label for place in used),
            cited=() if whole else tuple(index for index, place in enumerate(used) if place in of),
        )
        for row, of in zip(rows, cited, strict=True)
    ]
    return replace(_part(table, text, used, shown), first=row_at(row_spans(table), rows[0].start) if rows else 0)


def _between(text: str, start: int, end: int) -> list[PartRow]:
    """What is written between two rows and belongs to none."""
    words = " ".join(text[start:end].split()).strip(" |")
    return [PartRow(start, end, (words,))] if words.strip("-:| ") else []


def _names_end(table: Table, text: str) -> int:
    """Where the header ends: at the first row, or where it begins, if it says more than the names of the columns."""
    first = next(iter(row_spans(table)), (table.end, 0))[0]
    said = set(" ".join((table.caption, table.units, table.period, *table.columns)).split())
    return (
        first if all(word in said or not word.isalnum() for word in text[table.start : first].split()) else table.start
    )


def _level(row: TableRow) -> int:
    groups = row.label.removesuffix(row.cells[0].text).removesuffix(BETWEEN)
    return groups.count(BETWEEN) + 1 if groups else 0


def _covered(row: TableRow, text: str, quote: Span | None) -> frozenset[int]:
    """The columns whose cells a quotation covers. What is in a row and in no cell belongs to its label, over two lines."""
    start, end = (max(quote[0], row.start), min(quote[1], row.end)) if quote else (0, 0)
    if start >= end or not text[start:end].strip():
        return frozenset()
    filled = [(place, cell) for place, cell in enumerate(row.cells) if cell.text and cell.start >= row.start]
    starts = sorted(cell.start for _, cell in filled)
    found = frozenset(
        place for place, cell in filled if cell.start < end and start < written_to(cell, text, starts, row.end)
    )
    return found or frozenset(place for place, _ in filled[:1])


def written_to(cell: TableCell, text: str, starts: Sequence[int], end: int) -> int:
    """Where a cell ends. One of several pieces, as "$" and "12", has the offsets of its first: it ends before the next cell."""
    if "".join(text[cell.start : cell.end].split()) == "".join(cell.text.split()):
        return cell.end
    return next((start for start in starts if start > cell.start), end)


def _cited_names(table: Table, text: str, quote: Span | None, places: Sequence[int]) -> tuple[int, ...]:
    """The column names that a quotation covers: those that are written in its part of the header."""
    spans = row_spans(table)
    if quote is None or not spans or quote[0] >= spans[0][0] or quote[1] <= table.start:
        return ()
    words = " ".join(text[max(table.start, quote[0]) : min(spans[0][0], quote[1])].split())
    return tuple(index for index, place in enumerate(places) if table.columns[place] and table.columns[place] in words)


def _numeric(table: Table, text: str, places: Sequence[int]) -> tuple[int, ...]:
    """The places of columns with numbers: four of five cells at the beginning of the table are figures."""
    spans = row_spans(table)[: max(1, min(SAMPLE, MOST_READ // len(table.columns)))]
    rows = table_rows(table, text, spans[0][0], spans[-1][1]) if spans else []
    found: list[int] = []
    for index, place in enumerate(places):
        filled = [row.cells[place].text for row in rows if row.cells[place].text]
        figures = [cell for cell in filled if is_figure(cell)]
        if len(figures) > 0.8 * len(filled) and any(map(_has_digit, figures)):
            found.append(index)
    return tuple(found)


def is_figure(words: str) -> bool:
    """Digits and signs without letters, or a dash, in any script; no date and no range."""
    return not any(map(str.isalpha, words)) and not _RANGE.search(words) and (_has_digit(words) or words in _DASHES)


def _has_digit(words: str) -> bool:
    return any(map(str.isdigit, words))


def text_table(part: TablePart) -> list[str]:
    """A part as lines with the columns below one another; numbers end below one another."""
    rows = [part.columns, *(row.cells for row in part.rows)] if any(part.columns) else [row.cells for row in part.rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    adjust = [str.rjust if place in part.numeric else str.ljust for place in range(len(widths))]
    return [
        "  ".join(fit(cell, width) for fit, cell, width in zip(adjust, row, widths, strict=True)).rstrip()
        for row in rows
    ]


AT_ONCE = 60_000  # characters; a chapter or two
CELL = 10  # characters that a cell counts for, besides its own
LONGEST_PARAGRAPH = 5_000


@dataclass(frozen=True, slots=True)
class Block:
    """`document.text[start:end]`: as text, or as a part of the table with this number, counted from 1."""

    start: int
    end: int
    text: str = ""
    number: int = 0
    table: TablePart | None = None


def blocks_around(document: Document, at: int, quote: Span | None = None) -> list[Block]:
    """The block at an offset, what follows it, and a little of what is before it."""
    start = _block_start(document, min(at, max(0, len(document.text) - 1)))
    return [*blocks_before(document, start, quote, AT_ONCE // 4), *blocks_after(document, start, quote, at)]


def blocks_after(document: Document, start: int, quote: Span | None = None, at: int | None = None) -> list[Block]:
    """The blocks from an offset on. A table is shown from its first row, or around the quotation, or around `at`."""
    return _filled(document, list(_turns(document, start, len(document.text))), quote, AT_ONCE, at)


def blocks_before(document: Document, end: int, quote: Span | None = None, most: int = AT_ONCE) -> list[Block]:
    """The blocks that end at an offset."""
    return _filled(document, list(_turns(document, 0, end))[::-1], quote, most, None, back=True)[::-1]


def _filled(
    document: Document, turns: Sequence[Turn], quote: Span | None, most: int, at: int | None, *, back: bool = False
) -> list[Block]:
    """Blocks of so many characters; the last text is cut where a paragraph ends, or begins if they are filled `back`."""
    found: list[Block] = []
    for low, high, number in turns:
        if most <= 0:
            break
        if number:
            found.append(_table(document, number, quote, at))
        else:
            start, end = _cut(document.text, low, high, most, back)
            found.append(Block(start, end, document.text[start:end]))
            if end - start < high - low:
                break
        most -= _weight(found[-1])
    return found


def _cut(text: str, low: int, high: int, most: int, back: bool) -> Span:
    if high - low <= most:
        return low, high
    if back:
        blank = text.find("\n\n", high - most, high - most // 2)
        return (blank + 2 if blank >= 0 else high - most), high
    blank = text.rfind("\n\n", low + most // 2, low + most)
    return low, blank + 2 if blank >= 0 else low + most


def blocks_within(document: Document, start: int, end: int) -> list[Block]:
    """A passage as blocks: of its tables only the rows that it touches."""
    found: list[Block] = []
    for low, high, number in _turns(document, start, end):
        table = document.tables[number - 1] if number else None
        rows = table_rows(table, document.text, start, end) if table else []
        part = rows_part(table, document.text, rows) if table and rows else None
        found.append(Block(low, high, "" if part else document.text[max(low, start) : min(high, end)], number, part))
    return found


def _turns(document: Document, start: int, end: int) -> Iterator[Turn]:
    """Text (number 0) and tables in turn, from `start` to `end`: text is cut there, tables are not."""
    at = start
    for number, table in enumerate(document.tables, 1):
        if table.end <= start:
            continue
        if table.start >= end:
            break
        if at < table.start:
            yield at, table.start, 0
        yield table.start, table.end, number
        at = table.end
    if at < end:
        yield at, end, 0


def _table(document: Document, number: int, quote: Span | None, at: int | None) -> Block:
    table = document.tables[number - 1]
    inside = [offset for offset in (quote[0] if quote else None, at) if offset is not None]
    wanted = next((offset for offset in inside if table.start < offset < table.end), None)
    return Block(table.start, table.end, "", number, table_part(table, document.text, quote, at=wanted))


def _weight(block: Block) -> int:
    if block.table is None:
        return block.end - block.start
    return sum(CELL + len(cell) for row in block.table.rows for cell in row.cells)


def _block_start(document: Document, at: int) -> int:
    """Where the table, or the paragraph, at an offset begins."""
    for table in tables_within(document.tables, at, at + 1):
        return table.start
    floor = max([at - LONGEST_PARAGRAPH, 0, *(table.end for table in document.tables if table.end <= at)])
    blank = document.text.rfind("\n\n", floor, at)
    return blank + 2 if blank >= 0 else floor
