"""State on PostgreSQL: moved there and back, written by several processes, and used by whole runs."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from older_schema import BEFORE_MARKS
from postgres_server import new_database
from s3_server import content, new_bucket
from sqlalchemy import select
from terminal import Typed

from assay.cli import migrate
from assay.core.access import LOCAL
from assay.core.errors import StoreError, UserError
from assay.core.events import Asked, Stopped, StopReason
from assay.core.settings import load_settings
from assay.governance.audit.verify import verify
from assay.store import document_list, documents, schema
from assay.store.access import grants
from assay.store.database import Store, move_state, open_store, table_digest
from assay.store.runs import records
from assay.store.runs.figures import facts
from assay.workspace.facade import Workspace, open_workspace

pytestmark = pytest.mark.long


def digests(store: Store) -> dict[str, str]:
    with store.read() as connection:
        return {table.name: table_digest(connection, table) for table in schema.schema.sorted_tables}


async def asked(workspace: Workspace) -> str:
    return [run async for run, _ in workspace.ask("Where is orpiment ground?")][-1].id


async def test_state_is_moved_to_a_server_and_back_and_stays_the_same(noted: Workspace, tmp_path: Path):
    await asked(noted)
    before = digests(noted.store)
    server = open_store(new_database(), create=True)
    assert move_state(noted.store, server)["records"] > 5 and digests(server) == before
    assert [fact._replace(n=0) for fact in facts(server)] == [fact._replace(n=0) for fact in facts(noted.store)]
    file = open_store(tmp_path / "state.db", create=True)
    move_state(server, file)
    assert digests(file) == before
    assert move_state(server, file)["records"] > 5 and digests(file) == before, "of a move that was interrupted"
    records.begin(server, "user")
    with pytest.raises(UserError, match="has a workspace in it already"):
        move_state(server, file)
    for store in (server, file):
        store.close()


def test_a_copy_that_differs_moves_nothing(noted: Workspace, monkeypatch: pytest.MonkeyPatch):
    address = new_database()
    server = open_store(address, create=True)
    other = iter(map(str, range(1000)))
    monkeypatch.setattr("assay.store.database.table_digest", lambda *_: next(other))
    with pytest.raises(StoreError, match="nothing was moved"):
        move_state(noted.store, server)
    with server.read() as connection:
        assert connection.execute(schema.documents.select()).all() == []
    server.close()


async def test_a_run_its_record_a_backup_and_an_erasure_work_on_a_server(tmp_path: Path):
    note = tmp_path / "note.md"
    note.write_text("# Pigments\n\nOrpiment is ground in Dunmere.\n")
    with open_workspace(tmp_path / "w", create=True, state=new_database()) as workspace:
        await workspace.add([note])
        run = await asked(workspace)
        assert not verify(workspace.store, None).faults
        assert {fact.kind for fact in facts(workspace.store)} >= {"Asked", "Answered"}
        assert workspace.records.backup(tmp_path / "all.tar.gz") > 1000
        scope = workspace.scope()
        await workspace.records.erase(workspace.documents.named("note.md", scope), scope)
        with workspace.store.read() as connection:
            left = [body for (body,) in connection.execute(select(schema.payloads.c.body))]
        assert not [body for body in left if "Dunmere" in body]
        assert not verify(workspace.store, None, run=run).faults


def test_writers_at_the_same_time_keep_one_chain_and_lose_nothing():
    address = new_database()
    open_store(address, create=True).close()

    def write(who: int) -> None:
        store = open_store(address, create=False)
        for _ in range(5):
            run = records.begin(store, f"user{who}")
            records.append(store, run, 0, Asked("Why?", f"user{who}", "2026-01-01"))
            records.append(store, run, 1, Stopped(StopReason.sufficient))
        store.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    store = open_store(address, create=False)
    with store.read() as connection:
        rows = connection.execute(schema.records.select().order_by(schema.records.c.n)).all()
    assert [row.n for row in rows] == list(range(rows[0].n, rows[0].n + 40))
    store.close()


def test_the_command_moves_the_state_and_everything_goes_on(noted: Workspace, typed: Typed):
    asked = json.loads(typed("ask", "Where is orpiment ground?", "--json").out.splitlines()[0])["run"]
    done = typed("migrate", "--to", new_database(), "--json")
    assert done.code == 0 and json.loads(done.out)["moved"]["state"]["rows"]["records"] > 5
    assert asked in typed("runs").out and "No fault was found." in typed("verify").out
    assert "postgres:@" not in typed("config", "show").out  # an address may have a password in it
    checked = typed("doctor")
    assert checked.code == 0 and "state: PostgreSQL " in checked.out
    assert len(typed("runs").out.splitlines()) == 1  # the round that it tries is kept elsewhere
    refused = typed("migrate", "--to", "file")
    assert refused.code == 2 and "--delete-source" in refused.err and load_settings(noted.path).state
    kept = typed("migrate", "--to", "file", "--keep-source")
    assert "keeps a copy of everything" in kept.out and asked in typed("runs").out
    first = noted.documents.listing()[0].name
    assert "postgresql://" in typed("erase", first, "--yes").err, "an erasure names the copy"


def test_a_move_back_to_a_file_deletes_the_copy_on_the_server(noted: Workspace, typed: Typed):
    address = new_database()
    assert typed("migrate", "--to", address).code == 0
    done = typed("migrate", "--to", "file", "--delete-source")
    assert done.code == 0 and "deleted from the server" in done.out
    with pytest.raises(UserError, match="There is no workspace in the database"):
        open_store(address, create=False)
    first = noted.documents.listing()[0].name
    assert "postgresql://" not in typed("erase", first, "--yes").err


def test_the_command_moves_the_index_to_the_server_and_searches_go_on(noted: Workspace, typed: Typed):
    assert typed("migrate", "--to", new_database()).code == 0
    before = json.loads(typed("search", "orpiment", "--json").out)
    done = typed("migrate", "--index", "postgres", "--json")
    assert done.code == 0 and sum(json.loads(done.out)["moved"]["index"]["passages"].values()) > 2
    assert json.loads(typed("search", "orpiment", "--json").out)[0]["document"] == before[0]["document"]
    assert "pgvector" in typed("doctor").out
    refused = typed("migrate", "--to", "file", "--delete-source")
    assert refused.code == 2 and "--index lance" in refused.err
    assert typed("migrate", "--index", "lance").code == 0
    assert json.loads(typed("search", "orpiment", "--json").out) == before


@pytest.mark.parametrize("at", ["_copied", "write_settings", "_deleted", "_keep"])
def test_everything_moves_there_and_back_with_one_command_each_killed_in_between(
    noted: Workspace, typed: Typed, monkeypatch: pytest.MonkeyPatch, at: str
):
    address, bucket = new_database(), new_bucket()
    there = ("migrate", "--to", address, "--index", "postgres", "--blobs", bucket)
    back = ("migrate", "--to", "file", "--index", "lance", "--blobs", "folder", "--delete-source")
    typed("ask", "Where is orpiment ground?")
    found = json.loads(typed("search", "orpiment", "--json").out)
    for command in (there, back):
        for number in range(3):  # state, index and originals
            calls, real = iter(range(100)), getattr(migrate, at)

            def killed(*given: Any, calls: Any = calls, real: Any = real, last: int = number, **named: Any) -> Any:
                result = real(*given, **named)
                if next(calls) == last:
                    raise KeyboardInterrupt
                return result

            with monkeypatch.context() as patch:
                patch.setattr(migrate, at, killed)
                typed(*command)
            assert json.loads(typed("search", "orpiment", "--json").out)[0]["document"] == found[0]["document"]
        assert typed(*command).code == 0
        assert not (noted.path / migrate.MOVES).exists() and typed("doctor").code == 0
        assert "No fault was found." in typed("verify").out
    assert json.loads(typed("search", "orpiment", "--json").out) == found and not content(bucket)
    with pytest.raises(UserError, match="There is no workspace in the database"):
        open_store(address, create=False)


def test_a_server_that_is_not_there_is_said_in_one_line(typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("psycopg", reason="the package psycopg is not installed")
    monkeypatch.setenv("ASSAY_STATE", "postgresql://nobody@127.0.0.1:1/none")
    done = typed("runs")
    assert done.code == 1 and done.err.startswith("assay: The database that `state` names cannot be reached:")
    monkeypatch.setenv("ASSAY_STATE", "mysql://x")
    assert "must be empty or begin with postgresql://" in typed("runs").err


def test_a_restored_backup_has_its_state_in_a_file(noted: Workspace, typed: Typed, tmp_path: Path):
    run = json.loads(typed("ask", "Where is orpiment ground?", "--json").out.splitlines()[0])["run"]
    assert typed("migrate", "--to", new_database()).code == 0
    assert typed("backup", tmp_path / "all.tar.gz").code == 0
    done = typed("restore", tmp_path / "all.tar.gz", "--workspace", tmp_path / "again")
    assert "are in a file now" in done.out and "state" not in (tmp_path / "again" / "assay.toml").read_text()
    assert run in typed("runs", "--workspace", tmp_path / "again").out


def test_a_state_from_before_documents_were_switched_and_tagged_is_brought_up_to_date_on_a_server(noted: Workspace):
    address = new_database()
    store = open_store(address, create=True)
    move_state(noted.store, store)
    with store.write() as connection:
        for statement in (*BEFORE_MARKS, "UPDATE facts SET value = '11' WHERE name = 'version'"):
            connection.exec_driver_sql(statement)
    store.close()
    with closing(open_store(address, create=False)) as again:
        scope = grants.scope_of(again, LOCAL)
        first, *others = documents.listing(again, scope)
        documents.mark(again, [replace(first, off=True, tags=("Überholt",))], "local")
        assert [entry.id for entry in documents.listing(again, scope)] == [entry.id for entry in others]
        assert [entry.id for entry in document_list.page(again, scope, words="Überholt").entries] == [first.id]
        assert {each.id for each in documents.traits(again, scope)} == {entry.id for entry in others}
