"""Which sentences answer together. A sentence is scored by itself, then beside those already chosen. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from assay.answer.conflicts import pair
from assay.answer.conflicts.question_kind import KINDS, asks_for_several
from assay.core.types import Quote
from assay.evidence.weigh import rarity
from assay.language.names import find_names
from assay.language.sentences import COLUMN_VALUE, is_table_row
from assay.language.terms import content_terms, fold_case


@dataclass(frozen=True, slots=True)
class Extraction:
    """How sentences are chosen and when none is. Measured; a weight of 0 switches its trick off.
    See docs/decisions/0005-extraction.md."""

    passages: int = 8  # the best passages; their sentences compete
    claims: int = 4  # sentences of an answer
    listed: int = 8  # sentences where the question asks for several things and a table or list has them

    # A sentence by itself.
    nearness: float = 0.5  # to the question, by meaning
    words: float = 0.8  # of the question that the sentence speaks of, the rare ones first
    title: float = 0.8  # how much it counts that not the sentence but the titles above it speak of a word
    passage: float = 0.6  # what the searches made of the sentence's passage
    opening: float = 0.2  # the first sentence of a document says what it is about
    kind: float = 0.3  # the sentence holds the kind of thing that was asked for: a number, a date, a name
    fragment: float = 0.4  # lost by what is no sentence: headings, subject lines, labels

    # A sentence beside those chosen.
    fresh: float = 1.0  # words of the question that no chosen sentence speaks of
    tied: float = 0.15  # a name leads from one to the other
    again: float = 0.5  # lost by a second sentence of the same passage
    repeated: float = 0.9  # as near as this by meaning, with the same numbers: said already
    stop: float = 0.45  # a further sentence must reach this, and
    beside: float = 0.45  # this share of the best one on top
    conflicts: bool = True  # a sentence that contradicts a chosen one is chosen too

    # Whether what was chosen is an answer at all: log-odds, on a scale that does not depend on what else was found.
    of_nearness: float = 6.5
    of_words: float = 2.0
    of_names: float = 5.0
    bias: float = -9.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence that might be part of the answer. `came` are the passages its own was reached from, by the name that led."""

    quote: Quote
    key: str
    passage: str
    worth: float
    opens: bool = False  # first of its document
    label: str = ""  # title and headings it stands under
    came: Mapping[str, str] | None = None

    @property
    def said(self) -> str:
        """What to embed: "It was founded in 1901" says nothing without its title."""
        title = self.label.partition(" › ")[0]
        return self.quote.text if fold_case(title) in fold_case(self.quote.text) else f"{title}: {self.quote.text}"


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """The candidates as numbers: one row each."""

    found: Sequence[Candidate]
    score: np.ndarray
    near: np.ndarray
    alike: np.ndarray  # each sentence with each
    holds: np.ndarray  # sentence × term of the question
    weights: np.ndarray  # of the terms, by rarity; they add up to 1

    def spoken(self, places: Sequence[int]) -> float:
        """How much of the question these sentences speak of together."""
        return float(self.holds[list(places)].max(axis=0) @ self.weights) if places else 0.0


def field(question: str, found: Sequence[Candidate], vectors: np.ndarray, by: Extraction) -> Field:
    """`vectors` are those of the question and of each sentence."""
    said = np.asarray(vectors[1:])
    near = said @ np.asarray(vectors[0])
    rare = rarity(question, [each.quote.text for each in found])
    own, above = _held(rare, [each.quote.text for each in found]), _held(rare, [each.label for each in found])
    holds = np.maximum(own, by.title * above)
    weights = np.array(list(rare.values()))
    score = (
        by.nearness * near
        + by.words * (holds @ weights)
        + by.passage * np.array([each.worth for each in found])
        + by.opening * np.array([each.opens for each in found])
        + by.kind * np.array([has_answer_kind(question, each.quote.text) for each in found])
        - by.fragment * np.array([is_fragment(each.quote.text) for each in found])
    )
    return Field(found, score, near, said @ said.T, holds, weights)


def _held(rare: Mapping[str, float], texts: Sequence[str]) -> np.ndarray:
    """Text × term: 1 where the text has the term."""
    own = [frozenset(content_terms(each)) for each in texts]
    return np.array([[term in terms for term in rare] for terms in own], dtype=float).reshape(len(texts), len(rare))


def choose(question: str, of: Field, by: Extraction) -> list[int]:
    """Places of the sentences that answer together, in the order they were chosen: the best one first."""
    if not len(of.found):
        return []
    chosen = [int(np.argmax(of.score))]
    best = float(of.score[chosen[0]])
    while len(chosen) < min(by.claims, len(of.found)):
        gains = _gains(of, chosen, by)
        place = int(np.argmax(gains))
        if gains[place] < by.stop + by.beside * best:
            break
        chosen.append(place)
    if asks_for_several(question):
        chosen += _others_of_the_list(of, chosen, by)
    if by.conflicts:
        chosen += _contradicting(question, of, chosen)
    return chosen


def _gains(of: Field, chosen: Sequence[int], by: Extraction) -> np.ndarray:
    """What each further sentence is worth beside those chosen."""
    fresh = (of.holds * (1 - of.holds[list(chosen)].max(axis=0))) @ of.weights
    ties = np.array([max(tie(each, of.found[other]) for other in chosen) for each in of.found])
    beside = np.array([any(each.passage == of.found[other].passage for other in chosen) for each in of.found])
    gains = of.score + by.fresh * fresh + by.tied * ties - by.again * beside
    for place in range(len(of.found)):
        if place in chosen or any(_repeats(of, place, other, by) for other in chosen):
            gains[place] = -np.inf
    return gains


def _repeats(of: Field, place: int, other: int, by: Extraction) -> bool:
    same = pair.numbers(of.found[place].quote.text) == pair.numbers(of.found[other].quote.text)
    return same and float(of.alike[place, other]) > by.repeated


def tie(one: Candidate, other: Candidate) -> float:
    """1 when a name leads from one passage to the other and stands in one of the sentences; half that when it does not."""
    name = (one.came or {}).get(other.passage) or (other.came or {}).get(one.passage)
    if not name:
        return 0.0
    return 1.0 if _names(one, name) or _names(other, name) else 0.5


def _names(candidate: Candidate, name: str) -> bool:
    return fold_case(name) in fold_case(candidate.quote.text)


def _others_of_the_list(of: Field, chosen: Sequence[int], by: Extraction) -> list[int]:
    """Further rows of a table that a chosen row is from, if they speak of the question as much as it does."""
    more: list[int] = []
    for place in np.argsort(-of.score, kind="stable"):
        each = of.found[place]
        if len(chosen) + len(more) >= by.listed:
            break
        if place not in chosen and any(
            _same_columns(each, of.found[row]) and of.spoken([int(place)]) >= of.spoken([row]) for row in chosen
        ):
            more.append(int(place))
    return more


def _contradicting(question: str, of: Field, chosen: Sequence[int]) -> list[int]:
    """At most one sentence for each chosen one: the best that another document says otherwise."""
    more: list[int] = []
    for one in chosen:
        for place in np.argsort(-of.score, kind="stable"):
            if place not in (*chosen, *more) and clash(question, of, one, int(place)):
                more.append(int(place))
                break
    return more


def clash(question: str, of: Field, one: int, other: int) -> str:
    """What two sentences disagree about; nothing if they do not, or if one document says both."""
    left, right = of.found[one], of.found[other]
    if left.quote.doc_id == right.quote.doc_id:
        return ""
    return pair.between(
        question, (left.quote.text, left.label), (right.quote.text, right.label), float(of.alike[one, other])
    )


def in_order(chosen: Sequence[Candidate]) -> list[Candidate]:
    """What leads to another sentence stands before it; sentences of one passage stand as they stand there."""
    placed: list[Candidate] = []
    waiting: list[Candidate] = []

    def place(each: Candidate) -> None:
        if each in placed or each in waiting:
            return
        waiting.append(each)
        for other in chosen:
            earlier = other.passage == each.passage and other.quote.start < each.quote.start
            name = (each.came or {}).get(other.passage)
            if earlier or (name and _names(other, name)):
                place(other)
        placed.append(each)

    for each in chosen:
        place(each)
    return placed


# --- what a sentence is ---------------------------------------------------------------------------------------------

ENDED = re.compile(r"[.!?…。！？][\"'”’»)\]]*(?:\s?\[\d+\])*$")


def is_fragment(sentence: str) -> bool:
    """A heading, a subject line, a label: it does not end as a sentence does, and is no row of a table."""
    return not ENDED.search(sentence.rstrip()) and not is_table_row(sentence)


def _same_columns(one: Candidate, other: Candidate) -> bool:
    if one.quote.doc_id != other.quote.doc_id:
        return False
    left, right = COLUMN_VALUE.findall(one.quote.text), COLUMN_VALUE.findall(other.quote.text)
    if len(left) >= 3 and len(right) >= 3:
        return left[:3] == right[:3]
    return one.quote.text.count(" | ") == other.quote.text.count(" | ") >= 2


NUMBER = re.compile(r"\d[\d,.]*")
DATE = re.compile(r"\b(?:1[0-9]|20)\d\d\b|\b\d{1,2}[:.]\d{2}\b")


def has_answer_kind(question: str, sentence: str) -> bool:
    """Whether a sentence holds the kind of thing that was asked for, beyond what the question already says."""
    kind = next((kind for kind, pattern in KINDS.items() if pattern.search(question)), None)
    known = fold_case(question)
    match kind:
        case "number":
            return any(number not in known for number in NUMBER.findall(sentence))
        case "date":
            return any(date not in known for date in DATE.findall(sentence))
        case "name":
            return any(fold_case(name.text) not in known for name in find_names(sentence))
        case _:
            return False
