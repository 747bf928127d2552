from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Connection, text, update

from assay.errors import UserError
from assay.store.open import MIGRATIONS, open_store, version_of
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
