"""Selects the sentences that answer together. A sentence is scored by itself, then relative to those already chosen. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from assay.answer import polar
from assay.answer.conflicts import pair
from assay.answer.extractive.answer_kind import (
    CHOSEN,
    COUNTED_THINGS,
    MONEY_ASKED,
    NUMBER,
    PERIOD_ASKED,
    answer_fits,
    fits_role,
    gives_reason,
    has_answer_kind,
)
from assay.core.types import Quote
from assay.evidence.weigh import rarity
from assay.language.names import find_names
from assay.language.negation import find_reversal
from assay.language.question_kind import KINDS, asks_for_several
from assay.language.sentences import COLUMN_VALUE, is_table_row
from assay.language.terms import content_terms, fold_case
from assay.models.answer_model import Reading


@dataclass(frozen=True, slots=True)
class Extraction:
    """How sentences are chosen, and when none is. Measured; a weight of 0 disables its feature. See
    docs/decisions/0005-extraction.md."""

    passages: int = 8  # the best passages; their sentences compete
    others: int = 4  # passages of further documents beside them
    claims: int = 4  # sentences of an answer
    listed: int = 8  # sentences if the question asks for several things and a table or list has them

    # Score of a sentence by itself.
    nearness: float = 0.5  # similarity to the question
    words: float = 0.8  # terms of the question that the sentence contains, weighted by rarity
    title: float = 0.8  # factor for a term that only the titles above the sentence contain
    passage: float = 0.6  # retrieval score of the sentence's passage
    opening: float = 0.2  # the first sentence of a document says what it is about
    kind: float = 0.3  # the sentence contains the requested kind of value: a number, a date, a name
    fragment: float = 0.4  # penalty for non-sentences: headings, subject lines, labels

    # Score of a sentence relative to those chosen.
    fresh: float = 1.0  # terms of the question that no chosen sentence contains
    tied: float = 0.15  # a name links one to the other
    again: float = 0.5  # penalty for a second sentence of the same passage
    repeated: float = 0.9  # similarity from which on, with the same numbers, it is a repetition
    stop: float = 0.45  # minimum gain of a further sentence,
    beside: float = 0.45  # plus this share of the best one's score
    conflicts: bool = True  # also choose a sentence that contradicts a chosen one

    # With an answer model: it reads the best sentences by the score above, and its probabilities decide.
    read: int = 24  # sentences
    reading: float = 0.2  # weight of the score above beside the probability that a sentence answers
    answers: float = 0.5  # probability from which on a sentence is an answer,
    further: float = 0.9  # and from which on another one is worth saying
    tied_answers: float = 0.5  # the same for one that a name ties to a chosen one
    goes_on: float = 0.05  # share of the question that a sentence must add to go on from the best one
    unfit: float = 0.3  # factor where the answer in it is not of the kind that is asked for
    decides: float = 0.1  # probability from which on a sentence may decide a yes/no question

    # Without one: whether the chosen sentences are an answer at all; log-odds, independent of other results.
    of_nearness: float = 6.5
    of_words: float = 2.0
    of_names: float = 5.0
    bias: float = -9.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence that might be part of the answer. `came`: the passages its own was reached from, by the name that led
    there."""

    quote: Quote
    key: str
    passage: str
    worth: float
    opens: bool = False  # first of its document
    label: str = ""  # title and headings above it, and what else identifies the document
    before: str = ""  # what its passage says before it
    came: Mapping[str, str] | None = None
    under: str = ""  # title and headings alone

    @property
    def said(self) -> str:
        """The text to embed: "It was founded in 1901" means nothing without its title."""
        title = (self.under or self.label).partition(" › ")[0]
        return self.quote.text if fold_case(title) in fold_case(self.quote.text) else f"{title}: {self.quote.text}"

    @property
    def in_context(self) -> str:
        """The text that an answer model reads: the sentence under its title and headings."""
        above = self.under or self.label
        return f"{above}: {self.quote.text}" if above else self.quote.text


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """The candidates as arrays, one row each."""

    found: Sequence[Candidate]
    score: np.ndarray
    near: np.ndarray
    alike: np.ndarray  # pairwise similarity
    holds: np.ndarray  # sentence × term of the question
    weights: np.ndarray  # of the terms, by rarity; they sum to 1
    readings: Mapping[int, Reading] | None = None  # by place, if an answer model has read the best sentences

    def answers(self, place: int) -> float:
        """The probability that a sentence answers; 0 for one that was not read."""
        reading = (self.readings or {}).get(place)
        return reading.answers if reading else 0.0

    def spoken(self, places: Sequence[int]) -> float:
        """The share of the question that these sentences cover together."""
        return float(self.holds[list(places)].max(axis=0) @ self.weights) if places else 0.0


def field(question: str, found: Sequence[Candidate], vectors: np.ndarray, by: Extraction) -> Field:
    """Build the arrays. `vectors` are those of the question and of each sentence."""
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
    """Text × term: 1 where the text contains the term."""
    own = [frozenset(content_terms(each)) for each in texts]
    return np.array([[term in terms for term in rare] for terms in own], dtype=float).reshape(len(texts), len(rare))


def best_places(of: Field, by: Extraction) -> list[int]:
    """The places of the best sentences: those that an answer model should read."""
    return [int(place) for place in np.argsort(-of.score, kind="stable")[: by.read]]


def with_readings(question: str, of: Field, readings: Mapping[int, Reading], by: Extraction) -> Field:
    """The candidates ordered by what an answer model says of them; what it has not read comes last."""
    readings = {
        place: reading
        if _fits(question, of.found[place], reading)
        else replace(reading, answers=by.unfit * reading.answers)
        for place, each in readings.items()
        for reading in (with_value(of.found[place], each),)
    }
    top = float(of.score.max()) or 1.0
    score = np.array(
        [
            readings[place].answers + by.reading * float(of.score[place]) / top if place in readings else -1.0
            for place in range(len(of.found))
        ]
    )
    return replace(of, score=score, readings=readings)


def with_value(candidate: Candidate, reading: Reading) -> Reading:
    """The reading of a row of `column: value` pairs where the model marks the name of a column: its value is marked too."""
    begins = len(candidate.in_context) - len(candidate.quote.text)
    start, end = (place - begins for place in reading.span)
    row = candidate.quote.text
    if start < 0 or not is_table_row(row):
        return reading
    cells = [match.span() for match in COLUMN_CELL.finditer(row)]
    cell = next((cell for cell in cells if cell[0] <= start and end <= row.find(": ", cell[0])), None)
    return replace(reading, span=(reading.span[0], begins + cell[1])) if cell else reading


def _fits(question: str, candidate: Candidate, reading: Reading) -> bool:
    """Whether the answer that the model marks is of the kind that is asked for, says something that the question does not,
    and is in the sentence itself: a date in the title is not when something ends."""
    inside = reading.span[1] > len(candidate.in_context) - len(candidate.quote.text)
    marked, said = candidate.in_context[slice(*reading.span)], candidate.quote.text
    if not inside:
        return _in_period(question, marked, said)
    if _is_bare(said, marked) or find_reversal(question, said):  # asked for the end, it says the start
        return False
    if frozenset(content_terms(marked)) <= frozenset(content_terms(question)) and polar.parse(question) is None:
        return False
    if HYPOTHETICAL.search(question) and not HYPOTHETICAL.search(said):
        return False  # what was is not what would have been
    if MONEY_ASKED.search(question) and COUNTED_THINGS.match(said[max(0, said.find(marked)) :]):
        return False
    if _is_address(question, candidate, reading) or not fits_role(question, said):
        return False
    return _compares(question, said, marked) and gives_reason(question, marked) and answer_fits(question, marked)


COUNT_ASKED = re.compile(r"\bhow many\b", re.I)
ADDRESS = re.compile(r"\D*\d+\s+([A-Z]\w+ [A-Z]\w+)")


def _is_address(question: str, candidate: Candidate, reading: Reading) -> bool:
    """Whether the number that is marked as a count is that of a place: "14 Harbour Street"."""
    place = ADDRESS.match(candidate.in_context[reading.span[0] :]) if COUNT_ASKED.search(question) else None
    return place is not None and fold_case(place[1]) not in fold_case(question)


def _in_period(question: str, marked: str, sentence: str) -> bool:
    """Whether the title gives the month or the year that is asked for, of a sentence that has every name of the question:
    a report on March says what was so in March."""
    named = [frozenset(content_terms(name.text)) for name in find_names(question)]
    said = frozenset(content_terms(sentence))
    asked = PERIOD_ASKED.search(question)
    return bool(asked and named) and all(own <= said for own in named) and answer_fits(question, marked)


def _is_bare(sentence: str, marked: str) -> bool:
    """Whether a line has nothing but the answer: a date on its own says nothing of what happened then."""
    return is_fragment(sentence) and not frozenset(content_terms(sentence)) - frozenset(content_terms(marked))


DIFFERENCE = re.compile(r"\bby how much\b|\bhow much (?:more|less|higher|lower|longer)\b|\bdifference between\b", re.I)
BY = re.compile(r"\bby (?:\w+ ){0,2}$|\bdifference\b", re.I)  # before the figure: "fell by about 3"
THAN = re.compile(r"^.{0,40}\bthan\b", re.I)  # behind it: "3 metres higher than"
COLUMN_CELL = re.compile(r"(?<![^; ])[^;:|]{1,40}: [^;]*")
HYPOTHETICAL = re.compile(r"\b(?:would|could|might|should) (?:\w+ )?have\b", re.I)


def _compares(question: str, sentence: str, marked: str) -> bool:
    """Whether a sentence says a difference, if one is asked for: of two figures neither is the answer."""
    if not DIFFERENCE.search(question):
        return True
    before, _, after = sentence.partition(marked)
    shared = frozenset(content_terms(question)) & frozenset(content_terms(sentence))
    return bool(shared and (BY.search(before) or BY.search(marked) or THAN.search(after)))


def choose(question: str, of: Field, by: Extraction) -> list[int]:
    """Indexes of the sentences that answer together, in order of selection, best first."""
    if not len(of.found):
        return []
    if of.readings is not None:
        return _choose_by_readings(question, of, by)
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


def _choose_by_readings(question: str, of: Field, by: Extraction) -> list[int]:
    """The sentence that most probably answers, further ones that do, and those that a name ties to it."""
    order = [int(place) for place in np.argsort(-of.score, kind="stable") if of.score[place] >= 0]
    chosen = order[:1]
    several = asks_for_several(question)
    one = not several and (CHOSEN.search(question) or any(each.search(question) for each in KINDS.values()))
    for place in order[1:]:
        if len(chosen) >= (by.listed if several else by.claims):
            break
        if any(_repeats(of, place, other, by) for other in chosen):
            continue
        tied = max(tie(of.found[place], of.found[other]) for other in chosen[:1])
        fresh = float((of.holds[place] * (1 - of.holds[chosen].max(axis=0))) @ of.weights)
        if (of.answers(place) >= by.further and (not one or _differs(of, chosen[0], place))) or (
            tied == 1.0 and fresh > 0 and of.answers(place) >= by.tied_answers
        ):
            chosen.append(place)
    chosen += _continued(question, of, chosen, by)
    if several:
        chosen += _others_of_the_list(of, chosen, by)
    if by.conflicts:
        chosen += _contradicting(question, of, chosen)
    return chosen


def _differs(of: Field, one: int, other: int) -> bool:
    """Whether a sentence of another document gives another figure than the best one does: both are said."""
    left, right = of.found[one], of.found[other]
    if left.quote.doc_id == right.quote.doc_id or of.readings is None:
        return False
    figures = [
        NUMBER.findall(each.in_context[slice(*of.readings[place].span)])
        for each, place in ((left, one), (right, other))
    ]
    return all(figures) and figures[0] != figures[1]


def _continued(question: str, of: Field, chosen: Sequence[int], by: Extraction) -> list[int]:
    """The sentence that goes on from the best one: it has the name or the code that the best one gives, and words of the
    question that are still open. Asked for the model of a sensor, a report names the sensor and a list its model."""
    best, reading = of.found[chosen[0]], (of.readings or {}).get(chosen[0])
    known = fold_case(question)
    span = best.in_context[slice(*reading.span)] if reading else ""
    named = (fold_case(name.text) for name in find_names(best.quote.text))
    led = [name for name in named if name not in known and (any(map(str.isdigit, name)) or name in fold_case(span))]
    open_ = of.weights * (1 - of.holds[list(chosen)].max(axis=0))
    gains = [
        (float(of.holds[place] @ open_), -place)
        for place, each in enumerate(of.found)
        if place not in chosen and any(name in fold_case(each.quote.text) for name in led)
    ]
    gain, place = max(gains, default=(0.0, 0))
    return [-place] if gain >= by.goes_on else []


def _gains(of: Field, chosen: Sequence[int], by: Extraction) -> np.ndarray:
    """The gain of each further sentence relative to those chosen."""
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
    """1 if a name leads from one passage to the other and occurs in one of the sentences; 0.5 if it does not occur."""
    name = (one.came or {}).get(other.passage) or (other.came or {}).get(one.passage)
    if not name:
        return 0.0
    return 1.0 if _names(one, name) or _names(other, name) else 0.5


def _names(candidate: Candidate, name: str) -> bool:
    return fold_case(name) in fold_case(candidate.quote.text)


def _others_of_the_list(of: Field, chosen: Sequence[int], by: Extraction) -> list[int]:
    """Further rows of a chosen row's table that cover as much of the question as it does."""
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
    """At most one contradicting sentence per chosen one: the best from another document."""
    more: list[int] = []
    for one in chosen:
        for place in np.argsort(-of.score, kind="stable"):
            if place not in (*chosen, *more) and clash(question, of, one, int(place)):
                more.append(int(place))
                break
    return more


def clash(question: str, of: Field, one: int, other: int) -> str:
    """What two sentences disagree about; empty if they agree, or if one document contains both."""
    left, right = of.found[one], of.found[other]
    if left.quote.doc_id == right.quote.doc_id:
        return ""
    return pair.between(
        question, (left.quote.text, left.label), (right.quote.text, right.label), float(of.alike[one, other])
    )


def in_order(chosen: Sequence[Candidate]) -> list[Candidate]:
    """Order: a sentence that leads to another comes before it; sentences of one passage keep their order."""
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
    """A heading, a subject line or a label: it does not end like a sentence, and is not a table row."""
    return not ENDED.search(sentence.rstrip()) and not is_table_row(sentence)


def _same_columns(one: Candidate, other: Candidate) -> bool:
    if one.quote.doc_id != other.quote.doc_id:
        return False
    left, right = COLUMN_VALUE.findall(one.quote.text), COLUMN_VALUE.findall(other.quote.text)
    if len(left) >= 3 and len(right) >= 3:
        return left[:3] == right[:3]
    return one.quote.text.count(" | ") == other.quote.text.count(" | ") >= 2
