"""Two servers over one workspace, as on one database: each run is worked on by one, and followed at both."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from doubles import ChatServer, role_of
from serving import NOTES, QUESTION, followed, script, served, until

from assay.core.access import LOCAL
from assay.core.errors import StoreError, Unwritable, UserError
from assay.core.events import Event
from assay.store.database import Store
from assay.store.runs import records, underway
from assay.workspace.facade import open_workspace

NORTH, SOUTH = "north 1", "south 1"  # processes of two machines


def gated(gate: threading.Event):
    """A model that answers when the gate opens."""
    own = script()

    async def answer(request):
        if role_of(request)[0]:
            await asyncio.to_thread(gate.wait, 20)
        return own.answer(request)

    return answer


def test_a_run_is_worked_on_by_one_server_and_followed_at_another(folder: Path):
    gate = threading.Event()
    with (
        ChatServer(gated(gate)) as model,
        served(folder, model, process=NORTH) as north,
        served(folder, model, process=SOUTH) as south,
        north.client() as first,
        south.client() as second,
    ):
        run = first.post("/api/runs", json={"question": QUESTION}).json()["run"]
        assert second.get(f"/api/runs/{run}").json()["state"] == "running"
        assert second.get("/api/runs").json()["runs"][0]["state"] == "running"
        refused = second.post(f"/api/runs/{run}/resume", json={})
        assert refused.status_code == 400 and "another process" in refused.json()["detail"]
        gate.set()
        assert followed(second, run) == followed(first, run)
        assert followed(second, run)[-1].data == {"state": "delivered"}
        assert not south.server.runs.under_way(run)


def test_a_run_whose_process_has_died_is_carried_on_by_another_server(folder: Path):
    with (
        ChatServer(script().answer) as model,
        served(folder, model, process=SOUTH) as south,
        south.client() as client,
    ):
        store = south.server.workspace.store

        async def first_event() -> str:
            async for run, _ in south.server.workspace.ask(QUESTION):
                return run.id
            raise AssertionError

        run = asyncio.run(first_event())
        underway.begin(store, run, LOCAL, NORTH)
        take_over(south.server)
        assert not south.server.runs.under_way(run), "north may be alive"
        underway.release(store, NORTH, [run])
        take_over(south.server)
        assert followed(client, run)[-1].data == {"state": "delivered"}
        until(lambda: not underway.listing(store))


def take_over(server) -> None:
    """What a server does every ten seconds."""
    due = server.live.take_over(server.workspace, server.workspace.for_principal)
    asyncio.run_coroutine_threadsafe(due, server.runs.watchers.loop).result(20)


async def noted(place: Path) -> Path:
    """A workspace with a few notes, as a process of its own reads it."""
    folder = place / "workspace"
    for name, text in NOTES.items():
        (place / name).write_text(text, encoding="utf-8")
    with open_workspace(folder, create=True) as workspace:
        await workspace.add([place / name for name in NOTES])
    return folder


def test_a_run_whose_failure_cannot_be_recorded_is_taken_up_again(folder: Path, monkeypatch: pytest.MonkeyPatch):
    refusals, append = ["the event", "and that it failed"], records.append

    def full(store: Store, run: str, seq: int, event: Event) -> records.Record:
        if seq == 2 and refusals:
            raise Unwritable(f"The disk is full for {refusals.pop()}.")
        return append(store, run, seq, event)

    monkeypatch.setattr(records, "append", full)
    with (
        ChatServer(script().answer) as model,
        served(folder, model, process=SOUTH, shared=True) as south,
        south.client() as client,
    ):
        run = client.post("/api/runs", json={"question": QUESTION}).json()["run"]
        until(lambda: client.get(f"/api/runs/{run}").json()["state"] == "delivered")
        assert not refusals
        until(lambda: not underway.listing(south.server.workspace.store))


def test_a_run_whose_failure_is_refused_is_not_taken_up_again_and_again(folder: Path, monkeypatch: pytest.MonkeyPatch):
    append, refused = records.append, []

    def refuse(store: Store, run: str, seq: int, event: Event) -> records.Record:
        if seq == 2:
            refused.append(event)
            raise UserError("It was rejected in review; it cannot be carried on.")
        return append(store, run, seq, event)

    monkeypatch.setattr(records, "append", refuse)
    with (
        ChatServer(script().answer) as model,
        served(folder, model, process=SOUTH, shared=True) as south,
        south.client() as client,
    ):
        client.post("/api/runs", json={"question": QUESTION})
        until(lambda: refused and not underway.listing(south.server.workspace.store))
        assert len(refused) == 2, "the event, and that it failed"


def test_a_run_that_fails_after_a_reply_that_is_recorded_and_not_shown_yet_has_an_end(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    append, refused = records.append, []

    def locked(store: Store, run: str, seq: int, event: Event) -> records.Record:
        if seq == 2 and not refused:
            refused.append(event)
            raise StoreError("Another process has kept the workspace locked too long.")
        return append(store, run, seq, event)

    monkeypatch.setattr(records, "append", locked)
    with (
        ChatServer(script().answer) as model,
        served(folder, model, process=SOUTH, shared=True) as south,
        south.client() as client,
    ):
        run = client.post("/api/runs", json={"question": QUESTION}).json()["run"]
        until(lambda: refused and not underway.listing(south.server.workspace.store))
        assert client.get(f"/api/runs/{run}").json()["state"] == "failed"
