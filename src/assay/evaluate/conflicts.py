"""Precision and recall of finding contradictions between labelled documents without a model, next to two baselines."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from assay.core.errors import UserError
from assay.evaluate.metrics import intervals
from assay.evaluate.plain_text import json_lines
from assay.language import facts
from assay.language.disputes import among_documents, statements
from assay.language.sentences import split_sentences
from assay.language.terms import content_terms

CORRECT, WRONG = "correct", "misinfo"


@dataclass(frozen=True, slots=True)
class LabelledDocument:
    """A document with its label for the question: correct, misinfo, or anything else for neither."""

    text: str
    label: str


@dataclass(frozen=True, slots=True)
class ConflictCase:
    question: str
    documents: tuple[LabelledDocument, ...]


DocumentPair = tuple[int, int]  # places of two documents of a case
# The pairs that conflict, and the kind of each conflict.
ConflictFinder = Callable[[ConflictCase], Mapping[DocumentPair, str]]


def load(file: Path) -> tuple[ConflictCase, ...]:
    """Load one case per line: a question and its documents, each with `text` and `type`."""
    cases = tuple(json_lines(file, _parse_case, "a question with documents that have a text and a type"))
    if not any(is_conflict(*pair) for case in cases for pair in combinations(case.documents, 2)):
        raise UserError(f"{file.name} has no document that is {CORRECT!r} beside one that is {WRONG!r}.")
    return cases


def _parse_case(row: Mapping[str, Any], _: int) -> ConflictCase:
    documents = tuple(LabelledDocument(str(each["text"]), str(each["type"])) for each in row["documents"])
    return ConflictCase(str(row["question"]), documents)


def is_conflict(left: LabelledDocument, right: LabelledDocument) -> bool:
    """Whether one is correct and the other is not. Two correct ones are about two things of the same name."""
    return {left.label, right.label} == {CORRECT, WRONG}


def measure(cases: Sequence[ConflictCase], report: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Precision, recall and F1 over all pairs of documents on a question, for the product and for the baselines."""
    began = time.perf_counter()
    by_case: list[list[PairResult]] = []
    for number, case in enumerate(cases, 1):
        by_case.append(_compare_pairs(case, find_by_documents))
        if number % 50 == 0:
            report(f"{number} of {len(cases)} questions")
    seconds = time.perf_counter() - began
    found = [each for pairs in by_case for each in pairs]
    right = Counter(kind for pair, kind in found if kind and is_conflict(*pair))
    wrong = [
        sorted((left.label, right.label)) for (left, right), kind in found if kind and not is_conflict(left, right)
    ]
    wrongly = Counter("/".join(labels) for labels in wrong)
    return {
        **scores(found),
        "intervals": intervals([_tally(pairs) for pairs in by_case], _rates),  # questions are drawn, not pairs
        "n": len(cases),
        "every_pair": scores([each for case in cases for each in _compare_pairs(case, find_every_pair)]),
        "best_sentences": scores([each for case in cases for each in _compare_pairs(case, find_by_best_sentences)]),
        "kinds": {
            kind: {"right": right[kind], "found": count, "precision": round(right[kind] / count, 4)}
            for kind, count in sorted(Counter(kind for _, kind in found if kind).items())
        },
        "wrongly": dict(sorted(wrongly.items())),
        "questions": len(cases),
        "documents": sum(len(case.documents) for case in cases),
        "pairs": len(found),
        "conflicts": sum(is_conflict(*pair) for pair, _ in found),
        "seconds": round(seconds, 3),
    }


# A pair, and the kind of conflict found; empty for none.
PairResult = tuple[tuple[LabelledDocument, LabelledDocument], str]


def _compare_pairs(case: ConflictCase, finder: ConflictFinder) -> list[PairResult]:
    found_pairs = finder(case)
    return [
        ((case.documents[one], case.documents[other]), found_pairs.get((one, other), ""))
        for one, other in combinations(range(len(case.documents)), 2)
    ]


def scores(found: Sequence[PairResult]) -> dict[str, float]:
    """Precision, recall and F1 over all pairs at once, and the counts they come from."""
    right, reported, _ = tally = _tally(found)
    return {**{name: round(value, 4) for name, value in _rates([tally]).items()}, "right": right, "found": reported}


Tally = tuple[int, int, int]  # pairs rightly reported, reported, in conflict


def _tally(found: Sequence[PairResult]) -> Tally:
    return (
        sum(bool(kind) and is_conflict(*pair) for pair, kind in found),
        sum(bool(kind) for _, kind in found),
        sum(is_conflict(*pair) for pair, _ in found),
    )


def _rates(tallies: Sequence[Tally]) -> dict[str, float]:
    right, reported, actual = (sum(each) for each in zip(*tallies, strict=True))
    return {
        "precision": right / reported if reported else 0.0,
        "recall": right / actual if actual else 0.0,
        "f1": 2 * right / (reported + actual) if reported + actual else 0.0,
    }


def find_by_documents(case: ConflictCase) -> dict[DocumentPair, str]:
    """The product: conflicts that two sentences show."""
    documents = [statements(each.text) for each in case.documents]
    return {pair: dispute.kind for pair, dispute in among_documents(case.question, documents).items()}


def find_every_pair(case: ConflictCase) -> dict[DocumentPair, str]:
    """Baseline: every pair conflicts."""
    return dict.fromkeys(combinations(range(len(case.documents)), 2), "pair")


def find_by_best_sentences(case: ConflictCase) -> dict[DocumentPair, str]:
    """Baseline: the sentences with the most words of the question have different numbers, dates or names."""
    best = [_best_sentence(case.question, each.text) for each in case.documents]
    found: dict[DocumentPair, str] = {}
    for one, other in combinations(range(len(best)), 2):
        ours = facts.missing_facts(best[one], f"{best[other]} {case.question}")
        if ours and facts.missing_facts(best[other], f"{best[one]} {case.question}"):
            found[one, other] = "sentence"
    return found


def _best_sentence(question: str, words: str) -> str:
    asked = frozenset(content_terms(question))
    sentences = [words[start:end] for start, end in split_sentences(words)]
    return max(sentences, key=lambda each: len(asked & frozenset(content_terms(each))), default="")
