"""Finds the figures of a PDF: captions among its lines, and the pictures and drawings beside them. Pure.

A page says nothing about figures, only what is drawn where. A figure is what is drawn between its caption and the running
text above or below it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Literal

from assay.core.types import Figure
from assay.ingest.figures import caption_name
from assay.ingest.pdf.c_functions import Box
from assay.ingest.pdf.page import PageContent
from assay.ingest.pdf.tables import PlacedLine

SMALLEST = 24.0  # points, in width and height
PROSE_WORDS = 6  # of a line of running text
PROSE_WIDTH = 0.55  # of its column
NEAR = 14.0  # points between a drawing and its labels
ROUND = 4  # digits of the edges of a box

Side = Literal["above", "below"]


@dataclass(frozen=True, slots=True)
class _Caption:
    name: str
    page: int
    start: int
    end: int
    box: Box
    left: float  # of its column
    right: float


def find_figures(text: str, lines: Sequence[PlacedLine], sheets: Sequence[PageContent]) -> tuple[Figure, ...]:
    """The captioned figures, in the order of the text. A caption with nothing drawn beside it is none: it may be of a list."""
    by_page: dict[int, list[PlacedLine]] = {}
    for line in lines:
        if sheets[line.page].drawn:
            by_page.setdefault(line.page, []).append(line)
    places = {
        caption: {side: box for side in ("above", "below") if (box := _beside(caption, own, sheets[page], side))}
        for page, own in by_page.items()
        for caption in _captions(text, own)
    }
    votes = Counter(side for found in places.values() if len(found) == 1 for side in found)
    usual: Side = "below" if votes["below"] > votes["above"] else "above"
    found: dict[str, Figure] = {}
    for caption, boxes in sorted(places.items(), key=lambda each: each[0].start):
        if boxes:
            box = boxes[usual] if usual in boxes else next(iter(boxes.values()))
            found.setdefault(
                f"{caption.name}{caption.page if caption.name in found else ''}", _figure(caption, box, sheets)
            )
    return tuple(sorted(found.values(), key=lambda each: each.start))


def _figure(caption: _Caption, box: Box, sheets: Sequence[PageContent]) -> Figure:
    width, height = max(sheets[caption.page].width, 1.0), max(sheets[caption.page].height, 1.0)
    edges = (box[0] / width, box[1] / height, box[2] / width, box[3] / height)
    x0, y0, x1, y1 = (round(min(max(edge, 0.0), 1.0), ROUND) for edge in edges)
    return Figure(caption.start, caption.end, caption.name, caption.page + 1, (x0, y0, x1, y1))


def _captions(text: str, lines: Sequence[PlacedLine]) -> list[_Caption]:
    """The paragraphs of a page that begin as captions do."""
    found: list[_Caption] = []
    for index, placed in enumerate(lines):
        if side_by_side := _in_a_row(text, placed):
            found += side_by_side
            continue
        opens = placed.start == 0 or text[placed.start - 2 : placed.start] == "\n\n"
        name = caption_name(text[placed.start : placed.end]) if opens else ""
        if not name:
            continue
        end = text.find("\n\n", placed.start)
        end = end if end >= 0 else len(text)
        own = [each for each in lines[index:] if each.start < end]
        found.append(
            _Caption(
                name, placed.page, placed.start, own[-1].end, _around([_box(each) for each in own]),
                min(each.line.left for each in own), max(each.line.right for each in own),
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


def _beside(caption: _Caption, lines: Sequence[PlacedLine], sheet: PageContent, side: Side) -> Box | None:
    """What is drawn on this side of a caption, up to the next running text or caption, with its labels."""
    drawn = [box for box in sheet.drawn if _shared(box[0], box[2], caption.left, caption.right) > 0.5]
    others = [each for each in lines if not caption.start <= each.start < caption.end]
    framed = [box for box in drawn if min(box[2] - box[0], box[3] - box[1]) >= SMALLEST]
    walls = [
        _box(each)
        for each in others
        if _shared(each.line.x0, each.line.x1, caption.left, caption.right) > 0.3
        and (_is_prose(each) or caption_name(each.line.text))
        and not any(_inside(_box(each), box) for box in framed)
    ]
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
