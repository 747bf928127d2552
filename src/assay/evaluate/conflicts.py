"""How well contradictions between documents are found without a model, beside plain rules, over labelled documents."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from assay.answer.checking import facts
from assay.answer.conflicts.dispute import statements
from assay.answer.conflicts.sides import among_documents, outnumbered
from assay.core.errors import UserError
from assay.language.sentences import split_sentences
from assay.language.terms import content_terms

CORRECT, WRONG = "correct", "misinfo"
OUTNUMBERED = "outnumbered"  # of pairs that no two sentences show


@dataclass(frozen=True, slots=True)
class Labelled:
    """What a document says, and whether it is right about the question: correct, misinfo, or neither."""

    text: str
    label: str


@dataclass(frozen=True, slots=True)
class Case:
    question: str
    documents: tuple[Labelled, ...]


Pair = tuple[int, int]  # places of two documents of a case
Finder = Callable[[Case], Mapping[Pair, str]]  # the pairs that conflict, and the kind of each conflict


def load(file: Path) -> tuple[Case, ...]:
    """One case a line: a question and its documents, each with `text` and `type`."""
    if not file.is_file():
        raise UserError(f"There is no file {str(file)!r}.")
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise UserError(f"{str(file)!r} is not UTF-8.") from error
    cases = tuple(_case(line, f"{file.name}, line {number}") for number, line in enumerate(lines, 1) if line.strip())
    if not any(is_conflict(*pair) for case in cases for pair in combinations(case.documents, 2)):
        raise UserError(f"{file.name} has no document that is {CORRECT!r} beside one that is {WRONG!r}.")
    return cases


def _case(line: str, where: str) -> Case:
    try:
        row = json.loads(line)
        documents = tuple(Labelled(str(each["text"]), str(each["type"])) for each in row["documents"])
        return Case(str(row["question"]), documents)
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{where} is not a question with documents that have a text and a type.") from None


def is_conflict(left: Labelled, right: Labelled) -> bool:
    """One is right and the other is not. Two that are right speak of two things of one name."""
    return {left.label, right.label} == {CORRECT, WRONG}


def measure(cases: Sequence[Case], say: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """All pairs of documents on a question: precision, recall and F1 of what is found, and the same for plain rules."""
    began = time.perf_counter()
    found = list(_found(cases, by_documents, say))
    seconds = time.perf_counter() - began
    whole = figures(found)
    return {
        **whole,
        "quotations": figures([(pair, kind if kind != OUTNUMBERED else "") for pair, kind in found]),
        "every_pair": figures(list(_found(cases, every_pair))),
        "best_sentences": figures(list(_found(cases, best_sentences))),
        "kinds": {
            kind: {"right": right, "found": count, "precision": round(right / count, 4)}
            for kind, (right, count) in sorted(_by_kind(found).items())
        },
        "wrongly": dict(sorted(Counter(f"{one}/{other}" for one, other in _wrongly(found)).items())),
        "questions": len(cases),
        "documents": sum(len(case.documents) for case in cases),
        "pairs": len(found),
        "conflicts": sum(is_conflict(*pair) for pair, _ in found),
        "seconds": round(seconds, 3),
    }


Verdict = tuple[tuple[Labelled, Labelled], str]  # a pair, and what was found between them


def _found(cases: Sequence[Case], finder: Finder, say: Callable[[str], None] = lambda _: None) -> Iterator[Verdict]:
    for number, case in enumerate(cases, 1):
        told = finder(case)
        for one, other in combinations(range(len(case.documents)), 2):
            yield (case.documents[one], case.documents[other]), told.get((one, other), "")
        if number % 50 == 0:
            say(f"{number} of {len(cases)} questions")


def figures(found: Sequence[Verdict]) -> dict[str, float]:
    """Precision, recall and F1 over all pairs at once, and the counts they come from."""
    told = sum(bool(kind) for _, kind in found)
    right = sum(bool(kind) and is_conflict(*pair) for pair, kind in found)
    there = sum(is_conflict(*pair) for pair, _ in found)
    return {
        "precision": round(right / told, 4) if told else 0.0,
        "recall": round(right / there, 4) if there else 0.0,
        "f1": round(2 * right / (told + there), 4) if told + there else 0.0,
        "right": right,
        "found": told,
    }


def _by_kind(found: Sequence[Verdict]) -> dict[str, tuple[int, int]]:
    """Kind → how many were right, how many there were."""
    count = Counter(kind for _, kind in found if kind)
    right = Counter(kind for pair, kind in found if kind and is_conflict(*pair))
    return {kind: (right[kind], count[kind]) for kind in count}


def _wrongly(found: Sequence[Verdict]) -> Iterator[tuple[str, str]]:
    """The labels of pairs that were held to conflict and do not."""
    for (left, right), kind in found:
        if kind and not is_conflict(left, right):
            one, other = sorted((left.label, right.label))
            yield one, other


# --- how to find them -----------------------------------------------------------------------------------------------


def by_documents(case: Case) -> dict[Pair, str]:
    """What two sentences show, as a synthesis prints it; and who stands alone against the others."""
    told = [statements(each.text) for each in case.documents]
    disputes = among_documents(case.question, told)
    alone = dict.fromkeys(outnumbered(case.question, told, disputes), OUTNUMBERED)
    return {pair: dispute.kind for pair, dispute in disputes.items()} | alone


def every_pair(case: Case) -> dict[Pair, str]:
    return dict.fromkeys(combinations(range(len(case.documents)), 2), "pair")


def best_sentences(case: Case) -> dict[Pair, str]:
    """The sentences with the most words of the question hold different numbers, dates or names."""
    best = [_best(case.question, each.text) for each in case.documents]
    found: dict[Pair, str] = {}
    for one, other in combinations(range(len(best)), 2):
        ours = facts.strangers(best[one], f"{best[other]} {case.question}")
        if ours and facts.strangers(best[other], f"{best[one]} {case.question}"):
            found[one, other] = "sentence"
    return found


def _best(question: str, words: str) -> str:
    asked = frozenset(content_terms(question))
    told = [words[start:end] for start, end in split_sentences(words)]
    return max(told, key=lambda each: len(asked & frozenset(content_terms(each))), default="")
