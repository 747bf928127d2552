"""What every `Reranker` must do. A new one joins by adding itself to `RERANKERS`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from doubles import WordAnswers

from assay.core.types import Hit, Passage
from assay.models import reranker as rerankers
from assay.models.local import onnx_folder
from assay.models.local.bundled import BundledEmbedder
from assay.models.reranker import AnswerReranker, CrossEncoder, EndpointReranker, LateInteraction, Reranker

DEPTH = 3
TEXTS = ("fever", "a train to Lyon", "aspirin reduces fever in adults", "the far shore", "a cold lake")


def late(url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Reranker:
    return LateInteraction(BundledEmbedder(), depth=DEPTH)


def folder_model(url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Reranker:
    """The cross-encoder's own side; what runs a model from a folder is tested in tests/models/test_rerank.py."""

    def by_length(folder: Path, query: str, texts: Sequence[str], *_: object) -> np.ndarray:
        return np.array([len(text) for text in texts], np.float32)

    monkeypatch.setattr(onnx_folder, "pair_scores", by_length)
    return CrossEncoder(folder, depth=DEPTH)


def endpoint(url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Reranker:
    return EndpointReranker(url, "m", depth=DEPTH)


def answers(url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Reranker:
    return AnswerReranker(WordAnswers(), depth=DEPTH)


RERANKERS: tuple[Callable[[str, Path, pytest.MonkeyPatch], Reranker], ...] = (late, answers, folder_model, endpoint)


@pytest.fixture(params=RERANKERS, ids=lambda make: make.__name__)
def reranker(
    request: pytest.FixtureRequest, endpoint_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Reranker:
    return request.param(endpoint_url, tmp_path, monkeypatch)


def hits(count: int = len(TEXTS)) -> list[Hit]:
    return [
        Hit(Passage(text, text, text, 0, len(text)), np.zeros(1, np.float32), {"fused": 1.0 - place / 10})
        for place, text in enumerate(TEXTS[:count])
    ]


async def test_the_same_hits_come_back_best_first_and_the_rest_in_their_order(reranker: Reranker):
    before = hits()
    after = await reranker.rerank("what reduces fever?", before)
    assert sorted(hit.passage.id for hit in after) == sorted(hit.passage.id for hit in before)
    scores = [hit.scores["rerank"] for hit in after[:DEPTH]]
    assert scores == sorted(scores, reverse=True)
    assert [hit.passage.id for hit in after[DEPTH:]] == list(TEXTS[DEPTH:])
    assert all("rerank" not in hit.scores for hit in after[DEPTH:])
    assert all(hit.scores["fused"] for hit in after), "other scores are kept"


@pytest.mark.parametrize("count", [0, 1])
async def test_few_hits_are_no_special_case(reranker: Reranker, count: int):
    assert [hit.passage.id for hit in await reranker.rerank("fever", hits(count))] == list(TEXTS[:count])


def test_every_reranker_of_the_module_is_tested_here():
    classes = {name for name, value in vars(rerankers).items() if hasattr(value, "rerank") and name != "Reranker"}
    assert classes == {"LateInteraction", "AnswerReranker", "CrossEncoder", "EndpointReranker"}
