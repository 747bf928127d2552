"""A workspace with a few notes and one question asked, made once; each test gets a copy."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from ledger import NOTES, QUESTION, ask

from assay.evaluate.plain_text import WordEmbedder
from assay.store.runs import history
from assay.workspace.facade import Workspace, open_workspace


@pytest.fixture(scope="session")
def _asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audited")
    for name, words in NOTES.items():
        (folder / name).write_text(words, encoding="utf-8")
    with open_workspace(folder / "workspace", create=True) as opened:
        opened.embedder = WordEmbedder()
        asyncio.run(opened.add(sorted(folder.glob("*.md"))))
        asyncio.run(ask(opened))
        asyncio.run(ask(opened, "Why was the floor of hall 3 renewed?"))
    return folder / "workspace"


@pytest.fixture
def second(tmp_path: Path) -> Path:
    place = tmp_path / "second"
    place.mkdir()
    return place


@pytest.fixture
def opened(_asked: Path, tmp_path: Path, second: Path) -> Iterator[Workspace]:
    """With a second place."""
    shutil.copytree(_asked, tmp_path / "workspace")
    with open_workspace(tmp_path / "workspace", audit_copy=str(second)) as found:
        found.embedder = WordEmbedder()
        yield found


@pytest.fixture
def run(opened: Workspace) -> str:
    return next(
        each.id for each in history.history(opened.store, "local", opened.scope(), 50) if each.question == QUESTION
    )
