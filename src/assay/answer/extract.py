"""An answer with no model: the sentences that answer, as they stand. Nothing is written that is not a quotation. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from assay import text
from assay.events import Drafted
from assay.evidence.weigh import quote, rarity
from assay.types import Block, Claim, Conflict, Evidence, Quote, Shape

PASSAGES = 8  # the best passages; their sentences compete
CLAIMS = 4
ALIKE = 0.6  # sentences at least this near by meaning are about the same thing


@dataclass(frozen=True, slots=True)
class Extraction:
    """How sentences are chosen. The weights were measured on labelled sentences; see docs/decisions/0005-extraction.md."""

    nearness: float = 1.0  # of the sentence to the question, by meaning
    words: float = 0.6  # of the question that the sentence speaks of, the rare ones first
    passage: float = 0.35  # what the searches made of the sentence's passage
    kind: float = 0.1  # the sentence holds the kind of thing that was asked for: a number, a date, a name
    linked: float = 0.25  # the sentence continues one that is chosen already, or leads to it
    fresh: float = 0.5  # words of the question that no chosen sentence speaks of
    enough: float = 0.62  # a further sentence must be this good, beside the best one
    weak: float = 0.42  # below this (nearness and words together) nothing found is an answer


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence that might be part of the answer. `leads` are names by which its passage is tied to others."""

    quote: Quote
    key: str
    passage: str
    worth: float
    tied: Mapping[str, str]  # other passages of the run → the name that ties them


@dataclass(frozen=True, slots=True)
class Chosen:
    candidate: Candidate
    score: float
    strength: float  # how much like an answer it is, whatever else was found


def candidates(evidence: Sequence[Evidence], ties: Sequence[tuple[str, str, str]]) -> list[Candidate]:
    """The sentences of the best passages. `ties` are (passage, passage, name)."""
    best = evidence[:PASSAGES]
    top = max((each.score for each in best), default=1.0) or 1.0
    found: list[Candidate] = []
    for each in best:
        tied = {other: name for one, other, name in [*ties, *((b, a, n) for a, b, n in ties)] if one == each.passage.id}
        for start, end in text.sentences(each.passage.text):
            said = quote(each.passage, start, end)
            if says_something(said.text):
                found.append(Candidate(said, each.key, each.passage.id, each.score / top, tied))
    return _once(found)


def says_something(sentence: str) -> bool:
    """Not a heading, a lone number or a fragment of a table."""
    words = sentence.split()
    return len(words) >= 5 or (len(words) >= 3 and any(sign.isdigit() for sign in sentence))


def _once(found: Sequence[Candidate]) -> list[Candidate]:
    """Overlapping passages of a document share sentences; each counts once, where it stands best."""
    seen: dict[tuple[str, int], Candidate] = {}
    for each in found:
        seen.setdefault((each.quote.doc_id, each.quote.start), each)
    return list(seen.values())


def choose(
    question: str, found: Sequence[Candidate], vectors: np.ndarray, by: Extraction | None = None
) -> list[Chosen]:
    """The sentences that answer together, the best one first. `vectors` are those of the question and of each sentence."""
    by = by or Extraction()
    if not found:
        return []
    rare = rarity(question, [each.quote.text for each in found])
    asked, said = vectors[0], np.asarray(vectors[1:])
    near = said @ asked
    terms = [frozenset(text.terms(each.quote.text)) for each in found]
    words = np.array([sum(rare.get(term, 0.0) for term in own) for own in terms])
    fits = np.array([holds_kind(question, each.quote.text) for each in found], dtype=float)
    worth = np.array([each.worth for each in found])
    score = by.nearness * near + by.words * words + by.passage * worth + by.kind * fits
    strength = 0.5 * near + 0.5 * words
    order = [int(np.argmax(score))]
    best = float(score[order[0]])
    while len(order) < min(CLAIMS, len(found)):
        spoken = frozenset().union(*(terms[place] for place in order))
        gains = np.full(len(found), -np.inf)
        for place, candidate in enumerate(found):
            if place in order:
                continue
            fresh = sum(rare.get(term, 0.0) for term in terms[place] - spoken)
            tie = max((_tie(candidate, found[other]) for other in order), default=0.0)
            again = max(float(said[place] @ said[other]) for other in order)
            repeats = again > 0.85 and numbers(candidate.quote.text) == numbers(found[order[0]].quote.text)
            gains[place] = -np.inf if repeats else score[place] + by.fresh * fresh + by.linked * tie
        place = int(np.argmax(gains))
        if gains[place] < by.enough * best + by.linked * 0.5:
            break
        order.append(place)
    return [Chosen(found[place], float(score[place]), float(strength[place])) for place in order]


def _tie(one: Candidate, other: Candidate) -> float:
    """1 when a name ties the two passages and stands in the sentence that leads on."""
    name = one.tied.get(other.passage) or other.tied.get(one.passage)
    if not name:
        return 0.0
    folded = text.fold(name)
    return 1.0 if folded in text.fold(one.quote.text) or folded in text.fold(other.quote.text) else 0.5


NUMBER = re.compile(r"\d[\d,.]*")
DATE = re.compile(r"\b(1[5-9]|20)\d\d\b|\b\d{1,2}[:.]\d{2}\b", re.I)
KINDS = (
    (
        re.compile(
            r"\bhow (many|much|long|far|old|often|large|high|fast)\b|\bwhat (number|percentage|share|rate)\b", re.I
        ),
        "number",
    ),
    (re.compile(r"\bwhen\b|\bwhat (year|date|day|month)\b|\b(which|in what) year\b", re.I), "date"),
    (
        re.compile(
            r"\bwho\b|\bwhose\b|\bwhere\b|\bwhat is the name\b|\bwhich (city|country|company|person|place)\b", re.I
        ),
        "name",
    ),
)


def holds_kind(question: str, sentence: str) -> bool:
    """Whether a sentence holds the kind of thing that was asked for, beyond what the question already says."""
    kind = next((kind for pattern, kind in KINDS if pattern.search(question)), None)
    known = text.fold(question)
    match kind:
        case "number":
            return any(number not in known for number in NUMBER.findall(sentence))
        case "date":
            return bool(DATE.search(sentence))
        case "name":
            return any(text.fold(name.text) not in known for name in text.names(sentence))
        case _:
            return False


def missing(question: str, evidence: Sequence[Evidence]) -> tuple[str, ...]:
    """The words of the question that none of the best evidence speaks of."""
    spoken = {
        term for each in evidence[:PASSAGES] for term in text.terms(f"{each.passage.heading} {each.passage.text}")
    }
    words = re.findall(r"[^\W_]+(?:[-'’][^\W_]+)*", question)
    return tuple(dict.fromkeys(word for word in words if (own := text.terms(word)) and not set(own) & spoken))


def draft(question: str, found: Sequence[Candidate], vectors: np.ndarray, by: Extraction | None = None) -> Drafted:
    """What would be said: quotations that answer, or, when none is good enough, those that came nearest."""
    by = by or Extraction()
    chosen = choose(question, found, vectors, by)
    claims = tuple(Claim("", (each.candidate.key,), quote=each.candidate.quote) for each in chosen)
    if not chosen or max(each.strength for each in chosen) < by.weak:
        return Drafted((), Shape.list, near=claims[:2])
    places = {each.quote: place for place, each in enumerate(found, 1)}
    own = [vectors[places[each.candidate.quote]] for each in chosen]
    return Drafted((Block(claims),), Shape.list if len(claims) > 1 else Shape.sentence, conflicts(chosen, own))


def numbers(sentence: str) -> frozenset[str]:
    return frozenset(number.rstrip(".,") for number in NUMBER.findall(sentence))


MEASURE = re.compile(r"(\d[\d,.]*)\s*(%|[^\W\d_]+)")


def conflicts(chosen: Sequence[Chosen], vectors: Sequence[np.ndarray]) -> tuple[Conflict, ...]:
    """Sentences of different documents that say nearly the same with different measures of the same kind."""
    said: list[Conflict] = []
    for place, one in enumerate(chosen):
        for later, other in enumerate(chosen[place + 1 :], place + 1):
            left, right = one.candidate.quote, other.candidate.quote
            clash = _clash(left.text, right.text)
            if left.doc_id != right.doc_id and clash and float(vectors[place] @ vectors[later]) > ALIKE:
                said.append(Conflict(one.candidate.key, other.candidate.key, clash))
    return tuple(said)


def _clash(left: str, right: str) -> str:
    """Two measures with the same unit and no value in common: "30 days / 90 days"."""
    ours, theirs = _measures(left), _measures(right)
    for unit in ours.keys() & theirs.keys():
        if not ours[unit] & theirs[unit]:
            return f"{min(ours[unit])} {unit} / {min(theirs[unit])} {unit}"
    return ""


def _measures(sentence: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for number, unit in MEASURE.findall(sentence):
        found.setdefault(unit.lower(), set()).add(number.rstrip(".,"))
    return found
