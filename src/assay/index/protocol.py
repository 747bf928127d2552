"""The seam to a search engine. Channels come back separately; they meet once, in `retrieve.py`.

An index holds the passages of one knowledge base, so that nothing in one base can change what another returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from assay.core.types import Hit, Row
from assay.index.filters import Filter


class Index(Protocol):
    async def upsert(self, rows: Sequence[Row]) -> None:
        """Add rows, replacing those with the same passage id. On return they survive a crash."""
        ...

    async def delete(self, where: Filter) -> int:
        """Remove what matches; how many rows that were."""
        ...

    async def relabel(self, document: str, label: str) -> int:
        """Put another label on the rows of a document; how many there are. Until then a search can only hide them."""
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
        """Fold new rows into the search structures and drop old versions (deleted text must not linger)."""
        ...
