"""What erasing leaves of a document outside the state: nothing of it, and everything of others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from notes import Plain, opened

from assay.ingest.parsed import Parsed
from assay.ingest.sources import SourceFile
from assay.store import embedding_cache
from assay.workspace.facade import Workspace, open_workspace

WORDS = " ".join(f"The keeper of tower {each} is paid {each} crowns a month." for each in range(200))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    open_workspace(tmp_path / "workspace", create=True).close()
    return tmp_path / "workspace"


@pytest.fixture
def workspace(folder: Path) -> Iterator[Workspace]:
    with opened(folder) as made:
        yield made


def source(name: str, words: str = WORDS) -> SourceFile:
    return SourceFile(uri=f"notes/{name}", name=name, data=words.encode())


async def erase(workspace: Workspace, name: str, base: str = "default") -> None:
    scope = workspace.scope([base])
    await workspace.records.erase(workspace.documents.named(name, scope), scope)


async def test_vectors_that_were_made_with_other_passage_settings_are_erased_too(folder: Path):
    with opened(folder, passage_tokens=120, passage_overlap=0) as before:
        await before.documents.add_sources(
            [source("pay.txt"), source("kept.txt", "The lamp room is red.")], reader=Plain()
        )
    with opened(folder, passage_tokens=60, passage_overlap=0) as after:
        await after.documents.reindex()
        assert embedding_cache.size(after.context.cache) > 10
        await erase(after, "pay.txt")
        assert embedding_cache.size(after.context.cache) == 1, "that of the document that is kept"
        with after.context.cache.connect() as connection:
            assert len(connection.exec_driver_sql("SELECT DISTINCT document FROM sources").all()) == 1


async def test_the_same_bytes_that_are_added_elsewhere_while_they_are_erased_here_are_kept_there(workspace: Workspace):
    await workspace.documents.add_sources([source("pay.txt")], reader=Plain())

    class Meanwhile(Plain):
        async def read(self, data: Path | bytes, name: str) -> Parsed:
            await erase(workspace, "pay.txt")
            return await super().read(data, name)

    await workspace.documents.add_sources([source("copy.txt")], "other", reader=Meanwhile())
    (entry,) = workspace.documents.listing()
    document = workspace.documents.get(entry.id)
    assert entry.name == "copy.txt" and document is not None
    assert workspace.documents.original(document) == WORDS.encode()
    await erase(workspace, "copy.txt", "other")
    await asyncio.sleep(0)
    assert not list(workspace.context.blobs.digests())
