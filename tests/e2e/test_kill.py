"""kill -9 at random moments during `add`, and two of them at once."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from assay.index.filters import EVERYTHING
from assay.store import documents
from assay.testing.words import WordEmbedder
from assay.workspace import Workspace, open_workspace

KILLS = 50 if os.environ.get("ASSAY_SOAK") else 12  # `make soak` takes its time
CHILD = Path(__file__).with_name("adding.py")


def start(workspace: Path, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(CHILD), str(workspace), str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def seconds_of(child: subprocess.Popen[str]) -> float:
    """How long an add takes that nobody kills, from its beginning on."""
    assert child.stdout is not None
    assert child.stdout.readline().strip() == "go"
    begun = time.monotonic()
    child.communicate(timeout=120)
    return time.monotonic() - begun


def write_notes(folder: Path, batch: int, count: int) -> None:
    folder.mkdir(exist_ok=True)
    for n in range(count):
        sentences = " ".join(
            f"Pump {batch}-{n} has part number {batch * 1000 + n * 10 + k} in drawer {k}." for k in range(30)
        )
        (folder / f"note-{batch}-{n}.txt").write_text(sentences)


def check(opened: Workspace, acknowledged: set[str]) -> None:
    """Everything that was said to be done is there, once."""
    opened.embedder = WordEmbedder()
    ready = documents.listing(opened.store, opened.scope(["default"]))
    assert acknowledged <= {entry.uri for entry in ready}
    assert len({entry.uri for entry in ready}) == len(ready)

    async def passages() -> dict[str, int]:
        if not ready:
            return {}
        index = await opened._index(opened.scope().named("default"))
        hits = await index.dense((await opened.embedder.queries(["pump"]))[0], 100_000, EVERYTHING)
        assert len({hit.passage.id for hit in hits}) == len(hits) == await index.count(EVERYTHING)
        counts: dict[str, int] = {}
        for hit in hits:
            counts[hit.passage.doc_id] = counts.get(hit.passage.doc_id, 0) + 1
        return counts

    found = asyncio.run(passages())
    for entry in ready:
        assert found.get(entry.id) == entry.passages, entry.uri


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
        assert child.stdout is not None
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
        assert child.stderr is not None and "Traceback" not in child.stderr.read()
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


def test_two_adds_at_once_are_safe(tmp_path: Path):
    write_notes(tmp_path / "notes", 1, 12)
    both = [start(tmp_path / "workspace", tmp_path / "notes") for _ in range(2)]
    for child in both:
        out, err = child.communicate(timeout=100)
        assert out.strip().endswith("finished"), err
    with open_workspace(tmp_path / "workspace") as opened:
        check(opened, {str(file) for file in (tmp_path / "notes").iterdir()})
