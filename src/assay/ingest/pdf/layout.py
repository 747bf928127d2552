"""Orders the words of a page into lines in reading order. Pure: words in, lines out.

Words become runs (no wide gap inside). Runs become columns (cut at vertical gutters of white space; what spans a gutter is
read before what is below it). Columns become lines.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import chain, pairwise
from statistics import median
from typing import TypeVar

import numpy as np

from assay.ingest.pdf.c_functions import Box
from assay.ingest.pdf.page import PageContent, PdfWord

T = TypeVar("T")

CLOSE = 0.45  # of the height of the type: words so close stand on one line of text
WIDE = 0.9  # words so far apart are cells, unless their line is spaced like that throughout
MOST_CANDIDATES = 4
APART = 2.5  # of the height of the type: words so far apart are never in one sentence
LEAST_LINES = 4  # in two columns, for a gutter to be possible
MIN_COLUMN = 60  # points
MARGIN = 20  # points: what reaches so far over a gutter lies across it
FIGURE = re.compile(r"[-+($€£¥%).,'’–—\d]+")
BULLET = re.compile(r"^(?:[•‣◦▪●○■□–—*·-]|\(?(?:\d{1,2}|[a-z]|[ivx]{1,4})[.)]|\[\d{1,3}\])$")


@dataclass(frozen=True, slots=True)
class TextRun:
    """Words side by side on one line, with no gap wide enough to be a gutter."""

    words: tuple[PdfWord, ...]
    text: str
    x0: float
    y0: float
    x1: float
    y1: float

    @property
    def middle(self) -> float:
        return (self.y0 + self.y1) / 2


@dataclass(frozen=True, slots=True)
class TextLine:
    """One line of a column, and the column's edges."""

    runs: tuple[TextRun, ...]
    text: str
    x0: float
    y0: float
    x1: float
    y1: float
    left: float
    right: float
    size: float
    bold: bool
    column: int  # numbered through the page
    cells: bool  # table cells, rather than words of a sentence
    seam: bool = False  # it is uncertain that it follows the line before it


def join_words(words: Sequence[PdfWord]) -> TextRun:
    return TextRun(
        tuple(words),
        " ".join([word.text for word in words]),
        min(word.x0 for word in words),
        median(word.y0 for word in words) if len(words) > 2 else min(word.y0 for word in words),
        max(word.x1 for word in words),
        median(word.y1 for word in words) if len(words) > 2 else max(word.y1 for word in words),
    )


def split_runs(words: Sequence[PdfWord]) -> list[TextRun]:
    """Words that stand close together on one row. The order of the file only decides where a script runs to the left."""
    runs: list[TextRun] = []
    fragments = [join_words(chunk) for chunk in grouped(words, _follows)]  # that follow in the file and on the page
    for row in rows_of(fragments):
        gaps = sorted(gap for gap in _word_gaps(row) if gap > 0)
        usual = gaps[len(gaps) // 2] if len(gaps) >= 3 else 0.0
        for chunk in _chunks(row, lambda em, usual=usual: min(max(CLOSE * em, 1.6 * usual), WIDE * em)):
            runs.append(_join_runs(chunk))
    return runs


def _join_runs(runs: Sequence[TextRun]) -> TextRun:
    return runs[0] if len(runs) == 1 else join_words([word for run in runs for word in run.words])


def grouped(items: Iterable[T], follows: Callable[[T, T], bool]) -> list[list[T]]:
    """Items in groups: one that follows the last one of a group belongs to it."""
    groups: list[list[T]] = []
    for item in items:
        if groups and follows(groups[-1][-1], item):
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups


def _follows(before: PdfWord, word: PdfWord) -> bool:
    em = max(min(before.y1 - before.y0, word.y1 - word.y0), 2.0)
    if min(before.y1, word.y1) - max(before.y0, word.y0) < 0.2 * em:
        return False
    gap = before.x0 - word.x1 if _is_from_the_right(word.text) else word.x0 - before.x1
    return -0.3 * em < gap < CLOSE * em


def _word_gaps(row: Sequence[TextRun]) -> list[float]:
    words = sorted((word.x0, word.x1) for run in row for word in run.words)
    return [after[0] - before[1] for before, after in pairwise(words)]


def _chunks(row: Sequence[TextRun], widest: Callable[[float], float]) -> list[list[TextRun]]:
    """The runs of a row, cut where the gap between two is wider than `widest` (of the height of the type)."""

    def is_near(last: TextRun, run: TextRun) -> bool:
        em = max(min(last.y1 - last.y0, run.y1 - run.y0), 2.0)
        return max(run.x0 - last.x1, last.x0 - run.x1) <= widest(em)

    return grouped(row, is_near)


# A part of the page between two heights: what lies across a gutter, or what stands west and east of it.
Band = tuple[list[TextRun], list[TextRun], list[TextRun]]


class Trust(IntEnum):
    """How certain it is that text stands in columns."""

    none = 0
    weak = 1  # if there are columns with the same gutter elsewhere
    possible = 2
    sure = 3


Column = tuple[
    list[TextRun], bool
]  # read from top to bottom; whether it is uncertain that it follows what is read before it


def split_columns(runs: list[TextRun], shapes: Sequence[Box] = ()) -> list[Column]:
    """The runs of a page, grouped into columns in reading order.

    A gutter divides the page into bands: what lies across the gutter, and what stands on both of its sides. The gutter with
    the most text beside it is taken first; then the parts are divided in the same way.
    """
    if len(runs) < 4:
        return [(runs, False)] if runs else []
    region = _survey(runs, shapes)
    ambiguous = _is_ambiguous(region)
    places = _candidates(region, ambiguous)
    for least in (Trust.sure, Trust.possible) if ambiguous else (Trust.sure,):
        found = {place: bands for place in places if (bands := _bands(region, place, least))}
        sizes = {place: sum(len(west) + len(east) for _, west, east in bands) for place, bands in found.items()}
        for place in sorted(sizes, key=lambda place: -sizes[place]):
            others = [other for other in sizes if abs(other - place) > MIN_COLUMN and 2 * sizes[other] > sizes[place]]
            if bands := _bands(region, place, least, others) if others else found[place]:
                return _divided(bands, shapes, least is Trust.possible)
    return [(runs, False)]


def _is_ambiguous(region: Region) -> bool:
    """Whether there are lines with text on both sides of a wide gap: of two columns, or of cells of a table."""
    pairs = [pair for row in region.rows for pair in pairwise(sorted(row, key=lambda run: run.x0))]
    return any(
        after.x0 - run.x1 > APART * (run.y1 - run.y0) and _is_wordy(run) and _is_wordy(after) for run, after in pairs
    )


def _divided(bands: list[Band], shapes: Sequence[Box], doubtful: bool) -> list[Column]:
    columns: list[Column] = []
    for part in chain.from_iterable(bands):
        for index, (runs, uncertain) in enumerate(split_columns(part, shapes)):
            columns.append((runs, uncertain or (doubtful and index == 0 and bool(columns))))
    return columns


@dataclass(frozen=True, slots=True)
class Region:
    """A part of the page that is to be divided, and what is known of it. Arrays have the runs from top to bottom."""

    runs: list[TextRun]
    rows: list[list[TextRun]]
    tables: list[list[list[TextRun]]]  # rows of cells
    headings: list[TextRun]
    shapes: Sequence[Box]
    pictures: Sequence[Box]  # shapes without text in them
    edges: np.ndarray  # x0, x1 and the height of the type
    wordy: np.ndarray  # running text, rather than a cell or a label
    loose: np.ndarray  # with a gap that may be a gutter


def _survey(runs: list[TextRun], shapes: Sequence[Box]) -> Region:
    runs = sorted(runs, key=lambda run: run.middle)
    rows = rows_of(runs)
    tables = _tables(rows)
    cells = {id(row[0]) for row in rows if len(row) > 1 and all(map(_has_digit, row[1:]))}
    cells |= {id(cell) for table in tables for row in table for cell in row}
    return Region(
        runs,
        rows,
        tables,
        _headings(rows),
        shapes,
        [
            (x0, y0, x1, y1)
            for x0, y0, x1, y1 in shapes
            if not any(x0 <= (run.x0 + run.x1) / 2 <= x1 and y0 <= run.middle <= y1 for run in runs)
        ],
        np.array([(run.x0, run.x1, run.y1 - run.y0) for run in runs]).T,
        np.array([id(run) not in cells and _is_wordy(run) for run in runs]),
        np.array([max(_word_gaps([run]), default=0.0) > CLOSE * (run.y1 - run.y0) for run in runs]),
    )


def _candidates(region: Region, ambiguous: bool) -> list[float]:
    """Where the east side of a gutter may be: edges at which runs begin after white space, with enough text beside them."""
    left = min(run.x0 for run in region.runs)
    starts: Counter[int] = Counter()
    for row in region.rows:
        reached = left
        for run in sorted(row, key=lambda run: run.x0):
            em = run.y1 - run.y0
            if run.x0 - reached > CLOSE * em and run.x0 - left > 2 * em:
                starts[round(run.x0)] += round(min(run.x0 - reached, 3 * em))
            reached = max(reached, run.x1)
    clear: dict[int, int] = {}
    for place in sorted(starts):
        near = next((other for other in (place - 1, place - 2) if other in clear), place)
        clear[near] = clear.get(near, 0) + starts[place]
    across = {place: _number_across(region, place - 0.6, ambiguous) for place in clear}
    crossed = {place: number for place, number in across.items() if number is not None}
    often = sorted(crossed, key=lambda place: -clear[place])[:MOST_CANDIDATES]
    rarely = sorted(crossed, key=lambda place: (crossed[place], -clear[place]))[:MOST_CANDIDATES]
    return [place - 0.6 for place in dict.fromkeys([*often, *rarely])]


def _number_across(region: Region, place: float, ambiguous: bool) -> int | None:
    """How many runs lie across the place; None if nowhere between them is enough text for columns."""
    x0, x1, height = region.edges
    reach = (x0 < place - 0.3 * height) & (x1 > place - 0.4 * height)
    across = reach & ~region.loose
    band = np.cumsum(across)
    count = int(band[-1]) + 1
    west, east = ~across & ((x0 + x1 < 2 * place) | reach), ~across & ((x0 + x1 >= 2 * place) | reach)
    broad = x1 - x0 > 2 * height  # no number or bullet
    lines = [np.bincount(band[side], minlength=count) for side in (west & broad, east)]
    texts = [np.bincount(band[side & region.wordy], minlength=count) for side in (west, east)]
    enough = np.minimum(*texts) >= (2 if ambiguous else 3)
    enough |= (texts[0] >= 4) & (lines[1] > 0) | (texts[1] >= 4) & (lines[0] > 0)
    return int(across.sum()) if enough.any() else None


def _bands(region: Region, place: float, least: Trust, others: Sequence[float] = ()) -> list[Band]:
    """The runs from top to bottom; nothing if no columns stand on the two sides of the place."""
    pieces = [piece for run in region.runs for piece in _divide(run, place)]
    across = _across(region, pieces, place, others)
    pieces.sort(key=lambda run: run.middle)
    groups: list[Band] = []
    pictures = sorted((y0 for x0, y0, x1, _ in region.pictures if x0 + MARGIN < place < x1 - MARGIN), reverse=True)
    for piece in pieces:
        over = id(piece) in across
        below = bool(pictures) and pictures[-1] < piece.middle  # a picture across the place stands between
        while pictures and pictures[-1] < piece.middle:
            pictures.pop()
        if not groups or bool(groups[-1][0]) != over or below:
            groups.append(([], [], []))
        groups[-1][0 if over else 1 if (piece.x0 + piece.x1) / 2 < place else 2].append(piece)
    for (before, west, east), (after, below_west, below_east) in pairwise(groups):
        if west and east and after:
            _release(west, east, after, 1)
            _release(east, west, after, 1)
        if before and below_west and below_east:
            _release(below_west, below_east, before, -1)
    sure: list[tuple[float, float]] = []  # white space, east edge
    for _, west, east in groups:
        if len(west) + len(east) >= LEAST_LINES:
            trust, white = _pair(west, east)
            sure += [(white, min(run.x0 for run in east))] if trust >= least else []
    if not sure:
        return []
    widest, edge = 0.8 * min(white for white, _ in sure), min(edge for _, edge in sure)
    bands: list[Band] = []
    for over, west, east in groups:
        trust, white = _pair(west, east)
        if trust >= least or (trust and white >= widest and abs(min(run.x0 for run in east) - edge) < 2):
            bands.append(([], west, east))
        elif bands and not bands[-1][1]:
            bands[-1][0].extend([*over, *west, *east])
        else:
            bands.append(([*over, *west, *east], [], []))
    return bands


def _release(side: list[TextRun], other: list[TextRun], across: list[TextRun], sign: int) -> None:
    """Move the outermost lines of a column to the lines across it, if they stand with those and apart from their column.

    `sign` is 1 for lines across below the column and -1 for lines across above it.
    """
    lines = side if sign > 0 else side[::-1]
    end = max(sign * (run.y1 if sign > 0 else run.y0) for run in other)
    next_line = across[0] if sign > 0 else across[-1]
    gaps = [max(run.y0 - other.y1, other.y0 - run.y1) for run, other in pairwise([*lines, next_line])]
    outer = [index for index, run in enumerate(lines) if index and sign * (run.y0 if sign > 0 else run.y1) > end]
    if not outer:
        return
    at = max(outer, key=lambda index: gaps[index - 1])
    alike = all(abs(run.words[0].size - next_line.words[0].size) < 0.5 for run in lines[at:])
    if alike and gaps[at - 1] > 0.8 * (next_line.y1 - next_line.y0) and max(gaps[at:]) < 0.6 * gaps[at - 1]:
        moved = lines[at:]
        across[:] = [*moved, *across] if sign > 0 else [*across, *moved[::-1]]
        side[:] = [run for run in side if all(run is not other for other in moved)]


def _crosses(run: TextRun, place: float) -> bool:
    """Whether a run lies across the place: it fills the white space before it, or runs on behind it."""
    em = run.y1 - run.y0
    return run.x0 < place - 0.3 * em and run.x1 > place - 0.4 * em


def _divide(run: TextRun, place: float) -> list[TextRun]:
    """A run that was joined over a narrow gutter, as two."""
    if run.x0 < place < run.x1 and _crosses(run, place):
        for index in range(1, len(run.words)):
            before, after = run.words[index - 1], run.words[index]
            if before.x1 < place <= after.x0 and after.x0 - before.x1 > CLOSE * (run.y1 - run.y0):
                return [join_words(run.words[:index]), join_words(run.words[index:])]
    return [run]


def _across(region: Region, pieces: list[TextRun], place: float, others: Sequence[float]) -> set[int]:
    """Which pieces (by `id`) lie across the place: lines that run over it, rows of a table on both sides, headings.

    A line over two of three columns, with nothing beside it in the third, is taken to lie over all (`others`: more gutters).
    """
    across = {id(piece) for piece in pieces if _crosses(piece, place)}
    for table in region.tables:
        spanning = [row for row in table if row[0].x0 < place < row[-1].x1]
        if len(spanning) >= max(2, 0.6 * len(table)):
            across.update(id(cell) for row in spanning for cell in row)
    for piece in pieces:
        spans = any(piece.x0 + MARGIN < other < piece.x1 - MARGIN for other in others)
        if spans and id(piece) not in across and _is_clear(piece, _beside(region, piece, place)):
            across.add(id(piece))
    for piece in region.headings:
        if id(piece) not in across and _is_clear(piece, boxes := _beside(region, piece, place)):
            over = any(
                piece.x0 + 2 < other < piece.x1 - 2 or _divides(piece, _beside(region, piece, other))
                for other in others
            )
            if over or _divides(piece, boxes):
                across.add(id(piece))
    return across


def _beside(region: Region, run: TextRun, place: float) -> list[tuple[float, float]]:
    """The heights of what is on the other side of the place."""
    west = (run.x0 + run.x1) / 2 < place
    boxes = [(other.y0, other.y1) for other in region.runs if ((other.x0 + other.x1) / 2 < place) != west]
    return boxes + [(y0, y1) for x0, y0, x1, y1 in region.shapes if ((x0 + x1) / 2 < place) != west]


def _is_clear(run: TextRun, other: Sequence[tuple[float, float]]) -> bool:
    slack = 0.15 * (run.y1 - run.y0)
    return all(y1 < run.y0 - slack or y0 > run.y1 + slack for y0, y1 in other)


def _headings(rows: Sequence[list[TextRun]]) -> list[TextRun]:
    """Runs of large or bold type that stand alone."""
    usual = median(run.words[0].size for row in rows for run in row)
    alone = [row[0] for row in rows if len(row) == 1]
    return [run for run in alone if run.words[0].size > 1.15 * usual or all(word.bold for word in run.words)]


def _divides(run: TextRun, other: Sequence[tuple[float, float]]) -> bool:
    """Whether what is on the other side stops above this run and goes on below it, as under a heading over both columns."""
    above = max((y1 for y0, y1 in other if (y0 + y1) / 2 < run.middle), default=run.y0 - (run.y1 - run.y0))
    below = min((y0 for y0, y1 in other if (y0 + y1) / 2 > run.middle), default=None)
    em = run.y1 - run.y0
    return below is not None and 1.7 * em < below - above < 5.5 * em and _is_clear(run, other)


def _tables(rows: Sequence[list[TextRun]]) -> list[list[list[TextRun]]]:
    """Rows of cells: several in succession, with numbers in them."""
    tables = grouped(
        filter(_is_table_row, rows),
        lambda above, row: row[0].y0 - above[0].y1 < 1.2 * (row[0].y1 - row[0].y0),
    )
    return [table for table in tables if _is_table(table, rows)]


def _is_table(table: list[list[TextRun]], rows: Sequence[list[TextRun]]) -> bool:
    cells = [cell for row in table for cell in row]
    numeric = sum(map(_has_digit, cells)) >= 0.3 * len(cells)
    first, last = table[0][0], table[-1][0]
    return len(table) >= (2 if numeric else 4) and not (_touches(first, rows, -1) and _touches(last, rows, 1))


def _is_table_row(row: list[TextRun]) -> bool:
    """At least three cells on one base line; only the first may be more than a few words."""
    if len(row) < 3:
        return False
    em = row[0].y1 - row[0].y0
    if max(run.middle for run in row) - min(run.middle for run in row) > 0.15 * em:
        return False
    return all(map(_is_short, row[1:])) and (_is_short(row[0]) or row[1].x0 - row[0].x1 > 3 * em)


def _touches(cell: TextRun, rows: Sequence[list[TextRun]], sign: int) -> bool:
    """Whether a line of text with the same left edge stands right above (`sign` -1) or below: the cell is part of that text."""
    em = cell.y1 - cell.y0
    return any(
        abs(run.x0 - cell.x0) < 2 * em and 0 < sign * (run.middle - cell.middle) < 1.6 * em and _is_wordy(run)
        for row in rows
        for run in row
    )


def _is_short(run: TextRun) -> bool:
    return len(run.words) <= 3 and sum(len(word.text) for word in run.words) <= 18


def _has_digit(run: TextRun) -> bool:
    return any(char.isdigit() for char in run.text)


def _pair(west: list[TextRun], east: list[TextRun]) -> tuple[Trust, float]:
    """Whether these are columns of text, and the white space between them.

    Cells of a table, a label and its text, and the words of one wide column are no columns.
    """
    if not west or not east or _are_figures(west) or _are_figures(east):
        return Trust.none, 0.0
    left, right = _facing(west, 1), _facing(east, -1)
    em = median(run.y1 - run.y0 for run in [*left, *right])
    white = min(run.x0 for run in right) - max(run.x1 for run in left)
    if white < 0.5 * em:
        return Trust.none, 0.0
    few = min(len(left), len(right))
    west_text, east_text = [run for run in left if _is_wordy(run)], [run for run in right if _is_wordy(run)]
    west_solid = _is_solid(west_text) and max(run.x1 for run in left) - max(run.x1 for run in west_text) < 2 * em
    east_solid = _is_solid(east_text) and min(run.x0 for run in east_text) - min(run.x0 for run in right) < 2 * em
    solid = west_solid or east_solid
    dense = west_solid and len(west_text) >= 5 and _fill(west_text, 0.85) >= 0.7
    if (not dense and _are_values(left, right, em)) or _are_values(right, left, em):
        return Trust.none, 0.0
    edged = white > 1.2 * em or _is_aligned(left, right, em) or (west_solid and len(west_text) >= 8)
    if solid or (few >= 4 and _is_independent(left, right, em)):
        return Trust.sure if edged else Trust.weak, white
    if not (_is_prose(left) and _is_prose(right)):
        return Trust.none, 0.0
    if few >= 3 and edged:
        return Trust.sure, white
    sentences = all(len(run.words) >= 4 and not run.words[0].bold and not run.text.isupper() for run in [*left, *right])
    return Trust.possible if few >= 2 and white > APART * em and sentences else Trust.weak, white


def _are_figures(runs: list[TextRun]) -> bool:
    """Whether there are only numbers and their signs: these are cells, also where few labels have any."""
    return all(FIGURE.fullmatch(word.text) for run in runs for word in run.words)


def _facing(runs: list[TextRun], sign: int) -> list[TextRun]:
    """The lines of the column next to the gutter, which is on their right (`sign` 1) or left: no other text is between."""
    lines = [line for row in rows_of(runs) for line in _join_close(sorted(row, key=lambda run: run.x0))]
    facing: list[TextRun] = []
    for index, run in enumerate(lines):
        reach = 1.5 * (run.y1 - run.y0)
        hidden = any(
            (other.x0 >= run.x1 if sign > 0 else other.x1 <= run.x0) and abs(other.middle - run.middle) < reach
            for other in lines[max(0, index - 8) : index + 9]
        )
        if not hidden:
            facing.append(run)
    return facing


def _are_values(lines: list[TextRun], values: list[TextRun], em: float) -> bool:
    """Whether there is a short value, or a number or a name, for many of the lines, as in a table and in a list."""
    short = [run for run in values if not _is_wordy(run)]
    least = max(2, 0.6 * len(values), 0.4 * len(lines) if values[0].x0 > lines[0].x0 else 0)
    return len(short) >= least and _number_level(short, lines, em) >= least


def _is_independent(left: list[TextRun], right: list[TextRun], em: float) -> bool:
    """Whether the lines on the two sides, words on one of them, have base lines of their own, as no rows of a table have."""
    if max(sum(map(_is_wordy, lines)) / len(lines) for lines in (left, right)) < 0.6:
        return False
    few, many = sorted((left, right), key=len)
    return _number_level(few, many, em) <= 0.4 * len(few)


def _number_level(runs: list[TextRun], others: list[TextRun], em: float) -> int:
    """How many runs stand on a line with one of the others; type of another font is a little higher or lower."""
    offsets = [min((other.middle - run.middle for other in others), key=abs) for run in runs]
    usual = median(offsets)
    if abs(usual) > 0.2 * em:
        usual = 0.0
    return sum(abs(offset - usual) < 0.12 * em for offset in offsets)


def _is_aligned(left: list[TextRun], right: list[TextRun], em: float) -> bool:
    """Whether most lines on the right begin at one edge; if there is one line only, whether it stands by itself."""
    edge = min(run.x0 for run in right)
    if len(right) > 1:
        return sum(run.x0 - edge < 0.15 * em for run in right) >= max(2, 0.5 * len(right))
    return all(edge - run.x1 > WIDE * em for run in left if abs(run.middle - right[0].middle) < 0.5 * em)


def _is_prose(lines: list[TextRun]) -> bool:
    return _fill(lines, 0.6) >= 0.4 and sum(map(_is_wordy, lines)) >= 0.5 * len(lines)


def _is_solid(lines: list[TextRun]) -> bool:
    """Paragraphs of several full lines: nothing beside them continues their lines."""
    return len(lines) >= 4 and _fill(lines, 0.8) >= 0.55


def _fill(lines: list[TextRun], share: float) -> float:
    """The share of lines that fill `share` of their column."""
    width = max(run.x1 for run in lines) - min(run.x0 for run in lines)
    return sum(run.x1 - run.x0 >= share * width for run in lines) / len(lines)


def _is_wordy(run: TextRun) -> bool:
    """Several words, or many letters in scripts without spaces."""
    return len(run.words) >= 3 or sum(len(word.text) for word in run.words) >= 18


def order_lines(sheet_runs: list[TextRun], shapes: Sequence[Box] = ()) -> list[TextLine]:
    """A page's lines in reading order; `shapes` are the pictures and frames on it."""
    lines: list[TextLine] = []
    for number, (runs, doubtful) in enumerate(split_columns(sheet_runs, shapes)):
        left, right = min(run.x0 for run in runs), max(run.x1 for run in runs)
        rows = [_join_close(row) for row in rows_of(runs)]
        for index, row in enumerate(rows):
            near = rows[max(0, index - 3) : index] + rows[index + 1 : index + 4]
            if len(row) > 1 and _is_spaced_out(row, near, left, right):
                row = [_join_runs(row)]
            over = index > 0 and _is_over(rows[index - 1], row)
            after = index > 1 and _is_over(rows[index - 2], rows[index - 1])
            seam = over or after or (index == 0 and doubtful)
            lines.append(_line(row, left, right, number, seam))
    return lines


def _is_over(row: list[TextRun], after: list[TextRun]) -> bool:
    """Whether two lines are printed over each other."""
    if row[0].y1 <= after[0].y0:
        return False
    return any(
        min(run.y1, other.y1) - max(run.y0, other.y0) > 0.5 * max(run.y1 - run.y0, other.y1 - other.y0)
        and min(run.x1, other.x1) - max(run.x0, other.x0) > 4 * (run.y1 - run.y0)
        for run in row
        for other in after
    )


def _join_close(row: Sequence[TextRun]) -> list[TextRun]:
    return [_join_runs(chunk) for chunk in _chunks(row, lambda em: WIDE * em)]


def _is_spaced_out(row: list[TextRun], near: list[list[TextRun]], left: float, right: float) -> bool:
    """Whether a line of justified text has wide spaces, all alike, from one edge of its column to the other."""
    em = row[0].y1 - row[0].y0
    gaps = _word_gaps(row)
    alike = max(gaps) < 4 * em and max(gaps) - min(gaps) < 0.15 * max(gaps) + 0.1 * em
    full = min(run.x0 for run in row) - left < 2 * em and right - max(run.x1 for run in row) < 0.5 * em
    return alike and full and any(len(other) == 1 and _is_wordy(other[0]) for other in near)


def rows_of(runs: list[TextRun]) -> list[list[TextRun]]:
    """Runs at the same height form a line, read from the side on which its script starts."""
    rows: list[list[TextRun]] = []
    for run in sorted(runs, key=lambda run: (run.middle, run.x0)):
        for row in reversed(rows[-3:]):
            if run.y0 < row[0].y1 and all(_level(run, other) for other in row):
                row.append(run)
                break
        else:
            rows.append([run])
    for row in rows:
        letters = "".join([word.text[:4] for run in row for word in run.words[:3]])
        row.sort(key=lambda run: run.x0, reverse=_is_from_the_right(letters))
    return rows


def _level(run: TextRun, other: TextRun) -> bool:
    overlap = min(run.y1, other.y1) - max(run.y0, other.y0)
    slack = 0.6 * max(run.y1 - run.y0, other.y1 - other.y0)  # a raised mark overlaps the comma that follows it
    beside = run.x0 >= other.x1 - slack or run.x1 <= other.x0 + slack
    return overlap > 0.5 * min(run.y1 - run.y0, other.y1 - other.y0) and beside


def _is_from_the_right(text: str) -> bool:
    if text.isascii():
        return False
    letters = [char for char in text if char.isalpha()]
    return sum(unicodedata.bidirectional(char) in {"R", "AL"} for char in letters) > len(letters) / 2


def _line(row: list[TextRun], left: float, right: float, column: int, seam: bool = False) -> TextLine:
    sizes: Counter[float] = Counter()
    bold: Counter[bool] = Counter()
    for word in (word for run in row for word in run.words):
        sizes[word.size] += len(word.text)
        bold[word.bold] += len(word.text)
    y0, y1 = min(run.y0 for run in row), max(run.y1 for run in row)
    gap = max((after.x0 - before.x1 for before, after in pairwise(row)), default=0.0)
    return TextLine(
        tuple(row),
        " ".join([run.text for run in row]),
        min(run.x0 for run in row),
        y0,
        max(run.x1 for run in row),
        y1,
        left,
        right,
        round(max(sizes, key=sizes.__getitem__), 1),
        bold[True] > 0.9 * bold.total(),
        column,
        len(row) >= 3 or gap > 2.5 * (y1 - y0),
        seam,
    )


def rotated_lines(sheet: PageContent) -> list[TextLine]:
    """Words that run up the page (a stamp in the margin, an axis label) as separate lines."""
    groups: dict[int, list[PdfWord]] = {}
    for word in sheet.sideways:
        groups.setdefault(word.line, []).append(word)
    return [_line([run], run.x0, run.x1, -1) for run in map(join_words, groups.values())]
