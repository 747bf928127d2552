"""The bundled models: the embedder gte-small, and the answer model, a BERT with heads fine-tuned from it. Nothing is fetched.

Texts are tokenized here; `bert_graph.py` builds the networks and `openvino_runner.py` runs them on the CPU. Where torch finds a
GPU, `bert_torch.py` embeds passages there. The answer model shares the
word table with gte-small, so its own file is without one. docs/decisions/0023 says what it was trained on.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from assay.core.errors import UserError
from assay.models.llm import Reading
from assay.models.local import bert_graph
from assay.models.local.openvino_runner import Runner, runner_for

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from assay.models.local.bert_torch import TorchBert

START, END = 101, 102  # [CLS] and [SEP]


NAME = "gte-small/centred mean/512"  # recorded with every index; changes whenever the vectors do
MOST_TOKENS = 512  # of an input, with [CLS] and [SEP]
WORTH_A_GPU = 64  # passages; fewer are not worth loading torch
LEXICAL = 0.15  # the weight of the lexical score beside its cosines, as measured
GTE_SMALL = bert_graph.WEIGHTS / "gte-small-int8.safetensors"
DIGEST = "55569caf919e8f0ec414b92d711d4e1a250628eeeacb45b7de73a190bde19eff"


def gte_small_weights(file: Path = GTE_SMALL) -> bert_graph.Weights:
    if bert_graph.file_digest(file) != DIGEST:
        raise UserError(f"{file} is damaged: reinstall it with pip install --force-reinstall.")
    return bert_graph.read_safetensors(file)


@dataclass(eq=False)
class BundledEmbedder:
    """Unit vectors of 384 numbers. The tokenizer and the model are loaded on first use.

    precision: "bf16", "f16" or "f32"; None selects a half precision if the CPU supports it. All give the same vectors to
    about 1e-5 in cosine, so the precision is not part of the name.
    cache: folder of the compiled model; None takes it from the environment, then the user's cache folder.
    """

    precision: str | None = None
    cache: Path | None = field(default=None, repr=False)

    name = NAME
    dim = bert_graph.DIM
    window = MOST_TOKENS - 2  # word pieces of the text itself

    def tokens(self, text: str) -> int:
        """The number of word pieces. A text is embedded completely if it has at most `window` of them."""
        return self.count([text])[0]

    def count(self, texts: Sequence[str]) -> list[int]:
        """`tokens` of many texts at once, which is much faster than one by one."""
        return [len(one) for one in tokenizer().encode_batch_fast(list(texts), add_special_tokens=False)]

    async def passages(self, texts: Sequence[str]) -> np.ndarray:
        return await asyncio.to_thread(self.embed_many, texts)

    async def queries(self, texts: Sequence[str]) -> np.ndarray:
        return await asyncio.to_thread(self.embed, texts)  # gte-small treats queries as passages

    def embed_many(self, texts: Sequence[str]) -> np.ndarray:
        """`embed`, on a GPU if there is one and the texts are worth it."""
        gpu = bert_on_gpu() if len(texts) >= WORTH_A_GPU else None
        return gpu.embed(token_rows(texts, self.window)) if gpu else self.embed(texts)

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """The vectors in input order. Blocks; thread-safe."""
        vectors = np.zeros((len(texts), self.dim), np.float32)
        if texts:
            for places, _, output in self.runner("mean").run(token_rows(texts, self.window)):
                # Half precision leaves norms up to 1e-3 away from 1.
                vectors[places] = output / np.linalg.norm(output, axis=1, keepdims=True)
        return vectors

    def token_vectors(self, texts: Sequence[str]) -> list[np.ndarray]:
        """One matrix per text: a unit row for each token, without [CLS] and [SEP]. For late interaction. Blocks."""
        vectors: list[np.ndarray] = [np.zeros((0, self.dim), np.float32)] * len(texts)
        if texts:
            rows = token_rows(texts, self.window)
            for places, _, output in self.runner("tokens").run(rows):
                for place, states in zip(places, output, strict=True):
                    vectors[place] = states[1 : len(rows[place]) - 1]
        return vectors

    def runner(self, output: bert_graph.Output) -> Runner:
        """The compiled model: one vector per text (mean), or one per token (tokens)."""
        return runner_for(
            lambda: bert_graph.build_graph(gte_small_weights(), output, MOST_TOKENS),
            identity=f"{DIGEST} {graph_digest()} {MOST_TOKENS} {output}",
            label=f"gte-small-{output}",
            precision=self.precision,
            cache=self.cache,
        )


def token_rows(texts: Sequence[str], window: int) -> list[list[int]]:
    """The token ids of each text, cut to the window, with [CLS] and [SEP]."""
    encoded = tokenizer().encode_batch_fast(list(texts), add_special_tokens=False)
    return [[START, *one.ids[:window], END] for one in encoded]


@functools.cache
def bert_on_gpu() -> TorchBert | None:
    """gte-small on the GPU; None where there is none, or no torch."""
    from assay.models.local import bert_torch

    torch = bert_torch.torch_on_gpu()
    return bert_torch.TorchBert(torch, gte_small_weights(), "cuda") if torch else None


@functools.cache
def tokenizer() -> Tokenizer:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    with resources.as_file(resources.files("assay.models.local") / "bert-uncased-vocab.txt") as vocabulary:
        built = Tokenizer(models.WordPiece.from_file(str(vocabulary), unk_token="[UNK]"))
    built.normalizer = normalizers.BertNormalizer(lowercase=True)
    built.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return built


@functools.cache
def graph_digest() -> str:
    """Changes whenever the code of the graph does: compiled models are stored under it."""
    return hashlib.sha256(Path(bert_graph.__file__).read_bytes()).hexdigest()


FILE = bert_graph.WEIGHTS / "answer-int8.safetensors"
WINDOW, QUESTION = 384, 64  # tokens of an input, and of the question in it
LONGEST = 31  # tokens of a span
SHARED = ("embeddings.word", "embeddings.word.scale")  # with gte-small


@dataclass(frozen=True, slots=True)
class BertAnswers:
    """The answer model of one weights file. Loaded on first use; thread-safe.

    In full precision on every processor: with half of it, marks and bounds of an answer would depend on the machine.
    """

    path: Path = FILE
    precision: str = "f32"
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
        asked, *encoded = tokenizer().encode_batch([question, *texts], add_special_tokens=False)
        start = [START, *asked.ids[:QUESTION], END]
        room = WINDOW - len(start) - 1
        rows = [[*start, *one.ids[:room], END] for one in encoded]

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
            identity=f"{bert_graph.file_digest(self.path)} {graph_digest()}",
            label="answer",
            precision=self.precision,
            cache=self.cache,
        )

    def weights(self) -> bert_graph.Weights:
        own = bert_graph.read_safetensors(self.path)
        return own if SHARED[0] in own else {name: gte_small_weights()[name] for name in SHARED} | own


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
