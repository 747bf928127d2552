"""What a question asks for: the kind of its answer, the words its answer is said with, and the values nearest to them. Pure."""

from __future__ import annotations

import re
from functools import lru_cache

from assay.answer.conflicts.slots import Piece, pieces
from assay.answer.extractive.selection import KINDS
from assay.language.names import find_names
from assay.language.terms import content_terms, stem_word

DAY = re.compile(r"\b(?:year|date|day|month)\b", re.I)
NAME = re.compile(r"\bwhat (?:is|was|are|were) the (?:[\w-]+ )?name\b|\blocation\b", re.I)
QUANTITY = re.compile(
    r"\b(?:population|number|amount|height|length|width|depth|elevation|capacity|rate|price|cost|limit|income)\b", re.I
)
WHAT = re.compile(r"^\W*(?:(?:in|at|on|for|of) )?(?:what|which)\b", re.I)
CLOSE = 5  # words between a value and the word of the question that it is said with
# An answer may be said with any of these where the question has another one.
MEANINGS = tuple(
    frozenset(stem_word(word) for word in several.split())
    for several in (
        "established founded formed created opened started organised organized instituted began begun inaugurated",
        "built constructed erected completed",
        "born birth",
        "died death",
        "population people inhabitants residents",
        "located situated lies location",
        "artist album singer band recorded song",
        "directed director",
        "produced producer",
        "designed architect designer",
        "wrote written author novel book",
        "released published issued debut debuted",
    )
)
ASKING = frozenset(("year", "date", "name"))


@lru_cache(maxsize=1024)
def kind(question: str) -> str:
    """number, date or name; nothing where any word may answer."""
    if found := next((kind for kind, pattern in KINDS.items() if pattern.search(question)), ""):
        return found
    if DAY.search(question):
        return "date"
    if QUANTITY.search(question):
        return "number"
    return "name" if NAME.search(question) else ""


def wants_a_word(question: str) -> bool:
    """Whether a plain word may answer it, said of something that has a name: what sport, which style."""
    return bool(not kind(question) and WHAT.search(question) and subject(question))


@lru_cache(maxsize=1024)
def subject(question: str) -> frozenset[str]:
    """Stems of the names in it."""
    return frozenset(term for name in find_names(question) for term in content_terms(name.text))


@lru_cache(maxsize=1024)
def focus(question: str) -> frozenset[str]:
    """What it asks about its subject: stems of its other words, and of words that mean the same."""
    asked = frozenset(content_terms(question)) - subject(question) - ASKING
    return asked.union(*(each for each in MEANINGS if each & asked))


@lru_cache(maxsize=20_000)
def answers(words: str, question: str) -> tuple[Piece, ...]:
    """The values of the kind asked for that stand nearest to the words of the question; none if none stands near."""
    about, known, wanted = focus(question), frozenset(content_terms(question)), kind(question)
    told = pieces(words)
    places = [place for place, each in enumerate(told) if about & frozenset(content_terms(each.said))]
    far: dict[int, int] = {}
    for place, each in enumerate(told):
        if each.kind == wanted and not (wanted == "name" and each.meaning <= known):
            far[place] = min((abs(place - other) for other in places if other != place), default=CLOSE + 1)
    nearest = min(far.values(), default=CLOSE + 1)
    return tuple(told[place] for place in far if far[place] == nearest <= CLOSE)
