"""The embedded index: one Lance table per knowledge base, in a folder or a bucket, without a server.

Small tables are searched in memory, exactly (`MemoryLimits`). Above the limits Lance searches, words with its BM25 and vectors
with its approximate index, and texts are read per hit. Reads take no lock; writes take one lock across processes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from assay.core.errors import AssayError, StoreError, UserError
from assay.core.types import Hit, Row
from assay.index.encoding import hit_of, query_vector, query_words, table_name
from assay.index.filters import EVERYTHING, Filter, In
from assay.index.lance import matrix
from assay.index.lance.rows import (
    IN_MEMORY,
    PAYLOAD,
    TERMS,
    compile,
    in_row_order,
    literal,
    made_on_demand,
    packed,
    to_arrow,
    to_block,
    to_rows,
    vectors_of,
)
from assay.index.lance.tables import TablePlace, build_indices, damaged, open_table
from assay.index.lance.words import query_terms
from assay.index.lease import lease_path, shared_lease
from assay.index.protocol import NO_INDEX, Index, relabelled

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.table import AsyncTable

T = TypeVar("T")

LOCK_TIMEOUT = 60.0  # seconds
AT_ONCE = 4_000_000  # numbers; up to this (a millisecond), multiplying in another thread of a busy machine is slower
UNTIDY = 8  # versions; each write adds one, and a few cost a search nothing


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    """How much of a table is in memory: its vectors and its terms up to so many rows, its texts up to so many bytes."""

    rows: int = 500_000  # at 384 dimensions, 770 MB
    words: int = 20_000  # sorting the terms of that many takes 0.2 seconds
    text_bytes: int = 256_000_000  # some 200,000 passages


@dataclass(frozen=True, slots=True, eq=False)
class TableSnapshot:
    """One version of a table, as far as it is in memory.

    versions: the names of the table's version files; while they are unchanged, so is the table
    snapshot: None if the table is too large
    folded: whether every row is in the full-text index, so that a search can skip the unindexed rows
    """

    versions: frozenset[str]
    snapshot: matrix.Snapshot | None
    folded: bool


@dataclass(slots=True)
class LanceIndex(Index):
    """An `Index` over one table. Any number may be open on the same table, in any number of processes."""

    place: TablePlace
    name: str
    dim: int
    table: AsyncTable  # its name has the base and its creation: a rebuilt table is another table
    limits: MemoryLimits = field(default_factory=MemoryLimits)
    lock_timeout: float = LOCK_TIMEOUT
    _view: TableSnapshot | None = None
    _loading: dict[asyncio.AbstractEventLoop, asyncio.Lock] = field(default_factory=dict)

    async def upsert(self, rows: Sequence[Row]) -> None:
        if not rows:
            return
        async with self.place.lock(self.name, self.lock_timeout):
            began = time.time()
            if await self._merge(rows):
                await self.place.mark(self.name)
            await self.place.flush(self.table.name, began)

    async def delete(self, where: Filter) -> int:
        async with self.place.lock(self.name, self.lock_timeout):
            began = time.time()
            await self.place.mark(self.name)  # first: after a crash in between, optimise still removes the old text
            result = await self._write(lambda: self.table.delete(compile(where)))
            await self.place.flush(self.table.name, began)
            return result.num_deleted_rows  # type: ignore[reportAttributeAccessIssue]

    async def relabel(self, labels: Mapping[str, str]) -> int:
        async with self.place.lock(self.name, self.lock_timeout):
            began = time.time()
            rows = await self.matching(In("doc", tuple(labels)))
            if rows:
                await self._merge([relabelled(row, labels) for row in rows])
                await self.place.flush(self.table.name, began)
            return len(rows)

    async def optimise(self) -> None:
        async with self.place.lock(self.name, self.lock_timeout):
            deletions = await self.place.files(self.table.name, "_deletions")
            if erase := bool(deletions) or await self.place.is_marked(self.name):
                await self._write(self._part_fragments)
            await self._write(self._tidy)
            if erase or not await self._read(lambda: word_index(self.table)):
                # Merging rows into the index keeps the words of deleted rows in it; only a rebuild removes them.
                await self._write(lambda: build_indices(self.table))
            await self._approximate()
            await self._write(self._tidy)
            await self.place.unmark(self.name)

    async def purge(self) -> tuple[str, ...]:
        await self.optimise()
        return (*await self.unpurged(), *await self.place.kept_copies())

    async def unpurged(self) -> list[str]:
        """Files that may contain text of deleted or replaced rows: deletion files, and versions before the newest."""
        marker = [f"{self.name}.erase"] if await self.place.is_marked(self.name) else []
        deletions = await self.place.files(self.table.name, "_deletions")
        older = sorted(await self._versions())[1:]  # Lance counts down in their names: the newest is the first
        return [*marker, *deletions, *older]

    async def is_untidy(self) -> bool:
        return len(await self._read(self._versions)) > UNTIDY

    async def dense(self, vector: np.ndarray, k: int, where: Filter) -> Sequence[Hit]:
        query = query_vector(vector, self.dim)
        if k <= 0:
            return []
        return await self._read(lambda: self._dense(query, k, where))

    async def lexical(self, query: str, k: int, where: Filter) -> Sequence[Hit]:
        words = query_words(query.encode("utf-8", "ignore").decode().split())
        if k <= 0 or not words:
            return []
        return await self._read(lambda: self._lexical(words, k, where))

    async def matching(self, where: Filter) -> list[Row]:
        return await self._rows(compile(where))

    async def count(self, where: Filter) -> int:
        test = None if where == EVERYTHING else compile(where)
        return await self._read(lambda: self.table.count_rows(test))

    async def ids(self) -> list[str]:
        found = await self._read(lambda: self.table.query().select(["id"]).to_arrow())
        return sorted(found["id"].to_pylist())

    async def with_ids(self, ids: Sequence[str]) -> list[Row]:
        return await self._rows(f"id IN ({', '.join(map(literal, ids))})") if ids else []

    async def _rows(self, test: str) -> list[Row]:
        found = await self._read(lambda: self.table.query().where(test).select([*PAYLOAD, "vector"]).to_arrow())
        return to_rows(found, self.dim)

    async def _versions(self) -> frozenset[str]:
        """The version files of the table. Every change adds one under a new name, and the newest is never removed. Listing them
        is much faster than asking Lance."""
        files = await self.place.files(self.table.name, "_versions")
        names = frozenset(name for name in files if name.endswith(".manifest"))
        if not names:
            raise FileNotFoundError(f"{self.table.name} has no versions")
        return names

    async def _merge(self, rows: Sequence[Row]) -> int:
        """Write rows; returns how many of them there were already."""
        few = await self._read(self.table.count_rows) <= self.limits.words
        data = await asyncio.to_thread(to_arrow, rows, self.dim, await self._read(self.table.schema), terms=few)
        merge = self.table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        return (await self._write(lambda: merge.execute(data))).num_updated_rows

    async def _dense(self, query: np.ndarray, k: int, where: Filter) -> Sequence[Hit]:
        found = await self._in_memory("dense", lambda snapshot: matrix.nearest(snapshot, query, k, where))
        return await approximate_neighbours(self.table, query, k, where) if found is None else found

    async def _in_memory(
        self, channel: str, search: Callable[[matrix.Snapshot], matrix.RankedRows]
    ) -> Sequence[Hit] | None:
        """The hits of a search in memory; None if the table is too large for it."""
        for tries_left in (4, 3, 2, 1, 0):
            now = await self._fresh()
            snapshot = now.snapshot
            if snapshot is None or (channel == "lexical" and not snapshot.has_words):
                return None
            at_once = snapshot.rows * self.dim <= AT_ONCE
            found = search(snapshot) if at_once else await asyncio.to_thread(search, snapshot)
            hits = await self._hits(found, channel)
            if (len(hits) == len(found.ids) and await self._versions() == now.versions) or not tries_left:
                return hits
            # A writer has moved or deleted rows since the snapshot: retry.
        raise AssertionError

    async def _lexical(self, words: str, k: int, where: Filter) -> Sequence[Hit]:
        terms = query_terms(words)
        found = await self._in_memory("lexical", lambda snapshot: matrix.best_by_words(snapshot, terms, k, where))
        return await self._lance_words(words, k, where) if found is None else found

    async def _lance_words(self, words: str, k: int, where: Filter) -> Sequence[Hit]:
        for _ in range(2):
            now = await self._fresh()
            if now.snapshot is None:
                break
            masks = now.snapshot.masks(where)
            if not any(mask.wanted for mask in masks):
                return []
            # A filter that accepts every row can be omitted; the access filter usually does.
            all_of_it = all(mask.wanted == each.living for mask, each in zip(masks, now.snapshot.blocks, strict=True))
            asked = EVERYTHING if all_of_it else where
            row_ids, scores = await best_by_words(self.table, words, k, asked, folded=now.folded)
            near = now.snapshot.located(row_ids)
            if await self._versions() == now.versions and len(near) == len(row_ids):
                return await self._worded(row_ids, scores, near, k)
            # A writer was faster: the view may not match the version that was searched.
        row_ids, scores = await best_by_words(self.table, words, k, where, folded=False)
        return await self._worded(row_ids, scores, await locate(self.table, row_ids, self.dim) if row_ids else {}, k)

    async def _worded(
        self, row_ids: Sequence[int], scores: Sequence[float], near: Mapping[int, matrix.LocatedRow], k: int
    ) -> Sequence[Hit]:
        rows = sorted(zip(scores, row_ids, strict=True), key=lambda row: (-row[0], near[row[1]].id))[:k]
        ids, vectors, texts = zip(*(near[row_id] for _, row_id in rows), strict=True) if rows else ((), (), ())
        unknown = [""] * len(rows)
        found = matrix.RankedRows([row[0] for row in rows], ids, [row[1] for row in rows], unknown, vectors, texts)
        return await self._hits(found, "lexical")

    async def _hits(self, rows: matrix.RankedRows, channel: str) -> Sequence[Hit]:
        """The rows as hits, without those that are gone; texts that are not in memory are read."""
        if None in rows.texts:
            found = await self.table.take_row_ids(list(rows.row_ids)).select(PAYLOAD).with_row_id().to_arrow()
            texts = dict(zip(found["_rowid"].to_pylist(), packed(found), strict=True))
            rows = rows.take([at for at, row in enumerate(rows.row_ids) if row in texts])
            rows = rows._replace(texts=[texts[row] for row in rows.row_ids])
        hits = made_on_demand(rows, channel)
        return hits if rows.ids and "" not in rows.doc_ids else list(hits)

    async def _fresh(self) -> TableSnapshot:
        """The current state of the table, including writes by other processes."""
        if self._view is not None and self._view.versions == await self._versions():
            return self._view
        loop = asyncio.get_running_loop()
        async with self._loading.setdefault(loop, asyncio.Lock()):
            for attempt in range(40):
                await asyncio.sleep(0.01 * attempt)  # back off, so that a busy writer does not win every time
                now, names = self._view, await self._versions()
                if now is not None and now.versions == names:
                    return now
                old = now.snapshot if now is not None else None
                loaded = await view(self.table, names, old, self.dim, self.limits)
                # Reads follow writers, so what was read is one version only if the version is still the same.
                if await self._versions() == names:
                    self._view = loaded
            raise StoreError("The search index changes faster than it can be read. Try again in a moment.")

    async def _approximate(self) -> None:
        from lancedb.index import IvfSq

        if await self.table.count_rows() <= self.limits.rows:
            return
        if any(list(index.columns) == ["vector"] for index in await self.table.list_indices()):
            return  # optimise indexes the new rows
        eight_bits: Any = IvfSq(distance_type="cosine")  # lancedb 0.40 takes it, its annotation leaves it out
        await self._write(lambda: self.table.create_index("vector", config=eight_bits))

    async def _part_fragments(self) -> None:
        """Rewrite one row. Lance leaves a single fragment with few deletions unchanged, but always merges two small ones,
        and merging drops deleted rows.
        """
        some = await self.table.query().limit(1).to_arrow()
        if some.num_rows:
            await self.table.merge_insert("id").when_matched_update_all().execute(some)

    async def _tidy(self) -> None:
        """Compact small files, index new rows, and remove old versions and the leftovers of killed writers."""
        await asyncio.sleep(0.005)  # the versions must be older than the millisecond below
        await self.table.optimize(cleanup_older_than=timedelta(milliseconds=1), delete_unverified=True)

    async def _read(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Read, and retry if a writer has removed the version, or rebuilt the table, during the read."""
        for tries_left in (3, 2, 1, 0):
            try:
                return await attempt()
            except AssayError:
                raise
            except Exception as error:
                if not tries_left:
                    raise damaged(self.place, error) from error
                self._view = None
                await asyncio.sleep(0.05)
                await self._still_there()
        raise AssertionError

    async def _write(self, attempt: Callable[[], Awaitable[T]]) -> T:
        try:
            await self._still_there()
            return await attempt()
        except AssayError:
            raise
        except Exception as error:
            raise damaged(self.place, error) from error

    async def _still_there(self) -> None:
        if await asyncio.to_thread(self.place.find, self.name) != self.table.name:
            self.table, self._view = await open_table(self.place, self.name, self.dim), None


async def open_index(
    place: TablePlace,
    base_id: str,
    dim: int,
    *,
    create: bool,
    limits: MemoryLimits | None = None,
    lock_timeout: float = LOCK_TIMEOUT,
) -> LanceIndex:
    """Open the index of a knowledge base; with `create`, create it first if it does not exist."""
    name = table_name(base_id)
    if await asyncio.to_thread(place.find, name) is None:
        if not create:
            raise UserError(NO_INDEX)
        async with place.lock(name, lock_timeout):
            if await asyncio.to_thread(place.find, name) is None:
                await place.create(name, dim)
    return LanceIndex(place, name, dim, await open_table(place, name, dim), limits or MemoryLimits(), lock_timeout)


async def view(
    table: AsyncTable, names: frozenset[str], old: matrix.Snapshot | None, dim: int, limits: MemoryLimits
) -> TableSnapshot:
    """The current view of the table, at the cost of what changed since `old`."""
    words = await word_index(table)
    folded = words is not None and words.num_unindexed_rows == 0
    if await table.count_rows() > limits.rows:
        return TableSnapshot(names, None, folded)
    version = await table.version()
    return TableSnapshot(names, await _follow(table, version, old or matrix.Snapshot(0), dim, limits), folded)


async def word_index(table: AsyncTable) -> Any | None:
    return next((index for index in await table.list_indices() if list(index.columns) == ["body"]), None)


async def _follow(
    table: AsyncTable, version: int, old: matrix.Snapshot, dim: int, limits: MemoryLimits
) -> matrix.Snapshot:
    listed = await table.query().select(["_rowid"]).with_row_id().to_arrow()
    living = np.sort(listed["_rowid"].to_numpy())
    new = await asyncio.to_thread(matrix.missing, old, living)
    if not len(new):
        return await asyncio.to_thread(matrix.advance, old, version, living, None)
    words = len(living) <= limits.words and old.has_words and TERMS in (await table.schema()).names
    columns = [*IN_MEMORY, TERMS] if words else IN_MEMORY
    if len(new) * 4 > len(living):
        old, found = matrix.Snapshot(0), await table.query().select(columns).with_row_id().to_arrow()
        texts = await _all_texts(table, limits.text_bytes)
    else:
        columns = [*columns, *PAYLOAD] if old.has_texts else columns
        found = await table.take_row_ids(new.tolist()).select(columns).with_row_id().to_arrow()
        texts = found if old.has_texts else None

    def build() -> matrix.Snapshot:
        # Two scans of a table may return different orders.
        kept = None if texts is None else packed(in_row_order(texts))
        made = matrix.advance(old, version, living, to_block(in_row_order(found), dim, kept))
        made = (
            made if made.text_bytes <= limits.text_bytes and made.has_texts else made.without(texts=None, text_bytes=0)
        )
        return made if words and made.has_words else made.without(words=None)

    return await asyncio.to_thread(build)


async def _all_texts(table: AsyncTable, limit: int) -> pa.Table | None:
    """The texts of all rows, or None as soon as they exceed `limit` bytes."""
    import pyarrow as pa

    if limit <= 0:
        return None
    reader = await table.query().select(PAYLOAD).with_row_id().to_batches()
    batches: list[pa.RecordBatch] = []
    size = 0
    async for batch in reader:
        batches.append(batch)
        size += batch.nbytes
        if size > limit:
            return None
    return pa.Table.from_batches(batches, schema=reader.schema)


async def best_by_words(
    table: AsyncTable, words: str, k: int, where: Filter, *, folded: bool
) -> tuple[list[int], list[float]]:
    """The row ids and scores of the k best rows and of all that tie with the last of them, unordered."""
    from lancedb.query import MatchQuery

    limit = k + 8
    while True:
        search = table.query().nearest_to_text(MatchQuery(words, "body")).limit(limit)  # type: ignore[reportCallIssue]
        if where != EVERYTHING:
            search = search.where(compile(where))
        if folded:
            search = search.fast_search()  # skips rows outside the index; looking for them takes a third of the time
        found = await search.select(["_score", "_rowid"]).with_row_id().to_arrow()
        row_ids, scores = found["_rowid"].to_numpy(), found["_score"].to_numpy()
        # Lance breaks ties arbitrarily: read more until the k-th score has no tie beyond what was read.
        if len(scores) < limit or scores.min() < np.sort(scores)[-k] or limit > 64 * k:
            return row_ids.tolist(), scores.tolist()
        limit *= 4


async def approximate_neighbours(table: AsyncTable, query: np.ndarray, k: int, where: Filter) -> list[Hit]:
    """Lance's approximate nearest rows, for tables that are too large for memory."""
    search = table.query().nearest_to(query).distance_type("cosine").limit(k).refine_factor(5).nprobes(40)
    if where != EVERYTHING:
        search = search.where(compile(where))
    found = await search.select([*PAYLOAD, "vector", "_distance"]).to_arrow()
    scored = zip((1.0 - found["_distance"].to_numpy()).tolist(), to_rows(found, query.size), strict=True)
    best = sorted(scored, key=lambda each: (-each[0], each[1].passage.id))
    return [hit_of(row, rank, dense=score) for rank, (score, row) in enumerate(best, start=1)]


async def locate(table: AsyncTable, row_ids: Sequence[int], dim: int) -> dict[int, matrix.LocatedRow]:
    """The passage ids and vectors of rows that are not in memory."""
    rest = await table.take_row_ids(list(row_ids)).select(["id", "vector"]).with_row_id().to_arrow()
    pairs = zip(rest["id"].to_pylist(), vectors_of(rest, dim), strict=True)
    return {
        row_id: matrix.LocatedRow(id, vector, None)
        for row_id, (id, vector) in zip(rest["_rowid"].to_pylist(), pairs, strict=True)
    }


@dataclass(frozen=True, slots=True)
class LanceEngine:
    """With a `database`, writers on other machines are kept apart by its locks."""

    workspace: Path
    place: TablePlace
    database: str = ""

    async def versions(self) -> dict[str, str]:
        from importlib.metadata import version

        return {"LanceDB": version("lancedb"), **await self.place.check()}

    def limits(self) -> tuple[str, ...]:
        return self.place.limits()

    def exists(self, base_id: str) -> bool:
        return self.place.find(table_name(base_id)) is not None

    async def open(self, base_id: str, dim: int, *, create: bool = False) -> LanceIndex:
        return await open_index(self.place, base_id, dim, create=create)

    async def drop(self, base_id: str) -> None:
        async with self.place.lock(table_name(base_id), LOCK_TIMEOUT):
            await self.place.drop(table_name(base_id))

    def lease(self, base_id: str, patience: float) -> AbstractAsyncContextManager[None]:
        return shared_lease(lease_path(self.workspace, base_id), self.database, f"lance {base_id}", patience)
