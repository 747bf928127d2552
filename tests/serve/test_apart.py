"""Two people of one server who see nothing of each other, on any route there is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import QUESTION, until
from team import Team, team

from assay.core.access import Principal
from assay.store.access import grants

WORDS = ("Carrow", "orpiment", "tower", "lamp.txt", "beacon", "private")  # of the editor's documents and questions


@pytest.fixture
def tool_context(folder: Path):
    with team(folder) as made:
        yield made


def owned(client: httpx.Client) -> dict[str, str]:
    """One of everything that there can be, made by the editor: what goes into the places of a path."""
    assert client.post("/api/bases", json={"name": "private"}).status_code == 201
    sent = client.post("/api/bases/private/documents", files={"files": ("more.txt", b"The tower has 99 steps.")})
    assert sent.status_code == 202, sent.text
    job = sent.json()["id"]
    until(lambda: client.get(f"/api/jobs/{job}").json()["state"] == "done")
    begun = client.post("/api/runs", json={"question": QUESTION, "talk": True}).json()
    until(lambda: client.get(f"/api/runs/{begun['run']}").json()["state"] == "delivered")
    document = client.get("/api/documents").json()["documents"][0]["id"]
    account = client.post("/api/synthesis", json={"bases": ["default"]}).json()["run"]
    until(lambda: client.get(f"/api/runs/{account}").json()["state"] in {"delivered", "failed"})
    return {
        "name": "private",
        "base": next(each["id"] for each in client.get("/api/bases").json() if each["name"] == "private"),
        "document": document,
        "n": "1",
        "job": job,
        "run": begun["run"],
        "thread": begun["thread"],
        "model": "assay/private",
        "account": account,
        "a": begun["run"],
        "b": account,
        "key": client.get("/api/keys").json()["keys"][0]["id"],
        "kind": "runs",
        "identity": "0123456789abcdef",
        "watch": "w0123456789abcdef",
    }


def paths(client: httpx.Client, method: str) -> list[tuple[str, dict[str, Any]]]:
    every = client.get("/openapi.json").json()["paths"]
    return [(path, operations[method]) for path, operations in every.items() if method in operations]


def filled(path: str, places: dict[str, str]) -> str:
    """A path with ids in it; a place that no test knows of fails here."""
    if path.startswith("/api/synthesis/"):
        places = {**places, "run": places["account"]}
    query = {"boxes": "?start=0&end=9", "restrictions": "?pattern=hr/**"}.get(path.rpartition("/")[2], "")
    return re.sub(r"\{(\w+)\}", lambda place: places[place[1]], path) + query


OPEN = {"/health", "/ready", "/api/me", "/api/session"}
MINE = {
    "/api/bases",
    "/api/documents",
    "/api/jobs",
    "/api/runs",
    "/api/threads",
    "/api/keys",
    "/api/offers",
    "/api/reviews",
    "/v1/models",
}
MINE |= {
    "/api/reports/{kind}",
    "/api/suggestions",
    "/api/feedback",
    "/api/shared-threads",
    "/api/recheck",
    "/api/waiting",
    "/api/watches",
    "/api/identities",
    "/api/document-tags",
    "/api/document-choices",
}  # each lists one's own


@pytest.mark.long
def test_nothing_of_one_person_is_seen_by_another_on_any_route_that_reads(tool_context: Team):
    with tool_context.as_("editor") as owner, tool_context.as_("reader") as other:
        places = owned(owner)
        ids = {value for name, value in places.items() if name not in {"name", "n", "model", "kind"}}
        seen = 0
        for path, _ in paths(other, "get"):
            if path in OPEN:
                continue
            theirs = owner.get(filled(path, places))
            reply = other.get(filled(path, places))
            told = reply.text
            if path in MINE:
                assert reply.status_code == 200, path
            else:
                assert reply.status_code == 404, (path, reply.status_code, told[:300])
                told = told.replace(places["name"], "")  # what they have named themselves
            assert not [each for each in WORDS if each in told], path
            if path in MINE:
                assert not [each for each in ids if each in told], path
            seen += theirs.status_code == 200
        assert seen >= 15, "the owner does see it"


@pytest.mark.long
def test_nothing_of_one_person_is_changed_by_another_on_any_route_that_writes(tool_context: Team):
    bodies = {
        "/api/bases/{name}": {"description": "mine"},
        "/api/threads/{thread}": {"title": "mine"},
        "/api/runs/{run}/choice": {"choice": "x"},
        "/api/runs/{run}/rerun": {"from": 0},
        "/api/reviews/{run}/decision": {"decision": "approve", "seal": "0"},
        "/api/bases/{name}/access": {"name": "user:reader", "may": True},
        "/api/documents/{document}/access": {"name": "user:reader", "may": True},
        "/api/people/{name}": {"admin": True},
        "/api/offers/{base}": {"accept": True},
        "/api/shared-threads/{thread}": {"accept": True},
        "/api/runs/{run}/feedback": {"kind": "wrong"},
        "/api/bases/{name}/restrictions": {"pattern": "hr/**", "only_for": ["user:reader"]},
        "/api/documents/{document}/held": {"keep": False},
        "/api/documents/{document}": {"title": "mine"},
        "/api/threads/{thread}/readers": {"name": "user:reader", "may": True},
    }
    files = {"files": ("a.txt", b"words")}
    with tool_context.as_("editor") as owner, tool_context.as_("reader") as other:
        places = owned(owner)
        before = [owner.get(filled(path, places)).json() for path in sorted(MINE - {"/api/keys"})]
        tried = 0
        for method in ("post", "patch", "put", "delete"):
            for path, _ in paths(other, method):
                if "{" not in path:
                    continue
                given = {"files": files} if path.endswith("/documents") else {"json": bodies.get(path, {})}
                more = {} if method == "delete" else given
                reply = other.request(method.upper(), filled(path, places), **more)
                assert reply.status_code == 404, (method, path, reply.status_code, reply.text)
                tried += 1
        assert tried >= 9
        assert [owner.get(filled(path, places)).json() for path in sorted(MINE - {"/api/keys"})] == before


def test_a_search_and_a_question_of_one_person_find_nothing_of_another(tool_context: Team):
    with tool_context.as_("reader") as other:
        assert other.post("/api/search", json={"query": "tower Carrow Point"}).json()["hits"] == []
        assert other.post("/api/search", json={"query": "tower", "bases": ["default"]}).status_code == 404
        answer = other.post("/api/ask", json={"question": QUESTION}).json()
        assert answer["evidence"] == [] and "metres" not in json.dumps(answer["answer"] or {})
        document = tool_context.at.server.workspace.for_principal(Principal("editor")).documents.listing()[0].id
        assert other.post("/api/synthesis", json={"documents": [document]}).status_code in {400, 404}
        completed = other.post(
            "/v1/chat/completions", json={"model": "assay", "messages": [{"role": "user", "content": QUESTION}]}
        )
        assert "31 metres" not in completed.text


def test_a_base_of_ones_own_may_be_called_like_somebody_elses_and_is_apart_from_it(tool_context: Team):
    with tool_context.as_("editor") as owner, tool_context.as_("reader") as other:
        assert other.post("/api/bases", json={"name": "default"}).status_code == 201
        sent = other.post("/api/bases/default/documents", files={"files": ("own.txt", b"The pier is made of oak.")})
        until(lambda: other.get(f"/api/jobs/{sent.json()['id']}").json()["state"] == "done")
        assert [each["name"] for each in other.get("/api/documents").json()["documents"]] == ["own.txt"]
        assert owner.get("/api/documents").json()["total"] == 3
        assert other.delete("/api/bases/default").status_code == 204
        assert owner.get("/api/documents").json()["total"] == 3


def test_deleting_ones_own_base_stops_nothing_that_fills_anothers_of_the_same_name(tool_context: Team):
    with tool_context.as_("editor") as owner, tool_context.as_("reader") as other:
        other.post("/api/bases", json={"name": "default"})
        files = [("files", (f"{n}.txt", f"Step {n} of the stair is worn.".encode())) for n in range(40)]
        job = owner.post("/api/bases/default/documents", files=files).json()["id"]
        assert other.delete("/api/bases/default").status_code == 204
        until(lambda: owner.get(f"/api/jobs/{job}").json()["state"] not in {"waiting", "running"}, 60)
        assert owner.get(f"/api/jobs/{job}").json()["state"] == "done"


def test_both_bases_of_one_name_can_be_asked_where_one_of_them_is_shared(tool_context: Team):
    store = tool_context.at.server.workspace.store
    (base,) = grants.scope_of(store, Principal("editor")).bases
    with tool_context.as_("reader") as other:
        sent = other.post("/api/bases/default/documents", files={"files": ("own.txt", b"My tower is made of cards.")})
        until(lambda: other.get(f"/api/jobs/{sent.json()['id']}").json()["state"] == "done")
        grants.share(store, base, "user:reader")
        assert [each["name"] for each in other.get("/api/bases").json()] == ["default", "default (editor)"]
        assert other.get("/api/bases/default (editor)").json()["documents"] == 3
        found = {
            name: {
                hit["document"]
                for hit in other.post("/api/search", json={"query": "tower", "bases": [name]}).json()["hits"]
            }
            for name in ("default", "default (editor)")
        }
        assert found["default"] and found["default (editor)"] and not found["default"] & found["default (editor)"]
