"""Finds likely disagreements before questions are asked: sentences of different documents that are similar in
meaning and differ in a number, a date, a name or a negation. Each yields a question that retrieves both sides."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from assay.agent.context import RunContext
from assay.answer.conflicts.dispute import Dispute, Statement, between
from assay.core.types import Document
from assay.language.injection import is_suspicious
from assay.language.negation import count_negations
from assay.language.particulars import CLAUSE
from assay.language.sentences import is_statement, is_table_row, split_sentences
from assay.language.terms import content_terms, fold_case
from assay.synthesis.relating.classify import are_same_template

OF_ONE, OF_ALL = 40, 4000  # sentences to compare, per document and in total
LONGEST = 40  # maximum words of such a sentence
NEAR = 0.6  # cosine similarity
MOST = 5  # questions
BESIDE, COMPARED = 3, 2000  # candidate pairs, per sentence and in total
SHARED = 10  # words of a question that come from both sides
BLOCK = 512  # sentences compared with all others at a time


@dataclass(frozen=True, slots=True)
class DisputableSentence:
    """A sentence that could be disputed, with its document."""

    doc_id: str
    statement: Statement
    around: str


async def questions(context: RunContext, documents: Sequence[str], most: int = MOST) -> tuple[str, ...]:
    """One question for each of the clearest disputes, at most one per pair of documents."""
    each = max(6, min(OF_ONE, OF_ALL // max(1, len(documents))))
    sentences = [
        one for doc in documents if (found := context.document(doc)) for one in disputable_sentences(found, each)
    ]
    if len({one.doc_id for one in sentences}) < 2:
        return ()
    vectors = await context.tool_context.search_context.embedder.queries([one.statement.words for one in sentences])
    questions: dict[frozenset[str], str] = {}
    found = await asyncio.to_thread(lambda: list(_disputes(sentences, vectors)))
    for left, right, dispute in sorted(found, key=lambda each: -each[2].weight):
        questions.setdefault(frozenset((left.doc_id, right.doc_id)), question_about(dispute))
    return tuple(dict.fromkeys(questions.values()))[:most]


def disputable_sentences(document: Document, most: int) -> list[DisputableSentence]:
    """Sentences that contain a quantity, a date or a negation, sampled evenly over a long document."""
    title = fold_case(document.text[:200]).split("\n")[0]  # the title in the text itself, whatever label is stored
    found = [
        DisputableSentence(
            document.id, Statement(" ".join(words.split()), "", title), document.text[max(0, start - 400) : end + 400]
        )
        for start, end in split_sentences(document.text)
        if _disputable(words := document.text[start:end])
    ]
    step = max(1.0, len(found) / most)
    return [found[int(place * step)] for place in range(min(most, len(found)))]


def _disputable(words: str) -> bool:
    if len(words.split()) > LONGEST or is_table_row(words) or not is_statement(words):
        return False
    if is_suspicious(words):
        return False
    return bool(re.search(r"\d", words)) or count_negations(words) > 0


def _disputes(
    sentences: Sequence[DisputableSentence], vectors: np.ndarray
) -> Iterable[tuple[DisputableSentence, DisputableSentence, Dispute]]:
    for one, other, alike in nearest([one.doc_id for one in sentences], vectors):
        found = between(sentences[one].statement, sentences[other].statement, alike)
        if found is not None and not are_same_template(sentences[one].around, sentences[other].around):
            yield sentences[one], sentences[other], found


def nearest(owners: Sequence[str], vectors: np.ndarray) -> list[tuple[int, int, float]]:
    """Each sentence with the few most similar ones of other documents, most similar pairs first. The number of pairs
    is capped at about a minute of work, however similar the documents are."""
    number = {owner: place for place, owner in enumerate(dict.fromkeys(owners))}
    own = np.array([number[owner] for owner in owners])
    pairs: dict[tuple[int, int], float] = {}
    for at in range(0, len(own), BLOCK):
        alike = vectors[at : at + BLOCK] @ vectors.T
        alike[own[at : at + BLOCK, None] == own[None, :]] = -1.0
        few = min(BESIDE, alike.shape[1] - 1)
        best = np.argpartition(-alike, few, axis=1)[:, : few + 1]
        for row, columns in enumerate(best):
            for column in columns:
                if (near := float(alike[row, column])) >= NEAR:
                    pairs[(min(at + row, int(column)), max(at + row, int(column)))] = near
    ranked = sorted(pairs.items(), key=lambda pair: (-pair[1], pair[0]))[:COMPARED]
    return [(one, other, near) for (one, other), near in ranked]


def question_about(dispute: Dispute) -> str:
    """A question that retrieves both sides. It uses only words that both have, so that no single document controls
    its wording."""
    theirs = frozenset(content_terms(dispute.right.words))
    words = re.findall(r"[^\W\d_][\w'-]*", CLAUSE.sub("", dispute.left.words))
    shared = [word for word in words if (own := content_terms(word)) and theirs.issuperset(own)]
    return f"How do the facts and figures given for {' '.join(dict.fromkeys(shared[:SHARED]))} compare?"
