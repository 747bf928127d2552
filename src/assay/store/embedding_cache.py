"""Embedding cache by content, per owner: the same text is never embedded twice, and never shared between users."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np
from sqlalchemy import Engine, delete, func, select

from assay.store.database import plain_errors
from assay.store.dialect import VARIABLES, insert_new
from assay.store.schema import vectors


def recall(cache: Engine, owner: str, embedder: str, digests: Sequence[str]) -> dict[str, np.ndarray]:
    """The cached vectors, by digest of the embedded text."""
    known: dict[str, np.ndarray] = {}
    with plain_errors(), cache.connect() as connection:
        for first in range(0, len(digests), VARIABLES):
            rows = connection.execute(
                select(vectors.c.digest, vectors.c.vector).where(
                    vectors.c.owner == owner,
                    vectors.c.embedder == embedder,
                    vectors.c.digest.in_(digests[first : first + VARIABLES]),
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
    with plain_errors(), cache.connect().execution_options(assay_writes=True) as connection, connection.begin():
        connection.execute(insert_new(vectors), rows)


def forget(cache: Engine, owner: str, digests: Sequence[str]) -> None:
    """Delete the vectors of these texts, for all embedders."""
    with plain_errors(), cache.connect().execution_options(assay_writes=True) as connection, connection.begin():
        for first in range(0, len(digests), VARIABLES):
            part = digests[first : first + VARIABLES]
            connection.execute(delete(vectors).where(vectors.c.owner == owner, vectors.c.digest.in_(part)))


def size(cache: Engine) -> int:
    with plain_errors(), cache.connect() as connection:
        return connection.scalar(select(func.count()).select_from(vectors)) or 0
