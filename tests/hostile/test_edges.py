"""A full disk, a disk that cannot be written to, damaged files, a clock that jumps: a clear line, nothing lost, and what can
still be done goes on."""

from __future__ import annotations

import asyncio
import errno
import io
import os
import random
import shutil
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import event

from assay.cli import main as commands
from assay.core.errors import AssayError, StoreError, UserError
from assay.core.events import Mode
from assay.core.run import Run
from assay.evaluate.plain_text import WordEmbedder
from assay.governance import backup
from assay.governance.audit.verify import verify
from assay.governance.backup import restore
from assay.ingest.parsed import Parsed
from assay.ingest.sources import SourceFile
from assay.serve.app import make_app
from assay.serve.state import Server
from assay.workspace.facade import Workspace, open_workspace

SOAK = bool(os.environ.get("ASSAY_SOAK"))
NOTES = {f"tower-{n}": f"The tower {n} of the lighthouse is {n + 30} metres tall. It leans a little." for n in range(4)}
QUESTION = "How tall is the tower 3 of the lighthouse?"


class Plain:
    async def read(self, data: Path | bytes, name: str) -> Parsed:
        return Parsed(text=(data if isinstance(data, bytes) else data.read_bytes()).decode(), kind="text", title=name)


def opened(folder: Path) -> Workspace:
    made = open_workspace(folder, create=not folder.exists())
    made.embedder = WordEmbedder()
    return made


def add(workspace: Workspace, **notes: str) -> Any:
    files = [SourceFile(uri=f"notes/{name}", name=name, data=words.encode()) for name, words in notes.items()]
    return asyncio.run(workspace.documents.add_sources(files, reader=Plain()))


def asked(workspace: Workspace) -> Run:
    async def whole() -> Run:
        return [run async for run, _ in workspace.ask(QUESTION, mode=Mode.quick, model=False)][-1]

    return asyncio.run(whole())


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a few notes and one question that was answered; nobody has it open."""
    folder = tmp_path_factory.mktemp("edges") / "workspace"
    with opened(folder) as workspace:
        add(workspace, **NOTES)
        assert asked(workspace).answer is not None
    return folder


@pytest.fixture
def folder(filled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(filled, tmp_path / "workspace"))


def each_connection(workspace: Workspace, pragma: Callable[[Any], str]) -> None:
    """From now on the state is used under this restriction."""
    workspace.store.engine.dispose()
    event.listen(workspace.store.engine, "connect", lambda raw, _: raw.execute(f"PRAGMA {pragma(raw)}"))


def cut_by_a_full_disk(workspace: Workspace) -> str:
    """A run that began and could not end: a page is added to the disk until there is one."""
    with workspace.store.engine.connect() as connection:
        used = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
    for pages in range(200):
        each_connection(workspace, lambda _, most=used + pages: f"max_page_count={most}")
        try:
            asked(workspace)
        except UserError as problem:
            assert "The disk is full" in str(problem)
        if cut := [line for line in workspace_runs(workspace) if workspace.questions.run(line).answer is None]:
            return cut[0]
    raise AssertionError("no run was cut")


# --- disks ----------------------------------------------------------------------------------------------------------


def test_on_a_full_disk_every_command_says_so_reading_goes_on_and_nothing_is_lost(folder: Path):
    with opened(folder) as workspace:
        cut = cut_by_a_full_disk(workspace)
        with pytest.raises(UserError, match="The disk is full"):
            add(workspace, long="word " * 40_000)
        assert len(asyncio.run(workspace.search("tower"))) == 4
    with opened(folder) as workspace:  # there is space again
        assert verify(workspace.store, None).faults == ()
        steps = workspace.resume(cut)

        async def last() -> Run:
            return [run async for run, _ in steps][-1]

        assert asyncio.run(last()).answer is not None
        assert add(workspace, long="word " * 40_000).readable == 1
        assert len(workspace.documents.listing()) == 5


def workspace_runs(workspace: Workspace) -> list[str]:
    from assay.store.runs import history

    return [line.id for line in history.page(workspace.store, workspace.principal.id, workspace.scope(), "", 100)[0]]


async def test_a_server_on_a_full_disk_says_so_and_goes_on_serving(folder: Path):
    with opened(folder) as workspace:
        server = Server(workspace)
        app = make_app(server)
        async with app.router.lifespan_context(app):
            each_connection(workspace, lambda raw: "query_only=ON")
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
                refused = await client.post("/api/runs", json={"question": QUESTION, "model": False})
                found = await client.post("/api/search", json={"query": "tower"})
                listed = await client.get("/api/documents")
        assert refused.status_code == 400 and "cannot be written to" in refused.json()["detail"]
        assert found.status_code == 200 and len(found.json()["hits"]) == 4
        assert listed.status_code == 200


def test_where_nothing_can_be_written_that_is_said_and_what_is_there_can_be_searched(folder: Path):
    with opened(folder) as workspace:
        each_connection(workspace, lambda _: "query_only=ON")
        for attempt in (lambda: asked(workspace), lambda: add(workspace, new="A new note.")):
            with pytest.raises(UserError, match="cannot be written to"):
                attempt()
        assert len(asyncio.run(workspace.search("tower"))) == 4


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_backup_that_does_not_fit_leaves_nothing_and_is_one_line(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int
):
    class Small(io.FileIO):
        def write(self, data: Any) -> int:
            if self.tell() + len(data) > 3_000:
                raise OSError(number, os.strerror(number))
            return super().write(data) or 0

    monkeypatch.setattr(backup, "create_private", lambda path: Small(path, "xb"))
    with opened(folder) as workspace, pytest.raises(OSError) as caught:
        workspace.records.backup(tmp_path / "all.tar.gz")
    assert [path.name for path in tmp_path.iterdir()] == ["workspace"]
    with pytest.raises(SystemExit):
        commands._fail_for(caught.value)
    assert "The disk is full." in capsys.readouterr().err


# --- damaged files --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40 if SOAK else 6))
def test_a_damaged_state_is_named_or_does_no_harm_and_never_breaks_down(folder: Path, seed: int):
    chance = random.Random(seed)
    state = folder / "state.db"
    data = bytearray(state.read_bytes())
    if seed % 3 == 0:
        data = data[: chance.randrange(len(data))]
    else:
        at = chance.randrange(len(data))
        size = chance.choice([1, 100, 5_000])
        data[at : at + size] = chance.randbytes(min(size, len(data) - at))
    state.write_bytes(data)
    try:
        with opened(folder) as workspace:
            assert asked(workspace).answer is not None
            assert len(workspace.documents.listing()) <= 4
    except (AssayError, BaseExceptionGroup) as error:
        assert "\n" not in str(error) and len(str(error)) < 400


@pytest.mark.parametrize("share", [0.0, 0.3, 0.97])
def test_a_log_that_was_cut_off_costs_what_came_last_and_nothing_before(filled: Path, tmp_path: Path, share: float):
    first, second = tmp_path / "first", tmp_path / "second"
    shutil.copytree(filled, first)
    with opened(first) as workspace:
        asked(workspace)
        shutil.copytree(first, second)  # as a machine that lost its power leaves it
    log = second / "state.db-wal"
    log.write_bytes(log.read_bytes()[: int(share * log.stat().st_size) + 13])
    with opened(second) as workspace:
        assert len(workspace.documents.listing()) == 4
        assert [fault.what for fault in verify(workspace.store, None).faults] == []
        assert asked(workspace).answer is not None


@pytest.mark.parametrize("rubbish", [b"", b"rubbish" * 4_000, None])
def test_a_cache_that_is_damaged_is_made_again(folder: Path, rubbish: bytes | None):
    cache = folder / "cache.db"
    for beside in folder.glob("cache.db-*"):
        beside.unlink()
    cache.write_bytes(cache.read_bytes()[:5_000] if rubbish is None else rubbish)
    with opened(folder) as workspace:
        assert add(workspace, new="A new note on towers.").readable == 1


def test_without_the_original_files_everything_but_their_bytes_is_there(folder: Path, tmp_path: Path):
    shutil.rmtree(folder / "originals")
    with opened(folder) as workspace:
        document = workspace.documents.get(workspace.documents.listing()[0].id)
        assert document is not None and workspace.documents.original(document) is None
        assert asked(workspace).answer is not None
        assert workspace.records.backup(tmp_path / "all.tar.gz")
        assert len(asyncio.run(workspace.documents.remove([document.uri]))) == 1


@pytest.mark.long
@pytest.mark.parametrize("seed", range(30 if SOAK else 4))
def test_an_index_with_a_damaged_file_is_named_with_its_remedy_or_answers_and_is_healed(folder: Path, seed: int):
    chance = random.Random(seed)
    files = sorted(path for path in (folder / "index").rglob("*") if path.is_file())
    for path in chance.sample(files, min(len(files), 3)):
        data = path.read_bytes()
        path.write_bytes(chance.choice([b"rubbish", data[: len(data) // 2], bytes(len(data))]))
    with opened(folder) as workspace:
        try:
            asked(workspace)
        except StoreError as error:
            assert "assay reindex" in str(error)
        asyncio.run(workspace.documents.reindex())
        run = asked(workspace)
        assert run.answer is not None and run.answer.claims
        assert len(workspace.documents.listing()) == 4


def packed(*members: tuple[tarfile.TarInfo, bytes]) -> Callable[[Path], Path]:
    def write(place: Path) -> Path:
        with tarfile.open(place, "w:gz") as tar:
            for info, data in members:
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
        return place

    return write


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info, b"x" if kind == tarfile.REGTYPE else b""


@pytest.mark.parametrize(
    "write",
    [
        packed(member("/assay-evil")),
        packed(member("../assay-evil")),
        packed(member("a/../../assay-evil")),
        packed(member("state.db", tarfile.SYMTYPE, "/etc/passwd")),
        packed(member("state.db", tarfile.SYMTYPE, "../outside")),
        packed(member("state.db", tarfile.LNKTYPE, "/etc/passwd")),
        packed(member("out", tarfile.SYMTYPE, ".."), member("out/assay-evil")),
        packed(member("state.db", tarfile.CHRTYPE)),
        packed(member("state.db", tarfile.FIFOTYPE)),
        packed(member("state.db", tarfile.DIRTYPE)),
        packed(member("state.db"), member("state.db"), member("STATE.DB")),
    ],
)
def test_a_backup_that_would_write_elsewhere_or_is_none_is_one_line_and_leaves_nothing(
    tmp_path: Path, write: Callable[[Path], Path]
):
    made = write(tmp_path / "all.tar.gz")
    with pytest.raises(UserError) as caught:
        restore(made, tmp_path / "new")
    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["all.tar.gz"]
    assert not Path("/assay-evil").exists() and not (tmp_path.parent / "assay-evil").exists()


# --- clocks ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def clock() -> Iterator[Callable[[], str]]:
    """A clock that jumps back a day, ahead a year, and back again, at every look."""
    jumps = [0, -1, 365, -400, 36_500, 0, -3]
    looks = 0

    def now() -> str:
        nonlocal looks
        looks += 1
        at = datetime(2026, 3, 1, tzinfo=UTC) + timedelta(days=jumps[looks % len(jumps)], seconds=looks)
        return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    yield now


def test_a_clock_that_jumps_neither_stops_a_run_nor_breaks_its_record(folder: Path, clock: Callable[[], str]):
    from assay.store.runs import records

    with opened(folder) as workspace:
        workspace.store = replace(workspace.store, now=clock)
        runs = [asked(workspace) for _ in range(3)]
        assert all(run.answer is not None and run.answer.claims for run in runs)
        assert add(workspace, new="A new note on towers.").readable == 1
        assert verify(workspace.store, None).faults == ()
        for run in runs:
            assert 0.0 <= records.active_seconds(workspace.store, run.id) <= records.LONGEST * len(run.events)
        assert {run.id for run in runs} <= set(workspace_runs(workspace))
