"""Syntheses over HTTP: forecast, begun, carried on after a restart, and read in three forms."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from sending import listed, read
from serving import Served, served, until

from assay.serve.routes import synthesis


def begun(client: httpx.Client, **wish: object) -> str:
    reply = client.post("/api/synthesis", json=wish)
    assert reply.status_code == 201, reply.text
    assert reply.json()["events"] == f"/api/runs/{reply.json()['run']}/events"
    return reply.json()["run"]


def done(client: httpx.Client, **wish: object) -> str:
    run = begun(client, **wish)
    until(lambda: client.get(f"/api/synthesis/{run}").status_code == 200, 60)
    return run


def test_a_forecast_says_what_it_will_take_and_begins_nothing(client: httpx.Client):
    told = client.post("/api/synthesis/forecast", json={}).json()
    assert (told["documents"], told["calls"], told["large"]) == (3, 0, False)
    assert told["lines"][0].startswith("3 documents")
    assert client.get("/api/runs").json()["runs"] == []


def test_documents_and_bases_that_are_named_are_read_and_no_others(client: httpx.Client):
    client.post("/api/bases", json={"name": "other"})
    read(client, [("x.txt", b"A note on ropes."), ("y.txt", b"A note on sails.")], "other")
    one = listed(client, q="lamp.txt")[0]["id"]

    def documents(**wish: object) -> int:
        return client.post("/api/synthesis/forecast", json={"pipeline": "summary", **wish}).json()["documents"]

    assert documents() == 5
    assert documents(bases=["other"]) == 2
    assert documents(documents=[one]) == 1
    assert documents(documents=[one, one], bases=["other"]) == 3


@pytest.mark.long
def test_an_account_can_be_read_as_a_page_as_markdown_and_by_a_program(client: httpx.Client):
    run = done(client, pipeline="summary")
    account = client.get(f"/api/synthesis/{run}").json()
    assert account["run"] == run
    assert len(account["documents"]) == 3
    page = client.get(f"/api/synthesis/{run}/page")
    assert page.headers["content-type"].startswith("text/html")
    assert "The tower of the lighthouse at Carrow Point is 31 metres tall." in page.text
    text = client.get(f"/api/synthesis/{run}/markdown")
    assert text.headers["content-type"].startswith("text/markdown")
    assert text.text.startswith("# ")


@pytest.mark.long
def test_a_page_can_be_framed_by_this_server_alone_and_reach_nothing(client: httpx.Client):
    run = done(client, pipeline="summary")
    [policy] = client.get(f"/api/synthesis/{run}/page").headers.get_list("content-security-policy")
    parts = {part.split()[0]: part.strip() for part in policy.split(";")}
    assert parts["default-src"] == "default-src 'none'"
    assert parts["sandbox"] == "sandbox allow-scripts"  # an origin of its own: no cookie, no storage, no request
    assert parts["frame-ancestors"] == "frame-ancestors 'self'"
    assert "unsafe" not in parts["script-src"]
    assert "'self'" not in parts["script-src"]


@pytest.mark.long
def test_what_a_document_says_in_tags_is_text_on_the_page(client: httpx.Client):
    read(client, [("evil.txt", b"The pier <script>alert(1)</script> is long. <img src=x onerror=alert(2)> It is old.")])
    page = client.get(f"/api/synthesis/{done(client, pipeline='summary')}/page").text
    assert "<script>alert(1)" not in page
    assert "<img" not in page


def test_what_cannot_be_synthesised_is_said_before_anything_is_begun(client: httpx.Client):
    one = listed(client)[0]["id"]
    assert client.post("/api/synthesis", json={"documents": ["d-nobody"]}).status_code == 404
    assert client.post("/api/synthesis", json={"bases": ["nowhere"]}).status_code == 404
    alone = client.post("/api/synthesis", json={"documents": [one]})
    assert alone.status_code == 400
    assert "compares documents" in alone.json()["detail"]
    for wrong in ({"questions": 0}, {"questions": 21}, {"pipeline": "x"}, {"audiences": ["x"] * 9}, {"extra": 1}):
        assert client.post("/api/synthesis", json=wrong).status_code == 422, wrong
    assert client.get("/api/runs").json()["runs"] == []


@pytest.mark.long
def test_a_question_has_no_account(client: httpx.Client):
    run = client.post("/api/runs", json={"question": "How tall is the tower?"}).json()["run"]
    until(lambda: client.get(f"/api/runs/{run}").json()["state"] != "running")
    assert client.get(f"/api/synthesis/{run}").status_code == 400
    assert client.get(f"/api/synthesis/{run}/page").status_code == 400


@pytest.mark.long
def test_a_synthesis_goes_on_after_a_restart(folder: Path, monkeypatch: pytest.MonkeyPatch):
    with served(folder, grace=0.0) as at, at.client() as client:
        run = begun(client)
    with served(folder) as at, at.client() as client:
        until(lambda: client.get(f"/api/synthesis/{run}").status_code == 200, 60)


def test_documents_are_chosen_in_the_order_in_which_they_are_named(at: Served):
    ids = [entry.id for entry in at.server.workspace.documents.listing()][::-1]
    wish = synthesis.CreateSynthesisRequest(documents=tuple(ids), bases=("default",))
    assert synthesis.selected_documents(at.server.workspace, wish) == ids


def test_syntheses_can_be_listed_apart_from_questions_that_only_speak_of_a_brief(client: httpx.Client):
    run = begun(client, pipeline="summary")
    asked = client.post("/api/runs", json={"question": 'Which lamp has a "brief":{ in it?'}).json()["run"]

    def ids(**which: str) -> list[str]:
        return [each["id"] for each in client.get("/api/runs", params=which).json()["runs"]]

    assert ids(kind="synthesis") == [run]
    assert ids(kind="question") == [asked]
    assert set(ids()) == {run, asked}
