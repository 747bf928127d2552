"""A workspace over texts that need no parsing, with an embedder that only knows words: for tests of whole runs."""

from __future__ import annotations

import asyncio
import atexit
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from doubles import ChatServer
from sqlalchemy import event

from assay.evaluate.plain_text import WordEmbedder
from assay.ingest.parsed import Parsed
from assay.ingest.sources import SourceFile
from assay.workspace.facade import Workspace, open_workspace


class Plain:
    """Reads texts that need no parsing; their names are their titles."""

    async def read(self, data: Path | bytes, name: str) -> Parsed:
        return Parsed(text=data.decode() if isinstance(data, bytes) else data.read_text(), kind="text", title=name)


_made: dict[tuple[tuple[str, str], ...], Path] = {}


async def filled(folder: Path, texts: Mapping[str, str]) -> None:
    """A workspace over these texts, a copy of one that is made once."""
    key = tuple(texts.items())
    if key not in _made:
        place = Path(tempfile.mkdtemp(prefix="notes-"))
        atexit.register(shutil.rmtree, place, ignore_errors=True)
        await fill(place / "workspace", texts)
        _made[key] = place / "workspace"
    shutil.copytree(_made[key], folder, dirs_exist_ok=True)


def folder_of(texts: Mapping[str, str]) -> Any:
    """A fixture `folder`: for each test a workspace of its own over these texts."""

    @pytest.fixture
    def folder(tmp_path: Path) -> Path:
        asyncio.run(filled(tmp_path / "workspace", texts))
        return tmp_path / "workspace"

    return folder


def until(true: Callable[[], Any], seconds: float = 20.0) -> None:
    """Wait for something that is bound to happen. Who asks too often keeps it from happening."""
    end, pause = time.monotonic() + seconds, 0.01
    while not true():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(pause)
        pause = min(1.2 * pause, 0.1)


async def fill(folder: Path, texts: Mapping[str, str]) -> None:
    with open_workspace(folder, create=True) as opened:
        opened.embedder = WordEmbedder()
        files = [SourceFile(uri=f"notes/{name}", name=name, data=words.encode()) for name, words in texts.items()]
        await opened.documents.add_sources(files, reader=Plain())


def opened(folder: Path, server: ChatServer | None = None, **flags: Any) -> Workspace:
    """The workspace with this server as its model. It does not wait for the disk: what a power cut would leave is not
    tested here."""
    model = {"llm_base_url": server.url, "llm_model": "scripted", "llm_api_key": "k"} if server else {}
    made = open_workspace(folder, **model | flags)
    made.embedder = WordEmbedder()
    made.store.engine.dispose()
    if made.store.engine.dialect.name == "sqlite":
        event.listen(made.store.engine, "connect", lambda raw, _: raw.execute("PRAGMA synchronous=OFF"))
    return made
