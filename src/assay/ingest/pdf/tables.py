"""Finds the tables of a PDF among its lines: numbers in columns, the header above them, row labels, units, caption. Pure.

A page says nothing about tables, only where words are. Numbers stand under each other; that is what is looked for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from statistics import median

from assay.core.tables import LINES
from assay.core.types import Table
from assay.ingest.pdf.layout import TextLine, grouped
from assay.language.quantities import find_units, only_declares
from assay.tables.build import CAPTION, GridCell, GridRow, build_table

_MARKS = r"[*†‡§]{0,3}"
_VALUE = re.compile(
    rf"[$€£¥]?\(?[-–—+]?[$€£¥]?\(?(?:\d[\d,.'’]*|\.\d+)\)?%?\)?(?:x|bps|pts)?{_MARKS}|[-–—]{{1,3}}%?|n/?a|n\.?m\.?",
    re.IGNORECASE,
)
_BEFORE = re.compile(r"(?:US)?[$€£¥]\(?|\(|[-–—]\$")
_AFTER = re.compile(r"\)?%?\)?|pts?|bps|x")
_NOTE = re.compile(r"\(\w\)")  # the mark of a footnote, behind a label
_BULLET = re.compile(r"[•‣◦▪●○■□*·–-]|\(?\w{1,2}[.)]|[a-z]|\d{1,3}")
_DIGIT = re.compile(r"\d")
_LEADER = re.compile(r"(?:(?<![.…·_])[.…·_]{3,}|…)$")
_YEAR = re.compile(r"(?:FY|CY)?\s*[’']?(?:19|20)\d\d(?:[-–/]\d\d(?:\d\d)?)?[AEF*]?")
_OPEN_END = re.compile(
    r"(?:[,–—-]|\b(?:and|or|of|to|the|for|in|from|by|with|on|at|a|an|than|under|per|und|oder|von|der|die|des|et|de|du))$",
    re.IGNORECASE,
)
_PERIOD = re.compile(
    r"(?:19|20)\d\d|\b(?:ended|ending|year|quarter|months?|weeks|as of|fiscal|january|february|march|april|may|june|july|august"
    r"|september|october|november|december|change|jahr|quartal|exercice)\b",
    re.IGNORECASE,
)
_LABEL_LINES = 6  # label lines in a row that a table may have
_BOILERPLATE = re.compile(r"(?:back to )?(?:table of )?contents|index|continued|\(continued\)", re.IGNORECASE)
_LONGEST_HEADER = 150  # characters; more is running text
_TITLE_LINES = 3


@dataclass(frozen=True, slots=True)
class PlacedLine:
    """A line of a page and where its words are in the text."""

    line: TextLine
    page: int
    start: int
    end: int
    words: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class _Cell:
    """Words that belong together. For a number, `x0` and `x1` are its own edges, and `left` is that of its sign."""

    text: str
    left: float
    x0: float
    x1: float
    start: int
    end: int
    value: bool

    @property
    def year(self) -> bool:
        return bool(_YEAR.fullmatch(self.text))

    @property
    def centre(self) -> float:
        return (self.x0 + self.x1) / 2


@dataclass(frozen=True, slots=True)
class _Line:
    """A line as cells."""

    placed: PlacedLine
    cells: tuple[_Cell, ...]

    @property
    def y0(self) -> float:
        return self.placed.line.y0

    @property
    def y1(self) -> float:
        return self.placed.line.y1

    @property
    def text(self) -> str:
        return self.placed.line.text

    @property
    def has_data(self) -> bool:
        """Whether it is a row of a table: a number beside something else that is no year."""
        values = [cell for cell in self.cells if cell.value and not cell.year]
        if len(values) == 1 and len(self.cells) > 4 and len(values[0].text) <= 2:
            return False  # a number in a line of names: `Level | Transfers into | 3`
        return len(self.cells) > 1 and bool(values) and (self.cells[0] not in values or len(values) > 1)

    @property
    def has_number(self) -> bool:
        """Whether one of its values has digits: a dash alone does not make a table."""
        return self.has_data and any(cell.value and not cell.year and _DIGIT.search(cell.text) for cell in self.cells)


@dataclass(frozen=True, slots=True)
class _Found:
    """A table with what a continuation on the next page is recognised by."""

    table: Table
    page: int
    edges: tuple[float, ...]
    headed: bool
    last: int  # its last line


def find_tables(lines: Sequence[PlacedLine]) -> tuple[Table, ...]:
    """The tables of a document, in the order of its text."""
    found: list[_Found] = []
    start = 0
    for _, group in groupby(lines, key=lambda line: (line.page, line.line.column)):
        column = [_cells(line) for line in group]
        found += _tables_of_column(column, start, found, lines)
        start += len(column)
    tables: list[Table] = []
    for each in sorted(found, key=lambda each: each.table.start):
        if not tables or tables[-1].end <= each.table.start:
            tables.append(each.table)
    return tuple(tables)


def _cells(placed: PlacedLine) -> _Line:
    cells: list[_Cell] = []
    pending: tuple[float, int] | None = None  # where a sign before a number begins
    at = 0
    for run in placed.line.runs:
        spans = placed.words[at : at + len(run.words)]
        at += len(run.words)
        words = [(word.text, word.x0, word.x1, *span) for word, span in zip(run.words, spans, strict=True)]
        blank_width = 0.55 * max(placed.line.size, 4.0)
        blank = blank_width if placed.line.cells else float("inf")
        for numeric, part in _parts(words, blank):
            if not numeric:
                (_, x0, _, start, _), (_, _, x1, _, end) = part[0], part[-1]
                cells.append(_Cell(" ".join(word[0] for word in part), x0, x0, x1, start, end, False))
                pending = None
                continue
            for text, x0, x1, start, end in part:
                if _BEFORE.fullmatch(text):
                    pending = pending or (x0, start)
                elif cells and not cells[-1].value and _NOTE.fullmatch(text) and x0 - cells[-1].x1 < 3 * blank_width:
                    cells[-1] = replace(cells[-1], end=end, x1=x1, text=f"{cells[-1].text} {text}")
                elif cells and _AFTER.fullmatch(text) and cells[-1].value and pending is None:
                    cells[-1] = replace(cells[-1], end=end, text=cells[-1].text + text)
                else:
                    left, begin = pending or (x0, start)
                    cells.append(_Cell(text, left, x0, x1, begin, end, True))
                    pending = None
    return _Line(placed, tuple(cells))


_Word = tuple[str, float, float, int, int]


def _parts(words: Sequence[_Word], blank: float) -> list[tuple[bool, list[_Word]]]:
    """The words of a run as stretches: numbers with their signs, or words. Leaders (`.....`) separate, and so does a blank
    wider than `blank` beside a number."""
    stretches: list[list[_Word]] = [[]]
    for text, x0, x1, start, end in words:
        leader = _LEADER.search(text)
        bare = text[: leader.start()] if leader else text
        if stretches[-1] and x0 - stretches[-1][-1][2] > blank and (_numeric(text) or _numeric(stretches[-1][-1][0])):
            stretches.append([])
        if bare and start < end:
            stretches[-1].append((bare, x0, x1, start, end - (len(text) - len(bare))))
        if leader:
            stretches.append([])
    return [(all(_numeric(word[0]) for word in stretch), stretch) for stretch in stretches if stretch]


def _numeric(word: str) -> bool:
    return bool(_VALUE.fullmatch(word) or _BEFORE.fullmatch(word) or _AFTER.fullmatch(word))


def _tables_of_column(
    lines: list[_Line], offset: int, before: Sequence[_Found], all_lines: Sequence[PlacedLine]
) -> list[_Found]:
    found: list[_Found] = []
    index = floor = 0
    while index < len(lines):
        begins = lines[index].has_number and lines[index].placed.line.cells
        end = _region_end(lines, index) if begins else index
        rows = lines[index:end]
        one = None
        named = bool(rows) and index > floor and _names_row(lines[index - 1], rows[0])
        if named or sum(row.has_number for row in rows) >= 2:
            last = (found or list(before) or [None])[-1]
            one = _table(lines, floor, index, end, last, offset, all_lines)
        if one is None:
            end = _text_region_end(lines, index)
            heads_numbers = any(line.has_number for line in lines[end : end + 3])  # then it is the header of that table
            one = _text_table(lines, floor, index, end, offset) if end > index and not heads_numbers else None
        if one is None:
            index += 1
            continue
        found.append(one)
        floor = index = end
    return found


def _names_row(line: _Line, row: _Line) -> bool:
    """Whether a line names the columns of a single row."""
    return len(line.cells) > 1 and len(line.cells) + 1 >= len(row.cells) and _is_header(line, [(_zone([row]), 1e9)])


def _region_end(lines: list[_Line], first: int) -> int:
    """The end of the rows that begin at `first`: up to running text, a wide gap, or the header of another table."""
    zone = _zone([lines[first]])
    end = first + 1
    labels = 0
    pitch = _height(lines[first])
    for index in range(first + 1, len(lines)):
        line, above = lines[index], lines[index - 1]
        gap = line.y0 - above.y1
        if gap > 3.2 * pitch or line.y0 < above.y0 - pitch:
            break
        if line.has_data and not _sentence(line, zone):
            zone = min(zone, _zone([line])) if _zone([line]) > line.cells[0].x1 or line.cells[0].value else zone
            end, labels = index + 1, 0
        elif len(line.cells) == 1 and line.cells[0].x1 < zone + 0.5 * pitch and labels < _LABEL_LINES:
            labels += 1
        elif (
            len(line.cells) > 1 and not any(cell.year for cell in line.cells[1:]) and labels == 0 and _fits(line, zone)
        ):
            end = index + 1  # words in the columns: `Level 2`, `various`
        else:
            break
    return _with_wrapped_end(lines, end, zone)


def _with_wrapped_end(lines: list[_Line], end: int, zone: float) -> int:
    """The last label may continue on the next line."""
    if end < len(lines) and len(lines[end].cells) == 1:
        line, above = lines[end], lines[end - 1]
        close = line.y0 - above.y1 < 0.8 * _height(line)
        if close and line.cells[0].x1 < zone and line.text[:1].islower() and not line.text.endswith("."):
            return end + 1
    return end


def _fits(line: _Line, zone: float) -> bool:
    beyond = [cell for cell in line.cells if cell.x0 >= zone - 0.5 * _height(line)]
    return bool(beyond) and all(len(cell.text) < 30 for cell in beyond) and len(line.cells) - len(beyond) <= 1


def _sentence(line: _Line, zone: float) -> bool:
    """Whether a line with numbers is running text: its words reach into the columns."""
    return any(not cell.value and cell.x0 < zone < cell.x1 and len(cell.text) > 40 for cell in line.cells)


def _zone(rows: Sequence[_Line]) -> float:
    """Where the columns of numbers begin."""
    starts = (cell.x0 for row in rows if row.has_data for cell in row.cells if cell.value)
    return min(starts, default=float("inf"))


def _height(line: _Line) -> float:
    return max(line.placed.line.size, 4.0)


def _table(
    lines: list[_Line],
    floor: int,
    first: int,
    end: int,
    before: _Found | None,
    offset: int,
    all_lines: Sequence[PlacedLine],
) -> _Found | None:
    rows = lines[first:end]
    data = [row for row in rows if row.has_data]
    labelled = sum(not row.cells[0].value for row in data) * 2 >= len(data)
    columns = _columns(data, labelled)
    if not columns or _is_prose(data, columns[0][0]):
        return None
    zone = columns[0][0]
    wide = _with_signs(data, columns)
    top, heads = _header(lines, floor, first, wide)
    body = [*lines[top:first], *rows] if top < first else rows  # labels between the header and the first number
    titles, above = _title(lines, floor, top - len(heads))
    head = _header_rows(heads, wide, labelled)
    grid = _body(body, columns, labelled, zone)
    table = build_table(head, grid, caption=titles, above=above)
    if table is None or any(len(name) > _LONGEST_HEADER for name in table.columns):
        return None
    edges = tuple(high for _, high in columns)
    page = rows[0].placed.page
    headed = bool(heads)
    if not headed and before is not None and before.headed:
        names = _carried(before, page, edges, all_lines[before.last + 1 : offset + first])
        if names and len(names) + labelled == len(table.columns):
            table = replace(
                table,
                columns=(before.table.columns[0], *names) if labelled else names,
                caption=before.table.caption if page > before.page or not titles else titles,
                units=table.units or before.table.units,
            )
            headed = True
    return _Found(table, page, edges, headed, offset + end - 1)


def _carried(before: _Found, page: int, edges: tuple[float, ...], between: Sequence[PlacedLine]) -> tuple[str, ...]:
    """The column names of the table above, or on the page before, if rows without a header continue it; empty if not."""
    near_by = before.page <= page <= before.page + 1 and len(between) <= 6
    if not near_by or any(len(line.line.text) > 100 for line in between):
        return ()
    names = before.table.columns[-len(before.edges) :]
    near = [min(range(len(before.edges)), key=lambda at: abs(before.edges[at] - edge)) for edge in edges]
    aligned = all(abs(before.edges[at] - edge) < 12 for at, edge in zip(near, edges, strict=True))
    return tuple(names[at] for at in near) if aligned and len(set(near)) == len(near) else ()


def _columns(data: Sequence[_Line], labelled: bool) -> list[tuple[float, float]]:
    """The horizontal extents of the columns of numbers, from left to right."""
    values = [[cell for cell in row.cells if cell.value] for row in data]
    spans = sorted((cell.x0, cell.x1) for row in values for cell in row)
    merged = _merge(spans)
    most = max((len(row) for row in values), default=0)
    if len(merged) < most:  # a wide number reaches under its neighbour: numbers are aligned at the right
        em = median(_height(row) for row in data)
        edges = sorted((cell.x1, cell.x0) for row in values for cell in row)
        clusters = grouped(edges, lambda last, edge: edge[0] - last[0] < 0.7 * em)
        merged = [(median(left for _, left in cluster), cluster[-1][0]) for cluster in clusters]
    # Words that stand under each other, and not under numbers, are columns too.
    texts = sorted(
        (cell.x0, cell.x1)
        for row in data
        for cell in row.cells[1 if labelled else 0 :]
        if not cell.value and not any(low < cell.x1 and cell.x0 < high for low, high in merged)
    )
    if merged and texts:
        columns = _merge(texts)
        wide = [span for span in columns if sum(span[0] <= low and high <= span[1] for low, high in texts) > 1]
        merged = sorted([*merged, *wide])
    return merged


def _with_signs(data: Sequence[_Line], columns: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The columns with the signs before their numbers: headers stand above both."""
    lefts = [low for low, _ in columns]
    for row in data:
        for cell in row.cells:
            if cell.value and cell.left < cell.x0:
                at = _nearest(cell, columns)
                lefts[at] = min(lefts[at], max(cell.left, columns[at - 1][1] if at else cell.left))
    return [(low, high) for low, (_, high) in zip(lefts, columns, strict=True)]


def _is_prose(data: Sequence[_Line], zone: float) -> bool:
    """Whether the rows are running text in which numbers happen to stand under each other."""
    labels = [row.cells[0].text for row in data if not row.cells[0].value and row.cells[0].x0 < zone]
    texts = [cell.text for row in data for cell in row.cells[1:] if not cell.value]
    numbers = sum(cell.value for row in data for cell in row.cells)
    return (
        sum(len(label) > 110 for label in labels) * 3 > len(data)
        or sum(len(text) > 60 for text in texts) * 2 > len(data)
        or len(texts) > 3 * numbers
    )


def _merge(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    merged: list[tuple[float, float]] = []
    for low, high in spans:
        if merged and low < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged


def _nearest(cell: _Cell, columns: Sequence[tuple[float, float]]) -> int:
    """The column of a cell: the one it overlaps most, else the nearest."""
    overlaps = [min(cell.x1, high) - max(cell.x0, low) for low, high in columns]
    return max(range(len(columns)), key=overlaps.__getitem__)


def _text_region_end(lines: list[_Line], first: int) -> int:
    """The end of a table of words that begins at `first`: lines of several cells, and lines that continue them."""
    end = first
    for index in range(first, len(lines)):
        line = lines[index]
        close = index == first or 0 <= line.y0 - lines[index - 1].y0 < 3.5 * _height(line)
        sentence = line.text.endswith(".") and len(line.cells) < 3
        if not close or line.has_number or sentence or any(len(cell.text) > 70 for cell in line.cells):
            break
        if len(line.cells) >= 3:
            end = index + 1
        elif index - end >= 2 or index == first:
            break
    return end if sum(len(line.cells) >= 3 for line in lines[first:end]) >= 3 else first


def _text_table(lines: list[_Line], floor: int, first: int, end: int, offset: int) -> _Found | None:
    """A table of words: the first line names the columns, and a line without a first cell continues the row above."""
    rows = lines[first:end]
    full = [row for row in rows[1:] if len(row.cells) >= 3]
    columns = _merge(sorted((cell.x0, cell.x1) for row in full for cell in row.cells))
    cells = [cell for row in rows for cell in row.cells]
    broken = sum(len(cell.text) > 1 and cell.text[-1] == "-" for cell in cells)
    broken += sum(bool(_BULLET.fullmatch(row.cells[0].text)) for row in rows)
    if len(full) < 2 or len(columns) < 3 or broken > 1:
        return None
    if any(len({_nearest(cell, columns) for cell in row.cells}) < len(row.cells) for row in full):
        return None
    grid: list[GridRow] = []
    for row in rows[1:]:
        placed = tuple(GridCell(cell.text, _nearest(cell, columns), cell.start, cell.end) for cell in row.cells)
        if grid and placed[0].column > 0:
            grid[-1] = GridRow((*grid[-1].cells, *placed), grid[-1].start, row.placed.end)
        else:
            grid.append(GridRow(placed, row.placed.start, row.placed.end))
    head = _header_rows(rows[:1], columns, False)
    if not _is_different(rows[0], rows[1:]):
        head, grid = [], [head[0], *grid]
    titles, above = _title(lines, floor, first)
    table = build_table(head, grid, caption=titles, above=above)
    if table is None or len(grid) < 2:
        return None
    edges = tuple(high for _, high in columns[1:])
    return _Found(table, rows[0].placed.page, edges, True, offset + end - 1)


def _is_different(first: _Line, others: Sequence[_Line]) -> bool:
    """Whether a line is the header of the lines below: in bold type, or words above figures, or above longer texts."""
    cells = [cell for line in others for cell in line.cells]
    digits = sum(bool(_DIGIT.search(cell.text)) for cell in cells)
    named = not any(_DIGIT.search(cell.text) for cell in first.cells)
    longer = sum(len(cell.text) for cell in cells) / len(cells) > 1.5 * len(first.text) / len(first.cells)
    bold = first.placed.line.bold and not all(line.placed.line.bold for line in others)
    return bold or (named and (digits * 3 > len(cells) or longer))


def _header(lines: list[_Line], floor: int, first: int, columns: list[tuple[float, float]]) -> tuple[int, list[_Line]]:
    """The first line below the header, and the header's lines from top to bottom."""
    top = first
    index = first - 1
    heads: list[_Line] = []
    while index >= floor:
        line, below = lines[index], lines[index + 1]
        if below.y0 - line.y1 > (1.8 if heads else 3.0) * _height(line) or line.y0 > below.y0:
            break
        if _is_header(line, columns):
            if heads and _is_title(line, columns):
                break
            if not heads:
                top = index + 1
            heads.insert(0, line)
        elif heads or not _is_label(line, columns[0][0]) or first - index > _LABEL_LINES:
            break
        index -= 1
    return (top, heads) if heads else (first, [])


def _over(line: _Line, columns: Sequence[tuple[float, float]]) -> list[_Cell]:
    """The cells of a header line that are above the columns of numbers, rather than above the labels."""
    over = [cell for cell in line.cells if cell.centre > columns[0][0] - 1.5 * _height(line)]
    last = line.cells[-len(columns) :]  # as many names as columns: each belongs to one, though it may be beside it
    if len(over) < len(last) == len(columns) and len(line.cells) <= len(columns) + 1:
        near = 6 * _height(line)
        if all(low - near < cell.centre < high + near for cell, (low, high) in zip(last, columns, strict=True)):
            return list(last)
    return over


def _is_header(line: _Line, columns: Sequence[tuple[float, float]]) -> bool:
    """Whether a line names columns: short texts or years above them, and no numbers."""
    over = _over(line, columns)
    beside = [cell for cell in line.cells if cell not in over]
    if any(len(cell.text) > 60 and not (cell in beside and find_units([cell.text])) for cell in line.cells):
        return False
    numbers = [cell for cell in over if cell.value and not cell.year and re.search(r"\d", cell.text)]
    days = [cell for cell in numbers if re.fullmatch(r"\d{1,2},?", cell.text)]
    return bool(over) and len(beside) <= 1 and len(numbers) == len(days) and not line.text.rstrip().endswith(".")


def _is_title(line: _Line, columns: list[tuple[float, float]]) -> bool:
    """Whether a line above the header is the title of the table: one text over several columns that names no period."""
    over = _over(line, columns)
    if len(over) != 1 or _PERIOD.search(line.text):
        return False
    _, first, last = _spans(over, columns)[0]
    return first < last or (line.text.startswith("(") and line.text.endswith(")"))


def _is_label(line: _Line, zone: float) -> bool:
    return len(line.cells) == 1 and line.cells[0].x1 < zone + _height(line)


def _header_rows(lines: Sequence[_Line], columns: list[tuple[float, float]], labelled: bool) -> list[GridRow]:
    """Header cells with the columns that they span. From the bottom: names of single columns show how wide they are."""
    rows: list[GridRow] = []
    for line in reversed(lines):
        over = _over(line, columns)
        cells = [GridCell(cell.text, 0, cell.start, cell.end) for cell in line.cells if cell not in over and labelled]
        for place, low, high in _spans(over, columns):
            cell = over[place]
            cells.append(GridCell(cell.text, low + labelled, cell.start, cell.end, high - low + 1))
        if len(over) == len(columns):
            columns = [(min(low, cell.x0), max(high, cell.x1)) for (low, high), cell in zip(columns, over, strict=True)]
        rows.insert(0, GridRow(tuple(cells), line.placed.start, line.placed.end))
    return rows


def _spans(cells: Sequence[_Cell], columns: list[tuple[float, float]]) -> list[tuple[int, int, int]]:
    """For each header cell its first and last column. A cell that is centred above several columns spans them."""
    if len(cells) == len(columns):
        return [(place, place, place) for place in range(len(cells))]
    nearest: list[list[int]] = [[] for _ in cells]
    for at, (low, high) in enumerate(columns):
        nearest[min(range(len(cells)), key=lambda place: abs(cells[place].centre - (low + high) / 2))].append(at)
    if all(_centred(cell, [columns[at] for at in group]) for cell, group in zip(cells, nearest, strict=True)):
        return [(place, group[0], group[-1]) for place, group in enumerate(nearest)]
    return [(place, *_group(cell, columns)) for place, cell in enumerate(cells)]


def _group(cell: _Cell, columns: Sequence[tuple[float, float]]) -> tuple[int, int]:
    """The column below a header cell, or the fewest columns that it is centred above."""
    over = [at for at, (low, high) in enumerate(columns) if min(cell.x1, high) - max(cell.x0, low) > 0]
    if over and any(columns[at][0] - 6 <= cell.centre <= columns[at][1] + 6 for at in over):
        return over[0], over[-1]
    for size in range(2, len(columns) + 1):
        for first in range(len(columns) - size + 1):
            middle = (columns[first][0] + columns[first + size - 1][1]) / 2
            if abs(middle - cell.centre) < 12:
                return first, first + size - 1
    nearest = min(range(len(columns)), key=lambda at: abs(sum(columns[at]) / 2 - cell.centre))
    return nearest, nearest


def _centred(cell: _Cell, columns: Sequence[tuple[float, float]]) -> bool:
    """Whether a header cell is the common header of these columns."""
    if not columns:
        return False
    left, right = columns[0][0], columns[-1][1]
    middle = abs(cell.centre - (left + right) / 2) < max(12.0, 0.12 * (right - left))
    inside = [1 for low, high in columns if low - 6 <= cell.centre <= high + 6]
    above_one = len(columns) > 1 and bool(inside) and not _PERIOD.search(cell.text)
    return middle and not above_one


def _title(lines: list[_Line], floor: int, top: int) -> tuple[str, list[str]]:
    """The caption above a table, and all lines there that may say its units."""
    titles: list[str] = []
    above: list[str] = []
    index = top - 1
    while index >= floor and top - index <= _TITLE_LINES + 1:
        line, below = lines[index], lines[index + 1] if index + 1 < len(lines) else lines[index]
        if below.y0 - line.y1 > 4.5 * _height(line) or below.y0 < line.y0 or line.has_data:
            break
        words = " ".join(cell.text for cell in line.cells)
        if _BOILERPLATE.fullmatch(words):
            break
        if find_units([words]) and len(words) < 100 and not titles:
            above.append(words)
            if only_declares(words):
                index -= 1
                continue
        titled = len(words) <= 120 and words[-1:] not in {".", ",", ";", ":"} and any(map(str.isalpha, words))
        titled = titled and not words[:1].islower()
        if not (titled or (CAPTION.match(words) and len(words) <= 200)):
            if words.endswith(":"):
                (above if titles else titles).append(_last_sentence(lines, floor, index))
            elif len(line.cells) > 1 and not line.cells[0].value:  # a header that was not recognised
                above.append(line.cells[0].text)
            break
        titles.insert(0, words)
        index -= 1
    return LINES.join(dict.fromkeys(titles[-_TITLE_LINES:])), above


def _last_sentence(lines: list[_Line], floor: int, index: int) -> str:
    """The sentence that introduces a table: `… is as follows:`."""
    words = " ".join(line.text for line in lines[max(floor, index - 2) : index + 1])
    return re.split(r"(?<=[.!?])\s+(?=[A-Z])", words)[-1].strip(" :")[-250:]


def _body(rows: Sequence[_Line], columns: list[tuple[float, float]], labelled: bool, zone: float) -> list[GridRow]:
    """The rows: labels over several lines are joined, and lines with only a label are groups."""
    grid: list[GridRow] = []
    pending: list[_Line] = []  # label lines whose row follows
    pitches = [after.y0 - before.y0 for before, after in pairwise(rows) if after.y0 > before.y0]
    pitch = median(pitches) if pitches else 12.0
    for index, line in enumerate(rows):
        following = rows[index + 1] if index + 1 < len(rows) else None
        only = len(line.cells) == 1 and not line.has_data
        if only and labelled:
            if following is not None and _runs_on(line, following):
                pending.append(line)
                continue
            if grid and not pending and line.text[:1].islower() and len(grid[-1].cells) > 1:
                label, above = line.cells[0], grid[-1]
                cells = (*above.cells, GridCell(label.text, 0, label.start, label.end))
                grid[-1] = replace(above, cells=cells, end=line.placed.end)
                continue
        gap = index > 0 and line.y0 - rows[index - 1].y0 > 1.6 * pitch
        grid.append(_row([*pending, line], columns, labelled, zone, gap and not only))
        pending = []
    return grid


def _runs_on(line: _Line, following: _Line) -> bool:
    """Whether a label continues on the next line."""
    label = following.cells[0]
    if line.text.endswith(":") or label.value:
        return False
    return label.text[:1].islower() or (bool(_OPEN_END.search(line.text)) and not line.placed.line.bold)


def _row(
    lines: Sequence[_Line], columns: list[tuple[float, float]], labelled: bool, zone: float, after_gap: bool
) -> GridRow:
    cells: list[GridCell] = []
    for line in lines:
        for place, cell in enumerate(line.cells):
            at = _nearest(cell, columns)
            beside = place == 0 and labelled and cell.x0 < zone and (not cell.value or cell.x1 < zone)
            cells.append(GridCell(cell.text, 0 if beside else at + labelled, cell.start, cell.end))
    first, last = lines[0], lines[-1]
    only = len(cells) == 1
    # A group in bold type is above one that is not; a row after a gap belongs to no group.
    indent = round(first.cells[0].x0 / 3) - (0.5 if only and first.placed.line.bold else 1.0 if after_gap else 0.0)
    return GridRow(tuple(cells), first.placed.start, last.placed.end, indent)
