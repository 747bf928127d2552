"""Copies an index to another engine, vectors included, so that nothing is embedded again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256

import numpy as np

from assay.core.errors import StoreError
from assay.core.types import Row
from assay.index.encoding import pack
from assay.index.protocol import Index

BATCH = 500  # rows at once


async def copy_index(source: Index, target: Index) -> int:
    """Make `target` hold the rows of `source`, and compare both row by row. Returns the number of rows.

    Rows that are there already are not written again, so a copy that was interrupted goes on where it stopped. The target
    may not hold other rows.
    """
    ids = await source.ids()
    for batch in _batches(ids):
        held = {row.passage.id: row_digest(row) for row in await target.rows(batch)}
        missing = [row for row in await source.rows(batch) if held.get(row.passage.id) != row_digest(row)]
        await target.upsert(missing)
    await target.optimise()
    if await target.ids() != ids or await index_digest(target, ids) != await index_digest(source, ids):
        raise StoreError("The copy of the index is not the same; nothing was moved. Run the same command again.")
    return len(ids)


async def index_digest(index: Index, ids: Sequence[str]) -> str:
    """A digest of these rows, with their vectors."""
    digest = sha256()
    for batch in _batches(ids):
        for row in await index.rows(batch):
            digest.update(row_digest(row))
    return digest.hexdigest()


def row_digest(row: Row) -> bytes:
    return sha256(pack(row).encode() + np.asarray(row.vector, "<f4").tobytes()).digest()


def _batches(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ids[start : start + BATCH] for start in range(0, len(ids), BATCH))
