from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest

from assay.core.errors import UserError
from assay.governance.backup import backup, restore
from assay.workspace.facade import Workspace


def test_a_backup_is_for_its_owner_alone(empty: Workspace, tmp_path: Path):
    before = os.umask(0)
    try:
        (tmp_path / "all.tar.gz.part").write_bytes(b"left by a backup that was killed")
        size = backup(empty.path, empty.store, tmp_path / "all.tar.gz")
    finally:
        os.umask(before)
    made = (tmp_path / "all.tar.gz").stat()
    assert made.st_mode & 0o777 == 0o600 and made.st_size == size
    assert not (tmp_path / "all.tar.gz.part").exists()


def test_a_backup_is_never_put_into_what_it_backs_up(empty: Workspace, tmp_path: Path):
    (tmp_path / "link").symlink_to(empty.path)
    for place in (empty.path / "all.tar.gz", tmp_path / "link" / "all.tar.gz"):
        with pytest.raises(UserError, match="inside the workspace"):
            backup(empty.path, empty.store, place)


def test_settings_travel_with_a_backup(empty: Workspace, tmp_path: Path):
    (empty.path / "assay.toml").write_text("pool = 50\n")
    backup(empty.path, empty.store, tmp_path / "all.tar.gz")
    with tarfile.open(tmp_path / "all.tar.gz") as packed:
        assert {"state.db", "assay.toml"} <= set(packed.getnames())


def test_restoring_makes_a_private_folder_also_through_a_link(empty: Workspace, tmp_path: Path):
    backup(empty.path, empty.store, tmp_path / "all.tar.gz")
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    restore(tmp_path / "all.tar.gz", tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real" / "state.db").is_file()
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o700


def test_restoring_onto_a_file_is_one_line(tmp_path: Path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match="is a file"):
        restore(tmp_path / "all.tar.gz", tmp_path / "file")


def test_a_damaged_backup_is_one_line(empty: Workspace, tmp_path: Path):
    backup(empty.path, empty.store, tmp_path / "all.tar.gz")
    data = bytearray((tmp_path / "all.tar.gz").read_bytes())
    data[40:400] = bytes(360)
    (tmp_path / "bad.tar.gz").write_bytes(data)
    with pytest.raises(UserError, match="not a whole backup"):
        restore(tmp_path / "bad.tar.gz", tmp_path / "new")
    assert not (tmp_path / "new").exists()
