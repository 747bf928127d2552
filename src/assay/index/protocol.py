"""The interface of a search engine. An `Index` holds the passages of one knowledge base; an `IndexEngine` manages all of them.

One index per base, so that nothing in one base can change what another returns. The channels of a search come back
separately; `retrieve.py` fuses them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import numpy as np

from assay.core.types import Hit, Row
from assay.index.filters import Filter

NO_INDEX = "This knowledge base has no search index yet. Add documents to it first."


class Index(Protocol):
    async def upsert(self, rows: Sequence[Row]) -> None:
        """Add rows, replacing those with the same passage id. On return they survive a crash."""
        ...

    async def delete(self, where: Filter) -> int:
        """Remove the rows that match and return their number. They are not found any more; `purge` removes their text."""
        ...

    async def relabel(self, document: str, label: str) -> int:
        """Put another access label on the rows of a document and return their number."""
        ...

    async def dense(self, vector: np.ndarray, k: int, where: Filter) -> list[Hit]:
        """The k rows nearest by cosine, best first; ties break on passage id. Score channel `dense`."""
        ...

    async def lexical(self, query: str, k: int, where: Filter) -> list[Hit]:
        """The k best rows by BM25 over lead and text, best first; the query is words, never syntax. Channel `lexical`."""
        ...

    async def fetch(self, ids: Sequence[str], where: Filter) -> list[Hit]:
        """Rows by passage id, in the order asked for; those that are missing or filtered out are left out."""
        ...

    async def count(self, where: Filter) -> int: ...

    async def optimise(self) -> None:
        """Fold new rows into the search structures and remove old versions, with the text of deleted rows."""
        ...

    async def purge(self) -> tuple[str, ...]:
        """Optimise, then name what may still hold text of deleted or replaced rows. Empty when nothing does."""
        ...


class IndexEngine(Protocol):
    """The indexes of one workspace, by the id of their knowledge base."""

    def exists(self, base_id: str) -> bool:
        """Whether the base has an index, intact or damaged."""
        ...

    async def open(self, base_id: str, dim: int, *, create: bool = False) -> Index:
        """The base's index of vectors of `dim` numbers.

        create: make it where there is none; otherwise that is a UserError
        raises: StoreError where it is damaged, or its vectors have another length
        """
        ...

    async def drop(self, base_id: str) -> None:
        """Remove the base's index and all its text, intact or damaged. Nothing happens where there is none."""
        ...

    def lease(self, base_id: str, patience: float) -> AbstractAsyncContextManager[None]:
        """Be the only writer of a base, in this process and others. UserError after `patience` seconds of waiting.

        A filling of a base, which is many writes, holds it. Reading, and a single write, need no lease.
        """
        ...
