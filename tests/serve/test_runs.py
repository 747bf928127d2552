"""Questions over HTTP: asked, followed, waited for, stopped, carried on and looked back at."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest
from doubles import ChatServer, HttpReply
from notes import opened
from serving import ANSWER, QUESTION, Served, followed, script, sent, served, slow, until

from assay.core.access import LOCAL
from assay.core.errors import UserError
from assay.core.events import Asked, Checkpoint, Failed, Mode, Resumed, Route, SearchFilters
from assay.serve.routes.system import WEB
from assay.serve.schemas import AskRequest, ask_options
from assay.serve.state import ServeOptions
from assay.store import threads
from assay.store.database import Store
from assay.store.runs import history, records, underway

Serve = Callable[..., AbstractContextManager[Served]]


def asked(client: httpx.Client, **wish: Any) -> dict[str, str]:
    reply = client.post("/api/runs", json={"question": QUESTION, **wish})
    assert reply.status_code == 201, reply.text
    return reply.json()


def state(client: httpx.Client, run: str) -> str:
    return client.get(f"/api/runs/{run}").json()["state"]


# --- asking ---------------------------------------------------------------------------------------------------------


def test_a_question_is_answered_with_claims_that_lead_to_the_words_they_stand_on(serve: Serve):
    with ChatServer(script().answer) as model, serve(model) as at, at.client() as client:
        begun = asked(client)
        assert begun["events"] == f"/api/runs/{begun['run']}/events"
        followed(client, begun["run"])
        run = client.get(f"/api/runs/{begun['run']}").json()
        assert (run["state"], run["outcome"], run["models"]) == ("delivered", "answered", ["scripted"])
        assert run["usage"]["calls"] > 2 and run["events"] > 8
        claim = run["answer"]["blocks"][0]["claims"][0]
        assert (claim["text"], claim["verdict"]) == ("The tower at Carrow Point is 31 metres tall.", "supported")
        (citation,) = [each for each in run["answer"]["citations"] if each["number"] in claim["citations"]]
        assert citation["name"] == "tower.txt" and citation["quote"].startswith(ANSWER)
        (kept,) = [each for each in run["evidence"] if each["cited"]]
        assert kept["passage"][kept["start"] - kept["passage_start"] :].startswith(ANSWER)


def test_who_waits_for_the_answer_gets_the_run_when_it_has_ended(serve: Serve):
    with ChatServer(slow(0.02)) as model, serve(model) as at, at.client() as client:
        run = client.post("/api/ask", json={"question": QUESTION}).json()
        assert run["state"] == "delivered"
        assert run == client.get(f"/api/runs/{run['id']}").json()


def test_who_waits_can_have_the_events_instead(serve: Serve):
    with ChatServer(slow(0.02)) as model, serve(model) as at, at.client() as client:
        with client.stream("POST", "/api/ask", json={"question": QUESTION, "stream": True}) as reply:
            events = list(sent(reply.iter_lines()))
        (listed,) = client.get("/api/runs").json()["runs"]
        kinds = [each.event for each in events if each.event != "statements"]
        assert kinds == [each.event for each in followed(client, listed["id"])]
        assert events[-1].data == {"state": "delivered"}


def test_what_a_client_wishes_is_how_the_question_is_dealt_with():
    how = ask_options(
        AskRequest(
            question="q",
            mode=Mode.thorough,
            checkpoints=(Checkpoint.sources,),
            route=Route.lookup,
            model=False,
            bases=("a", "b"),
            sources=("tower",),
            types=(".PDF",),
            since="2024",
            until="2025-02",
        )
    )
    assert (how.mode, how.route, how.model, how.checkpoints) == (
        Mode.thorough,
        Route.lookup,
        False,
        (Checkpoint.sources,),
    )
    assert how.where == SearchFilters(("a", "b"), ("tower",), (), ("pdf",), "2024-01-01", "2025-02-28")


def test_dates_that_leave_nothing_are_said():
    with pytest.raises(UserError, match="later than"):
        ask_options(AskRequest(question="q", since="2025", until="2024"))


@pytest.mark.long
@pytest.mark.parametrize(
    ("wish", "status", "says"),
    [
        ({"question": "  "}, 422, "question"),
        ({"question": "q", "tone": "rude"}, 422, "tone"),
        ({"question": "q", "mode": "eternal"}, 422, "mode"),
        ({"question": "q" * 4_001}, 400, "4,000 is the most"),
        ({"question": "q", "bases": ["nowhere"]}, 404, "no knowledge base called 'nowhere'"),
        ({"question": "q", "thread": "tnowhere"}, 404, "no thread called 'tnowhere'"),
        ({"question": "q", "since": "2025-13"}, 400, "2025-13"),
        ({"question": "q", "since": "\u0662\u0660\u0662\u0664"}, 422, "since"),
        ({"question": "q", "types": ["hieroglyphs"]}, 400, "hieroglyphs"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is_written_down(
    serve: Serve, wish: dict[str, Any], status: int, says: str
):
    with serve() as at, at.client() as client:
        reply = client.post("/api/runs", json=wish)
        assert reply.status_code == status, reply.text
        assert says in reply.json()["detail"]
        assert client.get("/api/runs").json() == {"runs": [], "next": ""}
        assert client.get("/api/threads").json() == {"threads": [], "next": ""}


def test_one_person_cannot_have_more_runs_at_once_than_the_setting_says(serve: Serve):
    with ChatServer(slow(30)) as model, serve(model, serve_runs_per_person=2) as at, at.client() as client:
        first, second = asked(client), asked(client)
        reply = client.post("/api/runs", json={"question": QUESTION})
        assert reply.status_code == 429 and int(reply.headers["retry-after"]) > 0
        client.post(f"/api/runs/{first['run']}/cancel")
        third = asked(client)
        for again in ("resume", "replay"):
            assert client.post(f"/api/runs/{first['run']}/{again}").status_code == 429
        for each in (second, third):
            client.post(f"/api/runs/{each['run']}/cancel")


# --- conversations --------------------------------------------------------------------------------------------------


def test_a_question_can_begin_a_thread_and_the_next_one_go_on_with_it(serve: Serve):
    with serve() as at, at.client() as client:
        first = asked(client, talk=True)
        followed(client, first["run"])
        second = asked(client, question="Who tends the beacon?", thread=first["thread"])
        followed(client, second["run"])
        assert second["thread"] == first["thread"] != ""
        thread = client.get(f"/api/threads/{first['thread']}").json()
        assert [run["id"] for run in thread["runs"]] == [first["run"], second["run"]]
        assert (thread["title"], thread["turns"]) == (QUESTION, 2)
        assert {run["thread"] for run in client.get("/api/runs").json()["runs"]} == {first["thread"]}
        assert asked(client)["thread"] == ""


def test_a_long_thread_comes_from_its_end(serve: Serve):
    with serve() as at, at.client() as client:
        first = asked(client, talk=True)
        others = [asked(client, question=f"Who tends beacon {n}?", thread=first["thread"]) for n in range(2)]
        runs = [each["run"] for each in (first, *others)]
        path = f"/api/threads/{first['thread']}"
        latest = client.get(path, params={"limit": 2}).json()
        assert ([run["id"] for run in latest["runs"]], latest["earlier"]) == (runs[1:], 1)
        rest = client.get(path, params={"limit": 2, "before": runs[1]}).json()
        assert ([run["id"] for run in rest["runs"]], rest["earlier"]) == (runs[:1], 0)


def test_a_thread_can_be_renamed_and_forgotten_and_its_runs_stay(serve: Serve):
    with serve() as at, at.client() as client:
        begun = asked(client, talk=True)
        followed(client, begun["run"])
        path = f"/api/threads/{begun['thread']}"
        assert client.patch(path, json={"title": " The tower "}).json()["title"] == "The tower"
        assert client.patch(path, json={"title": " "}).status_code == 422
        assert client.delete(path).status_code == 204
        assert client.get(path).status_code == client.delete(path).status_code == 404
        assert state(client, begun["run"]) == "delivered"


def test_many_threads_come_a_page_at_a_time_and_each_once(folder: Path):
    with opened(folder) as workspace:
        made = [
            threads.begin(workspace.store, "local", f"Thread {n} über {'Öl' if n % 2 else 'Luft'}") for n in range(30)
        ]
    with served(folder) as at, at.client() as client:
        listed, place = [], ""
        while not listed or place:
            page = client.get("/api/threads", params={"after": place, "limit": 7}).json()
            listed += [each["id"] for each in page["threads"]]
            place = page["next"]
        assert sorted(listed) == sorted(each.id for each in made) and len(listed) == 30
        found = client.get("/api/threads", params={"q": "öl ÜBER", "limit": 10}).json()
        assert len(found["threads"]) == 10 and all("Öl" in each["title"] for each in found["threads"])
        rest = client.get("/api/threads", params={"q": "öl ÜBER", "limit": 10, "after": found["next"]}).json()
        assert len(rest["threads"]) == 5 and rest["next"] == ""


# --- looking back ---------------------------------------------------------------------------------------------------


def many_runs(store: Store, runs: int) -> list[str]:
    """Runs of every state, as they lie in the store."""
    made = []
    for n in range(runs):
        run = records.begin(store, "local")
        records.append(store, run, 0, Asked(f"Question {n}?", "local", "2026-01-01"))
        if n % 3 == 0:
            records.append(store, run, 1, Failed("cancelled" if n % 2 else "ModelError", "no"))
        made.append(run)
    return made


@pytest.mark.long
def test_thousands_of_runs_are_listed_a_page_at_a_time(folder: Path):
    with opened(folder) as workspace:
        made = many_runs(workspace.store, 1000)
        page, place = history.page(workspace.store, "local", workspace.scope(), "", 50)
        every = list(page)
        while place:
            page, place = history.page(workspace.store, "local", workspace.scope(), place, 199)
            every += page
        assert [each.started for each in every] == sorted((each.started for each in every), reverse=True)
        assert sorted(each.id for each in every) == sorted(made)
        assert history.page(workspace.store, "somebody", workspace.scope(), "", 50) == ([], "")
    with served(folder) as at, at.client() as client:
        states = [each["state"] for each in client.get("/api/runs", params={"limit": 6}).json()["runs"]]
        assert set(states) == {"parked", "failed", "cancelled"}


def test_an_answer_can_be_had_in_every_format(serve: Serve):
    with serve() as at, at.client() as client:
        run = asked(client)["run"]
        followed(client, run)
        path = f"/api/runs/{run}/answer"
        for form, kind in {"text": "text/plain", "markdown": "text/markdown", "html": "text/html"}.items():
            reply = client.get(path, params={"format": form})
            assert reply.headers["content-type"].startswith(kind) and "31 metres" in reply.text
        assert client.get(path, params={"format": "json"}).json()["citations"][0]["quote"].startswith(ANSWER)
        assert client.get(path, params={"format": "bibtex"}).text.startswith("@misc{")
        assert client.get(path, params={"format": "morse"}).status_code == 422
        page = client.get(path, params={"format": "html"})
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "sandbox" in policy and "unsafe" not in policy
        style = page.text.partition("<style>")[2].partition("</style>")[0]
        assert f"'sha256-{b64encode(sha256(style.encode()).digest()).decode()}'" in policy


def test_a_trace_can_be_kept_as_a_file_and_the_run_gone_through_again(serve: Serve):
    with ChatServer(script().answer) as model, serve(model) as at, at.client() as client:
        run = asked(client)["run"]
        followed(client, run)
        kept = client.get(f"/api/runs/{run}/trace", params={"download": 1})
        assert kept.headers["content-disposition"] == f'attachment; filename="assay-{run}.json"'
        assert "content-disposition" not in client.get(f"/api/runs/{run}/trace").headers
        asked_so_far = len(model.requests)
        assert client.post(f"/api/runs/{run}/replay").json() == {"run": run, "same": True, "differences": []}
        assert len(model.requests) == asked_so_far


def test_somebody_elses_run_and_thread_do_not_exist(folder: Path):
    with opened(folder) as workspace:
        run = records.begin(workspace.store, "stranger")
        records.append(workspace.store, run, 0, Asked("Secret?", "stranger", "2026-01-01"))
        thread = threads.begin(workspace.store, "stranger", "Secret")
        threads.add(workspace.store, thread.id, "stranger", run)
    with served(folder) as at, at.client() as client:
        for method, path in [
            *(("GET", f"/api/runs/{run}{rest}") for rest in ("", "/events", "/events?after=5", "/trace", "/answer")),
            *(("POST", f"/api/runs/{run}/{rest}") for rest in ("resume", "cancel", "replay")),
            ("GET", f"/api/threads/{thread.id}"),
            ("DELETE", f"/api/threads/{thread.id}"),
        ]:
            reply = client.request(method, path)
            assert (reply.status_code, reply.json()["error"]) == (404, "missing"), path
            assert "Secret" not in reply.text
        assert client.post(f"/api/runs/{run}/choice", json={"choice": "1"}).status_code == 404
        assert client.patch(f"/api/threads/{thread.id}", json={"title": "Mine"}).status_code == 404
        assert client.post("/api/runs", json={"question": "q", "thread": thread.id}).status_code == 404
        assert client.get("/api/runs").json()["runs"] == client.get("/api/threads").json()["threads"] == []


def test_a_stranger_cannot_tell_that_a_run_is_under_way_nor_disturb_it(folder: Path):
    serving = ServeOptions("header", user_header="X-User", proxies=("127.0.0.1",))
    missing = "There is no run called {!r}. `assay runs` lists them."
    with (
        ChatServer(slow(30)) as model,
        served(folder, model, serving) as at,
        at.client(**{"X-User": "reader"}) as reader,
        at.client(**{"X-User": "stranger"}) as stranger,
    ):
        run = asked(reader)["run"]
        for path in ("cancel", "resume", "replay"):
            reply = stranger.post(f"/api/runs/{run}/{path}")
            assert reply.json() == {"error": "missing", "detail": missing.format(run)}
        assert stranger.get(f"/api/runs/{run}/events").status_code == 404
        assert stranger.get("/api/runs").json()["runs"] == []
        assert state(reader, run) == "running"
        assert reader.post(f"/api/runs/{run}/cancel").json()["state"] == "cancelled"


# --- stopping and carrying on ---------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_run_stops_at_once_says_so_and_can_be_carried_on(serve: Serve):
    model = ChatServer(slow(3600))
    with model, serve(model) as at, at.client() as client:
        run = asked(client)["run"]
        until(lambda: model.requests)
        line = client.post(f"/api/runs/{run}/cancel").json()
        assert line["state"] == "cancelled"
        *_, last, end = followed(client, run)
        assert (last.event, last.data["event"]["error"], end.data) == ("Failed", "cancelled", {"state": "cancelled"})
        assert client.get(f"/api/runs/{run}").json()["failure"]["detail"] == "Stopped by the person who asked."
        assert underway.listing(at.server.workspace.store) == []
        assert client.post(f"/api/runs/{run}/cancel").json()["state"] == "cancelled"  # once more does no harm
        model.answer = script().answer
        assert client.post(f"/api/runs/{run}/resume").status_code == 202
        assert followed(client, run)[-1].data == {"state": "delivered"}


def test_a_run_can_be_stopped_in_the_moment_it_begins(serve: Serve):
    with ChatServer(slow(30)) as model, serve(model) as at, at.client() as client:
        for _ in range(10):
            run = asked(client)["run"]
            assert client.post(f"/api/runs/{run}/cancel").json()["state"] == "cancelled"
        workspace, live = at.server.workspace.for_principal(LOCAL), at.server.live

        async def at_once() -> str:
            """On the background loop, with no moment between the two."""
            run = await live.begin(workspace, workspace.ask(QUESTION))
            await live.stop_here(workspace, run.id)
            return run.id

        assert state(client, asyncio.run(at.server.background.run(at_once()))) == "cancelled"
        assert at.server.runs.count_for("local") == 0
        assert underway.listing(at.server.workspace.store) == []


def test_a_run_waits_at_a_checkpoint_until_somebody_chooses(serve: Serve):
    with ChatServer(script().answer) as model, serve(model) as at, at.client() as client:
        run = client.post("/api/ask", json={"question": QUESTION, "checkpoints": ["sources"]}).json()
        assert (run["state"], run["waiting"]["at"]) == ("waiting", "sources")
        assert followed(client, run["id"])[-1].data == {"state": "waiting"}
        path = f"/api/runs/{run['id']}/choice"
        assert client.post(path, json={"choice": "none of these"}).status_code == 400
        assert client.post(f"/api/runs/{run['id']}/resume").status_code == 400  # it has to be told what
        assert state(client, run["id"]) == "waiting"
        assert client.post(path, json={"choice": run["waiting"]["options"][0]}).status_code == 202
        rest = followed(client, run["id"], after=run["events"] - 1)
        assert (rest[0].event, rest[-1].data) == ("Resumed", {"state": "delivered"})
        assert (
            client.post(path, json={"choice": run["waiting"]["options"][0]}).status_code == 400
        )  # it does not wait now


def test_of_two_who_carry_a_run_on_at_once_one_does(serve: Serve):
    model = ChatServer(slow(30))
    with model, serve(model) as at, at.client() as client:
        run = asked(client)["run"]
        client.post(f"/api/runs/{run}/cancel")
        model.answer = slow(0.05)
        with ThreadPoolExecutor(8) as many:
            codes = [
                each.status_code for each in many.map(lambda _: at.client().post(f"/api/runs/{run}/resume"), range(8))
            ]
        assert sorted(codes) == [202, *[400] * 7]
        events = followed(client, run)
        assert [each.event for each in events].count("Resumed") == 1
        assert events[-1].data == {"state": "delivered"}


def test_a_run_that_a_terminal_carries_on_is_left_to_it(serve: Serve, folder: Path):
    """The server finds its place in the record taken: it lets go and writes nothing into somebody else's work."""
    model = ChatServer(slow(0.4))
    with model, serve(model) as at, at.client() as client:
        run = asked(client)["run"]
        until(lambda: model.requests)
        with opened(folder) as terminal:
            taken = len(terminal.questions.run(run).events)
            records.append(terminal.store, run, taken, Resumed(by="local"))
        until(lambda: not at.server.runs.under_way(run))
        *_, last, end = followed(client, run)
        assert (last.event, last.id, end.data) == ("Resumed", str(taken), {"state": "parked"})
        assert underway.listing(at.server.workspace.store) == []


def test_a_server_that_closes_takes_nothing_on(serve: Serve):
    with serve(grace=0.0) as at:
        at.server.runs.closing = True
        with at.client() as client:
            reply = client.post("/api/runs", json={"question": QUESTION})
            assert reply.status_code == 503 and "closing" in reply.json()["detail"]
            assert client.get("/ready").status_code == 503
            assert client.get("/health").status_code == 200


def test_a_model_that_fails_is_on_record_and_not_the_end(serve: Serve):
    model = ChatServer(script().answer)
    with model, serve(model) as at, at.client() as client:
        followed(client, asked(client)["run"])
        model.answer = lambda request: HttpReply(401, b"{}")
        run = asked(client)["run"]
        *_, last, end = followed(client, run)
        assert (last.event, end.data) == ("Failed", {"state": "failed"})
        assert client.get(f"/api/runs/{run}").json()["failure"]["error"] == "ModelError"
        model.answer = script().answer
        assert client.post(f"/api/runs/{run}/resume").status_code == 202
        assert followed(client, run)[-1].data == {"state": "delivered"}


# --- the page -------------------------------------------------------------------------------------------------------


def test_the_page_is_asked_about_each_time_and_sent_once(serve: Serve):
    (name,) = sorted(each.name for each in WEB.glob("*.js"))[:1]
    with serve() as at, at.client() as client:
        first = client.get(f"/static/{name}")
        assert first.status_code == 200 and first.headers["cache-control"] == "no-cache"
        again = client.get(f"/static/{name}", headers={"If-None-Match": first.headers["etag"]})
        assert again.status_code == 304 and again.content == b""


@pytest.mark.long
@pytest.mark.parametrize(
    "path", ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static//etc/passwd"]
)
def test_nothing_but_the_page_is_served(serve: Serve, path: str):
    with serve() as at, at.client() as client:
        assert client.get(path).status_code == 404


def test_a_turn_whose_server_died_before_it_was_counted_is_one_when_it_is_carried_on(folder: Path):
    with opened(folder) as workspace:
        thread, gone = (threads.begin(workspace.store, "local", name) for name in ("Kept", "Forgotten"))
        runs = []
        for each in (thread, gone):
            runs.append(records.begin(workspace.store, "local"))
            records.append(workspace.store, runs[-1], 0, Asked(QUESTION, "local", "2026-01-01", thread=each.id))
        threads.forget(workspace.store, gone.id, "local")
    with served(folder) as at, at.client() as client:
        for run in runs:
            assert client.post(f"/api/runs/{run}/resume").status_code == 202
            assert followed(client, run)[-1].data == {"state": "delivered"}
        assert [run["id"] for run in client.get(f"/api/threads/{thread.id}").json()["runs"]] == runs[:1]
        assert client.get(f"/api/threads/{gone.id}").status_code == 404
