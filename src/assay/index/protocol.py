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
        """Add rows, replacing those with the same passage id. Durable on return."""
        ...

    async def delete(self, where: Filter) -> int:
        """Remove the matching rows and return their number. Searches no longer find them; `purge` removes their text."""
        ...

    async def relabel(self, document: str, label: str) -> int:
        """Set the access label of a document's rows and return their number."""
        ...

    async def dense(self, vector: np.ndarray, k: int, where: Filter) -> Sequence[Hit]:
        """The k rows nearest by cosine, best first; ties break on passage id. Score channel `dense`."""
        ...

    async def lexical(self, query: str, k: int, where: Filter) -> Sequence[Hit]:
        """The k best rows by BM25 over lead and text, best first; the query is plain words, never syntax. Channel `lexical`."""
        ...

    async def fetch(self, ids: Sequence[str], where: Filter) -> list[Hit]:
        """Rows by passage id, in the order of `ids`; missing or filtered ones are left out."""
        ...

    async def count(self, where: Filter) -> int: ...

    async def ids(self) -> list[str]:
        """The passage ids of all rows, in order."""
        ...

    async def rows(self, ids: Sequence[str]) -> list[Row]:
        """Rows as they were written, by passage id, in the order of `ids`; missing ones are left out."""
        ...

    async def optimise(self) -> None:
        """Merge new rows into the search structures and remove old versions, with the text of deleted rows."""
        ...

    async def is_untidy(self) -> bool:
        """Whether so much was written since the last `optimise` that another one pays."""
        ...

    async def purge(self) -> tuple[str, ...]:
        """Optimise, then list the files that may still contain text of deleted or replaced rows. Empty if there are none."""
        ...


class IndexEngine(Protocol):
    """The indexes of one workspace, by the id of their knowledge base."""

    async def versions(self) -> dict[str, str]:
        """The engine's parts and their versions. An AssayError if one is missing or cannot be reached."""
        ...

    def limits(self) -> tuple[str, ...]:
        """What this engine does less well than the contract says, a sentence each."""
        ...

    def exists(self, base_id: str) -> bool:
        """Whether the base has an index, intact or damaged."""
        ...

    async def open(self, base_id: str, dim: int, *, create: bool = False) -> Index:
        """The base's index of vectors of `dim` numbers.

        create: create it if it does not exist; otherwise that is a UserError
        raises: StoreError if it is damaged, or its vectors have another length
        """
        ...

    async def drop(self, base_id: str) -> None:
        """Remove the base's index and all its text, intact or damaged. Does nothing if there is none."""
        ...

    def lease(self, base_id: str, patience: float) -> AbstractAsyncContextManager[None]:
        """Become the only writer of a base, across processes. UserError after `patience` seconds of waiting.

        An ingestion, which is many writes, holds it. Reads and single writes need no lease.
        """
        ...
