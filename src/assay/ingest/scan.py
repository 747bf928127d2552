"""What OCR saw on a page, and where each of its words is in the text of the document. Pure.

A document keeps the place of every word that was read from a picture, packed as one string, so that quotations are marked
without reading the picture again, and so that everything computed from such words can be told from what a file says itself.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from statistics import median

from assay.core.types import Table
from assay.ingest.parsed import PageBox, listed_pages

FINE = 10_000  # parts of a page's width and height
MOST_BYTES = 200_000_000  # unpacked
LEAST_SLOPE = 0.002
UNSURE = 85  # percent: below it, a page is named
LIKE_THE_REST = 0.25  # by which the height of a line may differ from the usual one without being another size of type
Edges = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class SeenWord:
    """`x0` to `y1` are points on the page turned upright; `shown` are its edges as fractions of the page as it is shown."""

    text: str
    line: int
    x0: float
    y0: float
    x1: float
    y1: float
    shown: Edges
    sure: float  # 0 to 1


@dataclass(frozen=True, slots=True)
class SeenPage:
    """The words that OCR saw on a page, counted from 1. `width` and `height` are those of the page turned upright, by so many
    quarter `turns` to the left."""

    page: int
    width: float
    height: float
    words: tuple[SeenWord, ...] = ()
    turns: int = 0


@dataclass(frozen=True, slots=True)
class SeenPages:
    """Pages that OCR read, for the process that puts them into the document."""

    pages: tuple[SeenPage, ...]


@dataclass(frozen=True, slots=True)
class ScannedWord:
    """A word of a document's text that OCR read, and its box."""

    start: int
    end: int
    box: PageBox
    sure: int  # percent


def straightened(words: Sequence[SeenWord]) -> list[SeenWord]:
    """The words as on a page that was laid straight on the scanner, each as high as its line."""
    lines, slope = _lines(words), slope_of(words)
    usual = median([word.y1 - word.y0 for word in words]) if words else 0.0
    found: list[SeenWord] = []
    for line in lines:
        high = median(word.y1 - word.y0 for word in line)
        high = usual if abs(high - usual) < LIKE_THE_REST * usual else high
        middle = median((word.y0 + word.y1) / 2 - slope * (word.x0 + word.x1) / 2 for word in line)
        found += [replace(word, y0=middle - high / 2, y1=middle + high / 2) for word in line]
    return found


def slope_of(words: Sequence[SeenWord]) -> float:
    """By how much the lines of a page go down to the right."""
    slopes = [slope for line in _lines(words) if (slope := _slope(line)) is not None]
    slope = median(slopes) if slopes else 0.0
    return slope if abs(slope) > LEAST_SLOPE else 0.0


def _lines(words: Sequence[SeenWord]) -> list[list[SeenWord]]:
    return [list(line) for _, line in groupby(words, key=lambda word: word.line)]


def turned_back(box: Edges, turns: int) -> Edges:
    """A box in fractions of a page, on the page before it was turned to the left so many times."""
    x0, y0, x1, y1 = box
    for _ in range(turns):
        x0, y0, x1, y1 = 1 - y1, x0, 1 - y0, x1
    return x0, y0, x1, y1


def shown_edges(seen: SeenPage, box: Edges) -> Edges:
    """Where a box of a page that was laid straight is on the page as it is shown."""
    x0, y0, x1, y1 = box
    low, high = sorted((slope_of(seen.words) * x0, slope_of(seen.words) * x1))
    edges = x0 / seen.width, (y0 + low) / seen.height, x1 / seen.width, (y1 + high) / seen.height
    return turned_back(edges, seen.turns)


def _slope(line: Sequence[SeenWord]) -> float | None:
    """By how much a line of some length goes down to the right."""
    first, last = line[0], line[-1]
    across = (last.x0 + last.x1 - first.x0 - first.x1) / 2
    if len(line) < 4 or across < 10 * (first.y1 - first.y0):
        return None
    return (last.y0 + last.y1 - first.y0 - first.y1) / 2 / across


def pack(places: Iterable[tuple[int, int, int, int]], seen: Iterable[SeenPage]) -> str:
    """Where the words of these pages are in the text, from the place of each: start, length, page, and which word of it."""
    pages = {each.page - 1: each for each in seen}
    rows: list[tuple[int, ...]] = []
    for start, length, page, first in places:
        if page in pages:
            word = pages[page].words[first]
            edges = (round(FINE * min(max(edge, 0.0), 1.0)) for edge in word.shown)
            rows.append((start, length, page + 1, *edges, round(100 * word.sure)))
    body = json.dumps([list(column) for column in zip(*rows, strict=True)], separators=(",", ":")).encode()
    return base64.b64encode(zlib.compress(body, 6)).decode() if rows else ""


@lru_cache(maxsize=8)
def unpack(packed: str) -> tuple[ScannedWord, ...]:
    """The words that OCR read, in the order of the text. Raises `ValueError` if the string is not one that `pack` made."""
    if not packed:
        return ()
    engine = zlib.decompressobj()
    body = engine.decompress(base64.b64decode(packed), MOST_BYTES)
    if not engine.eof:
        raise ValueError("the places of scanned words are too many")
    return tuple(
        ScannedWord(
            start, start + length, PageBox(page, x0 / FINE, y0 / FINE, x1 / FINE, y1 / FINE), min(max(sure, 0), 100)
        )
        for start, length, page, x0, y0, x1, y1, sure in zip(*json.loads(body), strict=True)
    )


def check_scan(packed: str, length: int, pages: int) -> None:
    """Raise `ValueError` unless every word is inside a text of this length and on one of its pages."""
    before = 0
    for word in unpack(packed):
        if not (before <= word.start <= word.end <= length and 1 <= word.box.page <= pages):
            raise ValueError("the places of scanned words do not fit the text")
        before = word.start


def scanned_boxes(packed: str, start: int, end: int) -> list[PageBox]:
    """The boxes of a span of the text, one for each line that it touches; empty if OCR read none of it."""
    joined: list[PageBox] = []
    for word in unpack(packed):
        if not (word.start < end and word.end > start):
            continue
        box, last = word.box, joined[-1] if joined else None
        if last and last.page == box.page and _beside(last, box):
            joined[-1] = PageBox(
                box.page, min(last.x0, box.x0), min(last.y0, box.y0), max(last.x1, box.x1), max(last.y1, box.y1)
            )
        else:
            joined.append(box)
    return joined


def _beside(last: PageBox, box: PageBox) -> bool:
    """Whether a word goes on a line: beside the last, or above or below it where the page lies on its side."""
    level = min(last.y1, box.y1) - max(last.y0, box.y0) > 0.5 * min(last.y1 - last.y0, box.y1 - box.y0)
    upright = min(last.x1, box.x1) - max(last.x0, box.x0) > 0.5 * min(last.x1 - last.x0, box.x1 - box.x0)
    near = max(box.x0 - last.x1, last.x0 - box.x1, box.y0 - last.y1, last.y0 - box.y1) < 0.03
    return near and level != upright


def sure_of(packed: str, start: int, end: int) -> int | None:
    """How sure OCR was of a span of the text, in percent; None if it read none of it."""
    sure = [word.sure for word in unpack(packed) if word.start < end and word.end > start]
    return round(sum(sure) / len(sure)) if sure else None


def marked_tables(tables: Sequence[Table], packed: str) -> tuple[Table, ...]:
    """The tables, those with cells that OCR read marked so."""
    return tuple(
        replace(table, scanned=True) if sure_of(packed, table.start, table.end) is not None else table
        for table in tables
    )


def remarks(seen: Sequence[SeenPage]) -> list[str]:
    """What a reader should know of pages that were read from pictures."""
    sure = {each.page: 100 * sum(word.sure for word in each.words) / len(each.words) for each in seen if each.words}
    found: list[str] = []
    if sure:
        words = [word.sure for each in seen for word in each.words]
        mean = 100 * sum(words) / len(words)
        many = "1 page" if len(sure) == 1 else f"{len(sure)} pages"
        found.append(f"Read by OCR: {many}, {mean:.0f}% sure on average; quotations may be misspelled.")
    if poor := [page for page, each in sure.items() if each < UNSURE]:
        found.append(f"OCR was less than {UNSURE}% sure{listed_pages(poor)}; compare what it read with the page.")
    if blank := [each.page for each in seen if not each.words]:
        found.append(f"OCR found no words{listed_pages(blank)}.")
    return found
