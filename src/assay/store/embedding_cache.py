"""Embedding cache by content, per owner: the same text is never embedded twice, and never shared between users."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from sqlalchemy import Engine, delete, func, select, update

from assay.store.database import plain_errors
from assay.store.dialect import insert_new, parts, update_where_free, writing
from assay.store.schema import vector_sources, vectors


def recall(cache: Engine, owner: str, embedder: str, digests: Sequence[str]) -> dict[str, np.ndarray]:
    """The cached vectors, by digest of the embedded text."""
    known: dict[str, np.ndarray] = {}
    with plain_errors(), cache.connect() as connection:
        for part in parts(digests):
            rows = connection.execute(
                select(vectors.c.digest, vectors.c.vector).where(
                    vectors.c.owner == owner, vectors.c.embedder == embedder, vectors.c.digest.in_(part)
                )
            )
            known |= {row.digest: np.frombuffer(row.vector, dtype=np.float32) for row in rows}
    return known


def remember(cache: Engine, owner: str, embedder: str, known: Mapping[str, np.ndarray]) -> None:
    stamp = time.time()
    rows = [
        {
            "owner": owner,
            "embedder": embedder,
            "digest": key,
            "vector": value.astype(np.float32).tobytes(),
            "used": stamp,
        }
        for key, value in known.items()
    ]
    if not rows:
        return
    with plain_errors(), writing(cache) as connection:
        connection.execute(insert_new(vectors), rows)


def note_sources(cache: Engine, owner: str, pairs: Iterable[tuple[str, str]]) -> None:
    """Record which documents (first) have text with these digests (second), before its vectors are stored."""
    rows = [{"owner": owner, "document": document, "digest": key} for document, key in pairs]
    if not rows:
        return
    with plain_errors(), writing(cache) as connection:
        connection.execute(insert_new(vector_sources), rows)


def forget_all_but(cache: Engine, owner: str, kept: Collection[str]) -> None:
    """Delete the vectors of an owner that are of none of these documents, for all embedders and sizes of passages. Vectors
    whose documents were never recorded go too: they are made again when they are needed."""
    own = vector_sources.c.owner == owner
    with plain_errors(), writing(cache) as connection:
        known = connection.scalars(select(vector_sources.c.document).where(own).distinct())
        gone = [document for document in known if document not in kept]
        for part in parts(gone):
            connection.execute(delete(vector_sources).where(vector_sources.c.document.in_(part)))
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
