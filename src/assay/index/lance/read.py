"""Queries on a Lance table, as functions of the table; and the view of it that is kept in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from assay.core.types import Hit
from assay.index.filters import EVERYTHING, Filter
from assay.index.lance import matrix, rows
from assay.index.lance.sql import compile
from assay.index.lance.tables import TablePlace

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.table import AsyncTable


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


async def versions(place: TablePlace, table: str) -> frozenset[str]:
    """The version files of a table. Every change adds one under a new name, and the newest is never removed. Listing them is
    much faster than asking Lance.
    """
    names = frozenset(name for name in await place.files(table, "_versions") if name.endswith(".manifest"))
    if not names:
        raise FileNotFoundError(f"{table} has no versions")
    return names


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
    words = len(living) <= limits.words and old.has_words and rows.TERMS in (await table.schema()).names
    columns = [*rows.IN_MEMORY, rows.TERMS] if words else rows.IN_MEMORY
    if len(new) * 4 > len(living):
        old, found = matrix.Snapshot(0), await table.query().select(columns).with_row_id().to_arrow()
        texts = await _all_texts(table, limits.text_bytes)
    else:
        columns = [*columns, *rows.PAYLOAD] if old.has_texts else columns
        found = await table.take_row_ids(new.tolist()).select(columns).with_row_id().to_arrow()
        texts = found if old.has_texts else None

    def build() -> matrix.Snapshot:
        # Two scans of a table may return different orders.
        kept = None if texts is None else rows.packed(rows.in_row_order(texts))
        made = matrix.advance(old, version, living, rows.to_block(rows.in_row_order(found), dim, kept))
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
    reader = await table.query().select(rows.PAYLOAD).with_row_id().to_batches()
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
    limit = k + 8
    while True:
        row_ids, scores = await _match(table, words, limit, where, folded)
        # Lance breaks ties arbitrarily: read more until the k-th score has no tie beyond what was read.
        if len(scores) < limit or scores.min() < np.sort(scores)[-k] or limit > 64 * k:
            return row_ids.tolist(), scores.tolist()
        limit *= 4


async def _match(
    table: AsyncTable, words: str, limit: int, where: Filter, folded: bool
) -> tuple[np.ndarray, np.ndarray]:
    from lancedb.query import MatchQuery

    search = table.query().nearest_to_text(MatchQuery(words, "body")).limit(limit)  # type: ignore[reportCallIssue]
    if where != EVERYTHING:
        search = search.where(compile(where))
    if folded:
        search = search.fast_search()  # skips rows outside the index; looking for them takes a third of the time
    found = await search.select(["_score", "_rowid"]).with_row_id().to_arrow()
    return found["_rowid"].to_numpy(), found["_score"].to_numpy()


async def approximate_neighbours(table: AsyncTable, query: np.ndarray, k: int, where: Filter) -> list[Hit]:
    """Lance's approximate nearest rows, for tables that are too large for memory."""
    search = table.query().nearest_to(query).distance_type("cosine").limit(k).refine_factor(5).nprobes(40)
    if where != EVERYTHING:
        search = search.where(compile(where))
    found = await search.select(["id", *rows.PAYLOAD, "vector", "_distance"]).to_arrow()
    scores, ids = (1.0 - found["_distance"].to_numpy()).tolist(), found["id"].to_pylist()
    order = sorted(range(len(ids)), key=lambda i: (-scores[i], ids[i]))
    return rows.to_hits(rows.take_rows(found, order), query.size, "dense", [scores[i] for i in order])


async def locate(table: AsyncTable, row_ids: Sequence[int], dim: int) -> dict[int, matrix.LocatedRow]:
    """The passage ids and vectors of rows that are not in memory."""
    rest = await table.take_row_ids(list(row_ids)).select(["id", "vector"]).with_row_id().to_arrow()
    pairs = zip(rest["id"].to_pylist(), rows.vectors_of(rest, dim), strict=True)
    return {
        row_id: matrix.LocatedRow(id, vector, None)
        for row_id, (id, vector) in zip(rest["_rowid"].to_pylist(), pairs, strict=True)
    }
