"""Finds the figures of a PDF: captions among its lines, and the pictures and drawings beside them. Pure.

A page says nothing about figures, only what is drawn where. A figure is what is drawn between its caption and the running
text above or below it. On a page that OCR read, tables with a caption are found as well: rows beside it, and what stands
close to them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Literal

from assay.core.types import Figure
from assay.ingest.figures import caption_name
from assay.ingest.pdf.c_functions import Box
from assay.ingest.pdf.page import PageContent
from assay.ingest.pdf.tables import PlacedLine
from assay.ingest.scan import shown_edges

SMALLEST = 24.0  # points, in width and height
PROSE_WORDS = 6  # of a line of running text
PROSE_WIDTH = 0.55  # of its column
NEAR = 14.0  # points between a drawing and its labels
MARGIN = 4.0  # points around what was found on a scan, where edges are less certain
ROW_GAP = 3.0  # heights of a line, between two lines of a table
LEAST_ROWS = 2  # with several cells
ROUND = 4  # digits of the edges of a box

Side = Literal["above", "below"]
SIDES: tuple[Side, Side] = ("above", "below")


@dataclass(frozen=True, slots=True)
class _Caption:
    name: str
    page: int
    start: int
    end: int
    box: Box
    left: float  # of its column
    right: float
    table: bool = False


def find_figures(text: str, lines: Sequence[PlacedLine], sheets: Sequence[PageContent]) -> tuple[Figure, ...]:
    """The captioned figures, in the order of the text. A caption with nothing drawn beside it is none: it may be of a list."""
    by_page: dict[int, list[PlacedLine]] = {}
    for line in lines:
        if sheets[line.page].drawn or sheets[line.page].seen:
            by_page.setdefault(line.page, []).append(line)
    captions = {page: _captions(text, own, scanned=sheets[page].seen is not None) for page, own in by_page.items()}
    tables = _chosen(
        {
            each: {side: box for side in SIDES if (box := _rows_beside(each, by_page[page], side))}
            for page, found in captions.items()
            for each in found
            if each.table
        },
        "below",
    )
    taken = {page: [box for each, box in tables.items() if each.page == page] for page in by_page}
    figures = _chosen(
        {
            each: {
                side: box for side in SIDES if (box := _beside(each, by_page[page], sheets[page], side, taken[page]))
            }
            for page, found in captions.items()
            for each in found
            if not each.table
        },
        "above",
    )
    found: dict[str, Figure] = {}
    for caption, box in sorted((tables | figures).items(), key=lambda each: each[0].start):
        known = f"{caption.name}{caption.page if caption.name in found else ''}"
        found.setdefault(known, _figure(caption, box, sheets[caption.page]))
    return tuple(sorted(found.values(), key=lambda each: each.start))


def _chosen(places: Mapping[_Caption, Mapping[Side, Box]], usual: Side) -> dict[_Caption, Box]:
    """What belongs to each caption, if anything: where there is something on both sides, on the side that most have it."""
    votes = Counter(side for found in places.values() if len(found) == 1 for side in found)
    usual = max(SIDES, key=lambda side: (votes[side], side == usual))
    return {each: found.get(usual) or next(iter(found.values())) for each, found in places.items() if found}


def _figure(caption: _Caption, box: Box, sheet: PageContent) -> Figure:
    if sheet.seen:
        x0, y0, x1, y1 = box
        edges = shown_edges(sheet.seen, (x0 - MARGIN, y0 - MARGIN, x1 + MARGIN, y1 + MARGIN))
    else:
        width, height = max(sheet.width, 1.0), max(sheet.height, 1.0)
        edges = (box[0] / width, box[1] / height, box[2] / width, box[3] / height)
    x0, y0, x1, y1 = (round(min(max(edge, 0.0), 1.0), ROUND) for edge in edges)
    return Figure(caption.start, caption.end, caption.name, caption.page + 1, (x0, y0, x1, y1), table=caption.table)


def _captions(text: str, lines: Sequence[PlacedLine], *, scanned: bool) -> list[_Caption]:
    """The paragraphs of a page that begin as captions do; those of tables only on one that was `scanned`."""
    found: list[_Caption] = []
    for index, placed in enumerate(lines):
        if side_by_side := _in_a_row(text, placed):
            found += side_by_side
            continue
        opens = placed.start == 0 or text[placed.start - 2 : placed.start] == "\n\n"
        words = text[placed.start : placed.end] if opens else ""
        table = scanned and caption_name(words, of_table=True)
        name = table or caption_name(words)
        if not name:
            continue
        end = text.find("\n\n", placed.start)
        end = end if end >= 0 else len(text)
        own = [each for each in lines[index:] if each.start < end]
        if table:  # its rows may follow in the same paragraph
            own = own[: next((place for place, each in enumerate(own) if place and each.line.cells), None)]
        found.append(
            _Caption(
                name, placed.page, placed.start, own[-1].end, _around([_box(each) for each in own]),
                min(each.line.left for each in own), max(each.line.right for each in own), bool(table),
            )
        )  # fmt: skip
    return found


def _in_a_row(text: str, placed: PlacedLine) -> list[_Caption]:
    """The captions of figures that stand beside each other, on one line."""
    runs = placed.line.runs
    if len(runs) < 2 or not all(caption_name(run.text) for run in runs):
        return []
    edges = [placed.line.left, *((run.x1 + after.x0) / 2 for run, after in pairwise(runs)), placed.line.right]
    firsts = [0, *accumulate(len(run.words) for run in runs)]
    return [
        _Caption(
            caption_name(run.text), placed.page, placed.words[first][0], placed.words[last - 1][1],
            (run.x0, run.y0, run.x1, run.y1), *between,
        )
        for run, (first, last), between in zip(runs, pairwise(firsts), pairwise(edges), strict=True)
    ]  # fmt: skip


def _rows_beside(caption: _Caption, lines: Sequence[PlacedLine], side: Side) -> Box | None:
    """The lines of a table on this side of its caption, from row to row up to the next text."""
    found, rows = [caption.box], 0
    for each in sorted(lines, key=lambda each: abs(each.line.y0 - caption.box[1])):
        line, box = each.line, _box(each)
        over = _shared(line.x0, line.x1, caption.left, caption.right) > 0.3
        if not over or (line.y1 > caption.box[1] + 2 if side == "above" else line.y0 < caption.box[3] - 2):
            continue
        gap = found[-1][1] - line.y1 if side == "above" else line.y0 - found[-1][3]
        if gap > ROW_GAP * (line.y1 - line.y0) or _is_prose(each) or _names_something(line.text):
            break
        rows += line.cells
        found.append(box)
    return _around(found[1:]) if rows >= LEAST_ROWS else None


def _names_something(words: str) -> bool:
    return bool(caption_name(words) or caption_name(words, of_table=True))


def _beside(
    caption: _Caption, lines: Sequence[PlacedLine], sheet: PageContent, side: Side, taken: Sequence[Box]
) -> Box | None:
    """What is drawn on this side of a caption, up to the next running text or caption, with its labels. `taken` are tables."""
    rules = [(x0 - NEAR, y0 - NEAR, x1 + NEAR, y1 + NEAR) for x0, y0, x1, y1 in taken]
    drawn = [
        box
        for box in sheet.drawn
        if _shared(box[0], box[2], caption.left, caption.right) > 0.5 and not any(_inside(box, each) for each in rules)
    ]
    others = [each for each in lines if not caption.start <= each.start < caption.end]
    framed = [box for box in drawn if min(box[2] - box[0], box[3] - box[1]) >= SMALLEST]
    walls = [
        _box(each)
        for each in others
        if _shared(each.line.x0, each.line.x1, caption.left, caption.right) > 0.3
        and (_is_prose(each) or (_names_something(each.line.text) if sheet.seen else caption_name(each.line.text)))
        and not any(_inside(_box(each), box) for box in framed)
    ]
    walls += [box for box in taken if _shared(box[0], box[2], caption.left, caption.right) > 0.3]
    if side == "above":
        top, bottom = max((box[3] for box in walls if box[3] <= caption.box[1] + 2), default=0.0), caption.box[1]
    else:
        top, bottom = (
            caption.box[3],
            min((box[1] for box in walls if box[1] >= caption.box[3] - 2), default=sheet.height),
        )
    within = [box for box in drawn if top - 2 <= (box[1] + box[3]) / 2 <= bottom + 2]
    if not within:
        return None
    found = _around(within)
    if min(found[2] - found[0], found[3] - found[1]) < SMALLEST:
        return None
    for _ in range(2):  # labels of axes, and what stands beside them
        near = [
            box
            for each in others
            if top <= (box := _box(each))[1] and box[3] <= bottom and not _is_prose(each) and _touches(box, found)
        ]
        found = _around([found, *near])
    return max(found[0], 0.0), max(found[1], top), min(found[2], sheet.width), min(found[3], bottom)


def _box(placed: PlacedLine) -> Box:
    return placed.line.x0, placed.line.y0, placed.line.x1, placed.line.y1


def _is_prose(placed: PlacedLine) -> bool:
    line = placed.line
    column = max(line.right - line.left, 1.0)
    return not line.cells and len(line.text.split()) >= PROSE_WORDS and line.x1 - line.x0 > PROSE_WIDTH * column


def _shared(low: float, high: float, left: float, right: float) -> float:
    """How much of the shorter of two stretches the other one holds."""
    return (min(high, right) - max(low, left)) / max(min(high - low, right - left), 0.1)


def _inside(inner: Box, outer: Box) -> bool:
    middle = ((inner[0] + inner[2]) / 2, (inner[1] + inner[3]) / 2)
    return outer[0] <= middle[0] <= outer[2] and outer[1] <= middle[1] <= outer[3]


def _touches(box: Box, other: Box) -> bool:
    across = min(box[2], other[2]) - max(box[0], other[0])
    along = min(box[3], other[3]) - max(box[1], other[1])
    return across > -NEAR and along > -NEAR


def _around(boxes: Sequence[Box]) -> Box:
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)
