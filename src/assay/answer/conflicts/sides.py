"""Finds the disputes among several documents: between each pair, and which other documents support a side. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

from assay.answer.conflicts.dispute import Dispute, Statement, between_documents, nearness
from assay.language.dates import is_date_missing
from assay.language.particulars import Token, same, tokenize
from assay.language.terms import content_terms

HALF = 0.5  # share of the question's words in one sentence: the document addresses the question
RELATED = 0.2  # share of the particulars: enough for a document with the same value to join another

Pair = tuple[int, int]  # indexes of two documents, the smaller first
Alike = Callable[[Statement, Statement], float]


def among_documents(
    question: str, documents: Sequence[Sequence[Statement]], alike: Alike = lambda *_: 1.0
) -> dict[Pair, Dispute]:
    """Each pair that disagrees, with both sentences. A document that states one side's value, and nowhere the other's,
    joins that side, even if its wording is too different to be compared with the other's."""
    found: dict[Pair, Dispute] = {}
    for one, other in combinations(range(len(documents)), 2):
        if dispute := between_documents(question, documents[one], documents[other], alike):
            found[one, other] = dispute
    joined: dict[Pair, Dispute] = {}
    for (one, other), dispute in found.items():
        for place in range(len(documents)):
            for against, beside, turned in ((one, other, False), (other, one, True)):
                pair = (min(against, place), max(against, place))
                if place in (one, other) or pair in found or pair in joined:
                    continue
                statement = _joins(documents[place], documents[beside], dispute, question, turned=turned)
                if statement is not None:
                    joined[pair] = _dispute(dispute, statement, against < place, turned=turned)
    return found | joined


def minority_pairs(
    question: str, documents: Sequence[Sequence[Statement]], disputes: Mapping[Pair, Dispute]
) -> set[Pair]:
    """Further pairs that disagree on a question although no two sentences show it. A document whose value more
    documents dispute than share is a minority, against each document that addresses the question and does not share its
    value."""
    found: set[Pair] = set()
    for (one, other), dispute in disputes.items():
        ours, theirs = _values(dispute)
        if ours is None or theirs is None:
            continue
        share, dissent = (sum(any(_says(each, value) for each in own) for own in documents) for value in (ours, theirs))
        if share == dissent:
            continue  # no way to tell which is the minority
        alone, value = (one, ours) if share < dissent else (other, theirs)
        for place, own in enumerate(documents):
            if place != alone and _addresses_question(question, own) and not any(_says(each, value) for each in own):
                found.add((min(alone, place), max(alone, place)))
    return found - disputes.keys()


def _addresses_question(question: str, document: Sequence[Statement]) -> bool:
    """Whether one of its sentences has half of the question's words."""
    asked = frozenset(content_terms(question))
    return any(len(asked & frozenset(content_terms(each.words))) >= HALF * len(asked) for each in document)


def _joins(
    document: Sequence[Statement], beside: Sequence[Statement], dispute: Dispute, question: str, *, turned: bool
) -> Statement | None:
    """The sentence with which a document takes the right side of a dispute (the left one if `turned`); None if it does
    not."""
    against, own = _values(dispute)[:: -1 if turned else 1]
    if against is None or own is None or any(_says(each, against) for each in document):
        return None
    statement = next((each for each in document if _says(each, own) and _says_all(each, own)), None)
    return statement if statement and nearness(statement, beside[0], question) >= RELATED else None


Value = Token | frozenset[str]  # a particular, or the stems of plain words


def _values(dispute: Dispute) -> tuple[Value | None, Value | None]:
    return _value(dispute, dispute.left, 0), _value(dispute, dispute.right, 1)


def _value(dispute: Dispute, statement: Statement, side: int) -> Value | None:
    value = dispute.about.split(" / ")[side:][:1]
    if not value:
        return None
    if dispute.kind == "word":
        return frozenset(content_terms(value[0]))
    return next(
        (each for each in tokenize(statement.words) if (each.kind, each.text) == (dispute.kind, value[0])), None
    )


def _says(statement: Statement, value: Value) -> bool:
    if isinstance(value, frozenset):
        return value <= frozenset(content_terms(statement.words))
    same_kind = (each for each in tokenize(statement.words) if each.kind == value.kind)
    return any(value.meaning <= each.meaning if value.kind == "name" else same(value, each) for each in same_kind)


def _says_all(statement: Statement, value: Value) -> bool:
    """Whether the sentence gives a day if the value is a day: 1900 alone does not state 14 August 1900."""
    if isinstance(value, frozenset) or value.kind != "date":
        return True
    return not is_date_missing(
        value.meaning, [each.meaning for each in tokenize(statement.words) if each.kind == "date"]
    )


def _dispute(found: Dispute, joining: Statement, first: bool, *, turned: bool) -> Dispute:
    """The same dispute with the sentence of the document that joined; the first document is on the left."""
    mine = found.right if turned else found.left
    ours, theirs = found.about.split(" / ")[:: -1 if turned else 1]
    left, right = (mine, joining) if first else (joining, mine)
    about = f"{ours} / {theirs}" if first else f"{theirs} / {ours}"
    return Dispute(left, right, about, found.kind, 0.0)
