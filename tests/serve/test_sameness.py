"""Two people: what is somebody else's is as if it were not there. Every operation that takes an id is asked with the other
person's and with one that nobody has, and says the same."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from furnished import Real, furnish, made, operations
from notes import filled
from serving import QUESTION, Served, served

from assay.core.access import Principal
from assay.serve.state import ServeOptions
from assay.store.access import members, tokens

NOBODYS = {
    "name": "nothing",
    "document": "d0123456789abcdef",
    "run": "r0123456789abcdef",
    "thread": "t0123456789abcdef",
    "job": "j0123456789abcdef",
    "model": "assay/nothing",
    "a": "r0123456789abcdef",
    "b": "r0123456789abcdef",
    "base": "b0123456789abcdef",
}
NOBODYS_THINGS = {"/api/reports/{kind}"}  # what it names is no thing of anybody's

BODIES: dict[tuple[str, str], Any] = {
    ("PATCH", "/api/bases/{name}"): {"json": {"description": "mine now"}},
    ("POST", "/api/offers/{base}"): {"json": {"accept": True}},
    ("POST", "/api/shared-threads/{thread}"): {"json": {"accept": True}},
    ("PATCH", "/api/threads/{thread}"): {"json": {"title": "mine now"}},
    ("PATCH", "/api/people/{name}"): {"json": {"admin": True}},
    ("POST", "/api/bases/{name}/access"): {"json": {"name": "user:reader", "may": True}},
    ("POST", "/api/documents/{document}/access"): {"json": {"name": "user:reader", "may": True}},
    ("POST", "/api/runs/{run}/rerun"): {"json": {"from": 0}},
    ("POST", "/api/reviews/{run}/decision"): {"json": {"decision": "approve", "seal": "0"}},
    ("POST", "/api/runs/{run}/choice"): {"json": {"choice": "answer"}},
    ("POST", "/api/bases/{name}/documents"): {"files": {"files": ("a.txt", b"mine now")}},
    ("PATCH", "/api/documents/{document}"): {"json": {"title": "mine now"}},
    ("POST", "/api/runs/{run}/feedback"): {"json": {"kind": "wrong"}},
    ("POST", "/api/threads/{thread}/readers"): {"json": {"name": "user:reader", "may": True}},
    ("GET", "/api/bases/{name}/restrictions"): {"params": {"pattern": "hr/**"}},
    ("POST", "/api/bases/{name}/restrictions"): {"json": {"pattern": "hr/**", "only_for": ["user:reader"]}},
    ("DELETE", "/api/bases/{name}/restrictions"): {"params": {"pattern": "hr/**"}},
    ("POST", "/api/documents/{document}/held"): {"json": {"keep": False}},
    ("GET", "/api/documents/{document}/boxes"): {"params": {"start": 0, "end": 10}},
}


@dataclass(frozen=True, slots=True)
class Two:
    """A server, what the editor has there, and who can ask."""

    at: Served
    real: Real
    editor: httpx.Client
    reader: httpx.Client


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    folder = tmp_path_factory.mktemp("two") / "workspace"
    asyncio.run(filled(folder, {}))
    with served(folder, serving=ServeOptions(auth="keys")) as at:
        editor, reader = signed(at, "editor"), signed(at, "reader")
        with editor, reader:
            yield Two(at, furnish(editor, at.server, Principal("editor"), base="private"), editor, reader)


def signed(at: Served, name: str) -> httpx.Client:
    store = at.server.workspace.store
    members.add(store, name)
    return at.client(Authorization=f"Bearer {tokens.new_key(store, name)}")


def said(reply: httpx.Response, ids: dict[str, str]) -> tuple[int, dict[str, str], str]:
    """A reply without what changes from one to the next: the id that was asked for, and its length."""
    text = reply.text
    for each in ids.values():
        text = text.replace(each, "…")
    passing = {"date", "content-length"}
    return reply.status_code, {name: value for name, value in reply.headers.items() if name not in passing}, text


@pytest.mark.long
def test_what_is_anothers_and_what_is_not_there_are_answered_alike(two: Two):
    compared = 0
    for method, path, _ in operations(made(two.reader.get("/openapi.json"))):
        if path in NOBODYS_THINGS or not (places := re.findall(r"{(\w+)}", path)):
            continue
        theirs = {name: two.real.ids(path)[name][-1] for name in places}
        nobodys = {name: NOBODYS.get(name, theirs[name]) for name in places}
        more = BODIES.get((method, path), {})
        for each in (more, {**more, "headers": {"If-None-Match": "*", "Last-Event-ID": "1", "Range": "bytes=0-1"}}):
            one = two.reader.request(method, path.format(**theirs), **each)
            other = two.reader.request(method, path.format(**nobodys), **each)
            assert one.status_code == 404, (method, path)
            assert said(one, theirs) == said(other, nobodys), (method, path)
            compared += 1
    assert compared > 50


@pytest.mark.long
def test_naming_anothers_things_in_a_question_is_naming_nothing(two: Two):
    real, wish = two.real, {"question": QUESTION}
    asked = [
        ("/api/search", {"query": "tower", "bases": list(real.bases)}, {"query": "tower", "bases": ["nothing"]}),
        ("/api/ask", {**wish, "bases": list(real.bases)}, {**wish, "bases": ["nothing"]}),
        ("/api/runs", {**wish, "thread": real.thread}, {**wish, "thread": NOBODYS["thread"]}),
        ("/api/synthesis/forecast", {"documents": [real.document]}, {"documents": [NOBODYS["document"]]}),
        ("/api/synthesis", {"bases": list(real.bases)}, {"bases": ["nothing"]}),
    ]
    ids = {"base": real.bases[0], "thread": real.thread, "document": real.document}
    nobodys = {"base": "nothing", "thread": NOBODYS["thread"], "document": NOBODYS["document"]}
    for path, theirs, nothing in asked:
        one, other = two.reader.post(path, json=theirs), two.reader.post(path, json=nothing)
        assert one.status_code == 404, path
        assert said(one, ids) == said(other, nobodys), path


@pytest.mark.long
def test_lists_and_searches_hold_ones_own_alone(two: Two):
    assert two.editor.get("/api/runs").json()["runs"]
    for path, field in (("runs", "runs"), ("threads", "threads"), ("documents", "documents")):
        assert two.reader.get(f"/api/{path}").json()[field] == [], path
    assert two.reader.get("/api/jobs").json() == []
    assert "private" not in two.reader.get("/api/bases").text + two.reader.get("/v1/models").text
    assert two.reader.post("/api/search", json={"query": "tower"}).json()["hits"] == []
    found = two.reader.post("/api/search", json={"query": "tower", "sources": ["tower.txt"]})
    assert "31 metres" not in found.text
    answer = two.reader.post("/api/ask", json={"question": QUESTION}).json()
    assert answer["outcome"] == "abstained" and "31 metres" not in str(answer)


def test_a_base_of_anothers_name_is_one_of_ones_own(two: Two):
    made(two.reader.post("/api/bases", json={"name": "private"}))
    assert two.reader.get("/api/bases/private").json()["documents"] == 0
    assert two.editor.get("/api/bases/private").json()["documents"] == 3
    assert two.reader.delete("/api/bases/private").status_code == 204
    assert two.editor.get("/api/bases/private").json()["description"] == "What was reported."


def test_nothing_of_the_others_has_changed_by_all_that(two: Two):
    """Runs last: after every operation was tried on what is not one's own."""
    real, editor = two.real, two.editor
    for path in (f"documents/{real.document}/text", f"documents/{real.pdf}/original", f"threads/{real.thread}"):
        assert editor.get(f"/api/{path}").status_code == 200, path
    states = {run: editor.get(f"/api/runs/{run}").json()["state"] for run in real.runs}
    assert list(states.values()) == ["delivered", "waiting", "failed", "cancelled", "delivered"]
    assert len(editor.get("/api/jobs").json()) == 1
    assert editor.get(f"/api/threads/{real.thread}").json()["title"] != "mine now"
