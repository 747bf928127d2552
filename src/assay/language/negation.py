"""Compares two sentences for negations and for words of opposite direction ("rose", "fell"). Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from assay.language.terms import content_terms, fold_case, stem_word
from assay.language.words import data_lines, word_list

# Phrases that count as one word; "not only" and "whether or not" negate nothing.
PHRASES = (
    (re.compile(r"n't\b"), " not"),
    (re.compile(r"\bnot only\b|\bwhether or not\b|\bno\. ?(?=\d)"), " "),
    (re.compile(r"\b(?:at most|no more than|no later than|up to|not more than)\b"), " atmost "),
    (re.compile(r"\b(?:at least|no less than|no fewer than|no earlier than|not less than)\b"), " atleast "),
    (re.compile(r"\bfail(?:s|ed|ing)? to\b"), " not "),
)
CLAUSE = re.compile(
    r"[;:.!?()]|,|\b(?:but|though|although|however|while|whereas|because|since|unless|except|which|who|yet|until|till)\b",
    re.I,
)
WORD = re.compile(r"[^\W_]+")
SCOPE = 3  # content words after a negation that it surely applies to

PREFIXES = ("un", "in", "im", "il", "ir", "non", "dis")


@dataclass(frozen=True, slots=True)
class Clause:
    """The terms of one clause, and those of them that are negated."""

    terms: frozenset[str]
    denied: frozenset[str]
    negative: bool


@cache
def directions_by_stem() -> dict[str, frozenset[tuple[int, int]]]:
    """Stem → the (pair of opposites, side of the pair) that it belongs to."""
    found: dict[str, set[tuple[int, int]]] = {}
    for pair, line in enumerate(data_lines("opposites")):
        for side, words in enumerate(line.split("|")):
            for word in words.split():
                found.setdefault(stem_word(word), set()).add((pair, side))
    return {stem: frozenset(directions) for stem, directions in found.items()}


def split_clauses(words: str) -> list[Clause]:
    found: list[Clause] = []
    for piece in CLAUSE.split(_plain(words)):
        if own := WORD.findall(piece):
            found.append(_clause(own))
    return found


def _plain(words: str) -> str:
    """Folded text with the phrases replaced."""
    plain = fold_case(words).replace("’", "'")
    for pattern, instead in PHRASES:
        plain = pattern.sub(instead, plain)
    return plain


def _clause(words: Sequence[str]) -> Clause:
    """A negation denies the words after it or, if there are none ("the cracks were never there"), those before it. Two
    negations cancel out, and then nothing is surely denied."""
    places = [place for place, word in enumerate(words) if word in word_list("negations")]
    denied: list[str] = []
    for place in places:
        follows = [term for word in words[place + 1 :] for term in content_terms(word)][:SCOPE]
        denied += follows or [term for word in words[:place] for term in content_terms(word)]
    meant = frozenset(content_terms(" ".join(word for word in words if word not in word_list("negations"))))
    return Clause(meant, frozenset(denied) & meant if len(places) == 1 else frozenset(), bool(places))


def find_denial(claim: str, source: str) -> str:
    """A word that one denies and the other affirms; empty if there is none."""
    ours, theirs = split_clauses(claim), split_clauses(source)
    return _denied_by(ours, theirs) or _denied_by(theirs, ours)


def _denied_by(one: Sequence[Clause], other: Sequence[Clause]) -> str:
    """A word that `one` surely denies and `other` uses only without a negation. A word that `one` also uses without a
    negation does not count."""
    for clause in one:
        for term in sorted(clause.denied):
            if any(term in each.terms and not each.negative for each in one):
                continue
            spoken = [each for each in other if term in each.terms]
            if spoken and not any(each.negative for each in spoken):
                return term
    return ""


def nearest_clause(claim: str, source: str) -> str:
    """The clause of the source that has most words of the claim; the first of equals."""
    wanted = frozenset(content_terms(claim))
    pieces = [piece for piece in CLAUSE.split(_plain(source)) if piece.strip()]
    return max(pieces, key=lambda piece: len(wanted & frozenset(content_terms(piece))), default="")


def find_reversal(claim: str, source: str) -> str:
    """Words of opposite direction in the claim and its source: "rose / fell"; empty if there are none."""
    ours, theirs = find_directions(claim), find_directions(source)
    for pair in sorted(ours.keys() & theirs.keys()):
        mine, other = ours[pair], theirs[pair]
        if not mine.keys() & other.keys():
            return f"{min(mine.values())} / {min(other.values())}"
    return _find_negating_prefix(claim, source)


def find_directions(words: str) -> dict[int, dict[int, str]]:
    """Pair of opposites → side → the word on that side."""
    found: dict[int, dict[int, str]] = {}
    for word in WORD.findall(_plain(words)):
        for pair, side in directions_by_stem().get(stem_word(word), ()):
            found.setdefault(pair, {})[side] = word
    return found


def count_negations(words: str) -> int:
    """The number of negations in a sentence."""
    return sum(word in word_list("negations") for word in WORD.findall(_plain(words)))


def _find_negating_prefix(claim: str, source: str) -> str:
    """ "safe / unsafe": a word of one that the other has only with a prefix that denies it."""
    ours, theirs = (frozenset(WORD.findall(fold_case(words))) for words in (claim, source))
    for left, right in ((ours, theirs), (theirs, ours)):
        for word in sorted(left - right):
            for prefix in PREFIXES:
                if len(word) > 3 and word not in word_list("not_prefixed") and prefix + word in right - left:
                    return f"{word} / {prefix}{word}"
    return ""
