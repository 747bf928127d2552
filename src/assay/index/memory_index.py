"""Indexes in the memory of this process: for tests and small experiments, and as the reference for other engines. Slow and
simple; lost when the process ends."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from assay.core.errors import UserError
from assay.core.types import Hit, Row
from assay.index.encoding import hit_of, require_dimensions
from assay.index.filters import Filter, matches
from assay.index.lease import file_lease, lease_path
from assay.index.protocol import NO_INDEX, Index
from assay.language.terms import stem_word

K1, B = 1.2, 0.75


@dataclass(slots=True)
class MemoryIndex(Index):
    held: dict[str, Row] = field(default_factory=dict)
    dim: int = 0

    async def upsert(self, rows: Sequence[Row]) -> None:
        self.held.update({row.passage.id: row for row in rows})

    async def delete(self, where: Filter) -> int:
        doomed = [row.passage.id for row in await self.matching(where)]
        for id in doomed:
            del self.held[id]
        return len(doomed)

    async def dense(self, vector: np.ndarray, k: int, where: Filter) -> list[Hit]:
        query = np.asarray(vector, np.float64)
        return _best(await self.matching(where), lambda row: _cosine(query, row.vector), "dense", k)

    async def lexical(self, query: str, k: int, where: Filter) -> list[Hit]:
        scores = _bm25(
            set(words(query)), {id: words(f"{row.lead}\n{row.passage.text}") for id, row in self.held.items()}
        )
        found = [row for row in await self.matching(where) if row.passage.id in scores]
        return _best(found, lambda row: scores[row.passage.id], "lexical", k)

    async def matching(self, where: Filter) -> list[Row]:
        return [row for row in self.held.values() if matches(where, row.fields)]

    async def count(self, where: Filter) -> int:
        return len(await self.matching(where))

    async def ids(self) -> list[str]:
        return sorted(self.held)

    async def with_ids(self, ids: Sequence[str]) -> list[Row]:
        return [self.held[id] for id in ids if id in self.held]

    async def optimise(self) -> None:
        return None

    async def purge(self) -> tuple[str, ...]:
        return ()


def words(text: str) -> list[str]:
    """Lower-cased, unaccented, stemmed words."""
    plain = "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))
    return [stem_word(word) for word in re.findall(r"[^\W_]+", plain.lower())]


def _bm25(query: set[str], texts: dict[str, list[str]]) -> dict[str, float]:
    """BM25 of every text that contains a word of the query."""
    mean = sum(map(len, texts.values())) / max(len(texts), 1)
    counts = {id: Counter(found) for id, found in texts.items()}
    rarity = {word: sum(word in count for count in counts.values()) for word in query}
    scores: dict[str, float] = {}
    for id, count in counts.items():
        for word in sorted(query & count.keys()):
            idf = math.log(1 + (len(texts) - rarity[word] + 0.5) / (rarity[word] + 0.5))
            weight = count[word] * (K1 + 1) / (count[word] + K1 * (1 - B + B * len(texts[id]) / mean))
            scores[id] = scores.get(id, 0.0) + idf * weight
    return scores


def _cosine(query: np.ndarray, vector: np.ndarray) -> float:
    other = np.asarray(vector, np.float64)
    lengths = float(np.linalg.norm(query) * np.linalg.norm(other))
    return float((query * other).sum()) / lengths if lengths else 0.0


def _best(rows: Sequence[Row], score: Callable[[Row], float], channel: str, k: int) -> list[Hit]:
    ranked = sorted(((-score(row), row.passage.id, row) for row in rows), key=lambda each: each[:2])[: max(k, 0)]
    return [hit_of(row, rank, **{channel: -minus}) for rank, (minus, _, row) in enumerate(ranked, start=1)]


_INDEXES: dict[tuple[Path, str], MemoryIndex] = {}  # by workspace and base; shared by all users of a workspace


@dataclass(frozen=True, slots=True)
class MemoryEngine:
    workspace: Path

    async def versions(self) -> dict[str, str]:
        return {}

    def limits(self) -> tuple[str, ...]:
        return ("It is lost when the process ends.",)

    def exists(self, base_id: str) -> bool:
        return self._key(base_id) in _INDEXES

    async def open(self, base_id: str, dim: int, *, create: bool = False) -> MemoryIndex:
        if not create and not self.exists(base_id):
            raise UserError(NO_INDEX)
        index = _INDEXES.setdefault(self._key(base_id), MemoryIndex(dim=dim))
        require_dimensions(index.dim, dim)
        return index

    async def drop(self, base_id: str) -> None:
        _INDEXES.pop(self._key(base_id), None)

    def lease(self, base_id: str, patience: float) -> AbstractAsyncContextManager[None]:
        return file_lease(lease_path(self.workspace, base_id), patience)

    def _key(self, base_id: str) -> tuple[Path, str]:
        return self.workspace.resolve(), base_id
