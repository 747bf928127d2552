"""Orders the words of a page into lines in reading order. Pure: words in, lines out.

Words become runs (no wide gap inside). Runs become columns (cut at vertical gutters of white space; what spans a gutter is
read before what is below it). Columns become lines.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from assay.ingest.pdf.page import PageContent, PdfWord

EDGE = 0.11  # of the page's height: the area of running heads and feet
PAGE_NUMBER = re.compile(
    r"[-–—|\s]*(?:(?:page|seite|p\.)\s*)?(?:\d{1,4}|[ivxl]{1,6})(?:\s*(?:of|/|von|de)\s*\d{1,4})?[-–—|\s]*",
    re.IGNORECASE,
)
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
    """Split the words, in file order, at every gap or change of position."""
    runs: list[TextRun] = []
    current: list[PdfWord] = []
    for word in words:
        if current and _jumps(current[-1], word):
            runs.append(join_words(current))
            current = []
        current.append(word)
    if current:
        runs.append(join_words(current))
    return runs


def _jumps(before: PdfWord, word: PdfWord) -> bool:
    em = max(min(before.y1 - before.y0, word.y1 - word.y0), 2.0)
    overlap = min(before.y1, word.y1) - max(before.y0, word.y0)
    if overlap < 0.2 * em:
        return True
    gap = max(word.x0 - before.x1, before.x0 - word.x1)  # either side: some scripts run right to left
    if before.line != word.line:
        # the engine broke the line, but the word continues beside the last one: a change of font, or a new column
        return not -0.3 * em < word.x0 - before.x1 < 0.6 * em
    return gap > 0.9 * em or word.x0 < before.x0 - 4 * em


# --- columns --------------------------------------------------------------------------------------------------------


def split_columns(runs: list[TextRun]) -> list[list[TextRun]]:
    """The runs of a page, grouped into columns in reading order."""
    if len(runs) < 6:
        return [runs] if runs else []
    gutter = _gutter(runs)
    if gutter is None:
        return [runs]
    wide = max(run.x1 for run in runs) - min(run.x0 for run in runs)
    bands: list[tuple[bool, list[TextRun]]] = []
    for run in sorted(runs, key=lambda run: run.middle):
        over = _spans(run, gutter, wide)
        if not bands or bands[-1][0] != over:
            bands.append((over, []))
        bands[-1][1].append(run)
    ordered: list[list[TextRun]] = []
    beside = True  # whether the last band had columns, rather than lines across
    extent = [run for run in runs if not _spans(run, gutter, wide)]
    for over, band in bands:
        west = [run for run in band if (run.x0 + run.x1) / 2 < gutter]
        east = [run for run in band if (run.x0 + run.x1) / 2 >= gutter]
        if over or not _pair(west, east, gutter, extent):
            if ordered and not beside:
                ordered[-1].extend(band)
            else:
                ordered.append(list(band))
            beside = False
        else:
            ordered.extend(split_columns(west) + split_columns(east))
            beside = True
    return ordered


def _pair(west: list[TextRun], east: list[TextRun], gutter: float, extent: list[TextRun]) -> bool:
    """Whether these are columns, rather than scattered lines: names under a title, a table over both columns."""
    if not west or not east or max(len(_prose(west)), len(_prose(east))) >= 2:
        return True
    halves = (
        (west, gutter - min(run.x0 for run in extent)),
        (east, max(run.x1 for run in extent) - gutter),
    )
    return all(sum(run.x1 - run.x0 > 0.7 * room for run in half) >= 0.5 * len(half) for half, room in halves)


def _prose(runs: list[TextRun]) -> list[TextRun]:
    """Only the running text, without table cells and chart labels."""
    return [run for run in runs if len(run.words) >= 4 or sum(len(word.text) for word in run.words) >= 20]


def _spans(run: TextRun, gutter: float, wide: float) -> bool:
    """Whether a line spans both columns, rather than slightly exceeding its own."""
    if not run.x0 < gutter < run.x1:
        return False
    reach = min(gutter - run.x0, run.x1 - gutter)
    return reach > 0.08 * wide or abs((run.x0 + run.x1) / 2 - gutter) < 0.03 * wide


def _gutter(runs: list[TextRun]) -> float | None:
    """The position of the white space between two columns of running text; None in a table, whose rows belong together."""
    runs = _prose(runs)
    if len(runs) < 6:
        return None
    left, right = min(run.x0 for run in runs), max(run.x1 for run in runs)
    wide = right - left
    em = median(run.y1 - run.y0 for run in runs)
    if wide < 12 * em:
        return None
    best: tuple[float, float] | None = None
    for place in _candidates(runs, left + 0.15 * wide, right - 0.15 * wide):
        west = [run for run in runs if run.x1 <= place + 0.1]
        east = [run for run in runs if run.x0 >= place - 0.1]
        across = len(runs) - len(west) - len(east)
        if min(len(west), len(east)) < 3 or across > 0.6 * min(len(west), len(east)) + 2:
            continue
        west, east = _side_by_side(west, east)
        if min(len(west), len(east)) < 3 or not (_flows(west) and _flows(east)):
            continue
        white = min(run.x0 for run in east) - max(run.x1 for run in west)
        score = min(len(west), len(east)) - 1.5 * across + 0.1 * white / em
        if best is None or score > best[0]:
            best = (score, place)
    return best[1] if best else None


def _candidates(runs: list[TextRun], low: float, high: float) -> list[float]:
    """Candidates: just left of where many runs begin, since the lines of a column begin at its edge."""
    starts = Counter(round(run.x0) for run in runs if low <= run.x0 <= high)
    places = [x for x, _ in starts.most_common(6)]
    return sorted({min(run.x0 for run in runs if abs(run.x0 - x) <= 1) - 0.5 for x in places})


def _side_by_side(west: list[TextRun], east: list[TextRun]) -> tuple[list[TextRun], list[TextRun]]:
    """The runs that are beside each other: only these distinguish columns from a list that changes its indent."""
    top = max(min(run.y0 for run in west), min(run.y0 for run in east))
    bottom = min(max(run.y1 for run in west), max(run.y1 for run in east))
    return [run for run in west if top <= run.middle <= bottom], [run for run in east if top <= run.middle <= bottom]


def _flows(runs: list[TextRun]) -> bool:
    """Running text: most lines fill the column and have several words (or, in scripts without spaces, many letters)."""
    left, right = min(run.x0 for run in runs), max(run.x1 for run in runs)
    full = sum(run.x1 - run.x0 >= 0.6 * (right - left) for run in runs)
    wordy = sum(len(run.words) >= 3 or sum(len(word.text) for word in run.words) >= 18 for run in runs)
    return full >= 0.4 * len(runs) and wordy >= 0.5 * len(runs)


# --- lines ----------------------------------------------------------------------------------------------------------


def order_lines(sheet_runs: list[TextRun]) -> list[TextLine]:
    """A page's lines in reading order."""
    lines: list[TextLine] = []
    for number, column in enumerate(split_columns(sheet_runs)):
        left, right = min(run.x0 for run in column), max(run.x1 for run in column)
        for row in _rows(column):
            lines.append(_line(row, left, right, number))
    return lines


def _rows(runs: list[TextRun]) -> list[list[TextRun]]:
    """Runs at the same height form a line, read from the side on which its script starts."""
    rows: list[list[TextRun]] = []
    for run in sorted(runs, key=lambda run: (run.middle, run.x0)):
        for row in reversed(rows[-3:]):
            if all(_level(run, other) for other in row):
                row.append(run)
                break
        else:
            rows.append([run])
    return [sorted(row, key=lambda run: run.x0, reverse=_from_the_right(row)) for row in rows]


def _level(run: TextRun, other: TextRun) -> bool:
    overlap = min(run.y1, other.y1) - max(run.y0, other.y0)
    slack = 0.6 * max(run.y1 - run.y0, other.y1 - other.y0)  # a raised mark overlaps the comma that follows it
    beside = run.x0 >= other.x1 - slack or run.x1 <= other.x0 + slack
    return overlap > 0.5 * min(run.y1 - run.y0, other.y1 - other.y0) and beside


def _from_the_right(row: list[TextRun]) -> bool:
    letters = [char for run in row for word in run.words[:3] for char in word.text[:4] if char.isalpha()]
    return bool(letters) and sum(unicodedata.bidirectional(char) in {"R", "AL"} for char in letters) > len(letters) / 2


def _line(row: list[TextRun], left: float, right: float, column: int) -> TextLine:
    sizes: Counter[float] = Counter()
    bold = weight = 0
    for run in row:
        for word in run.words:
            letters = len(word.text)
            weight += letters
            sizes[word.size] += letters
            bold += letters if word.bold else 0
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
        bold > 0.9 * weight,
        column,
        len(row) >= 3 or gap > 2.5 * (y1 - y0),
    )


def rotated_lines(sheet: PageContent) -> list[TextLine]:
    """Words that run up the page (a stamp in the margin, an axis label) as separate lines."""
    groups: dict[int, list[PdfWord]] = {}
    for word in sheet.sideways:
        groups.setdefault(word.line, []).append(word)
    return [_line([run], run.x0, run.x1, -1) for run in map(join_words, groups.values())]


# --- running heads and feet -----------------------------------------------------------------------------------------


def find_running_heads(sheets: Sequence[PageContent], pages: Sequence[list[TextRun]]) -> list[set[int]]:
    """For each page, which runs (by `id`) are running heads, feet or page numbers."""
    seen: Counter[tuple[str, int]] = Counter()
    edges: list[list[list[TextRun]]] = []
    known: set[str] = set()
    distinct = 0
    for sheet, runs in zip(sheets, pages, strict=True):
        whole = " ".join(run.text for run in runs)
        fresh = bool(whole) and whole not in known  # a page that occurs twice repeats all of its text
        known.add(whole)
        distinct += fresh
        edges.append(_edge_rows(runs, sheet.height))
        if fresh:
            seen.update({_mark(row) for row in edges[-1]})
    often = 2 if distinct == 2 else max(3, distinct // 5)
    heads = [[row for row in rows if distinct > 1 and _count(seen, _mark(row)) >= often] for rows in edges]
    emptied = sum(bool(runs) and sum(map(len, gone)) == len(runs) for runs, gone in zip(pages, heads, strict=True))
    if emptied * 2 > distinct:  # pages of one line each: that line is content
        heads = [[] for _ in pages]
    marked: list[set[int]] = []
    for sheet, runs, rows, gone in zip(sheets, pages, edges, heads, strict=True):
        numbers = [row for row in rows if len(row) == 1 and PAGE_NUMBER.fullmatch(row[0].text)]
        gone = [*gone, *numbers, *_page_number(runs, sheet.height)]
        marked.append({id(run) for row in gone for run in row})
    return marked


def _edge_rows(runs: list[TextRun], height: float) -> list[list[TextRun]]:
    """The outermost two lines at the top and at the bottom, if they are in the area of heads and feet."""
    top = _rows([run for run in runs if run.y1 <= EDGE * height])
    bottom = _rows([run for run in runs if run.y0 >= (1 - EDGE) * height])
    return top[:2] + bottom[-2:]


def _page_number(runs: list[TextRun], height: float) -> list[list[TextRun]]:
    """A bare number below everything else, in case wide margins put it higher than other feet."""
    lowest = max(runs, key=lambda run: run.y0, default=None)
    if lowest is None or lowest.y0 < 0.82 * height or not lowest.text.isdigit() or len(lowest.text) > 4:
        return []
    alone = all(other is lowest or other.y1 < lowest.y0 - 0.8 * (lowest.y1 - lowest.y0) for other in runs)
    return [[lowest]] if alone and len(runs) > 3 else []


def _mark(row: list[TextRun]) -> tuple[str, int]:
    words = " ".join(run.text for run in row)
    return re.sub(r"\d+", "#", words.casefold()), round(row[0].y0 / 8)


def _count(seen: Counter[tuple[str, int]], mark: tuple[str, int]) -> int:
    words, place = mark
    return seen[mark] + max(seen[(words, place - 1)], seen[(words, place + 1)])
