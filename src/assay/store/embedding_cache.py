"""Embedding cache by content, per owner: the same text is never embedded twice, and never shared between users."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sqlalchemy import Engine, Table, delete, func, select, update

from assay.store.database import plain_errors
from assay.store.dialect import among, insert_new, update_where_free, writing
from assay.store.schema import vector_sources, vectors


def recall(cache: Engine, owner: str, embedder: str, digests: Sequence[str]) -> dict[str, np.ndarray]:
    """The cached vectors, by digest of the embedded text."""
    own = (vectors.c.owner == owner, vectors.c.embedder == embedder, among(vectors.c.digest, digests))
    with plain_errors(), cache.connect() as connection:
        rows = connection.execute(select(vectors.c.digest, vectors.c.vector).where(*own))
        return {row.digest: np.frombuffer(row.vector, dtype=np.float32) for row in rows}


def remember(cache: Engine, owner: str, embedder: str, known: Mapping[str, np.ndarray]) -> None:
    own = {"owner": owner, "embedder": embedder, "used": time.time()}
    rows = [{**own, "digest": key, "vector": value.astype(np.float32).tobytes()} for key, value in known.items()]
    _add(cache, vectors, rows)


def note_sources(cache: Engine, owner: str, pairs: Iterable[tuple[str, str]]) -> None:
    """Record which documents (first) have text with these digests (second), before its vectors are stored."""
    rows = [{"owner": owner, "document": document, "digest": key} for document, key in pairs]
    _add(cache, vector_sources, rows)


def _add(cache: Engine, table: Table, rows: list[dict[str, Any]]) -> None:
    if rows:
        with plain_errors(), writing(cache) as connection:
            connection.execute(insert_new(table), rows)


def forget_all_but(cache: Engine, owner: str, kept: Collection[str]) -> None:
    """Delete the vectors of an owner that are of none of these documents, for all embedders and sizes of passages. Vectors
    whose documents were never recorded go too: they are made again when they are needed."""
    own = vector_sources.c.owner == owner
    with plain_errors(), writing(cache) as connection:
        connection.execute(delete(vector_sources).where(own, ~among(vector_sources.c.document, kept)))
        used = select(vector_sources.c.digest).where(own)
        connection.execute(delete(vectors).where(vectors.c.owner == owner, vectors.c.digest.not_in(used)))


def forget_owner(cache: Engine, owner: str) -> None:
    with plain_errors(), writing(cache) as connection:
        for table in (vectors, vector_sources):
            connection.execute(delete(table).where(table.c.owner == owner))


def transfer(cache: Engine, old: str, new: str) -> None:
    """Transfer vectors, so that they are erased together with their documents; those the new owner has are not moved."""
    with plain_errors(), writing(cache) as connection:
        connection.execute(update_where_free(vectors, vectors.c.owner == old, owner=new))
        connection.execute(delete(vectors).where(vectors.c.owner == old))
        connection.execute(update(vector_sources).where(vector_sources.c.owner == old).values(owner=new))


def size(cache: Engine) -> int:
    with plain_errors(), cache.connect() as connection:
        return connection.scalar(select(func.count()).select_from(vectors)) or 0
