"""The key sentences of a document, for a digest without a model: its own words, picked as in an answer without a model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from assay.agent.context import RunContext
from assay.answer.weigh import quote
from assay.core.types import Document, Passage, Quote
from assay.language.injection import is_command
from assay.language.sentences import split_sentences
from assay.synthesis.reading import abstracts

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


@dataclass(frozen=True, slots=True)
class KeySentence:
    """A sentence that may be one of the key sentences, and the key of its passage."""

    quote: Quote
    key: str
    title: str

    @property
    def text(self) -> str:
        """Under its title: "It was founded in 1901" means nothing alone."""
        return f"{self.title}: {self.quote.text}"


async def pick(
    context: RunContext, document: Document, passages: Mapping[str, Passage], focus: str = ""
) -> list[tuple[str, Quote]]:
    """Three to five sentences with the keys of their passages, in reading order. With a focus, those that answer it come
    first."""
    found = {
        (words.start, words.end): KeySentence(words, key, document.title)
        for key, passage in reversed(list(passages.items()))
        for span in split_sentences(passage.text)
        if _is_key_sentence((words := quote(passage, *span)).text)
    }
    own = [found[span] for span in sorted(found)]
    if not own:
        return []
    embedder = context.tool_context.search_context.embedder
    vectors = np.asarray(await embedder.queries([each.text for each in own]))
    worth = await _worth(context, document, own, vectors, (focus, *QUESTIONS) if focus else QUESTIONS)
    return _choose(own, vectors, worth)


def _is_key_sentence(words: str) -> bool:
    """Whether a sentence stands on its own: no heading, row, imprint or address, and no pronoun without its noun."""
    asks = words.rstrip("”\"' ").endswith("?")
    return (
        abstracts.stands_alone(words) and not abstracts.ADDRESSES.search(words) and not is_command(words) and not asks
    )


async def _worth(
    context: RunContext, document: Document, own: Sequence[KeySentence], vectors: np.ndarray, questions: Sequence[str]
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
        readings = await model.read(question, [own[place].text for place in best_first])
        for place, reading in zip(best_first, readings, strict=True):
            best[place] = max(best[place], reading.answers)
    return [round(float(each), 4) for each in worth + ANSWERS * best]


def _choose(own: Sequence[KeySentence], vectors: np.ndarray, worth: Sequence[float]) -> list[tuple[str, Quote]]:
    """The best sentences that differ from each other, in reading order."""
    wanted = min(MOST, max(FEWEST, len(own) // 4))
    chosen: list[int] = []
    for place in sorted(range(len(own)), key=lambda at: (-worth[at], at)):
        if len(chosen) == wanted:
            break
        if all(float(vectors[place] @ vectors[other]) < ALIKE for other in chosen):
            chosen.append(place)
    return [(own[place].key, own[place].quote) for place in sorted(chosen, key=lambda at: own[at].quote.start)]
