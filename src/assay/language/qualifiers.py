"""Finds words that qualify a statement: report, belief, denial, plan, chance, condition, past, and scope. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache

from assay.language.terms import fold_case, stem_word
from assay.language.words import data_lines

# These qualify nothing: "in May", "above all", "some 2,300", "the most important".
IDIOM = re.compile(
    r"(?<=[a-z,] )May\b|\bMay (?=\d)"
    r"|\b(?i:(?:above|at|after|in) all|if any|some (?=\d)|most (?=\w+(?:ant|ent|al|ive|ous|ful|able|ible|ing|mon)\b))"
)
# "the restructuring plan": a thing, not something that is still to be done.
NAMED_PLAN = re.compile(
    r"\b[a-z]+(?:ing|ion|ment|fit|stock|option|care) plans?\b"
    r"(?! (?:to|for|of|that|is|are|calls?|includes?|foresees?|envisages?|provides?|would|will|aims?)\b)"
)
ATTRIBUTION = re.compile(r"[,”\"’] (?:[\w’'-]+ ){0,5}?(says|said|wrote|writes|warns|warned|remarks|remarked)\b")
WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Qualifier:
    """A qualifying word: its class, what the class means, the word as written, and where it stands."""

    kind: str
    meaning: str
    text: str
    start: int
    end: int


@cache
def _classes(name: str) -> tuple[tuple[str, str, re.Pattern[str]], ...]:
    found: list[tuple[str, str, re.Pattern[str]]] = []
    for line in data_lines(name):
        kind, *meaning, words = (part.strip() for part in line.split("|", 2 if name == "qualifiers" else 1))
        either = "|".join(re.escape(word.strip()).replace(r"\*", r"\w*") for word in words.split(","))
        found.append((kind, "".join(meaning), re.compile(rf"\b(?:{either})(?!\w)")))
    return tuple(found)


@lru_cache(maxsize=4096)
def find_qualifiers(words: str, name: str = "qualifiers") -> tuple[Qualifier, ...]:
    """The qualifying words of a text; `name` is the list: `qualifiers` or `scopes`."""
    text = re.sub(r"\s", " ", words)
    for pattern in (IDIOM, NAMED_PLAN):
        text = pattern.sub(lambda match: " " * len(match[0]), text)
    text = text.lower()
    found = [
        Qualifier(kind, meaning, match[0], match.start(), match.end())
        for kind, meaning, pattern in _classes(name)
        for match in pattern.finditer(text)
    ]
    if name == "qualifiers":
        found += [
            Qualifier("report", "somebody says so", each[1], *each.span(1)) for each in ATTRIBUTION.finditer(text)
        ]
    return tuple(found)


def stems_after(words: str, each: Qualifier, count: int) -> frozenset[str]:
    """The stems of the first words after a qualifier."""
    return frozenset(map(stem_word, WORD.findall(fold_case(words[each.end :]))[:count]))
