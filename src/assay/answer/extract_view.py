"""Words of a document as a person reads them: where they stand, their own lines, and the words that answer marked. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from assay.core.blocks import blocks_around, subjects
from assay.core.types import Document, Quote
from assay.tables.parts import TablePart, quoted_part

BETWEEN = " › "
_EMPTY_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")


@dataclass(frozen=True, slots=True)
class Stretch:
    """Words of a quotation, all of them marked or none."""

    text: str
    marked: bool = False


@dataclass(frozen=True, slots=True)
class QuotedPart:
    """A quotation for display. `under` are the headings and the subject that it stands under and does not say itself."""

    under: tuple[str, ...]
    page: int | None
    words: tuple[Stretch, ...]
    table: TablePart | None


def quoted_in_place(document: Document, quote: Quote, marks: Sequence[Quote] = ()) -> QuotedPart:
    start = _below_headings(document, quote, marks)
    spans = [(mark.start, mark.end) for mark in marks]
    table = quoted_part(document, start, quote.end, spans)
    return QuotedPart(
        _under(document, start, quote.end, table.caption if table else ""),
        document.page_at(marks[0].start if marks else start),
        _stretches(document.text, start, quote.end, spans),
        table,
    )


def _below_headings(document: Document, quote: Quote, marks: Sequence[Quote]) -> int:
    """Where the words begin: below the headings that the quotation opens with, which are named above it."""
    start = quote.start
    first = min((mark.start for mark in marks), default=quote.end)
    for section in document.sections:
        if section.start <= start < section.end < quote.end:
            gap = document.text[section.end : quote.end]
            below = quote.end - len(gap.lstrip())
            start = below if below < quote.end and below <= first else start
    return start


def _under(document: Document, start: int, end: int, caption: str) -> tuple[str, ...]:
    blocks = blocks_around(document, start, end)
    above = [*document.heading_at(start).split(BETWEEN), *(subjects(document.text, blocks[0], start) if blocks else ())]
    said = {"", *map(_folded, (document.title, caption, *document.text[start:end].split("\n")))}
    return tuple(each for each in dict.fromkeys(" ".join(one.split()) for one in above) if _folded(each) not in said)


def _folded(words: str) -> str:
    return " ".join(words.casefold().split())


def _stretches(text: str, start: int, end: int, marks: Sequence[tuple[int, int]]) -> tuple[Stretch, ...]:
    """The words with their own line breaks, indented as far as they are beyond the first line."""
    before = text[text.rfind("\n", 0, start) + 1 : start]
    indent = len(before) if before.isspace() else 0
    lead = re.compile(rf"(?<=\n)[ \t]{{1,{indent}}}") if indent else None
    found: list[Stretch] = []
    at = start
    for left, right in sorted(marks):
        left, right = max(left, at), min(right, end)
        if left < right:
            found += [Stretch(text[at:left]), Stretch(text[left:right], marked=True)]
            at = right
    found.append(Stretch(text[at:end]))
    tidy = (_EMPTY_LINES.sub("\n\n", lead.sub("", each.text) if lead else each.text) for each in found)
    return tuple(Stretch(words, each.marked) for words, each in zip(tidy, found, strict=True) if words)
