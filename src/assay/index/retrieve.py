"""One search: channels → fusion → rerank → diversity → cap per document. The only place where channels meet.

The access filter is added here, and the hits are checked against the store again: a stale index can
hide a document, but never expose one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from assay.core.access import Scope
from assay.core.types import Hit
from assay.index.filters import EVERYTHING, Filter, In, both
from assay.index.fusion import Ranking, capped, diverse, fuse
from assay.index.protocol import Index
from assay.models.embedder import Embedder
from assay.models.reranker import Reranker
from assay.store import documents
from assay.store.database import Store


@dataclass(frozen=True, slots=True)
class SearchContext:
    """What a search uses. `vectors` caches the query vectors of one run."""

    store: Store
    indexes: Mapping[str, Index]  # by knowledge base
    embedder: Embedder
    reranker: Reranker | None = None
    ranking: Ranking = field(default_factory=Ranking)
    pool: int = 100
    per_document: int = 3
    diversity: float = 0.0
    vectors: dict[str, np.ndarray] = field(default_factory=dict)


async def retrieve(
    search_context: SearchContext, query: str, k: int, scope: Scope, where: Filter = EVERYTHING
) -> list[Hit]:
    """The k best passages for a query among those that the scope may read."""
    if not query.strip() or not scope.bases:
        return []
    vector = (await query_vectors(search_context, [query]))[0]
    allowed = both(where, readable(scope))
    indexes = [search_context.indexes[base.id] for base in scope.bases if base.id in search_context.indexes]
    depth = max(search_context.pool, k)
    # Lexical first: an engine may run it on its own threads while this thread multiplies vectors.
    lexical, dense = await asyncio.gather(
        _channel([partial(index.lexical, query, depth, allowed) for index in indexes], "lexical", depth),
        _channel([partial(index.dense, vector, depth, allowed) for index in indexes], "dense", depth),
    )
    fused = permitted(
        search_context.store, fuse({"dense": dense, "lexical": lexical}, vector, search_context.ranking), scope
    )
    if search_context.reranker is not None:
        fused = await search_context.reranker.rerank(query, fused)
    if search_context.diversity:
        fused = diverse(fused, depth, search_context.diversity)
    best = capped(fused, search_context.per_document)[:k]
    return [replace(hit, rank=rank) for rank, hit in enumerate(best, 1)]


async def query_vectors(search_context: SearchContext, queries: Sequence[str]) -> list[np.ndarray]:
    """Vectors of queries, each embedded once per run."""
    new = [query for query in dict.fromkeys(queries) if query not in search_context.vectors]
    if new:
        search_context.vectors.update(zip(new, await search_context.embedder.queries(new), strict=True))
    return [search_context.vectors[query] for query in queries]


async def _channel(searches: Sequence[Callable[[], Awaitable[list[Hit]]]], name: str, depth: int) -> list[Hit]:
    """One channel over all bases, best first."""
    if len(searches) == 1:
        return await searches[0]()
    hits = [hit for found in await asyncio.gather(*(search() for search in searches)) for hit in found]
    return sorted(hits, key=lambda hit: (-hit.scores[name], hit.passage.id))[:depth]


def readable(scope: Scope) -> Filter:
    """The access filter: the knowledge bases and labels that the scope may read."""
    return both(In("base", tuple(base.id for base in scope.bases)), In("label", tuple(sorted(scope.labels))))


def permitted(store: Store, hits: Sequence[Hit], scope: Scope) -> list[Hit]:
    """The hits whose document may be read according to the current state of the store."""
    titles = documents.titles(store, (hit.passage.doc_id for hit in hits), scope)
    pairs = ((hit, titles.get(hit.passage.doc_id)) for hit in hits)
    # The index nearly always has the same title, and two hundred copies would cost more than the query to the store.
    return [hit if hit.title == title else replace(hit, title=title) for hit, title in pairs if title is not None]


async def fetch(search_context: SearchContext, ids: Sequence[str], scope: Scope) -> list[Hit]:
    """Passages by id; those that are gone or that the scope may not read are left out."""
    found = await asyncio.gather(
        *(
            search_context.indexes[base.id].fetch(ids, readable(scope))
            for base in scope.bases
            if base.id in search_context.indexes
        )
    )
    return permitted(search_context.store, [hit for hits in found for hit in hits], scope)
