"""The endpoint client, against a real server on the loopback that behaves as it is told."""

from __future__ import annotations

import asyncio
import base64
import pickle
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback import Naps
from post_server import Behaviour, PostServer, Reply, as_json, post_server

from assay.core.errors import ModelError, UserError
from assay.models.embedder import EndpointEmbedder, batch_spans, parse_vectors
from assay.models.http import retry_after

KEY = "sk-very-secret-1234"


def vector_of(text: str) -> list[float]:
    return [float(len(text)), 1.0, 2.0]


def well(body: dict[str, Any], _: int = 0) -> Reply:
    return as_json({"data": [{"index": i, "embedding": vector_of(text)} for i, text in enumerate(body["input"])]})


@pytest.fixture
def endpoint() -> Iterator[PostServer]:
    with post_server(well) as made:
        yield made


def client(endpoint: PostServer, **more: Any) -> EndpointEmbedder:
    return EndpointEmbedder(f"{endpoint.url}/v1", "tiny", KEY, **{"sleep": Naps(), "deadline": 30.0, **more})


def unit(text: str) -> np.ndarray:
    vector = np.array(vector_of(text), np.float32)
    return vector / np.linalg.norm(vector)


async def test_texts_become_unit_vectors_in_their_order(endpoint: PostServer) -> None:
    embedder = client(endpoint, batch_texts=2)
    texts = ["a", "bb", "ccc", "dddd", "eeeee"]
    vectors = await embedder.passages(texts)
    assert vectors.dtype == np.float32
    assert np.allclose(vectors, [unit(text) for text in texts], atol=1e-6)
    assert sorted(len(body["input"]) for body in endpoint.bodies) == [1, 2, 2]
    assert embedder.dim == 3
    assert endpoint.paths[0] == "/v1/embeddings"
    assert endpoint.headers[0]["authorization"] == f"Bearer {KEY}"


async def test_replies_out_of_order_are_put_in_order_by_their_index(endpoint: PostServer) -> None:
    def backwards(body: dict[str, Any], _: int) -> Reply:
        data = [{"index": i, "embedding": vector_of(text)} for i, text in enumerate(body["input"])]
        return as_json({"data": data[::-1]})

    endpoint.behaviour = backwards
    vectors = await client(endpoint).passages(["a", "bb", "ccc"])
    assert np.allclose(vectors, [unit("a"), unit("bb"), unit("ccc")], atol=1e-6)


async def test_a_copy_for_another_process_makes_its_own_connections(endpoint: PostServer) -> None:
    embedder = EndpointEmbedder(f"{endpoint.url}/v1", "tiny", KEY, passage_prefix="p: ")
    vectors = await embedder.passages(["a lamp"])  # opens a connection
    copy = pickle.loads(pickle.dumps(embedder))
    assert copy.name == embedder.name and copy.api_key == KEY
    assert (await copy.passages(["a lamp"]) == vectors).all()
    await embedder.close()
    await copy.close()


async def test_base64_is_read_as_well_as_numbers(endpoint: PostServer) -> None:
    def packed(body: dict[str, Any], _: int) -> Reply:
        rows = [base64.b64encode(np.array(vector_of(text), "<f4").tobytes()).decode() for text in body["input"]]
        return as_json({"data": [{"index": i, "embedding": row} for i, row in enumerate(rows)]})

    endpoint.behaviour = packed
    vectors = await client(endpoint, encoding="base64").passages(["a", "bb"])
    assert np.allclose(vectors, [unit("a"), unit("bb")], atol=1e-6)
    assert endpoint.bodies[0]["encoding_format"] == "base64"


async def test_queries_and_passages_have_their_own_prefix(endpoint: PostServer) -> None:
    embedder = client(endpoint, query_prefix="query: ", passage_prefix="passage: ")
    await embedder.queries(["fever"])
    await embedder.passages(["fever"])
    assert [body["input"] for body in endpoint.bodies] == [["query: fever"], ["passage: fever"]]
    assert embedder.name != client(endpoint).name


async def test_a_blank_text_is_sent_as_something_that_endpoints_accept(endpoint: PostServer) -> None:
    vectors = await client(endpoint).passages(["", "  \n"])
    assert endpoint.bodies[0]["input"] == [".", "."]
    assert np.isfinite(vectors).all()


async def test_too_many_requests_are_repeated_after_the_time_asked_for(endpoint: PostServer) -> None:
    endpoint.behaviour = lambda body, n: as_json({}, 429, **{"Retry-After": "7"}) if n <= 2 else well(body)
    naps = Naps()
    vectors = await client(endpoint, sleep=naps).passages(["a"])
    assert np.allclose(vectors, [unit("a")], atol=1e-6)
    assert naps.taken == [7.0, 7.0]


async def test_a_failing_server_is_asked_again_with_growing_pauses(endpoint: PostServer) -> None:
    endpoint.behaviour = lambda body, n: as_json({"error": "oops"}, 500) if n <= 3 else well(body)
    naps = Naps()
    await client(endpoint, sleep=naps).passages(["a"])
    assert naps.taken == [0.5, 1.0, 2.0]


async def test_waiting_ends_at_the_deadline(endpoint: PostServer) -> None:
    endpoint.behaviour = lambda body, n: as_json({"error": "overloaded"}, 503, **{"Retry-After": "3600"})
    with pytest.raises(ModelError, match=r"status 503; gave up after 1 tries in 30 s.*overloaded"):
        await client(endpoint).passages(["a"])


async def test_a_server_that_is_not_there_is_named(endpoint: PostServer) -> None:
    embedder = EndpointEmbedder("http://user:pass@127.0.0.1:9/v1", "tiny", KEY, deadline=2.0, sleep=Naps())
    with pytest.raises(ModelError, match=r"http://127\.0\.0\.1:9/v1/embeddings could not be reached"):
        await embedder.passages(["a"])


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_a_refusal_is_not_repeated_and_never_shows_the_key(endpoint: PostServer, status: int) -> None:
    endpoint.behaviour = lambda body, n: as_json({"error": f"bad key {KEY}"}, status)
    embedder = client(endpoint)
    with pytest.raises(ModelError) as raised:
        await embedder.passages(["a"])
    assert len(endpoint.bodies) == 1
    assert str(status) in str(raised.value)
    assert KEY not in str(raised.value)
    assert KEY not in repr(raised.value)
    assert KEY not in repr(embedder)


async def test_a_batch_that_is_too_large_is_halved(endpoint: PostServer) -> None:
    endpoint.behaviour = lambda body, n: well(body) if len(body["input"]) <= 2 else as_json({}, 413)
    texts = ["a", "bb", "ccc", "dddd", "eeeee"]
    vectors = await client(endpoint).passages(texts)
    assert np.allclose(vectors, [unit(text) for text in texts], atol=1e-6)


def only(embedding: object) -> Behaviour:
    return lambda body, n: as_json({"data": [{"index": i, "embedding": embedding} for i in range(len(body["input"]))]})


WRONG: dict[str, tuple[Behaviour, str]] = {
    "a web page": (
        lambda body, n: (200, {"Content-Type": "text/html"}, b"<html>Sign in</html>"),
        "did not answer as /v1/embeddings does",
    ),
    "nothing": (lambda body, n: (200, {}, b""), "did not answer"),
    "half a reply": (lambda body, n: (200, {}, well(body)[2][:-5]), "did not answer"),
    "an error with status 200": (lambda body, n: as_json({"error": "no model"}), "no list called `data`.*no model"),
    "too few": (lambda body, n: well({"input": body["input"][1:]}), "1 vectors came back for 2 texts"),
    "too many": (lambda body, n: well({"input": [*body["input"], "x"]}), "3 vectors came back for 2 texts"),
    "a number twice": (
        lambda body, n: as_json({"data": [{"index": 0, "embedding": [1.0]} for _ in body["input"]]}),
        "`index` does not number",
    ),
    "not a number": (only([1.0, float("nan")]), "NaN or infinite"),
    "infinite": (only([1.0, float("inf")]), "NaN or infinite"),
    "zero": (only([0.0, 0.0]), "zero"),
    "empty": (only([]), "not all of one length"),
    "words": (only(["one", "two"]), "neither a list of numbers nor base64"),
    "not base64": (only("!!!"), "neither a list of numbers nor base64"),
    "nested": (only([[1.0]]), "neither a list of numbers nor base64"),
    "uneven": (
        lambda body, n: as_json({"data": [{"index": i, "embedding": [1.0] * (i + 1)} for i in range(2)]}),
        "not all of one length",
    ),
}


@pytest.mark.parametrize("kind", WRONG)
async def test_a_reply_that_makes_no_sense_is_an_error_in_clear_words(endpoint: PostServer, kind: str) -> None:
    endpoint.behaviour, words = WRONG[kind]
    with pytest.raises(ModelError, match=words):
        await client(endpoint).passages(["a", "bb"])


async def test_a_model_that_changes_its_dimension_is_an_error(endpoint: PostServer) -> None:
    embedder = client(endpoint)
    await embedder.passages(["a"])
    endpoint.behaviour = only([1.0, 2.0])
    with pytest.raises(ModelError, match="2 numbers, where 3 were expected"):
        await embedder.passages(["a"])


async def test_no_more_requests_run_at_once_than_allowed(endpoint: PostServer) -> None:
    pause, free, seen = threading.Event(), threading.Semaphore(3), list[bool]()

    def busy(body: dict[str, Any], _: int) -> Reply:
        seen.append(free.acquire(blocking=False))
        pause.wait(0.02)
        free.release()
        return well(body)

    endpoint.behaviour = busy
    await client(endpoint, batch_texts=1, at_once=3).passages(["x"] * 12)
    assert all(seen)
    assert len(endpoint.bodies) == 12


def test_the_dimension_can_be_asked_for_first_and_loops_can_come_and_go(endpoint: PostServer) -> None:
    embedder = client(endpoint)
    assert embedder.dim == 3
    assert asyncio.run(embedder.passages([])).shape == (0, 3)
    for _ in range(2):
        assert asyncio.run(embedder.queries(["a"])).shape == (1, 3)


async def test_a_key_that_cannot_be_sent_is_the_persons_to_put_right(endpoint: PostServer) -> None:
    with pytest.raises(UserError, match="embedder_api_key") as raised:
        await EndpointEmbedder(f"{endpoint.url}/v1", "tiny", "kéy\n").passages(["a"])
    assert "kéy" not in str(raised.value)


def test_the_name_stays_when_the_address_changes_and_changes_with_the_model() -> None:
    here, there = EndpointEmbedder("http://a/v1", "tiny"), EndpointEmbedder("http://b:8080/v1/embeddings", "tiny")
    assert here.name == there.name
    assert here.name != EndpointEmbedder("http://a/v1", "large").name
    assert there._client.address == "http://b:8080/v1/embeddings"
    assert EndpointEmbedder("http://a", "tiny")._client.address == "http://a/v1/embeddings"


@given(st.lists(st.integers(0, 50)), st.integers(1, 8), st.integers(1, 80))
def test_spans_cover_every_text_once_within_both_limits(lengths: list[int], most: int, characters: int) -> None:
    spans = list(batch_spans(lengths, most, characters))
    assert [place for start, end in spans for place in range(start, end)] == list(range(len(lengths)))
    for start, end in spans:
        assert 0 < end - start <= most
        assert end - start == 1 or sum(lengths[start:end]) <= characters


def test_a_pause_is_asked_for_in_seconds_or_by_date() -> None:
    now = datetime(2025, 1, 1, tzinfo=UTC)
    assert retry_after({"retry-after": "2.5"}, now) == 2.5
    assert retry_after({"retry-after": "Wed, 01 Jan 2025 00:00:30 GMT"}, now) == 30
    assert retry_after({"retry-after": "Wed, 01 Jan 2020 00:00:30 GMT"}, now) == 0
    assert retry_after({"retry-after": "soon"}, now) is None
    assert retry_after({}, now) is None


def test_vectors_without_an_index_are_taken_in_the_order_given() -> None:
    assert parse_vectors({"data": [{"embedding": [2.0, 0.0]}, {"embedding": [0.0, 3.0]}]}, 2).tolist() == [
        [1, 0],
        [0, 1],
    ]
