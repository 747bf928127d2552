"""Deletes the derived data of documents and their original bytes. Complete erasure is in `workspace/services/records.py`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from assay.core.access import Base
from assay.store import documents, embedding_cache
from assay.store.blobs import Blobs, lock_original
from assay.store.database import Store
from assay.store.documents import Entry

if TYPE_CHECKING:
    from sqlalchemy import Engine


def forget_vectors(store: Store, cache: Engine, base: Base, entries: Sequence[Entry]) -> None:
    """Delete the cached vectors of these documents, and those of documents that are not there any more."""
    kept = documents.ids_of_owner(store, base.owner) - {entry.id for entry in entries}
    embedding_cache.forget_all_but(cache, base.owner, kept)


def forget_originals(store: Store, blobs: Blobs, workspace: Path, digests: Iterable[str]) -> None:
    """Delete the original bytes that no document refers to any more."""
    for digest in sorted(set(digests)):
        with lock_original(store, workspace, digest):  # the same bytes may be added to another base at this moment
            if not documents.digests_in_use(store, {digest}):
                blobs.delete(digest)
