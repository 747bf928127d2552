"""Every place that holds words of documents is filled, something is erased, and all of them are looked through: on each kind of
state and of storage."""

from __future__ import annotations

import fnmatch
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from notes import opened
from postgres_server import data_folder, new_database
from s3_server import content, new_bucket
from sqlalchemy import insert, select

from assay.core.access import LOCAL
from assay.core.codec import digest, dumps
from assay.core.events import Asked, ModelReplied
from assay.core.settings import write_settings
from assay.core.types import UPLOAD
from assay.evaluate.grading import Graded
from assay.evaluate.user_cases import keep_evaluation
from assay.governance.audit.verify import verify
from assay.ingest.sources import SourceFile
from assay.store import embedding_cache, jobs, schema
from assay.store.database import copy_state
from assay.store.runs import records
from assay.workspace.facade import Workspace, open_workspace
from assay.workspace.text_places import TEXT_PLACES
from assay.workspace.types import AskOptions

WORDLESS_TABLES = {
    "facts", "bases", "grants", "acceptances", "lists", "leftovers", "runs", "records", "mentions", "seals", "backups",
    "forecasts", "spending", "threads", "turns", "members", "keys", "sessions", "identities", "sign_ins", "jobs",
    "underway",
}  # fmt: skip
WORDLESS_FILES = ("assay.toml", "audit.key", ".*")
JOB = "j0123456789abcdef"

STATES: dict[str, Callable[[], str]] = {"file": lambda: "", "server": new_database}
BLOBS: dict[str, Callable[[], str]] = {"folder": lambda: "", "bucket": new_bucket}
KINDS = [
    pytest.param(state, blobs, marks=() if (state, blobs) == ("file", "folder") else pytest.mark.long)
    for state in STATES
    for blobs in BLOBS
]


@pytest.fixture
def mark() -> str:
    return f"zq{secrets.token_hex(5)}"


async def fill(workspace: Workspace, files: Path, mark: str) -> str:
    """Put the mark into every place; returns a run that speaks of it."""
    store, folder = workspace.store, workspace.path
    (files / "lamps.md").write_text(
        f"# Lamps of {mark}\n\nThe lamp room of {mark} is red.\n\nTable 1: Lamps at {mark}\n\n"
        f"| lamp | 2021 | 2022 |\n|---|---|---|\n| {mark} north | 31 | 29 |\n| {mark} south | 7 | 8 |\n"
    )
    await workspace.add([files / "lamps.md"])
    sent = SourceFile(uri=f"{UPLOAD}sent.md", name="sent.md", data=f"# Sent\n\nThe pier of {mark} is long.\n".encode())
    await workspace.documents.add_sources([sent], "default")
    options = AskOptions(model=False, today="2026-03-01")
    run = [run async for run, _ in workspace.ask("Which lamp room is red?", options)][-1].id
    document = workspace.documents.listing()[0].id
    spoken = records.begin(store, LOCAL.id)
    records.append(store, spoken, 0, Asked("Which lamp room is red?", LOCAL.id, "2026-03-01"))
    reply = ModelReplied("write", "write", "a model", "0", f"That of {mark}.", documents=(document,))
    records.append(store, spoken, 1, reply)
    waiting = workspace.context.uploads
    (waiting.receiving(JOB) / "0").write_bytes(f"It waits, says {mark}.".encode())
    waiting.keep(JOB)
    named = jobs.JobFile(1, "sent.md", 1, "added", {"title": f"Sent by {mark}"})
    jobs.begin(store, JOB, LOCAL, "default", [jobs.JobFile(0, "waits.md", 1), named])
    row = {"run": run, "seal": digest(mark), "who": LOCAL.id, "state": "delivered", "created": "2026"}
    store.execute(insert(schema.reviews).values(**row, note=f"Is {mark} right?", reasons=[mark]))
    copy_state(store, folder / "state-version-3.bak")
    (folder / "state-version-4.part").write_bytes(mark.encode())
    graded = Graded("1", f"Which is {mark}?", (), run, "answered", "", f"that of {mark}", {"right": 1.0})
    keep_evaluation(folder, "cases.csv", [("assay", "balanced", [graded])])
    return run


def holding(workspace: Workspace, mark: str) -> set[str]:
    """The places that have the mark, by name; and files that are in no place."""
    found = set()
    with workspace.store.read() as connection:
        for name, table in schema.schema.tables.items():
            if mark in dumps([[str(value) for value in row] for row in connection.execute(select(table))]):
                found.add(next((each.name for each in TEXT_PLACES if name in each.tables), f"table {name}"))
    folder = workspace.path
    for file in (each for each in folder.rglob("*") if each.is_file()):
        if mark.encode() in file.read_bytes():
            path = str(file.relative_to(folder))
            found.add(next((each.name for each in TEXT_PLACES if _covers(each.files, path)), f"file {path}"))
    if workspace.settings.blobs and mark.encode() in content(workspace.settings.blobs):
        found.add("bucket")
    on_server = workspace.store.engine.dialect.name == "postgresql"
    if on_server and any(mark.encode() in file.read_bytes() for file in data_folder().rglob("*") if file.is_file()):
        found.add("server")
    return found


def _covers(patterns: tuple[str, ...], path: str) -> bool:
    return any(fnmatch.fnmatch(path, each.replace("**/*", "*")) for each in patterns)


@pytest.mark.parametrize("state, blobs", KINDS)
async def test_what_is_erased_is_in_no_place_of_the_list_and_nowhere_else(
    tmp_path: Path, mark: str, state: str, blobs: str
):
    folder = tmp_path / "workspace"
    folder.mkdir()
    write_settings(folder, {"state": STATES[state](), "blobs": BLOBS[blobs]()})
    open_workspace(folder, create=True).close()
    with opened(folder) as workspace:
        await fill(workspace, tmp_path, mark)
        expected = {each.name for each in TEXT_PLACES} - {"vectors by content"}
        if state == "server":
            expected = expected - {"the state as a file, with its write-ahead log"} | {"server"}
        if blobs == "bucket":
            expected = expected - {"originals", "files that wait to be read"} | {"bucket"}
        assert holding(workspace, mark) == expected, "each place is filled"
        assert embedding_cache.size(workspace.context.cache)
        scope = workspace.scope()
        gone = await workspace.records.erase(workspace.documents.listing(), scope)
        assert gone.whole and {Path(each).name for each in gone.files} == {
            "state-version-3.bak",
            "state-version-4.part",
        }
        assert embedding_cache.size(workspace.context.cache) == 0
        assert holding(workspace, mark) == {"bucket" if blobs == "bucket" else "files that wait to be read"}
        await workspace.records.erase_base("default")
        assert holding(workspace, mark) == set()
        assert verify(workspace.store, None).whole


async def test_every_table_and_every_file_is_on_the_list_or_has_no_words_of_documents(tmp_path: Path, mark: str):
    listed = {table for each in TEXT_PLACES for table in each.tables}
    assert not listed & WORDLESS_TABLES and listed | WORDLESS_TABLES == set(schema.schema.tables)
    open_workspace(tmp_path / "workspace", create=True).close()
    with opened(tmp_path / "workspace") as workspace:
        await fill(workspace, tmp_path, mark)
        patterns = tuple(pattern for each in TEXT_PLACES for pattern in each.files)
        paths = [str(file.relative_to(workspace.path)) for file in workspace.path.rglob("*") if file.is_file()]
        assert [path for path in paths if not _covers((*patterns, *WORDLESS_FILES), path)] == []


def test_erased_words_cannot_be_confirmed_by_their_digest(tmp_path: Path):
    open_workspace(tmp_path / "workspace", create=True).close()
    with opened(tmp_path / "workspace") as workspace:
        event = Asked("Who is paid eleven crowns?", "local", "2026-03-01")
        found: list[Any] = []
        for _ in range(2):
            run = records.begin(workspace.store, "local")
            found.append(records.append(workspace.store, run, 0, event))
        (first, second) = workspace.store.scalars(select(schema.payloads.c.body))
        assert found[0].digest != found[1].digest and first != second
        assert workspace.questions.run(found[0].run).events == (event,)
