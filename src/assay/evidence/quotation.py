"""Locates and verifies quotations. Two string checks, no model: text that does not match is not a quotation."""

from __future__ import annotations

import re

from assay.core.types import Document, Passage, Quote

SAME = str.maketrans({"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'", "‚": "'", "‐": "-", "‑": "-",
                      "‒": "-", "–": "-", "—": "-", "−": "-", "\u00a0": " "})  # fmt: skip
ELLIPSIS = re.compile(r"(?<!\s)\s*+(?:\.\.\.|…|\[\s*(?:\.\.\.|…)\s*\])\s*")


def stands(quote: Quote, document: Document) -> bool:
    """Whether the document contains this quotation at its offsets."""
    return bool(quote.text) and document.id == quote.doc_id and document.text[quote.start : quote.end] == quote.text


def lies_in(quote: Quote, passage: Passage) -> bool:
    """Whether a quotation is from within a passage, by its offsets."""
    return quote.doc_id == passage.doc_id and passage.start <= quote.start and quote.end <= passage.end


def within(quote: Quote, passage: Passage) -> bool:
    """Whether a passage contains this quotation at its offsets."""
    start, end = quote.start - passage.start, quote.end - passage.start
    return lies_in(quote, passage) and start < end and passage.text[start:end] == quote.text


def locate_quote(words: str, text: str) -> tuple[int, int] | None:
    """The span of `words` in `text`, tolerating white space, hyphenation at line ends, quotation marks, dashes, case of
    the first letter and omitted middles. The span covers the text as it is, not as requested."""
    words = words.strip().strip("\"'“”‘’").strip()
    if not words:
        return None
    exact = text.find(words)
    if exact >= 0:
        return exact, exact + len(words)
    pieces = [piece for piece in ELLIPSIS.split(words) if piece]
    if not pieces:
        return None
    spans: list[tuple[int, int]] = []
    at = 0
    for piece in pieces:
        found = _loosely(piece, text, at)
        if found is None:
            return None
        spans.append(found)
        at = found[1]
    return spans[0][0], spans[-1][1]


def _loosely(words: str, text: str, at: int) -> tuple[int, int] | None:
    """The first span at or after `at` with the same sequence of letters."""
    wanted, _ = _folded(words, 0)
    have, places = _folded(text, at)
    if not wanted:
        return None
    found = have.find(wanted)
    return None if found < 0 else (places[found], places[found + len(wanted) - 1] + 1)


def _folded(text: str, at: int) -> tuple[str, list[int]]:
    """Letters without white space or hyphens, each with its original offset."""
    alike = enumerate(text[at:].translate(SAME), at)
    letters = [(place, sign.casefold()) for place, sign in alike if not sign.isspace() and sign != "-"]
    return "".join(sign for _, sign in letters), [place for place, sign in letters for _ in sign]
