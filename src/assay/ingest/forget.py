"""Deletes the derived data of documents and their original bytes. Complete erasure is in `workspace/erase.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from assay.core.access import Base, Scope
from assay.ingest.pipeline import original_path, vector_key
from assay.ingest.split import split_passages
from assay.store import documents, embedding_cache
from assay.store.database import Store
from assay.store.documents import Entry

if TYPE_CHECKING:
    from sqlalchemy import Engine


def forget_vectors(
    store: Store,
    cache: Engine,
    base: Base,
    entries: Sequence[Entry],
    tokens: Callable[[str], int],
    size: int,
    overlap: int,
) -> None:
    """Delete the cached vectors of these documents, split with the current settings."""
    own = Scope(base.owner, (base,), frozenset(entry.label for entry in entries))
    for entry in entries:
        document = documents.get(store, entry.id, own)
        if document is not None:
            pieces = split_passages(document, tokens, size, overlap)
            embedding_cache.forget(cache, base.owner, [vector_key(document, piece) for piece in pieces])


def forget_originals(store: Store, originals: Path, digests: Iterable[str]) -> None:
    """Delete the original bytes that no document refers to any more."""
    gone = set(digests)
    for sha in gone - documents.digests_in_use(store, gone):
        original_path(originals, sha).unlink(missing_ok=True)
