"""Turns hits into scored quotations by rule: a passage gets its retrieval score and is quoted by its best sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from assay.core.codec import digest
from assay.core.types import Evidence, Hit, Passage, Quote
from assay.language.injection import is_suspicious
from assay.language.sentences import split_sentences
from assay.language.terms import content_terms

KEPT = 20  # passages per run worth quoting at all


def by_rule(question: str, ranked: Sequence[tuple[Hit, float]], known: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """The passages as evidence: new ones, and those whose score has changed."""
    rare = rarity(question, [hit.passage.text for hit, _ in ranked])
    before = {evidence.key: evidence for evidence in known}
    weighed = (
        Evidence(
            key=evidence_key(hit.passage),
            passage=hit.passage,
            quote=best_sentence(hit.passage, rare),
            score=score_from_worth(worth),
            question=question,
            flagged=is_suspicious(f"{hit.passage.context}\n{hit.passage.text}"),
        )
        for hit, worth in ranked
    )
    return tuple(evidence for evidence in weighed if before.get(evidence.key) != evidence)


def rescore(evidence: Sequence[Evidence], worth: Mapping[str, float]) -> tuple[Evidence, ...]:
    """The same evidence with rule-based scores, best first: used for quotations, where a model's scores no longer matter."""
    scored = (replace(each, score=score_from_worth(worth.get(each.passage.id, 0.0))) for each in evidence)
    return tuple(sorted(scored, key=lambda each: -each.score))


def score_from_worth(worth: float) -> float:
    return round(10 * (1 - math.exp(-worth)), 4)


def evidence_key(passage: Passage) -> str:
    """An opaque, deterministic key for a passage; it reveals nothing about the document."""
    return digest(passage.id)[:8]


def rarity(question: str, texts: Sequence[str]) -> dict[str, float]:
    """The question's terms, weighted by rarity among the results; the weights sum to 1."""
    found = [frozenset(content_terms(each)) for each in texts]
    weights = {
        term: math.log(1 + len(found) / (0.5 + sum(term in each for each in found))) for term in content_terms(question)
    }
    total = sum(weights.values()) or 1.0
    return {term: weight / total for term, weight in weights.items()}


def best_sentence(passage: Passage, rare: Mapping[str, float]) -> Quote:
    """The sentence of a passage that best covers the question."""

    def speaks(span: tuple[int, int]) -> float:
        there = frozenset(content_terms(passage.text[slice(*span)]))
        return sum(weight for term, weight in rare.items() if term in there)  # fixed summation order, for determinism

    spans = split_sentences(passage.text) or [(0, len(passage.text))]
    return quote(passage, *max(spans, key=speaks))


def quote(passage: Passage, start: int, end: int) -> Quote:
    """A span of a passage as a quotation of its document."""
    return Quote(passage.doc_id, passage.start + start, passage.start + end, passage.text[start:end])
