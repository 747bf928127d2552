"""Locates and verifies quotations, and finds words and the line they stand in. No model: text that does not match is
not a quotation."""

from __future__ import annotations

import re

from assay.core.types import Document, Passage, Quote
from assay.language.sentences import Span, split_statements

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
    start, at = None, 0
    for piece in pieces:
        wanted, _ = _folded(piece, 0)
        have, places = _folded(text, at)
        found = have.find(wanted) if wanted else -1
        if found < 0:
            return None
        start, at = places[found] if start is None else start, places[found + len(wanted) - 1] + 1
    return start or 0, at


def _folded(text: str, at: int) -> tuple[str, list[int]]:
    """Letters without white space or hyphens, each with its original offset."""
    alike = enumerate(text[at:].translate(SAME), at)
    letters = [(place, sign.casefold()) for place, sign in alike if not sign.isspace() and sign != "-"]
    return "".join(sign for _, sign in letters), [place for place, sign in letters for _ in sign]


MOST_PLACES = 20  # where the same words stand
SPACED = r"[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"  # a sign of a word in a script that parts words by spaces
DASHES, QUOTES, MONEY = "-‐‑‒–—−", "'’‘‛´`\"“”„«»", "$€£¥"


def find_words(words: str, text: str) -> list[Span]:
    """Where words stand in a text, whatever its white space, quote marks and dashes. A figure must be whole there."""
    words = " ".join(words.split())
    if not words:
        return []
    body = r"\s+".join("".join(map(_sign, part)) for part in words.split(" "))
    if re.fullmatch(rf"[{DASHES}][{MONEY}]?[\d.,]+", words):  # a negative figure may stand in brackets
        body = rf"{body}|\({''.join(map(_sign, words[1:]))}\)"
    before = (
        rf"(?<!{SPACED})(?<!\.)(?<!\d[,’'])" if words[0].isdigit() else rf"(?<!{SPACED})" if words[0].isalpha() else ""
    )
    after = r"(?!\d|[.,’']\d|[eE][-+]?\d)" if words[-1].isdigit() else rf"(?!{SPACED})" if words[-1].isalpha() else ""
    found: list[Span] = []
    for match in re.finditer(f"{before}(?:{body}){after}", text, re.I):
        found.append(match.span())
        if len(found) == MOST_PLACES:
            break
    return found


def _sign(sign: str) -> str:
    """A pattern for one sign."""
    if sign in DASHES:
        return f"[{DASHES}]"
    if sign in QUOTES:
        return f"[{QUOTES}]"
    return rf"{re.escape(sign)}\s*" if sign in MONEY else r"\s*%" if sign == "%" else re.escape(sign)


def lines(text: str) -> list[Span]:
    """Sentences and rows of tables. A line that ends with a figure is a row."""
    return [
        (start + row.start(), start + row.end())
        for start, end in split_statements(text)
        for row in re.finditer(r"\S(?:.|\n)*?(?:[\d)%—–](?=[ \t]*\n)|\Z)", text[start:end])
    ]


def line_at(text: str, place: Span) -> str:
    """The sentence or row in which words stand."""
    around = [text[start:end] for start, end in lines(text) if start < place[1] and place[0] < end]
    return " ".join(" ".join(around).split())
