"""`assay migrate --index`: the index moves to another place, and searches find the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from s3_server import content, new_bucket
from terminal import Typed

from assay.core.settings import load_settings
from assay.workspace.facade import Workspace


def test_the_index_moves_and_searches_find_the_same(noted: Workspace, typed: Typed, tmp_path: Path):
    before = json.loads(typed("search", "orpiment", "--json").out)
    place = tmp_path / "elsewhere"
    done = typed("migrate", "--index", f"lance:{place}")
    assert done.code == 0 and "both copies were equal" in done.out
    assert list(place.glob("*.lance")) and not list((noted.path / "index").glob("*.lance"))
    assert json.loads(typed("search", "orpiment", "--json").out) == before
    again = typed("migrate", "--index", f"lance:{place}")
    assert again.code == 2 and "there already" in again.err


def test_one_thing_moves_at_a_time(noted: Workspace, typed: Typed):
    assert typed("migrate").code == 2
    assert typed("migrate", "--to", "file", "--index", "lance").code == 2


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
    assert typed("reindex", "--workspace", again).code == 0
    assert json.loads(typed("search", "orpiment", "--json", "--workspace", again).out)
