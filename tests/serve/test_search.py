"""Searching over HTTP: passages as they stand, within the limits that were named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from sending import read
from serving import served


@pytest.fixture
def client(folder: Path) -> Iterator[httpx.Client]:
    with served(folder) as at, at.client() as made:
        yield made


def test_the_best_passages_come_first_and_lead_to_their_place(client: httpx.Client):
    found = client.post("/api/search", json={"query": " tower metres tall ", "k": 2}).json()
    assert found["query"] == "tower metres tall"
    assert [hit["rank"] for hit in found["hits"]] == [1, 2]
    first = found["hits"][0]
    assert (first["title"], first["base"], first["page"]) == ("tower.txt", "default", None)
    text = client.get(f"/api/documents/{first['document']}/text").json()["text"]
    assert text[first["start"] : first["end"]] == first["text"]


def test_a_search_keeps_to_the_bases_types_and_dates_that_are_named(client: httpx.Client):
    client.post("/api/bases", json={"name": "other"})
    read(client, [("t.md", b"# Tower\n\nAnother tower, of 12 metres.")], "other")

    def found(**limits: object) -> set[str]:
        reply = client.post("/api/search", json={"query": "tower metres", **limits})
        return {hit["base"] for hit in reply.json()["hits"]}

    assert found() == {"default", "other"}
    assert found(bases=["other"]) == {"other"}
    assert found(types=["markdown"]) == {"other"}
    assert found(since="2020") == set()
    assert client.post("/api/search", json={"query": "tower", "bases": ["nowhere"]}).status_code == 404


def test_a_search_for_nothing_or_too_much_is_refused(client: httpx.Client):
    for wrong in (
        {"query": "   "},
        {"query": "x", "k": 0},
        {"query": "x", "k": 101},
        {"query": "x" * 20_001},
        {"query": "x", "since": "yesterday"},
        {"query": "x", "since": "2024-13-45"},
        {"query": "x", "unknown": 1},
        {"query": "x", "since": "2024", "until": "2020"},
        {},
    ):
        assert client.post("/api/search", json=wrong).status_code in {400, 422}, wrong
    strange = client.post(
        "/api/search", content=b'{"query": "\\ud800 \\u0000"}', headers={"Content-Type": "application/json"}
    )
    assert strange.status_code in {200, 422}
