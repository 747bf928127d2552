"""Weighing: passages in, scored quotations out; by rule, by the answer model, or as a language model said, which may say
in the same reply whether the evidence is enough. Pure: the agent's step asks the model.

Assessment is pluggable: an `Assessor` replaces the model, and its quotations are checked the same way.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Annotated, Any, Protocol

from pydantic import BaseModel, Field

from assay import prompts
from assay.core.codec import digest
from assay.core.events import Found, Gathered
from assay.core.types import Evidence, Hit, Passage, Quote
from assay.language.dates import with_weekday
from assay.language.injection import is_suspicious
from assay.language.quotation import locate_quote
from assay.language.sentences import is_table_row, split_sentences
from assay.language.terms import content_terms, rarity_among
from assay.models.cost import estimate_tokens, fair_share, fit_to_tokens, shorten_path
from assay.models.llm import Reading
from assay.models.replies import type_schema
from assay.prompts import context_label, fence

KEPT = 20  # passages per run worth quoting at all


def by_rule(question: str, ranked: Sequence[tuple[Hit, float]], known: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """The passages as evidence: new ones, and those whose score has changed."""
    rare = rarity(question, [hit.passage.text for hit, _ in ranked])
    before = {evidence.key: evidence for evidence in known}
    weighed = (
        as_evidence(hit.passage, best_sentence(hit.passage, rare), score_from_worth(worth), question)
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
    return rarity_among(question, [frozenset(content_terms(each)) for each in texts])


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


WITH_THESE = "Then judge all the evidence: what you keep of these passages, and what is shown of earlier rounds.\n"
READ_ON = (
    "read: the question asks for a whole set. The key or id of one passage of each document that has to be read to its end, "
    "because more of the set may stand there; none for a document that has given all it can.\n"
)
SAYS = 3  # minimum words of a quotation
LEADING = 3  # passages that are kept for their rank
LABEL = 60  # tokens of a title, and of the headings, above a passage
NOTE, QUOTED = 600, 1500  # most characters of a note and of a quotation
INSTRUCTIONS, REPLY = 900, 130  # tokens of a request besides its passages, and of the reply to one passage
JUDGING = 400  # tokens of a reply that also says whether the evidence is enough


class Weight(BaseModel, extra="forbid"):
    """What one passage is worth."""

    id: str
    quote: Annotated[str, Field(max_length=QUOTED)] = ""
    score: int = Field(ge=0, le=10)
    note: Annotated[str, Field(max_length=NOTE)] = ""


class Weights(BaseModel, extra="forbid"):
    """The passages that help; those left out do not."""

    passages: list[Weight] = Field(max_length=64)


VALUES = 6  # things that one step may find
Short = Annotated[str, Field(max_length=200)]


class StepAnswer(BaseModel, extra="forbid"):
    step: str
    value: Short
    key: str


class Sufficiency(BaseModel, extra="forbid"):
    """Whether the evidence is enough, what it lacks, and the searches for that."""

    answers: list[StepAnswer] = Field(default_factory=list, max_length=12)
    enough: bool
    missing: list[Short] = Field(default_factory=list, max_length=6)
    searches: list[Short] = Field(default_factory=list, max_length=4)
    read: list[str] = Field(default_factory=list, max_length=20)  # of a whole set: passages of documents to read on in
    surprise: bool = False


class JudgedWeights(Sufficiency, Weights):
    """Both, in one reply."""


class Assessor(Protocol):
    """An alternative to the model: returns a weight or none for each passage, given with its title. `id` is the
    passage's own."""

    async def __call__(
        self, question: str, parts: Sequence[str], passages: Sequence[tuple[Passage, str]]
    ) -> Sequence[Weight]: ...


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Limits of one request. Measured: see docs/decisions/0008-cost.md."""

    tokens: int = 8000  # of passages
    together: int = 20  # passages
    alone: int = 1  # passages, for a small model: it cannot tell several apart


def batches(found: Sequence[Found], window: int, width: BatchLimits) -> Iterator[tuple[Found, ...]]:
    """Batches of passages for one request: few enough to be read with care, and short enough that request and reply fit
    the context window uncut."""
    batch: list[Found] = []
    used = 0
    for each in found:
        cost = estimate_tokens(each.passage.text) + estimate_tokens(each.passage.context)
        count = len(batch) + 1
        full = used + cost > width.tokens or used + cost + count * (2 * LABEL + REPLY) > window - INSTRUCTIONS
        if batch and (full or count > width.together):
            yield tuple(batch)
            batch, used = [], 0
        batch.append(each)
        used += cost
    if batch:
        yield tuple(batch)


def leaves_room(batch: Sequence[Found], window: int, share: int) -> bool:
    """Whether a request with this batch leaves this much of the context window for the evidence so far."""
    cost = sum(estimate_tokens(each.passage.text) + estimate_tokens(each.passage.context) for each in batch)
    return cost + len(batch) * (2 * LABEL + REPLY) + INSTRUCTIONS + JUDGING + share <= window


def build_prompt(
    question: str,
    parts: Sequence[str],
    batch: Sequence[Found],
    titles: Mapping[str, str],
    mark: str,
    room: int,
    so_far: str = "",
    *,
    today: str = "",
    whole_set: bool = False,
    pictures: bool = False,
) -> dict[str, str]:
    """The prompt's values. A passage that does not fit is cut at its end; its quotation is then located in the shown part.
    With `so_far`, the steps and the evidence of earlier rounds, the reply also says whether there is enough."""
    judges = bool(so_far)
    labels = [
        f"P{place}, from {fit_to_tokens(titles.get(each.passage.doc_id, ''), LABEL)!r} "
        f"{shorten_path(each.passage.heading, LABEL)}{context_label(each.passage)}"
        for place, each in enumerate(batch, 1)
    ]
    so_far += prompts.template("weigh_pictures") + "\n" if pictures else ""
    taken = [question, question, so_far, *parts, *(fence(mark, label, "") for label in labels)]
    left = room - sum(map(estimate_tokens, taken)) - len(batch)
    own = max(40, fair_share([estimate_tokens(each.passage.text) for each in batch], left))
    shown = [
        fence(mark, label, fit_to_tokens(each.passage.text, own)) for label, each in zip(labels, batch, strict=True)
    ]
    return {
        "question": question,
        "today": with_weekday(today),
        "parts": "What answers one of these parts helps too:\n" + fence(mark, "parts", "\n".join(parts))
        if parts
        else "",
        "passages": "\n\n".join(shown),
        "so_far": so_far,
        "and_judge": ", and judge whether there is enough" if judges else "",
        "enough": f"{WITH_THESE}{judging_instructions(whole_set=whole_set)}" if judges else "",
    }


def schema(
    count: int, steps: Sequence[str] = (), keys: Sequence[str] = (), *, whole_set: bool = False
) -> dict[str, Any]:
    """The reply's JSON schema, restricted to the shown ids. With steps it also says whether there is enough; `keys` are
    those of the evidence so far."""
    ids = [f"P{place}" for place in range(1, count + 1)]
    judged = judgement_schema(JudgedWeights, steps, [*ids, *keys], whole_set=whole_set) if steps else None
    made = judged or deepcopy(type_schema(Weights))
    made["$defs"]["Weight"]["properties"]["id"] = {"type": "string", "enum": ids}
    made["properties"]["passages"] |= {"minItems": 1 if count == 1 else 0, "maxItems": count}
    return made


def judgement_schema(
    kind: type[Sufficiency], steps: Sequence[str], keys: Sequence[str], *, whole_set: bool
) -> dict[str, Any]:
    """The JSON schema of a judgement, restricted to existing steps and keys."""
    made = deepcopy(type_schema(kind))
    found = made["$defs"]["StepAnswer"]["properties"]
    found["step"] = {"type": "string", "enum": list(steps) or ["s1"]}
    found["key"] = {"type": "string", "enum": list(keys)}
    if whole_set:
        made["properties"]["read"]["items"] = found["key"]
    else:
        del made["properties"]["read"]
    return made


def judging_instructions(*, whole_set: bool) -> str:
    return prompts.template("enough") + (READ_ON if whole_set else "")


def read(weights: Sequence[Weight], passages: Mapping[str, Passage], question: str, cutoff: float) -> Gathered:
    """Convert weights to evidence. `passages` are those shown, by the id they were shown under. Of two weights for one
    passage the first counts; a weight for a passage that was not shown is ignored."""
    rare = rarity(question, [each.text for each in passages.values()])
    evidence: dict[str, Evidence] = {}
    inexact: list[str] = []
    for weight in weights:
        passage = passages.get(weight.id)
        if passage is None or weight.id in evidence or weight.score < max(cutoff, 1):
            continue
        span = locate_quote(weight.quote, passage.text) if weight.quote.strip() else None
        if span is None:
            inexact.append(evidence_key(passage))
        words = _quotation(passage, span, rare)
        evidence[weight.id] = as_evidence(passage, words, float(weight.score), question, weight.note.strip())
    return _gathered(tuple(evidence.values()), tuple(passages.values()), tuple(inexact))


def _quotation(passage: Passage, span: tuple[int, int] | None, rare: Mapping[str, float]) -> Quote:
    """The sentences of a span; without one, or if they say too little, the sentence that best covers the question."""
    span = whole(passage.text, *span) if span else None
    if span and len(passage.text[slice(*span)].split()) < SAYS:
        span = None  # a heading or a lone name: a sentence says more
    return quote(passage, *span) if span else best_sentence(passage, rare)


def as_evidence(passage: Passage, words: Quote, score: float, question: str, note: str = "") -> Evidence:
    flagged = is_suspicious(f"{passage.context}\n{passage.text}")
    return Evidence(evidence_key(passage), passage, words, score, question, note, flagged)


def _gathered(evidence: tuple[Evidence, ...], passages: Sequence[Passage], inexact: tuple[str, ...] = ()) -> Gathered:
    kept = {each.passage.id for each in evidence}
    return Gathered(evidence, tuple(each.id for each in passages if each.id not in kept), inexact=inexact)


def whole(body: str, start: int, end: int) -> tuple[int, int]:
    """The span widened to whole sentences, so that a quotation is understandable by itself; in a table, to whole rows."""
    touched = [(left, right) for left, right in split_sentences(body) if left < end and start < right]
    left, right = min(start, *(each[0] for each in touched), start), max(end, *(each[1] for each in touched), end)
    above, below = body.rfind("\n", left, start) + 1, body.find("\n", end, right)
    rows = max(left, above), below if below >= 0 else right
    return rows if is_table_row(body[slice(*rows)]) else (left, right)


def weigh_by_readings(
    question: str, passages: Sequence[Passage], readings: Sequence[Reading], worth: Mapping[str, float], cutoff: float
) -> Gathered:
    """Weighing by the answer model instead of a small language model: the mean of what it says of a passage and of the
    passage's worth among the results. `passages` come best first, and the first few are kept whatever it says: a passage
    that leads to the answer does not give it."""
    rare = rarity(question, [each.text for each in passages])
    evidence: list[Evidence] = []
    for place, (passage, reading) in enumerate(zip(passages, readings, strict=True)):
        score = round((10 * reading.answers + score_from_worth(worth.get(passage.id, 0.0))) / 2, 2)
        answers = 10 * reading.answers >= cutoff
        if answers or score >= cutoff or place < LEADING:
            words = _quotation(passage, reading.span if answers and any(reading.span) else None, rare)
            evidence.append(as_evidence(passage, words, score, question))
    return _gathered(tuple(evidence), passages)


def weigh_by_words(question: str, parts: Sequence[str], found: Sequence[Found], cutoff: float) -> Gathered:
    """Weighing when no model can be asked any more: by how much of the question a passage covers."""
    asked = " ".join((question, *parts))
    rare = rarity(asked, [each.passage.text for each in found])
    weights: list[Weight] = []
    for each in found:
        own = frozenset(content_terms(each.passage.text))
        speaks = sum(weight for term, weight in rare.items() if term in own)
        weights.append(Weight(id=each.passage.id, score=min(10, round(12 * speaks))))
    shown = {each.passage.id: each.passage for each in found}
    return replace(read(weights, shown, question, cutoff), inexact=())
