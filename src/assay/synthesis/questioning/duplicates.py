"""Merges questions that ask the same into one, with all the documents they came from. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.answer.extractive.extract import question_names
from assay.core.account import Pipeline, Question, QuestionKind
from assay.language.terms import fold_case
from assay.synthesis.questioning.rule_questions import question_key

if TYPE_CHECKING:
    import numpy as np

# Measured with the bundled embedder: rewordings of one question have a similarity of 0.90 to 0.98, questions about two
# aspects of one thing (causes, consequences) up to 0.904, about two things up to 0.82. A wrong merge loses a question;
# a missed one only asks twice. Hence the high value.
NEAR = 0.91
# Words that reverse a question, which neither its terms nor its vector distinguish.
TURNS = re.compile(
    r"\b(?:why|when|where|who|whom|how (?:many|much|long|often)|before|after|not|no|never|without|more|less|above|below"
    r"|against|first|last)\b",
    re.I,
)


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question with the document it came from; "" for comparative questions."""

    words: str
    doc_id: str


def merge_questions(
    asked: Sequence[AskedQuestion],
    earlier: Sequence[Question],
    vectors: np.ndarray,
    pipeline: Pipeline,
    readable: Sequence[str],
    pass_: int,
) -> tuple[Question, ...]:
    """The new questions in input order; the first of several that ask the same provides the wording. `vectors` are
    those of the earlier questions followed by these. A comparative question stays comparative and concerns all
    documents. A follow-up that was asked before is dropped, unless its document would then have none."""
    new = vectors[len(earlier) :]
    first: list[int] = []  # positions of the questions that are kept
    origins: dict[int, list[str]] = {}
    for place, put in enumerate(asked):
        same = next((other for other in first if _is_same(asked[other], put, float(new[other] @ new[place]))), None)
        if same is None:
            first.append(place)
            origins[place] = []
        origins[place if same is None else same].append(put.doc_id)
    kept = _not_asked_before(asked, earlier, vectors, first, origins)
    return tuple(
        Question(
            f"q{number}",
            asked[place].words,
            _kind(asked[place].doc_id, pipeline, pass_),
            tuple(dict.fromkeys(origins[place])) if asked[place].doc_id else tuple(readable),
        )
        for number, place in enumerate(kept, len(earlier) + 1)
    )


def _is_same(left: AskedQuestion, right: AskedQuestion, near: float) -> bool:
    """Whether two questions ask the same. Different names, numbers or months make them different, however similar
    they are."""
    if bool(left.doc_id) != bool(right.doc_id):
        return False
    return ask_the_same(left.words, right.words, near)


def ask_the_same(left: str, right: str, near: float) -> bool:
    if near < NEAR and question_key(left) != question_key(right):
        return False
    return _named(left) == _named(right) and _turns(left) == _turns(right)


def _named(question: str) -> frozenset[str]:
    return frozenset(fold_case(name) for name in question_names(question))


def _turns(question: str) -> frozenset[str]:
    return frozenset(found.lower() for found in TURNS.findall(question))


def _not_asked_before(
    asked: Sequence[AskedQuestion],
    earlier: Sequence[Question],
    vectors: np.ndarray,
    first: Sequence[int],
    origins: dict[int, list[str]],
) -> list[int]:
    old, new = vectors[: len(earlier)], vectors[len(earlier) :]
    again = {
        place
        for place in first
        for number, before in enumerate(earlier)
        if ask_the_same(before.text, asked[place].words, float(old[number] @ new[place]))
    }
    bare = {put.doc_id for put in asked} - {doc for place in first if place not in again for doc in origins[place]}
    for place in first:  # a repeated question is better than none
        if place in again and bare & set(origins[place]):
            again.discard(place)
            bare -= set(origins[place])
    return [place for place in first if place not in again]


def _kind(doc_id: str, pipeline: Pipeline, pass_: int) -> QuestionKind:
    if not doc_id:
        return QuestionKind.comparative
    if pass_ > 1:
        return QuestionKind.follow_up
    return QuestionKind.workings if pipeline is Pipeline.synthesis else QuestionKind.theme


def most_different(vectors: np.ndarray, count: int) -> list[int]:
    """The positions of `count` rows, in order: starting with the first, each next one is farthest from all selected."""
    taken = [0]
    while len(taken) < min(count, len(vectors)):
        nearest = (vectors @ vectors[taken].T).max(axis=1)
        taken.append(
            min((place for place in range(len(vectors)) if place not in taken), key=lambda at: (nearest[at], at))
        )
    return sorted(taken)
