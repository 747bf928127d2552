from __future__ import annotations

import os
from pathlib import Path

import pytest

from assay.core.errors import UserError
from assay.ingest.sources import find_sources, printable_path, source_from_stdin


def test_a_folder_that_cannot_be_listed_never_looks_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "note.txt").write_text("A note.")
    (tmp_path / "shut").mkdir()
    listed = os.scandir

    def scandir(place):
        if Path(place).name == "shut":
            raise PermissionError(13, "Permission denied", str(place))
        return listed(place)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(UserError, match=r"shut' cannot be listed: Permission denied\. Check its permissions"):
        find_sources([tmp_path])


def test_a_name_that_is_not_utf_8_can_be_kept_and_its_file_still_be_read(tmp_path: Path):
    place = os.fsencode(tmp_path) + b"/caf\xe9.txt"
    try:
        Path(os.fsdecode(place)).write_text("Coffee.")
    except OSError:
        pytest.skip("this file system takes no such name")
    (source,) = find_sources([tmp_path])
    assert source.uri == str(tmp_path.resolve()) + "/caf\\xe9.txt" and source.name == "caf\\xe9.txt"
    assert source.read() == b"Coffee." and source.size() == 7 and source.digest()


def test_a_name_for_standard_input_that_is_not_utf_8_can_be_kept():
    assert source_from_stdin("caf\udce9.txt", b"x").uri == "stdin:caf\\xe9.txt"
    assert printable_path("café.txt") == "café.txt"


@pytest.mark.parametrize("beside", ["index", "originals", "cache.db"])
def test_a_workspace_is_passed_over(tmp_path: Path, beside: str):
    (tmp_path / "note.txt").write_text("A note.")
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "state.db").write_bytes(b"x")
    place = tmp_path / "workspace" / beside
    if beside == "cache.db":
        place.write_bytes(b"x")
    else:
        place.mkdir()
        (place / "file.txt").write_text("Ours.")
    assert [source.name for source in find_sources([tmp_path])] == ["note.txt"]


def test_somebody_elses_state_db_hides_nothing(tmp_path: Path):
    (tmp_path / "state.db").write_bytes(b"x")
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "note.txt").write_text("A note.")
    assert {source.name for source in find_sources([tmp_path])} == {"state.db", "note.txt"}


def test_a_home_folder_of_nobody_is_one_line():
    with pytest.raises(UserError, match="somebody who is not known here"):
        find_sources([Path("~nobody-of-this-name/x")])


def test_a_name_that_is_too_long_is_one_line():
    with pytest.raises(UserError, match="cannot be opened: File name too long"):
        find_sources([Path("x" * 300)])
