"""The figures that a span of a document is about, and whether figures fit their text. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from assay.core.types import Document, Figure


def captioned(document: Document, start: int, end: int) -> list[Figure]:
    """The figures whose captions begin in `text[start:end]`."""
    return [each for each in document.figures if start <= each.start < end]


def referred_to(document: Document, start: int, end: int) -> list[Figure]:
    """The figures whose captions touch `text[start:end]`, and those that a sentence there is about."""
    spans = ((each, ((each.start, each.end), *each.mentions)) for each in document.figures)
    return [each for each, of in spans if any(first < end and start < last for first, last in of)]


def check_figures(figures: Sequence[Figure], length: int, pages: int) -> None:
    """Raise `ValueError` unless spans lie in a text of this length, and boxes on its pages."""
    for each in figures:
        spans = ((each.start, each.end), *each.mentions)
        placed = each.box is None or (
            1 <= each.page <= pages
            and all(0 <= edge <= 1 for edge in each.box)
            and each.box[0] < each.box[2]
            and each.box[1] < each.box[3]
        )
        if not placed or not all(0 <= start < end <= length for start, end in spans):
            raise ValueError("a figure does not fit the text")
