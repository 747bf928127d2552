"""`assay migrate --index`: the index moves to another place, and searches find the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from s3_server import content, new_bucket
from terminal import Typed

from assay.cli import migrate
from assay.core.settings import load_settings
from assay.store.blobs import FolderBlobs
from assay.workspace.facade import Workspace, open_workspace


def test_the_index_moves_and_searches_find_the_same(noted: Workspace, typed: Typed, tmp_path: Path):
    before = json.loads(typed("search", "orpiment", "--json").out)
    place = tmp_path / "elsewhere"
    done = typed("migrate", "--index", f"lance:{place}")
    assert done.code == 0 and "both copies were equal" in done.out
    assert list(place.glob("*.lance")) and not list((noted.path / "index").glob("*.lance"))
    assert json.loads(typed("search", "orpiment", "--json").out) == before
    again = typed("migrate", "--index", f"lance:{place}")
    assert again.code == 0 and "there already" in again.out


def test_a_move_says_what_to_move_and_what_stays(noted: Workspace, typed: Typed, tmp_path: Path):
    assert typed("migrate").code == 2
    done = typed("migrate", "--index", f"lance:{tmp_path / 'i'}", "--blobs", tmp_path / "b")
    assert done.code == 0 and "originals;" in done.out and "passages of" in done.out and "stay: assay.toml" in done.out
    assert typed("search", "orpiment").code == 0 and typed("doctor").code == 0


@pytest.mark.parametrize("at", ["_copied", "write_settings", "_deleted", "_keep"])
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_a_move_that_is_killed_goes_on_with_the_same_command(
    noted: Workspace, typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str, before: bool
):
    found = json.loads(typed("search", "orpiment", "--json").out)
    index, blobs = tmp_path / "i", tmp_path / "b"
    command = ("migrate", "--index", f"lance:{index}", "--blobs", blobs)
    calls, real = iter(range(100)), getattr(migrate, at)

    def killed(*given: Any, **named: Any) -> Any:
        last = next(calls) == 1
        if last and before:
            raise KeyboardInterrupt
        result = real(*given, **named)
        if last:
            raise KeyboardInterrupt
        return result

    with monkeypatch.context() as patch:
        patch.setattr(migrate, at, killed)
        assert typed(*command).code != 0
    assert json.loads(typed("search", "orpiment", "--json").out) == found
    assert typed(*command).code == 0 and json.loads(typed("search", "orpiment", "--json").out) == found
    assert list(index.glob("*.lance")) and not list((noted.path / "index").glob("*.lance"))
    assert not [path for path in (noted.path / "originals").rglob("*") if path.is_file()]
    assert not (noted.path / migrate.MOVES).exists() and typed("doctor").code == 0


@pytest.mark.long
def test_the_index_moves_to_object_storage_and_back_and_doctor_names_it(noted: Workspace, typed: Typed):
    before = json.loads(typed("search", "orpiment", "--json").out)
    bucket = new_bucket()
    assert typed("migrate", "--index", f"lance:{bucket}").code == 0
    assert b"orpiment" in content(bucket) and not list((noted.path / "index").glob("*.lance"))
    assert json.loads(typed("search", "orpiment", "--json").out) == before
    (found,) = [line for line in json.loads(typed("doctor", "--json").out) if line["check"] == "index"]
    assert found["ok"] is None and "LanceDB" in found["found"] and "cut off" in found["found"]
    assert typed("migrate", "--index", "lance").code == 0
    assert content(bucket) == b"" and json.loads(typed("search", "orpiment", "--json").out) == before


def test_a_restored_backup_does_not_use_the_index_of_the_workspace_it_was_made_of(
    noted: Workspace, typed: Typed, tmp_path: Path
):
    assert typed("migrate", "--index", f"lance:{tmp_path / 'elsewhere'}").code == 0
    assert typed("backup", tmp_path / "all.tar.gz").code == 0
    again = tmp_path / "again"
    done = typed("restore", tmp_path / "all.tar.gz", "--workspace", again)
    assert done.code == 0 and "assay reindex" in done.out
    assert load_settings(again).index == "lance"
    assert "`assay reindex` builds it" in typed("search", "orpiment", "--workspace", again).err
    assert typed("reindex", "--workspace", again).code == 0
    assert json.loads(typed("search", "orpiment", "--json", "--workspace", again).out)


PLACES = (
    pytest.param(lambda folder: f"{folder}/elsewhere", id="folder"),
    pytest.param(lambda folder: new_bucket(), id="bucket", marks=pytest.mark.long),
)


@pytest.mark.parametrize("place", PLACES)
def test_originals_move_and_are_read_backed_up_and_erased_there(
    noted: Workspace, typed: Typed, tmp_path: Path, place: Callable[[Path], str]
):
    to, own = place(tmp_path), noted.path / "originals"
    first, *others = noted.documents.listing()
    document = noted.documents.get(first.id)
    assert document is not None
    before = noted.documents.original(document)
    moved = json.loads(typed("migrate", "--blobs", to, "--json").out)
    assert moved["moved"] == {"blobs": {"originals": len(others) + 1, "left": 0}}
    assert before and not [path for path in own.rglob("*") if path.is_file()]
    assert "there already" in typed("migrate", "--blobs", to).out
    with open_workspace(noted.path) as opened:
        assert opened.documents.original(document) == before
        blobs = opened.context.blobs
    (line,) = [each for each in json.loads(typed("doctor", "--json").out) if each["check"] == "blobs"]
    assert line["ok"] is True and to in line["found"]
    assert typed("backup", tmp_path / "all.tar.gz").code == 0
    assert typed("erase", first.id, "--yes").code == 0
    assert not blobs.has(document.digest) and len(list(blobs.digests())) == len(others)
    again = tmp_path / "again"
    assert typed("restore", tmp_path / "all.tar.gz", "--workspace", again).code == 0
    with open_workspace(again) as restored:
        assert restored.settings.blobs == "" and restored.documents.original(document) == before
    assert typed("migrate", "--blobs", "folder").code == 0
    assert len(list(FolderBlobs(own).digests())) == len(others) and not list(blobs.digests())
