"""The bundled embedder on a GPU: where it is used, and that its network is the one of the CPU."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
import pytest

from assay.models.local import bert_torch, bundled
from assay.models.local.bundled import WORTH_A_GPU, BundledEmbedder


class Gpu:
    def __init__(self) -> None:
        self.given: list[int] = []

    def embed(self, rows: Sequence[Sequence[int]]) -> np.ndarray:
        self.given.append(len(rows))
        return np.ones((len(rows), BundledEmbedder.dim), np.float32)


async def test_many_passages_go_to_the_gpu_and_questions_never_do(monkeypatch: pytest.MonkeyPatch):
    gpu = Gpu()
    monkeypatch.setattr(bundled, "bert_on_gpu", lambda: gpu)
    embedder = BundledEmbedder()
    await embedder.passages(["a lock"] * WORTH_A_GPU)
    await embedder.passages(["a lock"] * 3)
    await embedder.queries(["a lock"] * WORTH_A_GPU)
    assert gpu.given == [WORTH_A_GPU]


def test_without_a_gpu_torch_is_not_imported(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bert_torch, "DEVICES", ("/dev/there-is-none",))
    monkeypatch.setitem(sys.modules, "torch", None)  # an import would fail
    assert bert_torch.torch_on_gpu.__wrapped__() is None


def test_the_network_of_torch_is_that_of_the_cpu():
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'assay[cuda]'")
    texts = ["The gate was mended in 1950.", "", "A lock of the canal. " * 60, "Ünïcode ñ 漢字"]
    model = bert_torch.TorchBert(torch, bundled.gte_small_weights(), "cpu", "float32")
    vectors = model.embed(bundled.token_rows(texts, BundledEmbedder.window))
    assert np.abs(vectors - BundledEmbedder("f32").embed(texts)).max() < 1e-5
