"""The embedded index: one Lance table per knowledge base, in a folder, without a server.

BM25 and filters are Lance's. Dense search is exact, in memory, up to `exact_limit` rows, and Lance's approximate index
above it. Reading never locks; writing holds one lock across processes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from assay.errors import AssayError, StoreError, UserError
from assay.index import matrix
from assay.index.compile import compile, literal
from assay.index.filters import EVERYTHING, Filter
from assay.index.lance_folder import (
    NO_INDEX,
    build_indices,
    create_table,
    damaged,
    drop,
    flush,
    open_table,
    table_name,
    tables,
    writing,
)
from assay.index.lance_rows import (
    IN_MEMORY,
    PAYLOAD,
    Stored,
    in_order,
    schema,
    to_arrow,
    to_block,
    to_hits,
    to_stored,
    vectors_of,
)
from assay.types import Hit, Row

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.table import AsyncTable

__all__ = ["LanceIndex", "drop", "open_index"]

T = TypeVar("T")

EXACT_LIMIT = 500_000  # rows; 384 dimensions of that many are 770 MB
QUERY_WORDS = 512  # a longer query is cut: nobody means the five-hundredth word
REMEMBERED = 10_000  # passages kept in memory after they were read; some 15 MB
MANY_FRAGMENTS, MANY_UNINDEXED = 50, 5_000


@dataclass(slots=True)
class LanceIndex:
    """An `Index` over one table. Any number may be open on the same folder, in any number of processes."""

    folder: Path
    name: str
    dim: int
    table: AsyncTable  # named after the base and its own birth: a table that is rebuilt is another table
    exact_limit: int = EXACT_LIMIT
    lock_timeout: float = 60.0
    _snapshot: matrix.Snapshot | None = None
    _read_before: dict[int, Stored] = field(default_factory=dict)
    _loading: dict[asyncio.AbstractEventLoop, asyncio.Lock] = field(default_factory=dict)

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def upsert(self, rows: Sequence[Row]) -> None:
        if not rows:
            return
        async with writing(self._lock, self.lock_timeout):
            began = time.time()
            data = await asyncio.to_thread(to_arrow, rows, self.dim, schema(self.dim))
            merge = self.table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
            result = await self._written(lambda: merge.execute(data))
            if result.num_updated_rows:
                self._marker.touch()
            await asyncio.to_thread(flush, self._path, began)

    async def delete(self, where: Filter) -> int:
        async with writing(self._lock, self.lock_timeout):
            began = time.time()
            self._marker.touch()  # before, so that a crash in between cannot make optimise forget the old text
            result = await self._written(lambda: self.table.delete(compile(where)))
            await asyncio.to_thread(flush, self._path, began)
            return result.num_deleted_rows  # type: ignore[reportAttributeAccessIssue]

    async def optimise(self) -> None:
        async with writing(self._lock, self.lock_timeout):
            erase = self._owes_erasure()
            if erase:
                await self._written(self._part_fragments)
            await self._written(self._tidy)
            if erase or not await self._fts():
                # Folding rows in leaves the words of deleted rows in the index; only building it afresh does not.
                await self._written(lambda: build_indices(self.table))
            await self._approximate()
            await self._written(self._tidy)
            self._marker.unlink(missing_ok=True)

    async def needs_optimise(self) -> bool:
        """Whether searching would gain from `optimise`, or deleted text still lies on the disk."""
        if self._owes_erasure():
            return True
        stats: Any = await self._read(lambda: self.table.stats())  # a dict, whatever its annotation says
        fts = await self._fts()
        unindexed = fts.num_unindexed_rows if fts else await self.table.count_rows()
        return stats["fragment_stats"]["num_fragments"] >= MANY_FRAGMENTS or unindexed >= MANY_UNINDEXED

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def dense(self, vector: np.ndarray, k: int, where: Filter) -> list[Hit]:
        query = np.asarray(vector, np.float32)
        if query.shape != (self.dim,):
            raise StoreError(f"A query of shape {query.shape} does not fit an index of {self.dim} dimensions.")
        if k <= 0:
            return []
        return await self._read(lambda: self._dense(query, k, where))

    async def lexical(self, query: str, k: int, where: Filter) -> list[Hit]:
        words = " ".join(list(dict.fromkeys(query.encode("utf-8", "ignore").decode().split()))[:QUERY_WORDS])
        if k <= 0 or not words:
            return []
        return await self._read(lambda: self._lexical(words, k, where))

    async def fetch(self, ids: Sequence[str], where: Filter) -> list[Hit]:
        if not ids:
            return []
        listed = f"id IN ({', '.join(literal(each) for each in dict.fromkeys(ids))})"
        test = listed if where == EVERYTHING else f"({listed} AND {compile(where)})"
        select = ["id", *PAYLOAD, "vector"]
        found = await self._read(lambda: self.table.query().where(test).select(select).to_arrow())
        at = {id: i for i, id in enumerate(found["id"].to_pylist())}
        found = in_order(found, [at[id] for id in dict.fromkeys(ids) if id in at])
        return to_hits(to_stored(found), list(vectors_of(found, self.dim)))

    async def count(self, where: Filter) -> int:
        test = None if where == EVERYTHING else compile(where)
        return await self._read(lambda: self.table.count_rows(test))

    # ── how ───────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _path(self) -> Path:
        return self.folder / f"{self.table.name}.lance"

    @property
    def _lock(self) -> Path:
        return self.folder / f"{self.name}.lock"

    @property
    def _marker(self) -> Path:
        """Stands while rows have been deleted or replaced and their words may still lie on the disk."""
        return self.folder / f"{self.name}.erase"

    def _owes_erasure(self) -> bool:
        deletions = self._path / "_deletions"
        return self._marker.exists() or (deletions.is_dir() and any(deletions.iterdir()))

    async def _dense(self, query: np.ndarray, k: int, where: Filter) -> list[Hit]:
        tries = 5
        while True:
            snapshot = await self._fresh()
            if snapshot is None:
                return await self._approximately(query, k, where)
            nearest = await asyncio.to_thread(matrix.nearest, snapshot, query, k, where)
            stored = await self._stored([near.row_id for near in nearest])
            kept = [near for near in nearest if near.row_id in stored]
            tries -= 1
            if len(kept) == len(nearest) or not tries:
                break
            # A writer has moved or deleted rows since the snapshot: look again.
        found = [stored[near.row_id] for near in kept]
        return to_hits(found, [near.vector for near in kept], "dense", [near.score for near in kept])

    async def _approximately(self, query: np.ndarray, k: int, where: Filter) -> list[Hit]:
        search = self.table.query().nearest_to(query).distance_type("cosine").limit(k).refine_factor(20).nprobes(40)
        if where != EVERYTHING:
            search = search.where(compile(where))
        found = await search.select(["id", *PAYLOAD, "vector", "_distance"]).to_arrow()
        scores, ids = (1.0 - found["_distance"].to_numpy()).tolist(), found["id"].to_pylist()
        order = sorted(range(len(ids)), key=lambda i: (-scores[i], ids[i]))
        found = in_order(found, order)
        return to_hits(to_stored(found), list(vectors_of(found, self.dim)), "dense", [scores[i] for i in order])

    async def _lexical(self, words: str, k: int, where: Filter) -> list[Hit]:
        snapshot = await self._fresh()
        limit = k + 8
        while True:
            found = await self._match(words, limit, where)
            scores = found["_score"].to_numpy()
            # Lance breaks ties as it pleases: read on until the k-th score has no tie beyond what was read.
            if len(scores) < limit or scores.min() < np.sort(scores)[-k] or limit > 64 * k:
                break
            limit *= 4
        row_ids: list[int] = found["_rowid"].to_pylist()
        near = await self._located(row_ids, snapshot)
        order = sorted(range(len(row_ids)), key=lambda i: (-scores[i], near[row_ids[i]][0]))[:k]
        rows = [row_ids[i] for i in order]
        stored = await self._stored(rows)
        vectors = [near[row_id][1] for row_id in rows]
        return to_hits([stored[row_id] for row_id in rows], vectors, "lexical", [float(scores[i]) for i in order])

    async def _match(self, words: str, limit: int, where: Filter) -> pa.Table:
        from lancedb.query import MatchQuery

        query = MatchQuery(words, "body")  # type: ignore[reportCallIssue]
        search = self.table.query().nearest_to_text(query).limit(limit)
        if where != EVERYTHING:
            search = search.where(compile(where))
        return await search.select(["_score", "_rowid"]).with_row_id().to_arrow()

    async def _located(
        self, row_ids: Sequence[int], snapshot: matrix.Snapshot | None
    ) -> dict[int, tuple[str, np.ndarray]]:
        """The passage id and the vector of each row."""
        known = snapshot.located(row_ids) if snapshot and row_ids else {}
        if late := [
            row_id for row_id in row_ids if row_id not in known
        ]:  # written since the snapshot, or there is none
            rest = await self.table.take_row_ids(late).select(["id", "vector"]).with_row_id().to_arrow()
            pairs = zip(rest["id"].to_pylist(), vectors_of(rest, self.dim), strict=True)
            known.update(zip(rest["_rowid"].to_pylist(), pairs, strict=True))
        return known

    async def _stored(self, row_ids: Sequence[int]) -> dict[int, Stored]:
        """What the rows say: from memory where they were read before, for a row id stands for the same row for good."""
        known = {row_id: stored for row_id in row_ids if (stored := self._read_before.get(row_id)) is not None}
        if late := [row_id for row_id in row_ids if row_id not in known]:
            found = await self.table.take_row_ids(late).select(PAYLOAD).with_row_id().to_arrow()
            fresh = dict(zip(found["_rowid"].to_pylist(), to_stored(found), strict=True))
            known |= fresh
            if len(self._read_before) + len(fresh) > REMEMBERED:
                self._read_before = {}
            self._read_before |= fresh
        return known

    async def _fresh(self) -> matrix.Snapshot | None:
        """The table in memory as it is now, whoever wrote last; none where it is too large for that."""
        loop = asyncio.get_running_loop()
        async with self._loading.setdefault(loop, asyncio.Lock()):
            for _ in range(20):
                version = await self.table.version()
                if self._snapshot is not None and self._snapshot.version == version:
                    return self._snapshot
                if await self.table.count_rows() > self.exact_limit:
                    self._snapshot = None
                    return None
                loaded = await self._load(self._snapshot or matrix.Snapshot(0), version)
                # Reads follow a writer: what was read is one version only if the version is still the same.
                if await self.table.version() == version:
                    self._snapshot = loaded
                    known = self._read_before
                    self._read_before = {row_id: known[row_id] for row_id in loaded.living(list(known))}
            raise StoreError("The search index changes faster than it can be read. Try again in a moment.")

    async def _load(self, old: matrix.Snapshot, version: int) -> matrix.Snapshot:
        rows = await self.table.query().select(["_rowid"]).with_row_id().to_arrow()
        living = np.sort(rows["_rowid"].to_numpy())
        new = await asyncio.to_thread(matrix.missing, old, living)
        if len(new) * 4 > len(living):
            old, found = matrix.Snapshot(0), await self.table.query().select(IN_MEMORY).with_row_id().to_arrow()
        elif len(new):
            found = await self.table.take_row_ids(new.tolist()).select(IN_MEMORY).with_row_id().to_arrow()
        else:
            return await asyncio.to_thread(matrix.follow, old, version, living, None)

        def build() -> matrix.Snapshot:
            return matrix.follow(old, version, living, to_block(found, self.dim))

        return await asyncio.to_thread(build)

    async def _fts(self) -> Any | None:
        found = await self._read(lambda: self.table.list_indices())
        return next((index for index in found if list(index.columns) == ["body"]), None)

    async def _approximate(self) -> None:
        from lancedb.index import IvfPq

        if await self.table.count_rows() <= self.exact_limit:
            return
        if any(list(index.columns) == ["vector"] for index in await self.table.list_indices()):
            return  # optimise folds new rows in
        await self._written(lambda: self.table.create_index("vector", config=IvfPq(distance_type="cosine")))

    async def _part_fragments(self) -> None:
        """Write one row again. Lance leaves a lone fragment with few deletions as it is, but always joins two small ones,
        and joining drops what was deleted."""
        some = await self.table.query().limit(1).to_arrow()
        if some.num_rows:
            await self.table.merge_insert("id").when_matched_update_all().execute(some)

    async def _tidy(self) -> None:
        """Join small files, fold new rows into the indices, drop old versions and what killed writers left behind."""
        await asyncio.sleep(0.005)  # a version has to be older than the millisecond below
        await self.table.optimize(cleanup_older_than=timedelta(milliseconds=1), delete_unverified=True)

    async def _read(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Read; and read again if a writer has tidied away the version, or rebuilt the table, that was being read."""
        for tries_left in (3, 2, 1, 0):
            try:
                await self._still_there()
                return await attempt()
            except AssayError:
                raise
            except Exception as error:
                if not tries_left:
                    raise damaged(self.folder, error) from error
                self._snapshot, self._read_before = None, {}
                await asyncio.sleep(0.05)
        raise AssertionError

    async def _written(self, attempt: Callable[[], Awaitable[T]]) -> T:
        try:
            await self._still_there()
            return await attempt()
        except AssayError:
            raise
        except Exception as error:
            raise damaged(self.folder, error) from error

    async def _still_there(self) -> None:
        if not self._path.exists():
            self.table, self._snapshot = await open_table(self.folder, self.name, self.dim), None
            self._read_before = {}


async def open_index(
    folder: Path,
    base_id: str,
    dim: int,
    *,
    create: bool,
    exact_limit: int = EXACT_LIMIT,
    lock_timeout: float = 60.0,
) -> LanceIndex:
    """Open the index of a knowledge base; make it first where `create` says so."""
    name = table_name(base_id)
    if not tables(folder, name):
        if not create:
            raise UserError(NO_INDEX)
        async with writing(folder / f"{name}.lock", lock_timeout):
            if not tables(folder, name):
                await create_table(folder, name, dim)
    return LanceIndex(folder, name, dim, await open_table(folder, name, dim), exact_limit, lock_timeout)
