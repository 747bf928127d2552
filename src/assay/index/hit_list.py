"""The hits of a search as columns. A hit is made when it is asked for: fusion compares hundreds, and a reader sees ten."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import overload

import numpy as np

from assay.core.types import Hit

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
