"""Rerankers: the bundled model by token, a cross-encoder made for the test, and a real server on the loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from loopback import Naps
from onnx_file import FLOAT, Node, write_onnx
from post_server import PostServer, Reply, as_json, post_server

from assay.core.errors import ModelError, UserError
from assay.core.types import Hit, Passage
from assay.models.local.bundled import BundledEmbedder, gte_small_weights
from assay.models.local.onnx_folder import probabilities
from assay.models.reranker import (
    CrossEncoder,
    EndpointReranker,
    LateInteraction,
    adjusted,
    max_sim,
    order_by_score,
    parse_scores,
)

KEY = "sk-very-secret-1234"
EMBEDDER = BundledEmbedder("f32")


def hit(text: str, title: str = "", **scores: float) -> Hit:
    return Hit(Passage(text, text, text, 0, len(text)), np.zeros(1, np.float32), scores, title=title)


def texts(hits: list[Hit]) -> list[str]:
    return [each.passage.text for each in hits]


def test_the_hits_looked_at_come_first_and_the_rest_keep_their_order():
    hits = [hit(name) for name in "abcd"]
    ranked = order_by_score(hits, [0.1, 0.9])
    assert texts(ranked) == ["b", "a", "c", "d"]
    assert [each.scores.get("rerank") for each in ranked] == [0.9, 0.1, None, None]


def test_equal_scores_change_nothing():
    assert texts(order_by_score([hit(name) for name in "abc"], [0.5, 0.5, 0.5])) == ["a", "b", "c"]


# ── late interaction ────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_word_of_the_query_counts_with_its_nearest_word_in_the_passage():
    query = np.eye(3, dtype=np.float32)[:2]
    assert max_sim(query, np.eye(3, dtype=np.float32)) == pytest.approx(1.0)
    assert max_sim(query, np.eye(3, dtype=np.float32)[[0]]) == pytest.approx(0.5)
    assert max_sim(query, np.zeros((0, 3), np.float32)) == 0.0


def test_a_second_opinion_that_has_none_changes_nothing():
    assert adjusted([hit("a", fused=0.9), hit("b", fused=0.5)], np.array([0.7, 0.7]), 0.3) == pytest.approx([0.9, 0.5])


def test_the_mean_of_a_texts_tokens_less_the_centre_is_its_vector():
    text = "Aspirin reduces fever in adults."
    (tokens,) = EMBEDDER.token_vectors([text])
    assert np.linalg.norm(tokens, axis=1) == pytest.approx(1.0, abs=1e-4)
    # The vector of the text is the mean of states before they are made unit, marks included: close, not equal.
    mean = tokens.sum(0) / np.linalg.norm(tokens.sum(0)) - gte_small_weights()["centre"]
    assert float(EMBEDDER.embed([text])[0] @ mean / np.linalg.norm(mean)) > 0.9


async def test_late_interaction_puts_the_passage_with_the_words_first():
    hits = [
        hit("The harbour was dredged in 1931 and again after the war.", fused=0.52),
        hit("Aspirin lowers a high temperature in adults with influenza.", fused=0.5),
        hit("Stock prices fell on Monday.", fused=0.1),
    ]
    ranked = await LateInteraction(EMBEDDER, weight=1.0).rerank("does aspirin reduce fever", hits)
    assert texts(ranked)[0].startswith("Aspirin")
    assert all("rerank" in each.scores for each in ranked)


async def test_late_interaction_looks_no_deeper_than_it_is_told():
    hits = [hit("one", fused=0.9), hit("two", fused=0.8), hit("aspirin", fused=0.1)]
    ranked = await LateInteraction(EMBEDDER, depth=2, weight=9.0).rerank("aspirin", hits)
    assert texts(ranked)[-1] == "aspirin"
    assert "rerank" not in ranked[-1].scores


async def test_no_hits_are_no_trouble():
    assert await LateInteraction(EMBEDDER).rerank("anything", []) == []
    assert await EndpointReranker("http://127.0.0.1:9").rerank("anything", []) == []


# ── a cross-encoder in a folder ─────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model whose score is how many tokens of the passage are `fever`: enough to see that pairs arrive as pairs."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from tokenizers.processors import TemplateProcessing

    words = {"[PAD]": 0, "[CLS]": 1, "[SEP]": 2, "[UNK]": 3, "fever": 4, "cold": 5}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    nodes = [
        Node("Equal", ["input_ids", "fever"], "same"),
        Node("Cast", ["same"], "hits", {"to": FLOAT}),
        Node("Cast", ["token_type_ids"], "second", {"to": FLOAT}),
        Node("Mul", ["hits", "second"], "inside"),
        Node("ReduceSum", ["inside", "axis"], "logits", {"keepdims": 1}),
    ]
    constants = {"fever": np.array(4), "axis": np.array([1])}
    write_onnx(tmp_path / "model.onnx", nodes, constants, ["input_ids", "token_type_ids"], {"logits": ("batch", 1)})
    return tmp_path


async def test_a_cross_encoder_reads_query_and_passage_together(folder: Path, tmp_path: Path):
    hits = [hit("cold"), hit("fever fever"), hit("fever cold " * 2000), hit("cold cold cold")]
    ranked = await CrossEncoder(folder, cache=tmp_path / "cache").rerank("fever fever fever", hits)
    assert texts(ranked)[:2] == [
        "fever cold " * 2000,
        "fever fever",
    ]  # and one far longer than the window is cut, not refused
    assert texts(ranked)[2:] == ["cold", "cold cold cold"]  # the query's own words do not count
    assert ranked[1].scores["rerank"] == pytest.approx(1 / (1 + np.exp(-2)), abs=1e-3)


async def test_a_title_is_read_with_its_passage(folder: Path, tmp_path: Path):
    ranked = await CrossEncoder(folder, cache=tmp_path / "cache").rerank(
        "x", [hit("cold"), hit("cold ", title="fever")]
    )
    assert ranked[0].title == "fever"


async def test_a_folder_without_a_model_is_named(tmp_path: Path):
    with pytest.raises(UserError, match=r"model\.onnx"):
        await CrossEncoder(tmp_path).rerank("x", [hit("y")])


def test_two_numbers_are_read_as_no_and_yes_and_three_are_refused():
    assert probabilities(np.array([[2.0, 0.0], [0.0, 2.0]])) == pytest.approx([0.1192, 0.8808], abs=1e-3)
    assert probabilities(np.array([[1e9], [-1e9]])) == pytest.approx([1, 0])
    with pytest.raises(UserError, match="3 numbers"):
        probabilities(np.zeros((1, 3)))


# ── an endpoint ─────────────────────────────────────────────────────────────────────────────────────────────────────


def by_length(body: dict[str, Any], _: int = 0) -> Reply:
    found = body.get("documents", body.get("texts"))
    listed = [{"index": i, "relevance_score": float(len(text))} for i, text in enumerate(found)]
    return as_json({"results": listed[::-1]})  # not in the order of the texts


@pytest.fixture
def endpoint() -> Iterator[PostServer]:
    with post_server(by_length) as made:
        yield made


HITS = [hit("a"), hit("ccc"), hit("bb")]


async def test_an_endpoint_orders_the_hits_by_its_scores(endpoint: PostServer):
    ranked = await EndpointReranker(f"{endpoint.url}/v1", "some-model", KEY).rerank("a question", HITS)
    assert texts(ranked) == ["ccc", "bb", "a"]
    assert ranked[0].scores["rerank"] == 3.0
    assert endpoint.paths == ["/v1/rerank"]
    assert [each["authorization"] for each in endpoint.headers] == [f"Bearer {KEY}"]
    assert endpoint.bodies == [
        {"query": "a question", "model": "some-model", "documents": ["a", "ccc", "bb"], "top_n": 3}
    ]


async def test_a_server_of_one_model_is_asked_in_its_own_words(endpoint: PostServer):
    endpoint.behaviour = lambda body, _: as_json([{"index": i, "score": -float(i)} for i in range(len(body["texts"]))])
    assert texts(await EndpointReranker(f"{endpoint.url}/rerank").rerank("q", HITS)) == ["a", "ccc", "bb"]
    assert endpoint.paths == ["/rerank"]


async def test_a_busy_endpoint_is_asked_again_when_it_says(endpoint: PostServer):
    naps = Naps()
    endpoint.behaviour = lambda body, n: (503, {"Retry-After": "2"}, b"busy") if n < 3 else by_length(body)
    ranked = await EndpointReranker(endpoint.url, "m", sleep=naps).rerank("q", HITS)
    assert texts(ranked) == ["ccc", "bb", "a"]
    assert naps.taken == [2.0, 2.0]


async def test_an_endpoint_that_stays_down_is_given_up_on_and_the_key_stays_secret(endpoint: PostServer):
    endpoint.behaviour = lambda body, n: (503, {"Retry-After": "30"}, f"no {KEY}".encode())
    with pytest.raises(ModelError, match="503") as caught:
        await EndpointReranker(endpoint.url, "m", KEY, deadline=5.0, sleep=Naps()).rerank("q", HITS)
    assert KEY not in str(caught.value)
    assert KEY not in repr(EndpointReranker(endpoint.url, "m", KEY))


async def test_too_many_at_once_are_sent_in_halves(endpoint: PostServer):
    endpoint.behaviour = lambda body, _: (413, {}, b"too large") if len(body["documents"]) > 1 else by_length(body)
    assert texts(await EndpointReranker(endpoint.url, "m").rerank("q", HITS)) == ["ccc", "bb", "a"]


async def test_a_refusal_is_not_tried_again(endpoint: PostServer):
    endpoint.behaviour = lambda body, _: (401, {}, f"bad key {KEY}".encode())
    with pytest.raises(ModelError, match="401") as caught:
        await EndpointReranker(endpoint.url, "m", KEY).rerank("q", HITS)
    assert len(endpoint.bodies) == 1
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (b"no json", ""),
        ({"answers": []}, "no list"),
        ({"results": [{"index": 0, "relevance_score": 1.0}]}, "1 scores came back for 3"),
        ({"results": [{"index": 7, "relevance_score": 1.0}]}, "no text number 7"),
        ({"results": [{"index": True, "relevance_score": 1.0}]}, "index"),
        ({"results": [{"index": 0, "relevance_score": "high"}]}, "relevance_score"),
    ],
)
async def test_a_reply_that_is_none_says_what_is_wrong(endpoint: PostServer, reply: object, why: str):
    endpoint.behaviour = lambda body, _: (200, {}, reply) if isinstance(reply, bytes) else as_json(reply)
    with pytest.raises(ModelError, match=f"did not answer as /rerank does.*{why}"):
        await EndpointReranker(endpoint.url, "m").rerank("q", HITS)


def test_scores_that_are_no_numbers_are_refused():
    with pytest.raises(ValueError, match="relevance_score"):
        parse_scores([{"index": 0, "score": float("nan")}], 1)
