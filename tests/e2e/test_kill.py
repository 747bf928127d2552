"""kill -9 at random moments during `add`, and two of them at once."""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from pathlib import Path

import forked
import pytest
from adding import check, write_notes

from assay.store import documents
from assay.workspace.facade import open_workspace

KILLS = 50 if os.environ.get("ASSAY_SOAK") else 12  # `make soak` takes its time
CHILD = Path(__file__).with_name("adding.py")


def start(workspace: Path, folder: Path) -> forked.Process:
    command = [sys.executable, CHILD, workspace, folder]
    return forked.Process(command, stdout=forked.PIPE, stderr=forked.PIPE, text=True)


def seconds_of(child: forked.Process) -> float:
    """How long an add takes that nobody kills, from its beginning on."""
    assert child.stdout.readline().strip() == "go"
    begun = time.monotonic()
    child.communicate(timeout=120)
    return time.monotonic() - begun


@pytest.mark.kill
@pytest.mark.timeout(420)
def test_kill_9_at_random_moments_loses_nothing_that_was_acknowledged(tmp_path: Path):
    chance = random.Random(5)
    workspace, folder = tmp_path / "workspace", tmp_path / "notes"
    acknowledged: set[str] = set()
    killed = 0
    write_notes(folder, KILLS, 6)
    taken = seconds_of(start(workspace, folder))
    for batch in range(KILLS):
        write_notes(folder, batch, 6)
        child = start(workspace, folder)
        timer: threading.Timer | None = None
        for line in child.stdout:
            word, _, rest = line.strip().partition(" ")
            if word == "go":
                timer = threading.Timer(chance.uniform(0, taken), child.kill)
                timer.start()
            elif word == "done":
                acknowledged.add(rest)
        killed += child.wait() < 0
        if timer:
            timer.cancel()
        assert "Traceback" not in child.stderr.read()
        if batch % 10 == 9:
            with open_workspace(workspace) as opened:
                check(opened, acknowledged)
    assert killed > KILLS // 2, "most of them must have been killed for this to say anything"
    last = start(workspace, folder)
    out, err = last.communicate(timeout=120)
    assert out.strip().endswith("finished"), err
    with open_workspace(workspace) as opened:
        check(opened, {str(file) for file in folder.iterdir()})
        assert not documents.pending(opened.store, opened.scope().named("default"))


@pytest.mark.kill
def test_two_adds_at_once_are_safe(tmp_path: Path):
    write_notes(tmp_path / "notes", 1, 12)
    both = [start(tmp_path / "workspace", tmp_path / "notes") for _ in range(2)]
    for child in both:
        out, err = child.communicate(timeout=100)
        assert out.strip().endswith("finished"), err
    with open_workspace(tmp_path / "workspace") as opened:
        check(opened, {str(file) for file in (tmp_path / "notes").iterdir()})
