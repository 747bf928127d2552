"""What is particular to tables in a bucket: machines that share it, kept versions, and a storage that cannot be used."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
from postgres_server import new_database
from pydantic import SecretStr
from s3_server import content, new_bucket

from assay.core.errors import StoreError, UserError
from assay.core.settings import Settings
from assay.core.types import Passage, Row
from assay.index.factory import index_engine
from assay.index.filters import EVERYTHING, Eq
from assay.index.protocol import IndexEngine

DIM = 4
pytestmark = pytest.mark.long


def row(id: str, text: str = "some words", doc: str = "d") -> Row:
    return Row(Passage(id, doc, text, 0, len(text), "", None), np.ones(DIM, np.float32), "", {"doc": doc})


def machine(folder: Path, bucket: str, state: str = "") -> IndexEngine:
    """The engine of a machine with a workspace folder of its own."""
    folder.mkdir()
    return index_engine(Settings(index=f"lance:{bucket}", state=SecretStr(state)), folder)


async def test_machines_with_folders_of_their_own_read_what_one_writes_and_only_one_holds_the_lease(tmp_path: Path):
    bucket, state = new_bucket(), new_database()
    north, south = (machine(tmp_path / name, bucket, state) for name in ("north", "south"))
    writer = await north.open("b", DIM, create=True)
    reader = await south.open("b", DIM)
    async with north.lease("b", 1.0):
        with pytest.raises(UserError, match="Another process has been writing"):
            async with south.lease("b", 0.0):
                pass
        await writer.upsert([row("a"), row("b")])
        assert (
            len(await reader.lexical("words", 5, EVERYTHING))
            == len(await reader.dense(np.ones(DIM), 5, EVERYTHING))
            == 2
        )
    async with south.lease("b", 0.0):
        await reader.delete(Eq("doc", "d"))
    assert await writer.count(EVERYTHING) == 0


async def test_writes_of_several_machines_take_turns(tmp_path: Path):
    bucket, state = new_bucket(), new_database()
    engines = [machine(tmp_path / f"m{n}", bucket, state) for n in range(3)]
    indexes = await asyncio.gather(*(engine.open("b", DIM, create=True) for engine in engines))
    await asyncio.gather(*(index.upsert([row(f"{n}-{i}")]) for i in range(3) for n, index in enumerate(indexes)))
    assert [await index.count(EVERYTHING) for index in indexes] == [9, 9, 9]


async def test_what_a_killed_process_left_of_a_table_is_not_opened_and_goes_with_the_next_one(tmp_path: Path):
    bucket = new_bucket()
    engine = machine(tmp_path / "w", bucket)
    index = await engine.open("b", DIM, create=True)
    await index.upsert([row("a", "xylophonequartz")])
    await engine.place._delete("base_b.table")  # type: ignore[reportAttributeAccessIssue]  as if it had not been written
    assert not engine.exists("b") and b"xylophonequartz" in content(bucket)
    assert await (await engine.open("b", DIM, create=True)).count(EVERYTHING) == 0
    assert b"xylophonequartz" not in content(bucket)


async def test_a_reader_of_a_table_that_is_made_anew_finds_the_new_rows(tmp_path: Path):
    engine = machine(tmp_path / "w", new_bucket())
    reader = await engine.open("b", DIM, create=True)
    await reader.upsert([row("old")])
    await engine.drop("b")
    with pytest.raises(UserError, match="assay reindex"):
        await reader.count(EVERYTHING)
    await (await engine.open("b", DIM, create=True)).upsert([row("new")])
    assert await reader.ids() == ["new"]


async def test_a_bucket_that_keeps_versions_is_named_by_purge_and_by_the_limits(tmp_path: Path):
    bucket = new_bucket(versioned=True)
    engine = machine(tmp_path / "w", bucket)
    index = await engine.open("b", DIM, create=True)
    await index.upsert([row("a")])
    await index.delete(EVERYTHING)
    assert await index.purge() == (f"old versions of objects in {bucket}, which the bucket keeps",)
    assert any("keeps old versions" in limit for limit in engine.limits())
    plain = machine(tmp_path / "plain", new_bucket())
    assert not any("old versions" in limit for limit in plain.limits())


async def test_a_bucket_that_is_not_there_is_told_with_what_to_check(tmp_path: Path):
    new_bucket()
    engine = machine(tmp_path / "w", "s3://nobody-has-this-one/assay")
    with pytest.raises(StoreError, match=r"cannot be used .*Check the bucket, AWS_ENDPOINT_URL and the keys"):
        await engine.versions()
    with pytest.raises(StoreError, match="cannot be used"):
        await engine.open("b", DIM, create=True)


def test_an_endpoint_without_encryption_on_another_machine_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from assay.store.blobs import is_unencrypted

    for address, told in (("http://127.0.0.1:9000", False), ("http://minio:9000", True), ("https://minio:9000", False)):
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        assert is_unencrypted() is told
