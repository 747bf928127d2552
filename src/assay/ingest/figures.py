"""What captions call their figures and tables, in many languages, and the sentences that refer to one. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from assay.core.types import Figure
from assay.ingest.parsed import Parsed
from assay.language.sentences import split_sentences
from assay.language.terms import data_lines, word_list

MOST_MENTIONS = 20  # of a figure
LONGEST_NAME = 40  # characters
_REACH = 1_000  # characters around a mention, in which its sentence is looked for

*_FIGURES, _JOINING = (line.split() for line in data_lines("figure_words"))
_NUMBER = r"[A-Z]?\.?\d{1,3}(?:[.–-]\d{1,3})*(?!\d)"
_FIGURE, _TABLE = (
    "|".join(sorted(map(re.escape, words), key=len, reverse=True))
    for words in ({word for line in _FIGURES for word in line}, word_list("table_words"))
)
_WORDS = rf"(?i:{_FIGURE}|(?P<table>{_TABLE}))"
_NAMED = re.compile(
    rf"(?<![A-Za-z\u00c0-\u052f]){_WORDS}\.?\s?(?P<numbers>{_NUMBER}"
    rf"(?:[a-z]?\)?\s?(?:{'|'.join(map(re.escape, _JOINING))})\s?{_NUMBER})*)"
)
_CAPTIONED = re.compile(rf"(?P<name>{_WORDS}\.?\s?(?P<number>{_NUMBER}))\s*(?P<mark>[:.|—–)-]?)\s*(?P<next>\S?)")


def names_figure(text: str) -> bool:
    """Whether a text names a figure by its number."""
    return any(not match["table"] for match in _NAMED.finditer(text))


def caption_name(words: str, *, of_table: bool = False) -> str:
    """`Figure 3`, if a paragraph begins as the caption of a figure, or of a table; empty otherwise. `Figure 3 shows` begins a
    sentence."""
    found = _CAPTIONED.match(words)
    if found is None or bool(found["table"]) != of_table or (not found["mark"] and found["next"].islower()):
        return ""
    return " ".join(found["name"].split())[:LONGEST_NAME]


def find_captions(text: str, captions: Iterable[str]) -> tuple[Figure, ...]:
    """Figures by captions that are known, in order, as far as each is a paragraph of the text."""
    found: list[Figure] = []
    at = 0
    for words in filter(None, captions):
        start = text.find(words, at)
        if start >= 0 and text[:start][-1:] in "\n":
            at = start + len(words)
            found.append(Figure(start, at, caption_name(words)))
    return tuple(found)


def with_mentions(parsed: Parsed) -> Parsed:
    """The document, each of its figures with the sentences that refer to it."""
    if not parsed.figures:
        return parsed
    found: dict[int, dict[tuple[int, int], None]] = {}
    numbers = [(each.table, _number_of(each.name)) for each in parsed.figures]
    for match in _NAMED.finditer(parsed.text) if any(number for _, number in numbers) else ():
        for number in set(re.findall(_NUMBER, match["numbers"])):
            places = [at for at, own in enumerate(numbers) if own == (bool(match["table"]), number)]
            if places:
                near = min(places, key=lambda at: abs(parsed.figures[at].start - match.start()))
                if not parsed.figures[near].start <= match.start() < parsed.figures[near].end:
                    found.setdefault(near, {})[_sentence(parsed.text, match.start())] = None
    return replace(parsed, figures=tuple(_mentioned(each, found.get(at, ())) for at, each in enumerate(parsed.figures)))


def _mentioned(figure: Figure, sentences: Iterable[tuple[int, int]]) -> Figure:
    return replace(figure, mentions=tuple(sentences)[:MOST_MENTIONS])


def _number_of(name: str) -> str:
    found = re.search(_NUMBER, name)
    return found[0] if found else ""


def _sentence(text: str, at: int) -> tuple[int, int]:
    start = max(text.rfind("\n\n", max(0, at - _REACH), at), max(0, at - _REACH))
    end = text.find("\n\n", at, at + _REACH)
    piece = text[start : end if end >= 0 else at + _REACH]
    spans = ((start + first, start + last) for first, last in split_sentences(piece))
    return next(((first, last) for first, last in spans if first <= at < last), (at, at + 1))
