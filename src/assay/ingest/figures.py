"""What captions call their figures, in many languages, and the sentences that refer to a figure. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from assay.core.types import Figure
from assay.ingest.parsed import Parsed
from assay.language.sentences import split_sentences
from assay.language.terms import data_lines

MOST_MENTIONS = 20  # of a figure
LONGEST_NAME = 40  # characters
_REACH = 1_000  # characters around a mention, in which its sentence is looked for

*_LINES, _JOINING = (line.split() for line in data_lines("figure_words"))
_NUMBER = r"[A-Z]?\.?\d{1,3}(?:[.–-]\d{1,3})*(?!\d)"
_WORDS = "|".join(sorted({re.escape(word) for line in _LINES for word in line}, key=len, reverse=True))
_NAMED = re.compile(
    rf"(?<![A-Za-z\u00c0-\u052f])(?i:{_WORDS})\.?\s?(?P<numbers>{_NUMBER}"
    rf"(?:[a-z]?\)?\s?(?:{'|'.join(map(re.escape, _JOINING))})\s?{_NUMBER})*)"
)
_CAPTIONED = re.compile(rf"(?P<name>(?i:{_WORDS})\.?\s?(?P<number>{_NUMBER}))\s*(?P<mark>[:.|—–)-]?)\s*(?P<next>\S?)")


def names_figure(text: str) -> bool:
    """Whether a text names a figure by its number."""
    return _NAMED.search(text) is not None


def caption_name(words: str) -> str:
    """`Figure 3`, if a paragraph begins as the caption of a figure; empty otherwise. `Figure 3 shows` begins a sentence."""
    found = _CAPTIONED.match(words)
    if found is None or (not found["mark"] and found["next"].islower()):
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
    numbers = [_number_of(each.name) for each in parsed.figures]
    for match in _NAMED.finditer(parsed.text) if any(numbers) else ():
        for number in set(re.findall(_NUMBER, match["numbers"])):
            places = [at for at, own in enumerate(numbers) if own == number]
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
