"""kill -9 during `add`, and two of them at once."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import forked
import pytest
from adding import check, write_notes

from assay.store import documents
from assay.workspace.facade import open_workspace

KILLS = 50 if os.environ.get("ASSAY_SOAK") else 12  # `make soak` takes its time
CHILD = Path(__file__).with_name("adding.py")


def start(workspace: Path, folder: Path, dies_at: int = 0) -> forked.Process:
    command = [sys.executable, CHILD, workspace, folder, str(dies_at)]
    return forked.Process(command, stdout=forked.PIPE, stderr=forked.PIPE, text=True)


@pytest.mark.kill
@pytest.mark.timeout(420)
def test_kill_9_at_any_progress_loses_nothing_that_was_acknowledged(tmp_path: Path):
    chance = random.Random(5)
    workspace, folder = tmp_path / "workspace", tmp_path / "notes"
    acknowledged: set[str] = set()
    write_notes(folder, KILLS, 6)
    out, err = start(workspace, folder).communicate(timeout=120)
    assert out.splitlines()[-1].startswith("finished "), err
    reports = int(out.split()[-1])
    for batch in range(KILLS):
        write_notes(folder, batch, 6)
        child = start(workspace, folder, dies_at=chance.randint(1, reports))
        out, err = child.communicate(timeout=120)
        acknowledged |= {line.removeprefix("done ") for line in out.splitlines() if line.startswith("done ")}
        assert child.wait() < 0 and "Traceback" not in err, err
        if batch % 10 == 9:
            with open_workspace(workspace) as opened:
                check(opened, acknowledged)
    last = start(workspace, folder)
    out, err = last.communicate(timeout=120)
    assert out.splitlines()[-1].startswith("finished"), err
    with open_workspace(workspace) as opened:
        check(opened, {str(file) for file in folder.iterdir()})
        assert not documents.pending(opened.store, opened.scope().named("default"))


@pytest.mark.kill
def test_two_adds_at_once_are_safe(tmp_path: Path):
    write_notes(tmp_path / "notes", 1, 12)
    both = [start(tmp_path / "workspace", tmp_path / "notes") for _ in range(2)]
    for child in both:
        out, err = child.communicate(timeout=100)
        assert out and out.splitlines()[-1].startswith("finished"), err
    with open_workspace(tmp_path / "workspace") as opened:
        check(opened, {str(file) for file in (tmp_path / "notes").iterdir()})
