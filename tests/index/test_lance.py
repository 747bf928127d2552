"""What is particular to the embedded index: processes, crashes, erasure, locks and damage."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import signal
import subprocess
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest

from assay.core.errors import StoreError, UserError
from assay.core.types import Passage, Row
from assay.index.encoding import table_name
from assay.index.filters import EVERYTHING, And, Eq, In, Not, Or
from assay.index.lance import matrix
from assay.index.lance.lance_index import LanceEngine, LanceIndex, MemoryLimits, TableSnapshot, open_index
from assay.index.lance.rows import compile
from assay.index.lance.tables import Folder
from assay.index.lease import file_lease

DIM = 8
BATCH = 20

processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(
    ["lancedb", "assay.index.lance.lance_index"]
)  # the import takes seconds: pay for it once


def row(id: str, text: str = "plain words", doc: str = "d", dim: int = DIM) -> Row:
    vector = np.random.default_rng(list(id.encode())).standard_normal(dim).astype(np.float32)
    return Row(Passage(id, doc, text, 0, len(text)), vector, "Lead", {"doc": doc, "label": "l"})


async def opened(folder: Path, limits: MemoryLimits | None = None, lock_timeout: float = 60.0) -> LanceIndex:
    return await open_index(Folder(folder), "b", DIM, create=True, limits=limits, lock_timeout=lock_timeout)


def bytes_under(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def write_until_killed(folder: Path, first: int, acknowledge: Connection) -> None:
    async def write() -> None:
        index = await opened(folder)
        for batch in range(first, first + 10_000):
            await index.upsert([row(f"{batch:06d}-{i:03d}", f"batch{batch} words") for i in range(BATCH)])
            acknowledge.send(batch)
            if batch % 7 == 3:
                await index.delete(Eq("doc", "gone"))
            if batch % 10 == 9:
                await index.optimise()

    asyncio.run(write())


def write_and_finish(folder: Path, batches: int) -> None:
    async def write() -> None:
        index = await opened(folder)
        for batch in range(batches):
            await index.upsert([row(f"{batch:06d}-{i:03d}") for i in range(BATCH)])
            if batch % 5 == 4:
                await index.optimise()

    asyncio.run(write())


@pytest.mark.kill
async def test_every_acknowledged_batch_is_there_exactly_once_after_kill_9(tmp_path):
    chance = random.Random(5)
    acknowledged: list[int] = []
    for killed in range(1, 5):
        ours, theirs = processes.Pipe(duplex=False)
        child = processes.Process(target=write_until_killed, args=(tmp_path, killed * 10_000, theirs))
        child.start()
        theirs.close()
        for _ in range(chance.randint(1, 6)):  # batches of this round before it is killed
            acknowledged.append(ours.recv())
        assert child.pid
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        acknowledged.extend(received(ours))

        index = await opened(tmp_path)
        wanted = [f"{batch:06d}-{i:03d}" for batch in acknowledged for i in range(BATCH)]
        assert [hit.passage.id for hit in await index.fetch(wanted, EVERYTHING)] == wanted
        rows = await index.count(EVERYTHING)
        whole, rest = divmod(rows - len(wanted), BATCH)
        assert rest == 0 and 0 <= whole <= killed  # one batch may have been under way: all of it or nothing
        found = [hit.passage.id for hit in await index.dense(np.ones(DIM), 2 * rows, EVERYTHING)]
        assert len(found) == len(set(found)) == rows
        await index.upsert([row("after", "written after the crash", "gone")])  # and no lock was left behind
        assert len(await index.lexical("crash", 5, EVERYTHING)) == 1
        assert await index.delete(Eq("doc", "gone")) == 1


def received(connection: Connection) -> list[int]:
    found = []
    try:
        while True:
            found.append(connection.recv())
    except EOFError:
        return found


@pytest.mark.long
async def test_readers_follow_a_writer_in_another_process(tmp_path):
    index = await opened(tmp_path)
    await index.upsert([row("first")])
    child = processes.Process(target=write_and_finish, args=(tmp_path, 25))
    child.start()
    seen = 0
    while child.is_alive():
        dense, lexical, count = await asyncio.gather(
            index.dense(np.ones(DIM), 10_000, EVERYTHING),
            index.lexical("words", 10_000, EVERYTHING),
            index.count(EVERYTHING),
        )
        for found in (len(dense), len(lexical), count):
            assert found % BATCH == 1  # whole batches only
        assert count >= seen
        seen = count
        assert len({hit.passage.id for hit in dense}) == len(dense)
    child.join()
    assert child.exitcode == 0
    assert await index.count(EVERYTHING) == 25 * BATCH + 1
    assert len(await index.dense(np.ones(DIM), 10_000, EVERYTHING)) == 25 * BATCH + 1


@pytest.mark.parametrize("doomed", [3, 60], ids=["a few of the rows", "most of the rows"])
async def test_deleted_words_are_gone_from_the_disk_after_optimise(tmp_path, doomed):
    index = await opened(tmp_path)
    secret, kept = "xylophonequartz", "marmaladezeppelin"
    rows = [row(f"s{i}", f"{secret}{i} words", "secret") for i in range(doomed)]
    await index.upsert(rows + [row(f"k{i}", f"{kept}{i} words", "kept") for i in range(100)])
    await index.optimise()
    assert secret.encode() in bytes_under(tmp_path)
    assert not await index.unpurged()

    await index.delete(Eq("doc", "secret"))
    assert await index.unpurged()
    assert await index.purge() == ()
    assert secret.encode() not in bytes_under(tmp_path)
    assert kept.encode() in bytes_under(tmp_path)
    assert not await index.unpurged()
    assert await index.count(EVERYTHING) == 100


async def test_replaced_words_are_gone_from_the_disk_after_optimise(tmp_path):
    index = await opened(tmp_path)
    await index.upsert([row("a", "xylophonequartz words"), *(row(f"k{i}") for i in range(50))])
    await index.optimise()
    await index.upsert([row("a", "other words")])
    await index.optimise()
    assert b"xylophonequartz" not in bytes_under(tmp_path)


@pytest.mark.long
async def test_a_reader_survives_a_writer_that_tidies_away_its_version(tmp_path):
    reader, writer = await opened(tmp_path), await opened(tmp_path)
    await writer.upsert([row(f"p{i:03d}") for i in range(100)])
    assert len(await reader.dense(np.ones(DIM), 100, EVERYTHING)) == 100
    for i in range(0, 100, 20):
        await writer.upsert([row(f"p{i:03d}", "new words")])
        reading = asyncio.gather(*(reader.lexical("words", 100, EVERYTHING) for _ in range(4)))
        await writer.optimise()
        assert [len(hits) for hits in await reading] == [100] * 4
        assert len(await reader.dense(np.ones(DIM), 200, EVERYTHING)) == 100


async def test_rows_that_move_between_the_look_and_the_reading_are_found_all_the_same(tmp_path, monkeypatch):
    reader, writer = await opened(tmp_path), await opened(tmp_path)
    for i in range(3):
        await writer.upsert([row(f"{i}-{n}", doc=f"d{i}") for n in range(10)])
    look, moved = LanceIndex._fresh, []

    async def then_move(self: LanceIndex) -> TableSnapshot:
        view = await look(self)
        if not moved:
            moved.append(True)
            await writer.delete(Eq("doc", "d1"))
            await writer.optimise()
        return view

    monkeypatch.setattr(LanceIndex, "_fresh", then_move)
    found = await reader.dense(np.ones(DIM), 99, EVERYTHING)
    assert sorted(hit.passage.id for hit in found) == [f"{i}-{n}" for i in (0, 2) for n in range(10)]


async def test_two_open_indexes_see_each_other_s_changes(tmp_path):
    one, two = await opened(tmp_path), await opened(tmp_path)
    for i in range(4):
        writer, reader = (one, two) if i % 2 else (two, one)
        await writer.upsert([row(f"p{i}")])
        assert len(await reader.dense(np.ones(DIM), 9, EVERYTHING)) == i + 1
        assert len(await reader.lexical("words", 9, EVERYTHING)) == i + 1


async def test_a_dropped_and_rebuilt_table_is_not_taken_for_the_old_one(tmp_path):
    reader = await opened(tmp_path)
    await reader.upsert([row("old", "old words")])
    assert [hit.passage.id for hit in await reader.dense(np.ones(DIM), 5, EVERYTHING)] == ["old"]
    await LanceEngine(tmp_path, Folder(tmp_path)).drop("b")
    writer = await opened(tmp_path)
    await writer.upsert([row("new", "new words")])
    assert [hit.passage.id for hit in await reader.dense(np.ones(DIM), 5, EVERYTHING)] == ["new"]


async def test_a_second_writer_waits_and_then_says_why_it_gave_up(tmp_path, caplog):
    index = await opened(tmp_path, lock_timeout=0.3)
    async with file_lease(tmp_path / "base_b.lock", 1):
        with pytest.raises(UserError, match="Another process has been writing"):
            await index.upsert([row("a")])
        assert await index.count(EVERYTHING) == 0  # reading never waits
    await index.upsert([row("a")])
    assert await index.count(EVERYTHING) == 1


@pytest.mark.long
async def test_writers_in_one_process_take_turns(tmp_path):
    indexes = [await opened(tmp_path) for _ in range(3)]
    await asyncio.gather(*(index.upsert([row(f"{n}-{i}")]) for i in range(4) for n, index in enumerate(indexes)))
    assert await indexes[0].count(EVERYTHING) == 12


async def test_another_number_of_dimensions_is_refused_with_a_remedy(tmp_path):
    index = await opened(tmp_path)
    with pytest.raises(StoreError, match="assay reindex"):
        await open_index(Folder(tmp_path), "b", DIM + 1, create=True)
    with pytest.raises(StoreError, match="does not fit"):
        await index.upsert([row("a", dim=DIM + 1)])
    with pytest.raises(StoreError, match="does not fit"):
        await index.dense(np.ones(DIM + 1), 3, EVERYTHING)
    with pytest.raises(StoreError, match="not a number"):
        await index.upsert([Row(row("a").passage, np.full(DIM, np.nan, np.float32), "", {})])


async def test_an_index_that_is_not_there_is_a_matter_for_the_person(tmp_path):
    with pytest.raises(UserError, match="assay reindex"):
        await open_index(Folder(tmp_path), "b", DIM, create=False)


@pytest.mark.parametrize("part", ["_versions", "data"])
async def test_a_damaged_table_says_how_to_build_it_again(tmp_path, part):
    index = await opened(tmp_path)
    await index.upsert([row("a")])
    for path in next(tmp_path.glob("*.lance")).joinpath(part).iterdir():
        path.write_bytes(b"rubbish")
    with pytest.raises(StoreError, match="assay reindex"):
        index = await open_index(Folder(tmp_path), "b", DIM, create=False)
        await index.fetch(["a"], EVERYTHING)
    await LanceEngine(tmp_path, Folder(tmp_path)).drop("b")
    index = await opened(tmp_path)
    await index.upsert([row("a")])
    assert await index.count(EVERYTHING) == 1


@pytest.mark.long
@pytest.mark.parametrize(
    "base", ["simple", "Mixed", "mixed", "../../etc", "", "日本", "a" * 500, "\ud800", "it's", "a/b"]
)
async def test_any_base_id_gets_a_table_of_its_own_inside_the_folder(tmp_path, base):
    index = await open_index(Folder(tmp_path), base, DIM, create=True)
    await index.upsert([row("a")])
    assert {path.parent for path in tmp_path.glob("*.lance")} == {tmp_path}
    assert table_name(base).lower() != table_name(base + "x").lower()
    await LanceEngine(tmp_path, Folder(tmp_path)).drop(base)
    assert not list(tmp_path.glob("*.lance"))


async def test_above_the_limit_the_approximate_index_finds_nearly_all_of_the_nearest(tmp_path):
    chance = np.random.default_rng(3)
    centres = chance.standard_normal((40, 32)).astype(np.float32)
    vectors = centres[np.arange(3000) % 40] + 0.3 * chance.standard_normal((3000, 32)).astype(np.float32)
    index = await open_index(Folder(tmp_path), "b", 32, create=True, limits=MemoryLimits(rows=1000))
    rows = [row(f"p{i:04d}", doc=f"d{i % 10}") for i in range(3000)]
    await index.upsert([Row(r.passage, v, r.lead, r.fields) for r, v in zip(rows, vectors, strict=True)])
    await index.optimise()
    assert any(list(each.columns) == ["vector"] for each in await index.table.list_indices())
    exact = [vectors / np.linalg.norm(vectors, axis=1, keepdims=True) @ v for v in vectors[:20]]
    for where, wanted in ((EVERYTHING, np.arange(3000)), (Eq("doc", "d3"), np.arange(3, 3000, 10))):
        found = [
            len({hit.passage.id for hit in await index.dense(vectors[i], 10, where)}
                & {f"p{j:04d}" for j in wanted[np.argsort(-exact[i][wanted])[:10]]}) for i in range(20)
        ]  # fmt: skip
        assert sum(found) >= 190
    assert len((await index.lexical("words", 3, EVERYTHING))[0].vector) == 32


async def test_a_filter_nested_beyond_reason_is_refused_in_one_line(tmp_path):
    where = Eq("doc", "d")
    for _ in range(6):
        where = And((Or((where, Eq("a", "b"))), Eq("doc", "d")))
    index = await opened(tmp_path)
    await index.upsert([row("a")])
    assert await index.count(where) == await index.count(Not(Not(where))) == 1
    for _ in range(20):
        where = And((Or((where, Eq("a", "b"))), Eq("doc", "d")))
    with pytest.raises(UserError, match="nested"):
        compile(where)


def test_a_snapshot_follows_its_table_through_any_changes():
    chance = np.random.default_rng(11)
    living: dict[int, int] = {}
    snapshot, next_id = matrix.Snapshot(0), 0
    for version in range(1, 60):
        for dead in chance.permutation(list(living))[: chance.integers(0, 12)]:
            del living[int(dead)]
        new = range(next_id, next_id + int(chance.integers(0, 15)))
        next_id = new.stop
        living.update({i: i % 4 for i in new})
        present = np.array(sorted(living), np.uint64)
        fresh = matrix.missing(snapshot, present)
        assert fresh.tolist() == list(new)
        snapshot = matrix.advance(snapshot, version, present, _block(fresh.tolist()))
        assert sum(each.living for each in snapshot.blocks) == len(living)
        found = matrix.nearest(snapshot, np.ones(DIM, np.float32), 1000, In("group", ("1", "2")))
        assert sorted(found.row_ids) == [i for i in sorted(living) if i % 4 in (1, 2)]
    assert len(snapshot.blocks) < 12


def _block(row_ids: Sequence[int]) -> matrix.VectorBlock:
    ids = np.empty(len(row_ids), object)
    ids[:] = [f"p{i:05d}" for i in row_ids]
    vectors = np.random.default_rng(len(row_ids)).standard_normal((len(row_ids), DIM)).astype(np.float32)
    return matrix.block(
        np.array(row_ids, np.uint64), ids, vectors, {"group": matrix.column([str(i % 4) for i in row_ids])}
    )


def test_importing_the_index_does_not_import_lance():
    code = "import sys, assay.index.lance; assert not {'lancedb', 'pyarrow', 'filelock'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


# ── texts in memory ───────────────────────────────────────────────────────────────────────────────────────────────────


def write_one(folder: Path, id: str, text: str) -> None:
    async def write() -> None:
        await (await opened(folder)).upsert([row(id, text)])

    asyncio.run(write())


def no_reading(index: LanceIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on a text that is not in memory cannot be had."""

    def refuse(*_: object) -> None:
        raise AssertionError("a row was read from the folder")

    monkeypatch.setattr(type(index.table), "take_row_ids", refuse)


def texts_in(index: LanceIndex) -> bytes:
    """Every text that an index holds in memory."""
    assert index._view and index._view.snapshot
    kept = [text for each in index._view.snapshot.blocks if each.texts is not None for text in each.texts if text]
    return b"".join(kept)


async def texts_found(index: LanceIndex) -> list[set[str]]:
    channels = await asyncio.gather(index.dense(np.ones(DIM), 99, EVERYTHING), index.lexical("words", 99, EVERYTHING))
    return [{hit.passage.text for hit in hits} for hits in channels]


@pytest.mark.parametrize("folded", [True, False])
async def test_hits_are_made_from_memory_without_reading(tmp_path, monkeypatch, folded):
    index = await opened(tmp_path)
    await index.upsert([row(f"p{i}", f"words ünï number{i}\nand a line") for i in range(10)])
    if folded:
        await index.optimise()
    no_reading(index, monkeypatch)
    expected = {f"words ünï number{i}\nand a line" for i in range(10)}
    assert await texts_found(index) == [expected, expected]
    assert index._view and index._view.folded == folded


@pytest.mark.long
async def test_texts_in_memory_follow_a_writer_in_another_process(tmp_path):
    index = await opened(tmp_path)
    await index.upsert([row(f"p{i}", f"words {i}") for i in range(10)])
    await index.optimise()
    await texts_found(index)
    child = processes.Process(target=write_one, args=(tmp_path, "p3", "words rewritten"))
    child.start()
    child.join()
    expected = {f"words {i}" for i in range(10) if i != 3} | {"words rewritten"}
    assert await texts_found(index) == [expected, expected]


@pytest.mark.parametrize("doomed", [1, 60], ids=["one row", "most of the rows"])
async def test_deleted_words_are_gone_from_memory_with_the_next_search(tmp_path, doomed):
    reader, writer = await opened(tmp_path), await opened(tmp_path)
    await writer.upsert([row(f"s{i}", f"xylophonequartz{i} words", "secret") for i in range(doomed)])
    await writer.upsert([row(f"k{i}", f"marmalade{i} words", "kept") for i in range(80)])
    await texts_found(reader)
    assert b"xylophonequartz" in texts_in(reader)
    await writer.delete(Eq("doc", "secret"))
    assert not any("xylophonequartz" in text for found in await texts_found(reader) for text in found)
    assert b"xylophonequartz" not in texts_in(reader)
    assert b"marmalade7 " in texts_in(reader)


async def test_texts_beyond_the_limit_are_read_when_they_are_found(tmp_path):
    index = await opened(tmp_path, MemoryLimits(text_bytes=4_000))
    await index.upsert([row(f"p{i:02d}", f"words {i}") for i in range(20)])
    await texts_found(index)
    assert index._view and index._view.snapshot and index._view.snapshot.has_texts
    assert 0 < index._view.snapshot.text_bytes <= 4_000
    await index.upsert([row("long", "words " * 1_000)])  # a few new rows, too long for what is left
    expected = {f"words {i}" for i in range(20)} | {"words " * 1_000}
    assert await texts_found(index) == [expected, expected]
    assert not index._view.snapshot.has_texts and index._view.snapshot.text_bytes == 0
    again = await opened(tmp_path, MemoryLimits(text_bytes=4_000))  # and all at once
    assert await texts_found(again) == [expected, expected]
    assert again._view and again._view.snapshot and not again._view.snapshot.has_texts


async def test_a_filter_that_kept_every_row_keeps_only_its_own_after_others_come(tmp_path):
    reader, writer = await opened(tmp_path), await opened(tmp_path)
    await writer.upsert([row(f"p{i}", doc="mine") for i in range(10)])
    await writer.optimise()
    for _ in range(2):
        for hits in (
            await reader.lexical("words", 99, Eq("doc", "mine")),
            await reader.dense(np.ones(DIM), 99, Eq("doc", "mine")),
        ):
            assert sorted(hit.passage.id for hit in hits) == [f"p{i}" for i in range(10)]
        await writer.upsert([row(f"q{i}", doc="theirs") for i in range(10)])


async def test_a_row_written_while_its_words_are_sought_cannot_slip_past_the_filter(tmp_path, monkeypatch):
    reader, writer = await opened(tmp_path), await opened(tmp_path)
    await writer.upsert([row(f"p{i}", doc="mine") for i in range(10)])
    await writer.optimise()
    look, wrote = LanceIndex._fresh, []

    async def then_write(self: LanceIndex) -> TableSnapshot:
        view = await look(self)
        if len(wrote) < 5:  # every time it looks
            wrote.append(await writer.upsert([row(f"q{len(wrote)}", doc="theirs")]))
        return view

    monkeypatch.setattr(LanceIndex, "_fresh", then_write)
    hits = await reader.lexical("words", 99, Eq("doc", "mine"))
    assert sorted(hit.passage.id for hit in hits) == [f"p{i}" for i in range(10)]
