"""The bundled embedder, gte-small, on the CPU. Nothing is downloaded; torch is not needed.

Texts are tokenized here; `bert_graph.py` builds the network and `openvino_runner.py` runs it.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from assay.core.errors import UserError
from assay.models.local import bert_graph
from assay.models.local import bert_graph
from assay.models.local.openvino_runner import Runner, runner_for

if TYPE_CHECKING:
    from tokenizers import Tokenizer

START, END = 101, 102  # [CLS] and [SEP]


@dataclass(frozen=True, slots=True)
class BundledModel:
    """A BERT that comes with the installation.

    name: recorded with every index; changes whenever the vectors do
    window: the longest input in tokens, with [CLS] and [SEP]
    lexical: the weight of the lexical score beside its cosines, as measured
    file: its weights
    digest: of that file
    """

    name: str
    window: int
    lexical: float
    file: Path
    digest: str

    def weights(self) -> bert_graph.Weights:
        if bert_graph.file_digest(self.file) != self.digest:
            raise UserError(f"{self.file} is damaged: reinstall it with pip install --force-reinstall.")
        return bert_graph.read_safetensors(self.file)


GTE_SMALL = BundledModel(
    name="gte-small/centred mean/512",
    window=512,
    lexical=0.15,
    file=bert_graph.WEIGHTS / "gte-small-int8.safetensors",
    digest="55569caf919e8f0ec414b92d711d4e1a250628eeeacb45b7de73a190bde19eff",
)


class BundledEmbedder:
    """Unit vectors of 384 numbers. The tokenizer and the model are loaded on first use.

    precision: "bf16", "f16" or "f32"; None selects a half precision if the CPU supports it. All give the same vectors to
    about 1e-5 in cosine, so the precision is not part of the name.
    cache: folder of the compiled model; None takes it from the environment, then the user's cache folder.
    """

    dim = bert_graph.DIM

    name = GTE_SMALL.name
    window = GTE_SMALL.window - 2  # word pieces of the text itself

    def __init__(self, precision: str | None = None, cache: Path | None = None) -> None:
        self.precision = precision
        self.cache = cache

    def __repr__(self) -> str:
        return f"BundledEmbedder({self.name!r}, precision={self.precision!r})"

    def tokens(self, text: str) -> int:
        """The number of word pieces. A text is embedded completely if it has at most `window` of them."""
        return self.count([text])[0]

    def count(self, texts: Sequence[str]) -> list[int]:
        """`tokens` of many texts at once, which is much faster than one by one."""
        return [len(one) for one in tokenizer().encode_batch_fast(list(texts), add_special_tokens=False)]

    async def passages(self, texts: Sequence[str]) -> np.ndarray:
        return await asyncio.to_thread(self.embed, texts)

    async def queries(self, texts: Sequence[str]) -> np.ndarray:
        return await asyncio.to_thread(self.embed, texts)  # gte-small treats queries as passages

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
            lambda: bert_graph.build_graph(GTE_SMALL.weights(), output, GTE_SMALL.window),
            identity=f"{GTE_SMALL.digest} {graph_digest()} {GTE_SMALL.window} {output}",
            label=f"gte-small-{output}",
            precision=self.precision,
            cache=self.cache,
        )


def token_rows(texts: Sequence[str], window: int) -> list[list[int]]:
    """The token ids of each text, cut to the window, with [CLS] and [SEP]."""
    encoded = tokenizer().encode_batch_fast(list(texts), add_special_tokens=False)
    return [[START, *one.ids[:window], END] for one in encoded]


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
