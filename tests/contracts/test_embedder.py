"""What every `Embedder` must do. A new one joins by adding itself to `EMBEDDERS`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from assay.evaluate.plain_text import WordEmbedder
from assay.models.embedder import Embedder, EndpointEmbedder
from assay.models.local.bundled import BundledEmbedder
from assay.models.local.onnx_folder import OnnxFolder

TEXTS = ["Aspirin reduces fever.", "", "A lighthouse stands on the far shore of the lake.", "word " * 400]


def gte_small(url: str, folder: Path) -> Embedder:
    return BundledEmbedder()


def onnx_folder(url: str, folder: Path) -> Embedder:
    from onnx_file import gathered_model
    from tokenizers.processors import TemplateProcessing

    from assay.models.local import bundled

    gathered_model(folder / "model.onnx", 384, ["last_hidden_state"])
    tokenizer = bundled.tokenizer().from_str(bundled.tokenizer().to_str())
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", bundled.START), ("[SEP]", bundled.END)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    return OnnxFolder(folder, precision="f32", cache=folder / "cache")


def endpoint(url: str, folder: Path) -> Embedder:
    return EndpointEmbedder(url, "m")


def words(url: str, folder: Path) -> Embedder:
    return WordEmbedder()


EMBEDDERS: tuple[Callable[[str, Path], Embedder], ...] = (gte_small, onnx_folder, endpoint, words)


@pytest.fixture(params=EMBEDDERS, ids=lambda make: make.__name__)
def embedder(request: pytest.FixtureRequest, endpoint_url: str, tmp_path: Path) -> Embedder:
    return request.param(endpoint_url, tmp_path)


@pytest.mark.long
async def test_vectors_are_unit_float32_one_per_text(embedder: Embedder):
    for vectors in (await embedder.passages(TEXTS), await embedder.queries(TEXTS)):
        assert vectors.shape == (len(TEXTS), embedder.dim)
        assert vectors.dtype == np.float32
        assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)


async def test_no_texts_give_no_vectors(embedder: Embedder):
    assert (await embedder.passages([])).shape == (0, embedder.dim)
    assert (await embedder.queries([])).shape == (0, embedder.dim)


@pytest.mark.long
async def test_a_vector_depends_on_its_text_and_on_nothing_else(embedder: Embedder):
    together = await embedder.passages(TEXTS)
    backwards = (await embedder.passages(TEXTS[::-1]))[::-1]
    alone = np.concatenate([await embedder.passages([text]) for text in TEXTS])
    assert np.allclose(together, backwards, atol=1e-3) and np.allclose(together, alone, atol=1e-3)
    assert not np.allclose(together[0], together[2], atol=1e-3)


async def test_it_says_its_name_its_window_and_how_long_a_text_is(embedder: Embedder):
    assert embedder.name and embedder.name == embedder.name
    assert embedder.window > 0
    assert embedder.tokens("one two three four") > embedder.tokens("one")
