"""The bundled answer model: a BERT with heads, fine-tuned from gte-small, on the CPU.

It shares the word table with gte-small, so its own file is without one. docs/decisions/0023 says what it was trained on.
"""

from __future__ import annotations

import asyncio
import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from assay.models.llm import Reading
from assay.models.local import bert_graph, bundled
from assay.models.local import bert_graph
from assay.models.local.openvino_runner import Runner, runner_for

FILE = bert_graph.WEIGHTS / "answer-int8.safetensors"
WINDOW, QUESTION = 384, 64  # tokens of an input, and of the question in it
LONGEST = 31  # tokens of a span
SHARED = ("embeddings.word", "embeddings.word.scale")  # with gte-small


@dataclass(frozen=True, slots=True)
class BertAnswers:
    """The answer model of one weights file. Loaded on first use; thread-safe."""

    path: Path = FILE
    precision: str | None = None
    cache: Path | None = None

    @property
    def name(self) -> str:
        return f"answer/{bert_graph.file_digest(self.path)[:12]}"

    async def read(self, question: str, texts: Sequence[str]) -> list[Reading]:
        return await asyncio.to_thread(self.readings, question, texts)

    def readings(self, question: str, texts: Sequence[str]) -> list[Reading]:
        """`read`, but blocks."""
        if not texts:
            return []
        asked, *encoded = bundled.tokenizer().encode_batch([question, *texts], add_special_tokens=False)
        start = [bundled.START, *asked.ids[:QUESTION], bundled.END]
        room = WINDOW - len(start) - 1
        rows = [[*start, *one.ids[:room], bundled.END] for one in encoded]

        def inputs(places: list[int], ids: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, ...]:
            types = np.zeros_like(ids)
            types[:, len(start) :] = 1
            return ids, mask, types * mask

        found: list[Reading] = [Reading(0.0)] * len(texts)
        for places, _, output in self.runner().run(rows, inputs):
            for place, numbers in zip(places, output, strict=True):
                spans = numbers[len(start) : len(rows[place]) - 1, 1:]
                found[place] = reading(float(numbers[0, 0]), spans, encoded[place].offsets[:room])
        return found

    def runner(self) -> Runner:
        return runner_for(
            lambda: bert_graph.build_graph(self.weights(), "heads", WINDOW),
            identity=f"{bert_graph.file_digest(self.path)} {bundled.graph_digest()}",
            label="answer",
            precision=self.precision,
            cache=self.cache,
        )

    def weights(self) -> bert_graph.Weights:
        own = bert_graph.read_safetensors(self.path)
        return own if SHARED[0] in own else {name: bundled.GTE_SMALL.weights()[name] for name in SHARED} | own


def reading(logit: float, spans: np.ndarray, offsets: Sequence[tuple[int, int]]) -> Reading:
    """From the numbers of the model: the log-odds of the text, and start and end of each token."""
    answers = 1 / (1 + math.exp(-min(max(logit, -60), 60)))
    if not len(spans):
        return Reading(answers)
    first, last, score = best_span(softmax(spans[:, 0]), softmax(spans[:, 1]))
    return Reading(answers, (offsets[first][0], offsets[last][1]), score)


def best_span(starts: np.ndarray, ends: np.ndarray) -> tuple[int, int, float]:
    """The first and last token of the most likely span, and its probability."""
    scores = np.triu(np.outer(starts, ends)) - np.triu(np.outer(starts, ends), LONGEST)
    first, last = np.unravel_index(int(scores.argmax()), scores.shape)
    return int(first), int(last), float(scores[first, last])


def softmax(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits - logits.max())
    return powers / powers.sum()


@functools.cache
def bundled_answer_model() -> BertAnswers | None:
    """None if this installation has no weights for it."""
    return BertAnswers() if FILE.is_file() else None
