"""Finds words in a text, and the line they stand in. Pure."""

from __future__ import annotations

import re

from assay.language.sentences import Span, split_statements

MOST_PLACES = 20  # where the same words stand
DASHES, QUOTES, MONEY = "-‐‑‒–—−", "'’‘‛´`\"“”„«»", "$€£¥"


def find_words(words: str, text: str) -> list[Span]:
    """Where words stand in a text, whatever its white space, quote marks and dashes. A figure must be whole there."""
    words = " ".join(words.split())
    if not words:
        return []
    body = r"\s+".join("".join(map(_sign, part)) for part in words.split(" "))
    if re.fullmatch(rf"[{DASHES}][{MONEY}]?[\d.,]+", words):  # a negative figure may stand in brackets
        body = rf"{body}|\({''.join(map(_sign, words[1:]))}\)"
    before = r"(?<![\w.])(?<!\d[,’'])" if words[0].isdigit() else r"(?<!\w)" if words[0].isalpha() else ""
    after = r"(?!\d|[.,’']\d|[eE][-+]?\d)" if words[-1].isdigit() else r"(?!\w)" if words[-1].isalpha() else ""
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
