"""Servers and workers on one PostgreSQL database, of which some are killed: every run ends, no recorded reply is asked for
again, the chain verifies, no stream loses an event, budgets hold, and what was sent is in the index once."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import dying_process
import forked
import httpx
import pytest
from doubles import ChatServer, role_of
from doubles.protocol import reply_of
from notes import fill
from postgres_server import new_database
from s3_server import new_bucket
from sending import job, listed, send
from serving import NOTES, QUESTION, Sent, script, sent, until, working
from test_restart import client_of, free_port

from assay.core.codec import dumps
from assay.core.events import ModelReplied
from assay.core.types import Usage
from assay.governance.audit.verify import verify
from assay.serve import upload_worker
from assay.store import jobs
from assay.store.runs import budgets, underway
from assay.workspace.facade import Workspace, open_workspace

SOAK = bool(os.environ.get("ASSAY_SOAK"))


class NumberedModel:
    """Numbers its requests; a reply says its number as the tokens of its request, so that a record tells which one it is of."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.requests: list[str] = []  # by number
        self._script, self._seconds, self._lock = script(), seconds, threading.Lock()

    async def answer(self, request: dict[str, Any]) -> Any:
        if not role_of(request)[0]:
            return self._script.answer(request)
        with self._lock:
            number = len(self.requests)
            self.requests.append(dumps(request["messages"]))
        await asyncio.sleep(self._seconds)
        return replace(reply_of(cast(Any, self._script.answer(request)), request), usage=Usage(1, number + 1, 1))

    def asked_again(self, workspace: Workspace, runs: Sequence[str]) -> list[int]:
        """The numbers of requests whose reply was recorded, and that were sent again later."""
        last: dict[str, int] = {}
        for number, words in enumerate(self.requests):
            last[words] = number
        events = (event for run in runs for event in workspace.questions.run(run).events)
        recorded = [event.usage.tokens_in - 1 for event in events if isinstance(event, ModelReplied)]
        assert len(recorded) == len(set(recorded))
        return [number for number in recorded if last[self.requests[number]] > number]


@contextmanager
def started(
    folder: Path, model: ChatServer, *words: str, point: str = "never", times: int = 0
) -> Iterator[forked.Process]:
    """`assay …` in a process, which may kill itself at a point; it is ready when it has said its first line."""
    given = {"ASSAY_LLM_BASE_URL": model.url, "ASSAY_LLM_MODEL": "scripted", "ASSAY_LLM_API_KEY": "k"}
    free = {"ASSAY_SERVE_RUNS_PER_PERSON": "0", "ASSAY_SERVE_REQUESTS_PER_MINUTE": "0"}
    made = forked.Process(
        [sys.executable, dying_process.__file__, point, str(times), *words, "--workspace", str(folder)],
        env={**os.environ, **given, **free},
        stdout=forked.DEVNULL,
        stderr=forked.PIPE,
        text=True,
    )
    said: list[str] = []
    reader = threading.Thread(target=lambda: list(map(said.append, made.stderr)), daemon=True)
    reader.start()
    try:
        until(lambda: said or made.poll() is not None, 120)
        assert made.poll() in {None, -signal.SIGKILL}, said
        yield made
    finally:
        made.kill()
        made.wait()
        reader.join()


def serving(port: int, *flags: str) -> list[str]:
    return ["serve", "--no-token", "--port", str(port), *flags]


def streamed(ports: Sequence[int], run: str) -> list[Sent]:
    """A run's stream to its end, from any of the servers; one that goes away is left for another, as a browser does."""
    seen: list[Sent] = []
    for attempt in range(600):
        try:
            with client_of(ports[attempt % len(ports)]) as client:
                last = {"Last-Event-ID": seen[-1].id} if seen else {}
                with client.stream("GET", f"/api/runs/{run}/events", headers=last) as reply:
                    for event in sent(reply.iter_lines()):
                        if event.event == "end":
                            return [*seen, event]
                        if event.event not in ("parked", "statements"):  # these are not recorded
                            seen.append(event)
        except httpx.TransportError:
            time.sleep(0.2)
    raise AssertionError(f"{run} did not end")


def asked(ports: Sequence[int], question: str) -> str:
    """The run of a question that is asked until somebody acknowledges it. Each time it is another one, so that no two runs have
    the same prompts."""
    last = "nothing"
    for attempt in range(600):
        try:
            with client_of(ports[attempt % len(ports)]) as client:
                reply = client.post("/api/runs", json={"question": f"{question} Attempt {attempt}."})
                if reply.status_code == 201:
                    return reply.json()["run"]
                last = f"{reply.status_code} {reply.text}"
        except httpx.TransportError as error:
            last = repr(error)
        time.sleep(0.2)
    raise AssertionError(f"no server takes the question; the last said {last}")


def assert_whole(folder: Path, model: NumberedModel, runs: Sequence[str], streams: Sequence[list[Sent]], most: int):
    """What holds whatever was killed."""
    for stream in streams:
        assert stream[-1].data == {"state": "delivered"}
        assert [int(event.id) for event in stream[:-1]] == list(range(len(stream) - 1))
    with open_workspace(folder) as workspace:
        until(lambda: not underway.listing(workspace.store), 60)
        assert not verify(workspace.store, None).faults
        assert [len(workspace.questions.run(run).events) for run in runs] == [len(stream) - 1 for stream in streams]
        assert model.asked_again(workspace, runs) == []
        spent = budgets.spent(workspace.store, "local", workspace.store.now()[:10])
        assert len(model.requests) <= spent.calls <= most


@pytest.fixture(
    params=["folder", pytest.param("bucket", marks=pytest.mark.skipif(not SOAK, reason="a soak: ASSAY_SOAK=1"))]
)
def machines(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The workspace folders of five processes on one database, filled: one folder; or, with index and originals in a bucket,
    one for each, as if each was on another machine."""
    return filled_machines(request.param, tmp_path, monkeypatch)


def filled_machines(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.setenv("ASSAY_STATE", new_database())
    folders = [tmp_path / "workspace"] * 5
    if place == "bucket":
        bucket = new_bucket()
        monkeypatch.setenv("ASSAY_INDEX", f"lance:{bucket}/index")
        monkeypatch.setenv("ASSAY_BLOBS", f"{bucket}/originals")
        folders = [tmp_path / f"machine-{n}" for n in range(5)]
    asyncio.run(fill(folders[0], NOTES))
    return folders


@pytest.mark.kill
@pytest.mark.timeout(300)
def test_processes_that_die_at_named_points_leave_every_run_to_others(
    machines: list[Path], monkeypatch: pytest.MonkeyPatch
):
    calls = 24  # that there are for all runs: fewer than they would take
    monkeypatch.setenv("ASSAY_BUDGET_DAY_CALLS", str(calls))
    own = NumberedModel()
    ports = free_port(), free_port()
    with (
        ChatServer(own.answer) as model,
        started(machines[0], model, *serving(ports[0], "--no-work")),
        started(machines[1], model, *serving(ports[1]), point="event recorded", times=12) as server,
        started(machines[2], model, "worker", point="reply recorded", times=3) as first,
        started(machines[3], model, "worker", point="request reserved", times=3) as second,
        ThreadPoolExecutor(8) as people,
    ):
        runs = [asked([ports[n % 2], ports[(n + 1) % 2]], f"{QUESTION} That is question {n}.") for n in range(6)]
        streams = [people.submit(streamed, [ports[(n + 1) % 2], ports[0]], run) for n, run in enumerate(runs)]
        for each in (server, first, second):
            assert each.wait(120) == -signal.SIGKILL
        with started(machines[4], model, "worker"):
            whole = [each.result(120) for each in streams]
            assert_whole(machines[0], own, runs, whole, calls)


@pytest.mark.kill
@pytest.mark.timeout(300)
def test_a_run_goes_through_the_death_of_each_process_that_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It is listed by a server, claimed by a worker and ended by another, and each of them dies at that moment."""
    monkeypatch.setenv("ASSAY_BUDGET_DAY_CALLS", "100")
    folder, own = filled_machines("folder", tmp_path, monkeypatch)[0], NumberedModel()
    ports = free_port(), free_port()
    with (
        ChatServer(own.answer) as model,
        open_workspace(folder) as opened,
        started(folder, model, *serving(ports[0], "--no-work")),
        started(folder, model, *serving(ports[1], "--no-work"), point="run listed", times=1) as server,
    ):
        with client_of(ports[1]) as client, pytest.raises(httpx.TransportError):
            client.post("/api/runs", json={"question": QUESTION})
        assert server.wait(60) == -signal.SIGKILL
        [found] = underway.listing(opened.store)
        for point in ("run claimed", "run over"):
            with started(folder, model, "worker", point=point, times=1) as dying:
                assert dying.wait(60) == -signal.SIGKILL
            assert [each.run for each in underway.listing(opened.store)] == [found.run]
        with started(folder, model, "worker"):
            assert_whole(folder, own, [found.run], [streamed(ports[:1], found.run)], 100)


@pytest.mark.kill
@pytest.mark.timeout(300)
@pytest.mark.parametrize("place", ["folder", "bucket"])
def test_an_upload_whose_worker_dies_while_it_reads_is_finished_by_another(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    machines, port = filled_machines(place, tmp_path, monkeypatch), free_port()
    files = [(f"{name}.txt", f"The ferry to {name} leaves at noon.".encode()) for name in ("Dunmere", "Carrow", "Ulva")]
    with (
        ChatServer(script().answer) as model,
        started(machines[0], model, *serving(port, "--no-work")),
        client_of(port) as client,
    ):
        name = send(client, files).json()["id"]
        with started(machines[1], model, "worker", point="document stored", times=2) as dying:
            assert dying.wait(60) == -signal.SIGKILL
        assert job(client, name)["state"] == "running"
        with started(machines[2], model, "worker"), open_workspace(machines[0]) as opened:
            until(lambda: job(client, name)["state"] == "done", 60)
            assert {each["outcome"] for each in job(client, name)["reports"]} <= {"added", "finished", "unchanged"}
            assert sorted(each["uri"] for each in listed(client, q="upload:")) == sorted(
                f"upload:{file}" for file, _ in files
            )
            assert asyncio.run(passages_with(opened, "ferry")) == len(files)
            until(lambda: name not in opened.context.uploads.jobs())


async def passages_with(workspace: Workspace, word: str) -> int:
    """How many rows of the index have this word, whichever document they are of."""
    (base,) = workspace.scope().bases
    index = await workspace.context.existing_index(base)
    assert index is not None
    return sum(word in row.passage.text for row in await index.rows(await index.ids()))


@pytest.mark.kill
@pytest.mark.timeout(300)
@pytest.mark.parametrize("place", ["folder", "bucket"])
def test_files_whose_server_dies_before_it_records_their_job_are_deleted_by_a_worker(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    machines, port = filled_machines(place, tmp_path, monkeypatch), free_port()
    with ChatServer(script().answer) as model, open_workspace(machines[2]) as opened:
        with started(machines[0], model, *serving(port), point="files kept", times=1) as server:
            with client_of(port) as client, pytest.raises(httpx.TransportError):
                send(client, [("note.txt", b"Never acknowledged.")])
            assert server.wait(60) == -signal.SIGKILL
        uploads = opened.context.uploads
        assert len(uploads.jobs()) == 1 and not jobs.unfinished(opened.store)
        monkeypatch.setattr(upload_worker, "ARRIVAL", -60.0)  # as if an hour had passed
        with working(machines[2], model):
            until(lambda: not uploads.jobs())


@pytest.mark.kill
@pytest.mark.timeout(3600)
@pytest.mark.skipif(not SOAK, reason="a soak: ASSAY_SOAK=1")
def test_runs_end_whole_though_a_process_is_killed_every_few_seconds(
    machines: list[Path], monkeypatch: pytest.MonkeyPatch
):
    number, calls, chance = 100, 400, random.Random(18)
    monkeypatch.setenv("ASSAY_BUDGET_DAY_CALLS", str(calls))
    own = NumberedModel(0.2)
    ports = free_port(), free_port()
    lines = [serving(ports[0]), serving(ports[1], "--no-work"), ["worker"], ["worker"]]
    with ChatServer(own.answer) as model, ExitStack() as ends, ThreadPoolExecutor(16) as people:

        def begin(place: int) -> forked.Process:
            return ends.enter_context(started(machines[place], model, *lines[place]))

        def ask_and_follow(n: int) -> tuple[str, list[Sent]]:
            run = asked(ports[:: 1 if n % 2 else -1], f"{QUESTION} That is question {n}.")
            return run, streamed(ports[:: 1 if n % 2 else -1], run)

        running, killed = [begin(place) for place in range(len(lines))], 0
        asking = [people.submit(ask_and_follow, n) for n in range(number)]
        while not all(each.done() for each in asking):
            time.sleep(chance.uniform(1, 4))
            place = chance.randrange(len(lines))
            running[place].kill()
            running[place].wait()
            running[place], killed = begin(place), killed + 1
        runs, streams = zip(*(each.result() for each in asking), strict=True)
        assert_whole(machines[0], own, runs, streams, calls)
        print(f"{killed} processes killed, {len(own.requests)} requests for {number} runs")
