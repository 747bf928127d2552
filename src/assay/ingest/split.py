"""Splits a document into passages: whole blocks, else whole sentences, up to a size, within one section, with exact offsets.

Tokens are counted once per sentence and once per finished passage, never per candidate.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from assay.core.blocks import BlockKind, TextBlock, block_at, find_blocks, subjects
from assay.core.tables import row_spans
from assay.core.types import Document, Passage, Section
from assay.language.sentences import split_sentences
from assay.tables.labels import passage_context

Span = tuple[int, int]
Tokens = Callable[[str], int]

SIZE = 400
OVERLAP = 0


def split_passages(document: Document, tokens: Tokens, size: int = SIZE, overlap: int = OVERLAP) -> list[Passage]:
    """The document's passages in order. The same document, size and overlap give the same ids.

    They cover all of the text but white space, and none has more than `size` tokens. Rows of tables and blocks are cut only if
    they are too long, and no passage crosses a seam. The end of a page is not a boundary: sentences continue across it. A
    heading stays with what follows it.
    """
    size = max(1, size)
    overlap = max(0, min(overlap, size // 2))
    text = document.text
    blocks = find_blocks(text, document.sections, document.tables)
    spans: list[Span] = []
    for region in _regions(_units(document, blocks, tokens, size), size // 4):
        for first, last in _packed(region, size, overlap):
            span = _trim(text, region[first].start, region[last - 1].end)
            # The tokens of parts need not add up to those of the whole; only the whole counts.
            spans += [_trim(text, *piece) for piece in _halved(text, *span, tokens, size)]
    spans = _each_new(spans)
    headings = _headings(document.sections, [start for start, _ in spans])
    return [
        Passage(
            id=passage_id(document.id, start, end),
            doc_id=document.id,
            text=text[start:end],
            start=start,
            end=end,
            heading=heading,
            page=document.page_at(start),
            context=_context(document, blocks, start, end, heading),
        )
        for (start, end), heading in zip(spans, headings, strict=True)
    ]


def _context(document: Document, blocks: Sequence[TextBlock], start: int, end: int, heading: str) -> str:
    """What the first block of a passage stands under, as far as neither the passage nor its heading says it, and what its
    tables do not say."""
    first = block_at(blocks, start)
    found = subjects(document.text, first, start) if first is not None and first.kind is not BlockKind.row else []
    under = dict.fromkeys(line for line in found if line not in heading)
    return "\n".join(filter(None, (*under, passage_context(document, start, end, heading))))


def passage_id(doc_id: str, start: int, end: int) -> str:
    return hashlib.blake2b(f"{doc_id}:{start}:{end}".encode(), digest_size=10).hexdigest()


def _each_new(spans: Sequence[Span]) -> list[Span]:
    """The spans in order, without those inside another: pieces of a halved passage may lie within the next one's overlap."""
    kept: list[Span] = []
    for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if start < end and (not kept or end > kept[-1][1]):
            kept.append((start, end))
    return kept


@dataclass(frozen=True, slots=True)
class _Unit:
    """A sentence, a heading or a piece of an overlong sentence. It extends to the start of the next, so there are no gaps."""

    start: int
    end: int
    tokens: int
    heading: bool = False
    border: bool = False  # a top-level section begins here
    soft: bool = False  # a lower-level section begins here
    seam: bool = False  # no passage begins before this and goes on after it
    opens: bool = False  # a block begins here
    inside: bool = False  # the block that this continues fits into a passage
    tail: bool = False  # means nothing without the beginning of its block


def _units(document: Document, blocks: Sequence[TextBlock], tokens: Tokens, size: int) -> list[_Unit]:
    text, sections = document.text, document.sections
    drawn = [each for each in document.figures if not each.table]  # a table's rows stay with what they are called
    captions = [edge for figure in drawn for edge in (figure.start, *_after(text, figure.end))]
    seams = sorted({*document.seams, *captions})  # the caption of a figure is a passage of its own
    rows = [span for table in document.tables for span in row_spans(table)]
    begins = {section.start: section for section in sections}
    ends = {match.end() for section in sections if (match := _BLANKS.match(text, section.end))}
    sentences = _outside_rows(_sentence_starts(text, sorted({*begins, *seams})), rows)
    starts = (*begins, *ends, *sentences, *seams, *(start for start, _ in rows), *(each.start for each in blocks))
    # The highest level that divides the text: a single heading above all others is the title and divides nothing.
    levels = Counter(section.level for section in sections)
    top = min((level for level, times in levels.items() if times > 1), default=min(levels, default=0))
    units: list[_Unit] = []
    lead = 0  # tokens of the headings directly above
    for start, end in pairwise(sorted({0, len(text), *starts})):
        section = begins.get(start)
        count = tokens(text[start:end])
        # The text after a heading leaves room for it: a passage with only a heading is useless.
        room = size - lead if lead <= size // 2 else size
        pieces = [(start, end)] if count <= room else _cut(text, start, end, tokens, room)
        for left, right in pieces:
            held = count if len(pieces) == 1 else tokens(text[left:right])
            level = section.level if section is not None and left == start else None
            border, soft = level is not None and level <= top, level is not None and level > top
            units.append(_Unit(left, right, held, section is not None, border, soft, left in seams))
        lead = lead + count if section else 0
    return _in_blocks(units, blocks, size)


def _in_blocks(units: Sequence[_Unit], blocks: Sequence[TextBlock], size: int) -> list[_Unit]:
    """The units with their place in the blocks; a block begins where a unit does."""
    placed: list[_Unit] = []
    lead = at = 0
    for block in blocks:
        while units[at].start < block.start:
            placed.append(units[at])
            at += 1
        first = at
        while at < len(units) and units[at].start < block.end:
            at += 1
        held = sum(unit.tokens for unit in units[first:at])
        heading = block.kind is BlockKind.heading
        fits = held + (lead if lead <= size // 2 else 0) <= size
        for unit in units[first:at]:
            begins = unit.start == block.start
            tail = not begins and block.kind is not BlockKind.paragraph
            inside = fits and not begins and not unit.seam
            placed.append(replace(unit, heading=unit.heading or heading, opens=begins, inside=inside, tail=tail))
        lead = lead + held if heading else 0
    return [*placed, *units[at:]]


def _outside_rows(starts: Sequence[int], rows: Sequence[Span]) -> list[int]:
    """The sentence starts that are not inside a row of a table."""
    inside = [bisect_left(rows, start, key=lambda row: row[0]) - 1 for start in starts]
    return [start for start, row in zip(starts, inside, strict=True) if row < 0 or rows[row][1] <= start]


_BLANKS = re.compile(r"\s*")


def _after(text: str, end: int) -> list[int]:
    """Where the text goes on after a span, if it does."""
    found = _BLANKS.match(text, end)
    return [found.end()] if found and found.end() < len(text) else []


_WINDOW = 2_000  # characters passed to the sentence splitter at a time, so that its work stays linear


def _sentence_starts(text: str, borders: Sequence[int]) -> list[int]:
    windows = [window for edges in pairwise([0, *borders, len(text)]) for window in _windows(text, *edges)]
    return [start + first for start, end in windows for first, _ in split_sentences(text[start:end])]


def _windows(text: str, start: int, end: int) -> list[Span]:
    """Pieces of about `_WINDOW` characters, cut at an empty line if there is one, else at a line end, else at a space."""
    windows: list[Span] = []
    while end - start > _WINDOW:
        low, high = start + _WINDOW // 2, start + _WINDOW
        cut = next(
            (at + len(mark) for mark in ("\n\n", "\n", ". ", " ") if (at := text.rfind(mark, low, high)) >= 0), high
        )
        windows.append((start, cut))
        start = cut
    return [*windows, (start, end)]


_JOINTS = tuple(map(re.compile, (r"\n+", r"(?<=[;:；])\s+|(?<!\s)\s++\|\s+", r"(?<=[,)\]–—])\s+|(?<=[、，])")))


def _cut(text: str, start: int, end: int, tokens: Tokens, size: int, joint: int = 0) -> list[Span]:
    """Cut a span into pieces of at most `size` tokens: at line ends, else at clauses, at spaces, and finally anywhere."""
    if joint == len(_JOINTS):
        return _halved(text, start, end, tokens, size)
    if end - start <= 1 or tokens(text[start:end]) <= size:
        return [(start, end)]
    edges = sorted({start, end, *(match.end() for match in _JOINTS[joint].finditer(text, start, end))})
    pieces = [piece for left, right in pairwise(edges) for piece in _cut(text, left, right, tokens, size, joint + 1)]
    counts = [tokens(text[left:right]) for left, right in pieces]
    joined = _joined(pieces, counts, size)
    # The last piece would be very short: make all of them about equal instead.
    even = _joined(pieces, counts, min(size, sum(counts) // len(joined) + max(counts)))
    return even if len(even) == len(joined) else joined


def _halved(text: str, start: int, end: int, tokens: Tokens, size: int) -> list[Span]:
    if end - start <= 1 or tokens(text[start:end]) <= size:
        return [(start, end)]
    middle = _blank_near_middle(text, start, end)
    return _halved(text, start, middle, tokens, size) + _halved(text, middle, end, tokens, size)


def _blank_near_middle(text: str, start: int, end: int) -> int:
    """The end of a line near the middle, else a blank there: rows of tables are lines."""
    middle = (start + end) // 2
    reach = (end - start) // 4
    for mark in ("\n", " "):
        places = (text.rfind(mark, middle - reach, middle) + 1, text.find(mark, middle, middle + reach) + 1)
        if found := [place for place in places if place > 0]:
            return min(found, key=lambda place: abs(place - middle))
    return middle


def _joined(pieces: list[Span], counts: list[int], size: int) -> list[Span]:
    """Merges neighbouring pieces as far as they fit."""
    joined: list[Span] = []
    held = 0
    for (start, end), count in zip(pieces, counts, strict=True):
        if joined and held + count <= size:
            joined[-1] = (joined[-1][0], end)
            held += count
        else:
            joined.append((start, end))
            held = count
    return joined


def _regions(units: Sequence[_Unit], tiny: int) -> list[list[_Unit]]:
    """Runs of units that a passage may span: top-level sections, a tiny one merged with its neighbour unless at a seam."""
    regions: list[list[_Unit]] = []
    held = 0
    for unit in units:
        if not regions or unit.seam or (unit.border and held >= tiny):
            regions.append([])
            held = 0
        regions[-1].append(unit)
        held += unit.tokens
    if len(regions) > 1 and held < tiny and not regions[-1][0].seam:
        last = regions.pop()
        regions[-1] += last
    return regions


def _packed(units: Sequence[_Unit], size: int, overlap: int) -> list[Span]:
    """Ranges of units, each within `size` tokens and each starting with up to `overlap` tokens of the one before."""
    before = [0, *accumulate(unit.tokens for unit in units)]  # cumulative tokens before each unit
    ranges: list[Span] = []
    fresh = 0  # the first unit that is in no range yet
    while fresh < len(units):
        first = _overlapping(units, fresh, size, overlap) if ranges else fresh
        last = _reach(units, before, first, fresh, size)
        ranges.append((first, last))
        fresh = last
    return ranges


def _reach(units: Sequence[_Unit], before: Sequence[int], first: int, fresh: int, size: int) -> int:
    """The end of a passage that begins at `first`: at a heading once it is half full, else when it is full."""
    tiny = size // 4
    left = before[-1] - before[first]
    # Two passages of equal length rather than a full one and a very short one.
    aim = left // 2 if size < left <= size + tiny else size
    last = fresh + 1
    while last < len(units) and before[last + 1] - before[first] <= size:
        held, rest = before[last] - before[first], before[-1] - before[last]
        ample = held >= aim or ((units[last].soft or units[last].border) and held >= size // 2 and rest >= tiny)
        if ample and not units[last].inside:
            break
        last += 1
    last = _block_border(units, before, first, fresh, last, size)
    # A heading goes with what follows, unless the passage would be empty.
    back = last
    while last < len(units) and back - 1 > fresh and units[back - 1].heading:
        back -= 1
    return back


def _block_border(units: Sequence[_Unit], before: Sequence[int], first: int, fresh: int, last: int, size: int) -> int:
    """The end of a passage moved back to the border of a block: always from a block that fits into a passage, and from any
    other if the passage stays half full."""
    if last == len(units) or units[last].opens:
        return last
    border = last
    while border > fresh and not units[border].opens:
        border -= 1
    ample = before[border] - before[first] >= size // 2
    return border if border > fresh and (units[last].inside or (ample and units[border].opens)) else last


def _overlapping(units: Sequence[_Unit], fresh: int, size: int, overlap: int) -> int:
    """The start of a passage so that it repeats the last whole sentences before `fresh`; a new section has no overlap."""
    if units[fresh].border or units[fresh].soft:
        return fresh
    room = min(overlap, size - _whole(units, fresh))
    first = fresh
    while first > 0 and units[first - 1].tokens <= room and not units[first - 1].heading:
        first -= 1
        room -= units[first].tokens
    while units[fresh].opens and first < fresh and units[first].tail:
        first += 1  # the end of a description would be read with the next term
    return first


def _whole(units: Sequence[_Unit], at: int) -> int:
    """The tokens from here to the end of the block, if it fits into a passage; else those of the unit alone."""
    end = at + 1
    while end < len(units) and units[end].inside:
        end += 1
    return sum(unit.tokens for unit in units[at:end])


def _trim(text: str, start: int, end: int) -> Span:
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), end - len(piece) + len(piece.rstrip()) if piece.strip() else start


def _headings(sections: Sequence[Section], starts: Sequence[int]) -> list[str]:
    """`Document.heading_at` for many offsets in order, in one pass."""
    found: list[str] = []
    path: list[Section] = []
    following = 0
    for start in starts:
        while following < len(sections) and sections[following].start <= start:
            section = sections[following]
            path = [above for above in path if above.level < section.level] + [section]
            following += 1
        found.append(" › ".join(section.title for section in path))
    return found
