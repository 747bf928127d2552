"""Servers that leave runs and uploads to workers: what is asked for at one process is done at another."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from pathlib import Path

import pytest
from doubles import ChatServer
from sending import job, listed, send
from serving import QUESTION, followed, script, served, until, working
from test_restart import client_of, ended, free_port, process
from test_two_servers import NORTH, SOUTH, gated, noted
from typer.testing import CliRunner

from assay.cli.main import app
from assay.core.access import Principal
from assay.core.errors import UserError
from assay.index.lance.lance_index import UNTIDY
from assay.store import jobs
from assay.store.access import grants
from assay.store.database import Store
from assay.store.runs import underway
from assay.workspace.context import OnStore
from assay.workspace.facade import open_workspace
from assay.workspace.services.serving import Jobs, Underway


def test_runs_and_uploads_at_a_server_that_does_not_work_are_done_by_a_worker(folder: Path):
    with (
        ChatServer(script().answer) as model,
        served(folder, model, process=NORTH, works=False, shared=True) as at,
        at.client() as client,
    ):
        run = client.post("/api/runs", json={"question": QUESTION}).json()["run"]
        name = send(client, [("note.txt", b"Sent to a server that only serves.")]).json()["id"]
        assert client.get(f"/api/runs/{run}").json()["state"] == "running" and job(client, name)["state"] == "waiting"
        assert at.server.runs.count_for("local") == 1 and not model.counts["route"]
        with working(folder, model, SOUTH) as worker:
            assert followed(client, run)[-1].data == {"state": "delivered"}
            until(lambda: job(client, name)["state"] == "done")
            until(lambda: not worker.runs.count_for("local"))
        assert listed(client, q="note.txt")[0]["state"] == "ready"


def test_a_worker_optimises_an_index_to_which_much_was_written(folder: Path, monkeypatch: pytest.MonkeyPatch):
    async def is_untidy(writes: int = 0) -> bool:
        with open_workspace(folder) as workspace:
            (base,) = grants.every_base(workspace.store)
            index = await workspace.context.existing_index(base)
            assert index is not None
            for label in range(writes):
                await index.relabel({workspace.documents.listing()[0].id: f"label {label}"})
            return await index.is_untidy()

    assert not asyncio.run(is_untidy()) and asyncio.run(is_untidy(writes=UNTIDY))
    monkeypatch.setattr("assay.serve.housekeeping.TIDY", 0.05)
    with working(folder, process=SOUTH):
        until(lambda: not asyncio.run(is_untidy()))


@pytest.mark.long
def test_a_run_is_stopped_and_resumed_at_any_server(folder: Path):
    gate = threading.Event()
    with (
        ChatServer(gated(gate)) as model,
        served(folder, model, process=NORTH, shared=True) as north,
        served(folder, model, process=SOUTH, shared=True) as south,
        north.client() as first,
        south.client() as second,
    ):
        run = first.post("/api/runs", json={"question": QUESTION}).json()["run"]
        until(lambda: model.requests)
        assert second.post(f"/api/runs/{run}/cancel").json()["state"] == "cancelled"
        assert not north.server.runs.under_way(run)
        gate.set()
        assert second.post(f"/api/runs/{run}/resume", json={}).status_code == 202
        assert followed(first, run)[-1].data == {"state": "delivered"}


@pytest.mark.long
def test_a_run_that_nobody_works_on_is_stopped_and_resumed_by_a_server_that_does_not_work(folder: Path):
    with (
        ChatServer(script().answer) as model,
        served(folder, model, process=NORTH, works=False, shared=True) as at,
        at.client() as client,
    ):
        run = client.post("/api/runs", json={"question": QUESTION}).json()["run"]
        assert client.post(f"/api/runs/{run}/cancel").json()["state"] == "cancelled"
        assert client.post(f"/api/runs/{run}/resume", json={}).status_code == 202
        assert client.get(f"/api/runs/{run}").json()["state"] == "running"
        with working(folder, model, SOUTH):
            assert followed(client, run)[-1].data == {"state": "delivered"}


def test_a_run_at_a_worker_is_stopped_through_a_server(folder: Path):
    gate = threading.Event()
    with (
        ChatServer(gated(gate)) as model,
        served(folder, model, process=NORTH, works=False, shared=True) as at,
        at.client() as client,
    ):
        run = client.post("/api/runs", json={"question": QUESTION}).json()["run"]
        with working(folder, model, SOUTH) as worker:
            until(lambda: model.requests)
            assert client.post(f"/api/runs/{run}/cancel").json()["state"] == "cancelled"
            assert not worker.runs.under_way(run)
            gate.set()


def test_a_run_that_is_stopped_while_a_worker_takes_it_up_is_stopped(folder: Path, monkeypatch: pytest.MonkeyPatch):
    gate, begin = threading.Event(), underway.begin

    def begin_after_a_stop(store: Store, run: str, principal: Principal, process: str = "") -> None:
        if process == SOUTH:
            underway.request_stop(store, run, NORTH)
        begin(store, run, principal, process)

    with (
        ChatServer(gated(gate)) as model,
        served(folder, model, process=NORTH, works=False, shared=True) as at,
        at.client() as client,
    ):
        run = client.post("/api/runs", json={"question": QUESTION}).json()["run"]
        monkeypatch.setattr(Underway, "begin", OnStore(begin_after_a_stop), raising=False)
        with working(folder, model, SOUTH):
            assert followed(client, run)[-1].data == {"state": "cancelled"}
            gate.set()


@pytest.mark.long
def test_a_choice_made_at_a_server_that_does_not_work_reaches_the_worker(folder: Path):
    with (
        ChatServer(script().answer) as model,
        served(folder, model, process=NORTH, works=False, shared=True) as at,
        at.client() as client,
        working(folder, model, SOUTH),
    ):
        wish = {"question": QUESTION, "checkpoints": ["sources"]}
        run = client.post("/api/runs", json=wish).json()["run"]
        assert followed(client, run)[-1].data == {"state": "waiting"}
        assert client.post(f"/api/runs/{run}/choice", json={"choice": "1"}).status_code == 202
        assert followed(client, run)[-1].data == {"state": "delivered"}


def test_an_upload_is_stopped_at_any_server(folder: Path):
    with (
        served(folder, process=NORTH, works=False, shared=True) as at,
        at.client() as client,
    ):
        name = send(client, [("note.txt", b"Sent.")]).json()["id"]
        assert client.post(f"/api/jobs/{name}/cancel").json()["state"] == "cancelled"
        assert not any(at.server.worker.uploads.folder.iterdir())


@pytest.mark.long
def test_a_process_that_lost_a_job_leaves_its_files_to_the_one_that_has_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    ended, end = threading.Event(), jobs.end

    def end_late(store: Store, job: str, state: str, error: str = "", process: str | None = None) -> None:
        jobs.release(store, job, SOUTH)
        assert jobs.start(store, job, NORTH)
        end(store, job, state, error, process)
        ended.set()

    with served(folder, process=NORTH, works=False, shared=True) as at, at.client() as client:
        name = send(client, [("note.txt", b"Sent.")]).json()["id"]
        monkeypatch.setattr(Jobs, "end", OnStore(end_late), raising=False)
        with working(folder, process=SOUTH):
            until(ended.is_set)
        assert job(client, name)["state"] == "running" and name in at.server.worker.uploads.jobs()


def test_a_change_of_settings_is_followed_by_other_processes(folder: Path):
    with (
        served(folder, process=NORTH, shared=True) as at,
        at.client() as client,
        working(folder, None, SOUTH, llm_model="flag") as worker,
    ):
        until(lambda: worker.live._seen is not None)
        changed = client.patch("/api/settings", json={"values": {"per_document": 7}})
        assert changed.status_code == 200, changed.text
        until(lambda: worker.workspace.settings.per_document == 7)
        assert worker.workspace.settings.llm_model == "flag"


@pytest.mark.parametrize("command", [["worker"], ["serve", "--no-work"]])
def test_with_the_state_in_a_file_one_server_has_the_workspace_and_its_workers(tmp_path: Path, command: list[str]):
    open_workspace(tmp_path / "new", create=True).close()
    done = CliRunner().invoke(app, [*command, "--workspace", str(tmp_path / "new")])
    assert isinstance(done.exception, UserError) and "assay serve --workers N" in str(done.exception)


@pytest.mark.kill
@pytest.mark.timeout(120)
async def test_a_server_with_workers_replaces_one_that_dies_and_ends_them_with_itself(tmp_path: Path):
    """With the state in a file: a worker is killed with a request in flight, and another takes its run up."""
    folder = await noted(tmp_path)
    port, gate = free_port(), threading.Event()
    with (
        ChatServer(gated(gate)) as model,
        process(folder, model, port, "--workers", "2") as started,
        client_of(port) as client,
        open_workspace(folder) as opened,
    ):
        run = client.post("/api/runs", json={"question": QUESTION}).json()["run"]
        until(lambda: model.counts["route"], 60)
        [holder] = underway.listing(opened.store)
        worker = int(holder.process.rpartition(" ")[2])
        assert worker != started.pid
        os.kill(worker, signal.SIGKILL)
        gate.set()
        assert followed(client, run)[-1].data == {"state": "delivered"}
        assert opened.questions.run(run).usage.calls == len(model.requests) - model.counts[""] - 1, "the one in flight"
        until(lambda: not underway.listing(opened.store))
        code, said = ended(started, by=signal.SIGTERM)
        assert code == 0, said
