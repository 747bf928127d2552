"""Finds names and the abbreviations that a text defines, by rule, and what kind of answer a question asks for. Works on
offsets, so that results can be quoted. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from assay.language.sentences import split_sentences
from assay.language.terms import content_terms, stop_words, word_list


@dataclass(frozen=True, slots=True)
class Name:
    """A name found in a text: `text == source[start:end]`."""

    text: str
    start: int
    end: int


_TOKEN = re.compile(r"[^\W_]+(?:[’'.\-–&/][^\W_]+)*")
_QUOTED = re.compile(r"\"([^\"\n]{2,80})\"|“([^”\n]{2,80})”|``\s?([^`'\n]{2,80}?)\s?''|«([^»\n]{2,80})»")


def find_names(text: str) -> list[Name]:
    """Names in the order of the text: runs of capitalised words, and quoted titles.

    A word that opens a sentence counts unless it is an ordinary word; days and months are not names.
    """
    found = [
        Name(text[match.start(g) : match.end(g)], match.start(g), match.end(g))
        for match in _QUOTED.finditer(text)
        for g in (match.lastindex or 1,)
    ]
    openings = {start for start, _ in split_sentences(text)}
    tokens = list(_TOKEN.finditer(text))
    particles, openers, calendar = (
        word_list(each) for each in ("name_particles", "sentence_openers", "calendar_words")
    )
    at = 0
    while at < len(tokens):
        if not _is_capitalised(tokens[at][0]) or (tokens[at].start() in openings and _is_ordinary(tokens[at][0])):
            at += 1
            continue
        last = at
        ahead = at + 1
        while ahead < len(tokens) and _is_adjacent(text, tokens[ahead - 1], tokens[ahead]):
            word = tokens[ahead][0]
            if _is_capitalised(word) or (word[0].isdigit() and ahead == last + 1):
                last = ahead
            elif word.lower() not in particles or ahead - last > 2:
                break
            ahead += 1
        first = at
        while first < last and tokens[first][0].lower() in openers and tokens[first].start() in openings:
            first += 1
        start, end = tokens[first].start(), _without_possessive(text, tokens[last].end())
        words = [token[0].lower() for token in tokens[first : last + 1]]
        dated = all(word in calendar or word.isdigit() or word in particles for word in words)
        if not dated and not (first == last and _is_ordinary(tokens[first][0])):
            found.append(Name(text[start:end], start, end))
        at = last + 1
    return sorted(set(found), key=lambda name: (name.start, -name.end))


def _is_capitalised(word: str) -> bool:
    return word[0].isupper() or (len(word) > 1 and word[0].islower() and word[1].isupper())


def _is_ordinary(word: str) -> bool:
    return word.lower() in stop_words() or word.lower() in word_list("sentence_openers")


def _is_adjacent(text: str, left: re.Match[str], right: re.Match[str]) -> bool:
    between = text[left.end() : right.start()]
    if between in (" ", " & ", "\u00a0", " - ", "-"):
        return True
    # An initial or a short title keeps its full stop inside the name: "J. R. R. Tolkien", "Dr. Who", "St. Louis".
    return between == ". " and (len(left[0]) == 1 or left[0].lower() in word_list("abbreviations_before"))


def _without_possessive(text: str, end: int) -> int:
    return end - 2 if text[max(0, end - 2) : end] in ("'s", "’s") else end


KINDS = (  # in this order
    ("number", r"\bhow (many|much|long|far|old|often|large|high|fast|big|tall|deep|wide|heavy)\b"),
    ("number", r"\bwhat (is the )?(number|percentage|share|rate|population|height|length)\b"),
    ("date", r"\bwhen\b|\bwhat (year|date|day|month)\b|\b(which|in what) year\b"),
    ("name", r"\bwho(?:m|se)?\b|\bwhere\b|\bwhat is the name\b"),
    ("name", r"\b(which|what) (city|country|company|person|place|state|team|band|county)\b"),
    ("date", r"\b(?:year|date|day|month)\b"),
    ("number", r"\b(?:population|number|amount|height|length|width|depth|elevation|capacity)\b"),
    ("number", r"\b(?:rate|price|cost|limit|income)\b"),
    ("name", r"\bwhat (?:is|was|are|were) the (?:[\w-]+ )?name\b|\blocation\b"),
)
WHAT = re.compile(r"^\W*(?:(?:in|at|on|for|of) )?(?:what|which)\b", re.I)
ASKING = frozenset(("year", "date", "name"))


@lru_cache(maxsize=1024)
def kind(question: str) -> str:
    """number, date or name; empty if any word may answer."""
    return next((kind for kind, pattern in KINDS if re.search(pattern, question, re.I)), "")


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
