"""Reviews over the API: whoever asked gets no word of the draft, a reviewer sees all of it, and the run goes on by itself."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from notes import filled
from post_server import as_json, post_server
from serving import NOTES, QUESTION, followed, served, until
from team import Team, team

from assay.core.access import LOCAL, Principal
from assay.core.events import Decision
from assay.serve import housekeeping
from assay.serve.state import ServeOptions
from assay.store.access import grants
from assay.store.runs import reviews, underway

TALL = "31 metres tall"
REVIEWS = {"review_always": True, "reviewers": "user:reader"}


@pytest.fixture
def shared(folder: Path) -> Path:
    """The notes, which the reader may read too."""
    from assay.workspace.facade import open_workspace

    with open_workspace(folder) as opened:
        grants.share(opened.store, opened.scope().bases[0], "user:reader")
    return folder


@contextmanager
def people_of(folder: Path, **flags: Any) -> Iterator[tuple[Team, httpx.Client, httpx.Client]]:
    with team(folder, **REVIEWS | flags) as us, us.as_("editor") as asker, us.as_("reader") as reviewer:
        yield us, asker, reviewer


def ask(client: httpx.Client, **wish: Any) -> dict[str, Any]:
    reply = client.post("/api/ask", json={"question": QUESTION, **wish})
    assert reply.is_success, reply.text
    return reply.json()


def decide(client: httpx.Client, run: str, decision: str, seal: str, **more: Any) -> httpx.Response:
    return client.post(f"/api/reviews/{run}/decision", json={"decision": decision, "seal": seal, **more})


def test_an_answer_waits_is_edited_waits_again_is_approved_and_comes_by_itself(shared: Path):
    with people_of(shared) as (_, asker, reviewer):
        run = ask(asker)
        name = run["id"]
        assert run["state"] == "held" and run["answer"] is None
        assert run["held"]["reasons"] == ["every answer is looked at here"] and run["held"]["since"]
        (line,) = reviewer.get("/api/reviews").json()["reviews"]
        assert (line["run"], line["who"], line["may_decide"]) == (name, "editor", True)
        first = reviewer.get(f"/api/reviews/{name}").json()
        assert TALL in first["claims"][0]["text"] and first["claims"][0]["editable"] and first["evidence"]
        assert first["answer"]["blocks"]
        edits = [{"place": 0, "text": "The tower at Carrow Point is 31 metres tall."}]
        told = decide(reviewer, name, "edit", first["seal"], edits=edits)
        assert told.json()["state"] == "edited", told.text
        until(lambda: reviewer.get(f"/api/reviews/{name}").json()["state"] == "waiting")
        second = reviewer.get(f"/api/reviews/{name}").json()
        assert second["claims"][0]["edited"] == "reader" and second["seal"] != first["seal"]
        assert [each["decision"] for each in second["history"]] == ["edit"]
        assert decide(reviewer, name, "approve", first["seal"]).status_code == 400
        assert decide(reviewer, name, "approve", second["seal"]).status_code == 200
        until(lambda: asker.get(f"/api/runs/{name}").json()["state"] == "delivered")
        assert "The tower at Carrow Point is 31 metres tall." in asker.get(f"/api/runs/{name}/answer").text
        assert decide(reviewer, name, "approve", second["seal"]).status_code == 400
        decided = reviewer.get("/api/reviews?state=decided").json()["reviews"]
        assert [each["state"] for each in decided] == ["delivered", "edited"]


def test_whoever_asked_gets_no_word_of_the_draft_before_it_is_approved(shared: Path):
    with people_of(shared) as (_, asker, reviewer):
        run = ask(asker)["id"]
        surfaces = [
            asker.get(f"/api/runs/{run}").json(),
            [each.data for each in followed(asker, run)],
            asker.get(f"/api/runs/{run}/trace").json()["events"],
        ]
        assert surfaces[0]["evidence"] == []
        assert surfaces[0]["held"]["progress"].startswith("Searched ")
        assert TALL not in json.dumps(surfaces)
        (held,) = (each for each in surfaces[2] if each["kind"] == "AwaitingReview")
        assert set(held["event"]) == {"seal", "reasons", "four_eyes"}
        assert asker.get(f"/api/runs/{run}/answer").status_code == 400
        assert asker.post(f"/api/runs/{run}/resume").status_code == 400
        for path in ("", "/trace"):
            assert asker.get(f"/api/reviews/{run}{path}").status_code == 404
        assert decide(asker, run, "approve", held["event"]["seal"]).status_code == 404
        assert asker.get("/api/reviews").json()["reviews"] == []
        assert TALL in json.dumps(reviewer.get(f"/api/reviews/{run}/trace").json())


def test_a_rejection_is_told_with_its_note_and_nothing_else(shared: Path):
    with people_of(shared) as (_, asker, reviewer):
        run = ask(asker)["id"]
        seal = reviewer.get(f"/api/reviews/{run}").json()["seal"]
        assert decide(reviewer, run, "reject", seal).status_code == 400
        assert decide(reviewer, run, "reject", seal, note="It is out of date.").status_code == 200
        whole = asker.get(f"/api/runs/{run}").json()
        assert (whole["state"], whole["rejected"], whole["answer"]) == (
            "rejected",
            {"by": "reader", "note": "It is out of date."},
            None,
        )
        (line,) = (each for each in asker.get("/api/runs").json()["runs"] if each["id"] == run)
        assert line["state"] == "rejected"


def test_a_run_that_was_approved_while_nothing_served_is_delivered_when_it_starts_again(shared: Path):
    with people_of(shared) as (us, asker, _):
        run = ask(asker)["id"]
        held = reviews.latest(us.at.server.workspace.store, run)
        assert held is not None
        whole = us.at.server.workspace.for_principal(Principal("reader"))
        service = whole.reviews.acting(admin=False, principal_of=lambda run, who: Principal(who))
        service.decide(run, Decision.approve, held.seal)  # and dies before it goes on
        underway.end(whole.store, run)  # as one that was asked at a terminal, of which no server knows
        assert asker.get(f"/api/runs/{run}").json()["state"] != "delivered"
        keys = us.keys
    with (
        served(shared, None, ServeOptions(auth="keys"), **REVIEWS) as at,
        at.client(Authorization=f"Bearer {keys['editor']}") as asker,
    ):
        until(lambda: asker.get(f"/api/runs/{run}").json()["state"] == "delivered")


def test_what_was_asked_at_a_terminal_is_reviewed_where_people_sign_in(shared: Path):
    with people_of(shared) as (us, _, reviewer):
        whole = us.at.server.workspace
        (base,) = grants.scope_of(whole.store, Principal("editor")).bases
        grants.share(whole.store, base, f"user:{LOCAL.id}")

        async def asked() -> str:
            return [run.id async for run, _ in whole.for_principal(LOCAL).ask(QUESTION)][-1]

        run = asyncio.run(asked())
        seal = reviewer.get(f"/api/reviews/{run}").json()["seal"]
        assert decide(reviewer, run, "approve", seal).status_code == 200
        until(lambda: whole.for_principal(LOCAL).questions.run(run).delivered)


def test_a_server_for_one_person_has_that_person_review(folder: Path):
    with served(folder, None) as at, at.client() as client:
        assert ask(client)["state"] == "delivered"
        run = ask(client, stakes="high")["id"]
        seal = client.get(f"/api/reviews/{run}").json()["seal"]
        assert decide(client, run, "approve", seal).status_code == 200
        until(lambda: client.get(f"/api/runs/{run}").json()["state"] == "delivered")


# --- the webhook ----------------------------------------------------------------------------------------------------


def test_a_webhook_is_told_once_that_an_answer_waits_signed_and_without_a_word_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(housekeeping, "LOOKS", 0.05)
    asyncio.run(filled(tmp_path / "workspace", NOTES))
    with post_server(lambda body, n: as_json({}, 404 if n == 1 else 200)) as hook:
        flags = {
            "review_always": True,
            "review_webhook": f"{hook.url}/hook",
            "review_webhook_secret": "a lamp on the pier",
        }
        with served(tmp_path / "workspace", None, **flags) as at, at.client() as client:
            run = ask(client)["id"]
            store = at.server.workspace.store
            until(lambda: not reviews.not_notified(store))
            assert asyncio.run(at.server.workspace.reviews.notify(5.0)) == 0
    _, body = hook.contents  # it was refused once, and not forgotten
    assert json.loads(body) == {
        "event": "review.waiting",
        "id": json.loads(body)["id"],
        "run": run,
        "since": json.loads(body)["since"],
        "reasons": ["every answer is looked at here"],
    }
    assert b"tower" not in body and LOCAL.id.encode() not in body
    moment, _, signed = hook.headers[-1]["x-assay-signature"].removeprefix("t=").partition(",v1=")
    assert hmac.compare_digest(
        signed, hmac.new(b"a lamp on the pier", moment.encode() + b"." + body, hashlib.sha256).hexdigest()
    )
