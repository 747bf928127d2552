"""What a run shows or sends is on disk by then: a power cut right after it loses nothing that anybody has seen."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from doubles import ChatServer
from lighthouse_notes import QUESTION, fill, opened, script

from assay.agent.context import Log
from assay.core.errors import StoreError, Unwritable
from assay.core.events import Asked, Mode, ModelReplied, RoleModel
from assay.core.run import Run
from assay.models.llm import Message, Prompt, Reply, Role
from assay.models.meter import ConnectedModel, Ledger, Meter
from assay.store import dialect
from assay.store.runs import records
from assay.workspace.facade import Workspace


class Disk:
    """The state as it is after a power cut: what had been written when the last flush began."""

    def __init__(self, folder: Path, after: Path) -> None:
        self._folder, self._after = folder, after
        self.flushes = 0

    def sync(self, file: int) -> None:
        shutil.rmtree(self._after, ignore_errors=True)
        self._after.mkdir()
        for each in ("state.db", "state.db-wal"):
            shutil.copy(self._folder / each, self._after / each)
        self.flushes += 1

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Read from what is left, as after a restart."""
        again = self._after.with_name("restarted")
        shutil.rmtree(again, ignore_errors=True)
        if not self._after.exists():
            return []
        shutil.copytree(self._after, again)
        with sqlite3.connect(again / "state.db") as connection:
            return connection.execute(statement, values).fetchall()


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    await fill(tmp_path / "workspace")
    return tmp_path / "workspace"


@pytest.fixture
def disk(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    made = Disk(folder, tmp_path / "after")
    monkeypatch.setattr(dialect, "sync_file", made.sync)
    return made


async def test_every_event_is_on_disk_when_it_is_shown_and_every_reservation_when_its_request_leaves(
    folder: Path, disk: Disk
):
    requests: list[int] = []

    def seen_by(answer: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Any]:
        def reply(request: dict[str, Any]) -> Any:
            if "messages" in request and request.get("max_tokens", 2) > 1:
                requests.append(len(disk.rows("SELECT 1 FROM spending WHERE state = 'reserved'")))
            return answer(request)

        return reply

    with ChatServer(seen_by(script().answer)) as server, opened(folder, server) as workspace:
        shown, delivered = 0, False
        async for run, _ in workspace.ask(QUESTION, mode=Mode.thorough):
            shown += 1
            if shown > 2:  # the question itself is written before the loop begins
                (kept,) = disk.rows("SELECT count(*) FROM records WHERE run = ?", run.id)[0]
                assert kept >= shown
            delivered = run.delivered
    assert delivered and disk.flushes > 20
    assert requests.count(0) <= 3, requests  # whether the endpoint has tools, a schema, JSON: asked before any run


async def test_what_another_reader_is_shown_is_on_disk(folder: Path, disk: Disk):
    with opened(folder) as workspace:
        run = [run async for run, _ in workspace.ask(QUESTION)][-1]
        late = workspace.store.deferred()
        with late.write() as connection:
            connection.exec_driver_sql("UPDATE runs SET delivered = 7 WHERE id = ?", (run.id,))
        assert disk.rows("SELECT delivered FROM runs WHERE id = ?", run.id) == [(1,)]
        with opened(folder) as other:  # as a second process: it has flushed nothing itself
            assert other.questions.run(run.id).delivered
        assert disk.rows("SELECT delivered FROM runs WHERE id = ?", run.id) == [(7,)]


async def test_many_runs_wait_for_few_flushes(folder: Path, monkeypatch: pytest.MonkeyPatch):
    flushes = 0

    def sync(file: int) -> None:
        nonlocal flushes
        flushes += 1
        slow.wait(0.02)

    slow = threading.Event()
    monkeypatch.setattr(dialect, "sync_file", sync)
    with opened(folder) as workspace:
        store = workspace.store.deferred()

        async def writes(run: str) -> None:
            for _ in range(5):
                with store.write() as connection:
                    connection.exec_driver_sql("UPDATE runs SET delivered = 1 - delivered WHERE id = ?", (run,))
                await store.flushed()

        await asyncio.gather(*(writes(records.begin(workspace.store, "local")) for _ in range(20)))
    assert 5 <= flushes <= 12  # not a hundred


async def test_one_who_leaves_does_not_end_the_wait_of_others(folder: Path, monkeypatch: pytest.MonkeyPatch):
    release = threading.Event()
    monkeypatch.setattr(dialect, "sync_file", lambda file: release.wait(10))
    with opened(folder) as workspace:
        store = _dirty(workspace)
        waiting = [asyncio.ensure_future(store.flushed()) for _ in range(3)]
        await asyncio.sleep(0.05)
        waiting += [asyncio.ensure_future(store.flushed()) for _ in range(3)]  # these wait for the next one
        await asyncio.sleep(0.05)
        waiting[3].cancel()
        await asyncio.sleep(0)
        release.set()
        done = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(each) for each in done] == [*[type(None)] * 3, asyncio.CancelledError, *[type(None)] * 2]


async def test_after_a_failed_flush_nothing_is_shown_any_more(folder: Path, monkeypatch: pytest.MonkeyPatch):
    def fails(file: int) -> None:
        raise OSError(5, "Input/output error")

    with opened(folder) as workspace:
        store = _dirty(workspace)
        monkeypatch.setattr(dialect, "sync_file", fails)
        with pytest.raises(StoreError, match="could not be written to disk: Input/output error"):
            await store.flushed()
        monkeypatch.undo()
        with pytest.raises(StoreError, match="Input/output error"):  # the kernel reports a lost page once
            await store.flushed()
        with pytest.raises(StoreError, match="Input/output error"):
            _ = [run async for run, _ in workspace.ask(QUESTION)]


def _dirty(workspace: Workspace) -> Any:
    store = workspace.store.deferred()
    with store.write() as connection:
        connection.exec_driver_sql("UPDATE runs SET delivered = 0 WHERE id = 'none'")
    return store


FULL = ["The disk is full."]


class FullOnce(Ledger):
    """The transaction of the first reply fails when it is committed."""

    @contextmanager
    def one_transaction(self) -> Iterator[None]:
        yield
        if FULL:
            raise Unwritable(FULL.pop())


class SaysYes:
    name = "yes"

    async def complete(self, prompt: Prompt, seconds: float) -> Reply:
        return Reply("yes")


async def test_a_reply_whose_commit_failed_is_no_part_of_the_run():
    async def flushed() -> None:
        pass

    log = Log(Run("r1", (Asked("How tall is it?", "local", "2026-03-01"),)), Run.then, flushed)
    connected = ConnectedModel(SaysYes(), RoleModel("write", "yes"))
    restoring = lambda: log.restoring(nullcontext)  # noqa: E731
    meter = Meter({Role.write: (connected,)}, log.add, log.recorded_reply, FullOnce(), restoring)
    prompt = Prompt((Message("user", "Is it tall?"),))
    with pytest.raises(Unwritable):
        await meter.consult(connected, Role.write, "write", prompt)
    assert [*log.run.kinds] == ["Asked"], "what follows would be numbered after a record that is not there"
    reply = await meter.consult(connected, Role.write, "write", prompt)
    assert isinstance(reply, ModelReplied) and log.run.events[1:] == (reply,)
