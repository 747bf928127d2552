from __future__ import annotations

from pathlib import Path

import pytest
from older import older
from sqlalchemy import Connection, inspect, text, update

from assay.core.access import LOCAL
from assay.core.errors import StoreError, Unwritable, UserError
from assay.store.access import grants
from assay.store.database import MIGRATIONS, Store, open_store, version_of
from assay.store.schema import VERSION, facts


def test_a_missing_workspace_says_how_to_make_one(tmp_path: Path):
    with pytest.raises(UserError, match="assay add"):
        open_store(tmp_path / "state.db", create=False)


def test_a_newer_workspace_is_refused_with_a_sentence(tmp_path: Path):
    store = open_store(tmp_path / "state.db", create=True)
    with store.write() as connection:
        connection.execute(update(facts).where(facts.c.name == "version").values(value="999"))
    store.close()
    with pytest.raises(UserError, match=r"newer Assay.*Upgrade"):
        open_store(tmp_path / "state.db", create=False)


def test_an_older_workspace_is_migrated_after_a_backup(tmp_path: Path):
    path = tmp_path / "state.db"
    open_store(path, create=True).close()

    def add_column(connection: Connection) -> None:
        connection.execute(text("ALTER TABLE bases ADD COLUMN colour TEXT"))

    store = open_store(path, create=False, migrations={VERSION: add_column})
    assert version_of(store) == VERSION + 1
    old = open_store(tmp_path / f"state-version-{VERSION}.bak", create=False)
    assert version_of(old) == VERSION


def test_there_is_a_step_from_every_older_version_to_the_next():
    assert sorted(MIGRATIONS) == list(range(1, VERSION))


def test_a_migration_that_fails_leaves_the_old_version_in_place(tmp_path: Path):
    path = tmp_path / "state.db"
    open_store(path, create=True).close()

    def fail(connection: Connection) -> None:
        connection.execute(text("CREATE TABLE half (a TEXT)"))
        raise RuntimeError("power cut")

    with pytest.raises(RuntimeError):
        open_store(path, create=False, migrations={VERSION: fail})
    store = open_store(path, create=False)
    assert version_of(store) == VERSION
    with store.read() as connection:
        assert not connection.execute(text("SELECT name FROM sqlite_master WHERE name = 'half'")).all()


@pytest.mark.parametrize("rubbish", [b"this is no database at all, but long enough to be one" * 40, b"\x00" * 4096])
def test_a_damaged_workspace_says_so(tmp_path: Path, rubbish: bytes):
    (tmp_path / "state.db").write_bytes(rubbish)
    with pytest.raises(UserError, match="damaged"):
        open_store(tmp_path / "state.db", create=False)


def looked_at(store: Store) -> dict[tuple[str, str], str]:
    """Everything about every table that a program can tell."""
    looks = ("get_columns", "get_indexes", "get_pk_constraint", "get_foreign_keys", "get_unique_constraints")
    seen = inspect(store.engine)
    return {(table, look): str(getattr(seen, look)(table)) for table in seen.get_table_names() for look in looks}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_workspace_of_any_older_version_gets_the_same_tables_as_a_new_one(tmp_path: Path, version: int):
    fresh = open_store(tmp_path / "new.db", create=True)
    older(tmp_path / "old.db", version).close()
    migrated = open_store(tmp_path / "old.db", create=False)
    assert version_of(migrated) == VERSION
    assert looked_at(migrated) == looked_at(fresh)


def test_what_a_workspace_of_version_3_held_is_still_there_and_still_refers_to_what_it_did(tmp_path: Path):
    old = older(tmp_path / "state.db", 3)
    with old.write() as connection:
        for statement in (
            "INSERT INTO bases VALUES ('b1', 'notes', 'local', 'about', 'e', 3, 'then')",
            "INSERT INTO grants VALUES ('b1', 'user:local')",
            """INSERT INTO documents (id, base, label, uri, state, status, why, digest, parser, recipe, bytes, title, authors,
                kind, sections, pages, meta, warnings, characters, passages, added) VALUES ('d1', 'b1', 'b1', 'a.txt',
                'ready', 'read', '', 'x', '', '', 1, 'A', '[]', 'text', '[]', '[]', '{}', '[]', 1, 1, 'then')""",
        ):
            connection.exec_driver_sql(statement)
    old.close()
    store = open_store(tmp_path / "state.db", create=False)
    (base,) = grants.scope_of(store, LOCAL).bases
    assert (base.id, base.name, base.owner, base.description) == ("b1", "notes", "local", "about")
    assert grants.embedder_of(store, base) == ("e", 3)
    with store.read() as connection:
        assert connection.execute(text("SELECT base FROM documents")).all() == [("b1",)]
        assert connection.execute(text("PRAGMA foreign_key_check")).all() == []
    with pytest.raises(StoreError), store.write() as connection:
        connection.execute(text("DELETE FROM bases"))  # the documents of a base still hold on to it


def test_a_file_in_a_folder_that_cannot_be_written_to_is_read_and_a_write_says_what_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    open_store(tmp_path / "state.db", create=True).close()
    tmp_path.chmod(0o500)
    monkeypatch.setattr("assay.store.sqlite.os.access", lambda *_: False)  # root may write everywhere
    store = open_store(tmp_path / "state.db", create=False)
    assert grants.every_base(store) == []
    with pytest.raises(Unwritable, match="only searches work"):
        grants.create_base(store, "again", LOCAL)
    store.close()
    assert [each.name for each in tmp_path.iterdir()] == ["state.db"]
