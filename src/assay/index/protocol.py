"""The interface of a search index. An `Index` holds the passages of one knowledge base; an `IndexEngine` manages all of them.

One index per base, so that nothing in one base can change what another returns. The channels of a search come back
separately, as lists of hits; `retrieve.py` fuses them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Protocol, overload

import numpy as np

from assay.core.types import Hit, Row
from assay.index.encoding import hit_of
from assay.index.filters import Filter, In, matches

NO_INDEX = "This knowledge base has no search index. `assay reindex` builds it, and `assay add PATH` adds documents."


def relabelled(row: Row, labels: Mapping[str, str]) -> Row:
    """A row with the new label of its document."""
    return replace(row, fields={**row.fields, "label": labels[row.passage.doc_id]})


class Index(Protocol):
    async def upsert(self, rows: Sequence[Row]) -> None:
        """Add rows, replacing those with the same passage id. Durable on return."""
        ...

    async def delete(self, where: Filter) -> int:
        """Remove the matching rows and return their number. Searches no longer find them; `purge` removes their text."""
        ...

    async def relabel(self, labels: Mapping[str, str]) -> int:
        """Set the access labels of the rows of documents, in few writes, and return the number of rows."""
        names, count = list(labels), 0
        for first in range(0, len(names), 500):
            rows = await self.matching(In("doc", tuple(names[first : first + 500])))
            await self.upsert([relabelled(row, labels) for row in rows])
            count += len(rows)
        return count

    async def dense(self, vector: np.ndarray, k: int, where: Filter) -> Sequence[Hit]:
        """The k rows nearest by cosine, best first; ties break on passage id. Score channel `dense`."""
        ...

    async def lexical(self, query: str, k: int, where: Filter) -> Sequence[Hit]:
        """The k best rows by BM25 over lead and text, best first; the query is plain words, never syntax. Channel `lexical`."""
        ...

    async def fetch(self, ids: Sequence[str], where: Filter) -> list[Hit]:
        """Rows by passage id, in the order of `ids`; missing or filtered ones are left out."""
        found = [row for row in await self.rows(list(dict.fromkeys(ids))) if matches(where, row.fields)]
        return [hit_of(row, rank) for rank, row in enumerate(found, start=1)]

    async def matching(self, where: Filter) -> list[Row]:
        """All matching rows, as they were written, in any order."""
        ...

    async def count(self, where: Filter) -> int: ...

    async def ids(self) -> list[str]:
        """The passage ids of all rows, in order."""
        ...

    async def rows(self, ids: Sequence[str]) -> list[Row]:
        """Rows as they were written, by passage id, in the order of `ids`; missing ones are left out."""
        found = {row.passage.id: row for row in await self.with_ids(list(dict.fromkeys(ids)))}
        return [found[id] for id in ids if id in found]

    async def with_ids(self, ids: Sequence[str]) -> list[Row]:
        """The rows with these passage ids, each once, in any order."""
        ...

    async def optimise(self) -> None:
        """Merge new rows into the search structures and remove old versions, with the text of deleted rows."""
        ...

    async def is_untidy(self) -> bool:
        """Whether so much was written since the last `optimise` that another one pays."""
        return False

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


Vectors = Sequence[np.ndarray] | np.ndarray


class HitList(Sequence[Hit]):
    """Hits, best first, with the columns that ranking needs; `scores` are those of the search that found them."""

    __slots__ = ("_make", "doc_ids", "ids", "scores", "vectors")

    def __init__(
        self,
        ids: Sequence[str],
        doc_ids: Sequence[str],
        vectors: Vectors,
        scores: Sequence[float],
        make: Callable[[int], Hit],
    ) -> None:
        self.ids, self.doc_ids, self.vectors, self.scores, self._make = ids, doc_ids, vectors, scores, make

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, at: int) -> Hit: ...
    @overload
    def __getitem__(self, at: slice) -> list[Hit]: ...
    def __getitem__(self, at: int | slice) -> Hit | list[Hit]:
        places = range(len(self.ids))[at]
        return self._make(places) if isinstance(places, int) else list(map(self._make, places))

    def __iter__(self) -> Iterator[Hit]:
        return map(self._make, range(len(self.ids)))

    def take(self, places: Sequence[int]) -> HitList:
        """The hits at these places, in this order."""
        return pick([(self, at) for at in places])


def hit_list(hits: Sequence[Hit], channel: str = "") -> HitList:
    """Any hits as a list with columns; the scores are those of a channel."""
    if isinstance(hits, HitList):
        return hits
    return HitList(
        [hit.passage.id for hit in hits],
        [hit.passage.doc_id for hit in hits],
        [hit.vector for hit in hits],
        [hit.scores.get(channel, 0.0) for hit in hits],
        hits.__getitem__,
    )


def pick(places: Sequence[tuple[HitList, int]]) -> HitList:
    """The hits at these places of several lists, in this order."""
    return HitList(
        [hits.ids[at] for hits, at in places],
        [hits.doc_ids[at] for hits, at in places],
        [hits.vectors[at] for hits, at in places],
        [hits.scores[at] for hits, at in places],
        lambda at: places[at][0][places[at][1]],
    )
