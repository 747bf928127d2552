"""The key sentences of a document, for a digest without a model: its own words, picked as in an answer without a model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from assay.agent.context import RunContext
from assay.answer.extractive import extract, selection
from assay.core.tables import header_spans
from assay.core.types import Document, Evidence, Passage, Quote
from assay.evidence.weigh import quote
from assay.language.sentences import is_table_row
from assay.synthesis.reading import abstracts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.answer.extractive.selection import Candidate

FEWEST, MOST = 3, 5  # sentences of a document
READ = 16  # sentences that the answer model reads
QUESTIONS = (
    "What is the main point?",
    "What happened or was found, and why?",
    "What was decided, required or recommended?",
)
ANSWERS = 0.3  # weight of what the answer model says of a sentence, beside what its place and meaning say
SUMS_UP, DECIDES = 0.4, 0.2  # for a sentence of the document's own abstract, and for one that decides or explains
DECIDING = re.compile(
    r"\b(?:decided|resolved|agreed|approved|must|shall|required?|found|shows?|concluded|recommends?|because|caused|therefore)\b",
    re.I,
)
ALIKE = 0.85  # similarity from which two sentences say the same


async def pick(
    context: RunContext, document: Document, passages: Mapping[str, Passage], focus: str = ""
) -> list[tuple[str, Quote]]:
    """Three to five sentences with the keys of their passages, in reading order. With a focus, those that answer it come
    first."""
    evidence = [Evidence(key, each, quote(each, 0, len(each.text)), 5.0, "") for key, each in passages.items()]
    by = replace(extract.DEFAULT, passages=len(evidence))
    headers = {document.id: header_spans(document)} if document.tables else None
    titles = {document.id: document.title}
    found = extract.candidates(evidence, (), titles, by, headers, titles)
    own = [each for each in found if _is_key_sentence(each)]
    if not own:
        return []
    embedder = context.tool_context.search_context.embedder
    vectors = np.asarray(await embedder.queries([each.said for each in own]))
    worth = await _worth(context, document, own, vectors, (focus, *QUESTIONS) if focus else QUESTIONS)
    return _choose(own, vectors, worth)


def _is_key_sentence(candidate: Candidate) -> bool:
    """Whether a sentence stands on its own: no heading, row, imprint or address, and no pronoun without its noun."""
    words = candidate.quote.text
    return (
        abstracts.stands_alone(words)
        and not abstracts.ADDRESSES.search(words)
        and not is_table_row(words)
        and not selection.is_fragment(words)
        and not words.rstrip("”\"' ").endswith("?")
    )


async def _worth(
    context: RunContext, document: Document, own: Sequence[Candidate], vectors: np.ndarray, questions: Sequence[str]
) -> list[float]:
    """What a sentence is worth: by its nearness to the whole document, its place and form, and by how far it answers what
    is asked of any document."""
    spans = [(each.quote.start, each.quote.end) for each in own]
    first, last = document.abstract or (0, 0)
    worth = np.array(abstracts.scores(document, spans, vectors))
    worth += SUMS_UP * np.array([first <= start and end <= last for start, end in spans])
    worth += DECIDES * np.array([bool(DECIDING.search(each.quote.text)) for each in own])
    model = context.tool_context.search_context.answer_model
    if model is None:
        return [float(each) for each in worth]
    best_first = sorted(np.argsort(-worth, kind="stable")[:READ].tolist())
    best = np.zeros(len(own))
    for question in questions:
        readings = await model.read(question, [own[place].in_context for place in best_first])
        for place, reading in zip(best_first, readings, strict=True):
            best[place] = max(best[place], reading.answers)
    return [round(float(each), 4) for each in worth + ANSWERS * best]


def _choose(own: Sequence[Candidate], vectors: np.ndarray, worth: Sequence[float]) -> list[tuple[str, Quote]]:
    """The best sentences that differ from each other, in reading order."""
    wanted = min(MOST, max(FEWEST, len(own) // 4))
    chosen: list[int] = []
    for place in sorted(range(len(own)), key=lambda at: (-worth[at], at)):
        if len(chosen) == wanted:
            break
        if all(float(vectors[place] @ vectors[other]) < ALIKE for other in chosen):
            chosen.append(place)
    return [(own[place].key, own[place].quote) for place in sorted(chosen, key=lambda at: own[at].quote.start)]
