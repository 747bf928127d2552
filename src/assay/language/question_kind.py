"""What a question asks for: the kind of its answer, and the words that accompany an answer. Pure."""

from __future__ import annotations

import re
from functools import lru_cache

from assay.language.names import find_names
from assay.language.terms import content_terms

DAY = re.compile(r"\b(?:year|date|day|month)\b", re.I)
NAME = re.compile(r"\bwhat (?:is|was|are|were) the (?:[\w-]+ )?name\b|\blocation\b", re.I)
QUANTITY = re.compile(
    r"\b(?:population|number|amount|height|length|width|depth|elevation|capacity|rate|price|cost|limit|income)\b", re.I
)
WHAT = re.compile(r"^\W*(?:(?:in|at|on|for|of) )?(?:what|which)\b", re.I)
ASKING = frozenset(("year", "date", "name"))


@lru_cache(maxsize=1024)
def kind(question: str) -> str:
    """number, date or name; empty if any word may answer."""
    if found := next((kind for kind, pattern in KINDS.items() if pattern.search(question)), ""):
        return found
    if DAY.search(question):
        return "date"
    if QUANTITY.search(question):
        return "number"
    return "name" if NAME.search(question) else ""


def asks_for_word(question: str) -> bool:
    """Whether a plain word about a named thing may answer it: what sport, which style."""
    return bool(not kind(question) and WHAT.search(question) and subject(question))


@lru_cache(maxsize=1024)
def subject(question: str) -> frozenset[str]:
    """Stems of the names in the question."""
    return frozenset(term for name in find_names(question) for term in content_terms(name.text))


@lru_cache(maxsize=1024)
def focus(question: str) -> frozenset[str]:
    """What it asks about its subject: stems of its other words."""
    return frozenset(content_terms(question)) - subject(question) - ASKING


SEVERAL = re.compile(
    r"\b(?:which|what)(?: of (?:the|our|my|these|those))?(?: [\w-]+){0,2} (?!is|was|does|has|this|his|its|as)\w+(?<!s)s\b"
    r"|\bhow many\b|\b(?:all|every|each|list|name)\b(?! of us)",
    re.I,
)


def asks_for_several(question: str) -> bool:
    """Whether several things are asked for: "Which suppliers …", "How many …", "List every …"."""
    return bool(SEVERAL.search(question))


KINDS = {
    "number": re.compile(
        r"\bhow (many|much|long|far|old|often|large|high|fast|big|tall|deep|wide|heavy)\b"
        r"|\bwhat (is the )?(number|percentage|share|rate|population|height|length)\b",
        re.I,
    ),
    "date": re.compile(r"\bwhen\b|\bwhat (year|date|day|month)\b|\b(which|in what) year\b|\buntil when\b", re.I),
    "name": re.compile(
        r"\bwho\b|\bwhom\b|\bwhose\b|\bwhere\b|\bwhat is the name\b"
        r"|\b(which|what) (city|country|company|person|place|state|team|band|county)\b",
        re.I,
    ),
}
