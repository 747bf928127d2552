"""Somebody whose rights change while something goes on: a run that is under way, a stream that is being watched."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from doubles import ChatServer
from serving import QUESTION, sent, slow, until
from team import team

from assay.core.access import Principal
from assay.serve import guard
from assay.store.access import grants, members, tokens


def test_a_run_under_way_finds_nothing_of_a_group_that_its_person_has_left(folder: Path):
    with ChatServer(slow(0.4)) as model, team(folder, model) as tool_context, tool_context.as_("reader") as client:
        store = tool_context.at.server.workspace.store
        (base,) = grants.scope_of(store, Principal("editor")).bases
        members.set_groups(store, "reader", ["desk"])
        grants.share(store, base, "group:desk")
        run = client.post("/api/runs", json={"question": QUESTION}).json()["run"]
        members.set_groups(store, "reader", [])
        until(lambda: client.get(f"/api/runs/{run}").json()["state"] not in {"running"})
        whole = client.get(f"/api/runs/{run}").json()
        assert whole["evidence"] == [] and "31 metres" not in str(whole["answer"])


@pytest.mark.long
@pytest.mark.parametrize("by_key", [True, False])
def test_a_stream_ends_when_its_watcher_is_shut_out(folder: Path, monkeypatch: pytest.MonkeyPatch, by_key: bool):
    monkeypatch.setattr(guard, "RECHECK_SECONDS", 0.1)
    monkeypatch.setattr("assay.serve.stream.SILENCE", 0.2)
    with ChatServer(slow(20.0)) as model, team(folder, model) as tool_context:
        store = tool_context.at.server.workspace.store
        with tool_context.as_("editor") if by_key else tool_context.signed_in("editor") as client:
            run = client.post("/api/runs", json={"question": QUESTION}).json()["run"]
            with client.stream("GET", f"/api/runs/{run}/events") as reply:
                assert reply.status_code == 200
                events = sent(reply.iter_lines())
                assert next(events).event == "Asked"
                if by_key:
                    tokens.revoke(store, tokens.listing(store, "editor")[0].id)
                else:
                    members.set_password(store, "editor", "another long password")
                assert [each.event for each in events if each.event in {"end", "parked"}] == []
            assert client.get(f"/api/runs/{run}").status_code == 401
        assert tool_context.at.server.runs.under_way(run), "the run itself goes on"


def test_a_stream_that_is_read_on_shows_what_its_watcher_may_read_now(folder: Path):
    with team(folder) as tool_context, tool_context.as_("reader") as client:
        server, store = tool_context.at.server, tool_context.at.server.workspace.store
        (base,) = grants.scope_of(store, Principal("editor")).bases
        members.set_groups(store, "reader", ["desk"])
        grants.share(store, base, "group:desk")
        run = client.post("/api/ask", json={"question": QUESTION}).json()["id"]

        async def bodies() -> str:
            before = server.workspace.for_principal(
                Principal("reader", frozenset({"desk"}))
            )  # as when the stream was opened
            return "".join([frame.body async for frame in server.follower.follow(before, run) if frame is not None])

        assert "It leans a little" in asyncio.run(bodies())
        members.set_groups(store, "reader", [])
        assert "It leans a little" not in asyncio.run(bodies())
