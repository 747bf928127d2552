"""`assay migrate --index`: the index moves to another place, and searches find the same."""

from __future__ import annotations

import json
from pathlib import Path

from terminal import Typed

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
