"""What was erased is nowhere under the workspace's folder, in no spelling, wherever the process was killed; and the chain of
records still verifies."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from notes import Plain, opened
from sqlalchemy import delete, insert
from worlds import EDITOR, READER, SECRET, World, asked, world

from assay.core.codec import digest
from assay.core.errors import Missing, UserError
from assay.core.events import Asked, ModelReplied, Narrowed
from assay.governance.backup import backup
from assay.ingest.sources import SourceFile
from assay.store import erasure, schema
from assay.store.access import grants, tokens
from assay.store.runs import records
from assay.workspace.facade import Workspace
from assay.workspace.services import records as erasing
from assay.workspace.types import AskOptions, ErasureReport

MARK = "zqsecret"
WORDS = ("found cracks, and", "wants it pulled down")  # of the documents that go, and of no others


@pytest.fixture
async def made(tmp_path: Path):
    async with world(tmp_path / "workspace") as one:
        shared = next(base for base in one.as_(EDITOR).scope().bases if base.name == "shared")
        grants.share(one.workspace.store, shared, "user:reader")
        yield one


def left(folder: Path, *canaries: str) -> list[str]:
    """Files that still hold one of these, in any spelling that a file may have for it."""
    spellings = {
        spelled
        for each in canaries
        for spelled in (
            each.encode(),
            each.encode("utf-16-le"),
            each.encode("utf-16-be"),
            json.dumps(each)[1:-1].encode(),
        )
    }
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 5, "there is a workspace"
    return [f"{path}: {each!r}" for path in files for each in spellings if each in path.read_bytes()]


def whole(opened: Workspace) -> None:
    """Nothing is wrong with any chain."""
    with opened.store.read() as connection:
        runs = connection.exec_driver_sql("SELECT id FROM runs").scalars().all()
    assert runs and not [fault for run in runs for fault in records.faults(opened.store, run)]


async def used(made: World) -> list[str]:
    """Runs of two people that speak of what will go: by rule, in a conversation, in a synthesis, and one that waits."""
    runs = [await asked(made.as_(who)) for who in (EDITOR, READER)]
    thread = ""
    for question in ("How tall is the tower at Carrow Point?", "And who keeps it?"):
        told = made.as_(READER).chat(question, thread, AskOptions(model=False, today="2026-03-01"))
        run = [run async for run, _ in told][-1]
        thread = run.asked.thread
        runs.append(run.id)
    return runs


def secrets(made: World) -> list[str]:
    return [document for document, mark in made.marks.items() if mark.startswith(MARK)]


async def erase_secrets(made: World) -> ErasureReport:
    seen = made.as_(EDITOR)
    entries = [entry for entry in seen.documents.listing() if entry.id in secrets(made)]
    return await seen.records.erase(entries, seen.scope())


@pytest.mark.long
async def test_an_erased_document_is_in_no_file_and_every_chain_verifies(made: World):
    folder, runs = made.workspace.path, await used(made)
    gone_ids = secrets(made)
    (folder / "state-version-4.bak").write_bytes(b"an older state with " + MARK.encode())
    (folder / "originals" / "abc.part").write_bytes(MARK.encode())
    assert left(folder, MARK), "it is there before"
    digests = {digest(SECRET[name].format(f"zqsecret{place}x")) for place, name in enumerate(SECRET)}
    gone = await erase_secrets(made)
    assert gone.whole and gone.records > 10 and gone.files and sorted(gone.documents) == sorted(gone_ids)
    assert left(folder, MARK) == []
    assert not [path for path in (folder / "originals").rglob("*") if path.name in digests]
    whole(made.workspace)
    for run in runs[:2]:
        assert made.as_(EDITOR if run == runs[0] else READER).questions.run(run).withheld
    assert not (folder / "state-version-4.bak").exists()
    with pytest.raises(Missing, match="was erased"):  # a follow-up is given the answer before it with its question
        made.as_(READER).questions.run(runs[-1])
    again = await asked(made.as_(READER))
    assert made.as_(READER).questions.run(again).answer is not None
    assert left(folder, MARK) == []


async def test_what_others_have_of_the_same_bytes_stays(made: World):
    words = SECRET["letter-{}.txt"].format("zqsecret1x")
    theirs = made.as_(READER)
    await theirs.documents.add_sources(
        [SourceFile(uri="notes/copy.txt", name="copy.txt", data=words.encode())], "own", reader=Plain()
    )
    await erase_secrets(made)
    (copy,) = [entry for entry in theirs.documents.listing(["own"]) if entry.name == "copy.txt"]
    document = theirs.documents.get(copy.id)
    assert document is not None and document.text == words and theirs.documents.original(document) == words.encode()


@pytest.mark.long
async def test_removing_a_document_a_base_or_over_http_erases_as_much(made: World):
    folder = made.workspace.path
    first, second = secrets(made)
    await used(made)
    await made.as_(EDITOR).documents.remove([first])
    assert left(folder, "zqsecret0x") == []
    told = await made.ask("POST", f"/api/documents/{second}/erase", "editor")
    assert told.status_code == 200 and told.json()["records"] >= 0 and told.json()["backups"] == []
    assert left(folder, "zqsecret0x", "zqsecret1x") == []
    await made.as_(EDITOR).records.erase_base("private")
    assert left(folder, "zqprivate", *WORDS) == []
    whole(made.workspace)


async def test_backups_are_named_with_what_they_hold(made: World, tmp_path: Path):
    to = tmp_path / "yesterday.tar.gz"
    backup(made.workspace.path, made.workspace.store, to)
    gone = await erase_secrets(made)
    assert [each.path for each in gone.backups] == [str(to)]


@pytest.mark.parametrize("at", ["_erase_from_index", "_erase_files", "flush"])
async def test_an_erasure_that_was_cut_off_is_finished_when_the_workspace_is_next_opened(
    made: World, at: str, monkeypatch: pytest.MonkeyPatch
):
    def killed(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(erasing if at == "flush" else erasing.Records, at, killed)
        with pytest.raises(KeyboardInterrupt):
            await erase_secrets(made)
    assert left(made.workspace.path, MARK), "it was cut off before the end"
    made.workspace.store.engine.dispose()
    made.workspace.context.cache.dispose()
    with opened(made.workspace.path) as again:
        assert not erasure.is_unfinished(again.store)
        again.store.engine.dispose()
        assert left(made.workspace.path, MARK) == []


async def test_what_is_left_of_a_person_has_no_words_and_no_name(made: World):
    folder = made.workspace.path
    seen = made.as_(READER)
    thread = ""
    async for run, _ in seen.chat("Is zqquestion tall, the tower at Carrow Point?", thread, AskOptions(model=False)):
        thread = run.asked.thread
    tokens.new_key(made.workspace.store, "reader", "zqlabel")
    assert left(folder, "zqquestion", "zqlabel", "zqown")
    with pytest.raises(UserError, match="owns documents"):
        await made.workspace.records.erase_person("reader")
    gone = await made.workspace.records.erase_person("reader", with_documents=True)
    assert gone.whole and gone.records
    assert left(folder, "zqquestion", "zqlabel", "zqown") == []
    whole(made.workspace)
    state = sqlite3.connect(folder / "state.db")
    for table, column in (("runs", "who"), ("spending", "who"), ("threads", "who"), ("keys", "who"), ("jobs", "who")):
        assert not state.execute(f"SELECT 1 FROM {table} WHERE {column} = 'reader'").fetchall(), table
    assert not state.execute("SELECT 1 FROM members WHERE name = 'reader'").fetchall()
    with pytest.raises(Missing):
        await made.workspace.records.erase_person("reader")
    assert (await made.ask("GET", "/api/me")).status_code == 401


async def test_a_row_whose_page_was_divided_is_nowhere_in_the_file_once_it_was_erased(made: World):
    """SQLite leaves a copy of a row where its page was divided, which a deletion of the row does not overwrite."""
    store, chance, rows, gone = made.workspace.store, Random(0), schema.payloads, ""
    for place in range(4000):
        run, body = f"r{chance.randrange(12)}", "w" * int(chance.expovariate(1 / 600))
        with store.deferred().write() as connection:
            connection.execute(insert(rows).values(run=run, seq=place, body=f"{MARK}-{run}. {body}"))
            if place % 20 == 0:
                gone = f"r{chance.randrange(12)}"
                connection.execute(delete(rows).where(rows.c.run == gone))
        if place % 20 == 0 and erasing.flush(store.engine) and left(made.workspace.path, f"{MARK}-{gone}."):
            break
    else:
        pytest.fail("there is no such copy")
    assert (await erase_secrets(made)).whole
    assert left(made.workspace.path, f"{MARK}-{gone}.") == []


async def test_words_that_come_back_after_their_document_was_erased_are_never_written_down(made: World):
    store, gone = made.workspace.store, secrets(made)[0]
    run = records.begin(store, "reader")
    shown = ModelReplied("write", "write", "a model", "0", "nothing yet", documents=(gone,))
    for seq, event in enumerate((Asked("How tall is it?", "reader", "2026-03-01"), shown)):
        records.append(store, run, seq, event)
    await erase_secrets(made)
    late = replace(shown, text="It was 29 metres tall, says zqsecret0x.", documents=())  # a reply that was on its way
    records.append(store, run, 2, late)
    records.append(store, run, 3, Narrowed(1))
    records.append(store, run, 4, replace(late, text="This was asked without it."))
    other = records.begin(store, "reader")
    records.append(store, other, 0, replace(late, text="zqsecret1x, by somebody who had it at hand", documents=(gone,)))
    assert erasing.flush(store.engine) and left(made.workspace.path, MARK) == []
    whole(made.workspace)
    kinds = [type(event).__name__ for event in made.as_(READER).questions.run(run).events]
    assert kinds == ["Asked", "Withheld", "Withheld", "Narrowed", "ModelReplied"]
