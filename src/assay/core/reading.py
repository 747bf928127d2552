"""A document as it is read: text and tables in turn, as much of it as a page shows at once. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from assay.core.table_parts import Span, TablePart, rows_part, table_part
from assay.core.tables import table_rows, tables_within
from assay.core.types import Document

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
    return [
        *blocks_before(document, start, quote, AT_ONCE // 4),
        *blocks_after(document, start, quote, at=at),
    ]


def blocks_after(
    document: Document, start: int, quote: Span | None = None, most: int = AT_ONCE, at: int | None = None
) -> list[Block]:
    """The blocks from an offset on. A table is shown from its first row, or around the quotation, or around `at`."""
    found: list[Block] = []
    for low, high, number in _turns(document, start, len(document.text)):
        if most <= 0:
            break
        if number:
            found.append(_table(document, number, quote, at))
        else:
            cut = _paragraph_end(document.text, low, high, most)
            found.append(Block(low, cut, document.text[low:cut]))
            if cut < high:
                break
        most -= _weight(found[-1])
    return found


def blocks_before(document: Document, end: int, quote: Span | None = None, most: int = AT_ONCE) -> list[Block]:
    """The blocks that end at an offset."""
    found: list[Block] = []
    for low, high, number in reversed(list(_turns(document, 0, end))):
        if most <= 0:
            break
        if number:
            found.append(_table(document, number, quote))
        else:
            cut = _paragraph_start(document.text, low, high, most)
            found.append(Block(cut, high, document.text[cut:high]))
            if cut > low:
                break
        most -= _weight(found[-1])
    return found[::-1]


def blocks_within(document: Document, start: int, end: int) -> list[Block]:
    """A passage as blocks: of its tables only the rows that it touches."""
    found: list[Block] = []
    for low, high, number in _turns(document, start, end):
        table = document.tables[number - 1] if number else None
        rows = table_rows(table, document.text, start, end) if table else []
        part = rows_part(table, document.text, rows) if table and rows else None
        found.append(Block(low, high, "" if part else document.text[max(low, start) : min(high, end)], number, part))
    return found


def _turns(document: Document, start: int, end: int) -> Iterator[tuple[int, int, int]]:
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


def _table(document: Document, number: int, quote: Span | None, at: int | None = None) -> Block:
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


def _paragraph_end(text: str, low: int, high: int, most: int) -> int:
    if low + most >= high:
        return high
    blank = text.rfind("\n\n", low + most // 2, low + most)
    return blank + 2 if blank >= 0 else low + most


def _paragraph_start(text: str, low: int, high: int, most: int) -> int:
    if high - most <= low:
        return low
    blank = text.find("\n\n", high - most, high - most // 2)
    return blank + 2 if blank >= 0 else high - most
