"""One search: channels → fusion → rerank → diversity → cap per document. The only place where channels meet.

The access filter is added here, and the hits are checked against the store again: a stale index can
hide a document, but never expose one.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from assay.core.access import Scope
from assay.core.types import Hit, Passage
from assay.index.filters import EVERYTHING, Filter, In, Not, both
from assay.index.fusion import Ranking, capped, diverse, fuse, spread, uncrowded
from assay.index.named_documents import NamedWeights, NameTable, name_table, named_document, weigh_named, words_of_names
from assay.index.protocol import HitList, Index, hit_list, pick
from assay.language.glossary import Glossary, load_glossary
from assay.language.sentences import split_sentences
from assay.language.terms import content_terms
from assay.models.embedder import Embedder
from assay.models.llm import AnswerModel
from assay.models.reranker import Reranker
from assay.store import documents
from assay.store.database import Store
from assay.tables.labels import AskedTable, TableKinds, asked_tables, learn_kinds

NAMED_DEPTH = 4  # times the pool, inside the documents that a question names
NAMED_LEXICAL = 0.1  # the weight of the lexical score there: the words of its name occur in all passages of a document
SHELVES = 8  # kept between runs
PLAIN, WITHIN = 5, 10  # so many of the best hits without any weights stay within the first ten
MOST_TABLES = 4  # that come first
SAME_WEIGHT = 0.9  # of the best named document: the tables of another one are asked for, too
RARE_DOCUMENTS, RARE_SHARE = 2, 0.1  # a rare word is in no more documents than these beside those of the organisation
RARE_HITS = 50  # passages that are looked at for it
MOST_ASKED = 2  # documents whose tables are asked for
MOST_SENTENCES = 6  # of a query, searched by meaning one by one


@dataclass(slots=True)
class Shelf:
    """What the documents that a scope may read are called, and the kinds of their tables once a search needed them."""

    names: NameTable
    kinds: TableKinds | None = None
    common: dict[str, bool] = field(default_factory=dict)  # words of names: whether other documents have them, too


@dataclass(frozen=True, slots=True)
class SearchContext:
    """What a search uses. `vectors` and `reranked` cache the query vectors and the reranked lists of one run."""

    store: Store
    indexes: Mapping[str, Index]  # by knowledge base
    embedder: Embedder
    reranker: Reranker | None = None
    answer_model: AnswerModel | None = None
    ranking: Ranking = field(default_factory=Ranking)
    pool: int = 100
    per_document: int = 3
    diversity: float = 0.0
    vectors: dict[str, np.ndarray] = field(default_factory=dict)
    reranked: dict[tuple[str, tuple[str, ...]], list[Hit]] = field(default_factory=dict)
    glossary: Glossary = field(default_factory=load_glossary)
    shelves: dict[object, Shelf] = field(default_factory=dict)  # by scope and state of the store; kept between runs


async def retrieve(
    search_context: SearchContext, query: str, k: int, scope: Scope, where: Filter = EVERYTHING
) -> list[Hit]:
    """The k best passages for a query among those that the scope may read."""
    if not query.strip() or not scope.bases:
        return []
    vector, *parts = await query_vectors(search_context, [query, *query_sentences(query)])
    allowed = both(where, readable(scope))
    indexes = [search_context.indexes[base.id] for base in scope.bases if base.id in search_context.indexes]
    depth = max(search_context.pool, k)
    shelf = _shelf(search_context, scope)
    names = weigh_named(query, shelf.names, await _common_words(indexes, query, shelf, readable(scope)))
    pools = [_pool(indexes, query, [vector, *parts], allowed, depth)]
    if names.named:  # on their own, and deeper: most passages of a long report have words of the question
        only = both(allowed, In("doc", names.named))
        pools.append(_pool(indexes, query, [vector, *parts], only, NAMED_DEPTH * depth))
    found = await asyncio.gather(*pools)
    channels = {name: _once([pool[name] for pool in found], name) for name in ("dense", "lexical")}
    # Reports of one organisation are alike page by page: their best hits confirm each other without being better.
    ranking = (
        replace(search_context.ranking, feedback=0.0, lexical=NAMED_LEXICAL) if names.named else search_context.ranking
    )
    fused: Sequence[Hit] = permitted(search_context.store, fuse(channels, vector, ranking, names.weights, parts), scope)
    if search_context.reranker is not None:
        asked = (query, tuple(hit_list(fused).ids))
        if asked not in search_context.reranked:
            search_context.reranked[asked] = await search_context.reranker.rerank(query, list(fused))
        fused = search_context.reranked[asked]
    if search_context.diversity:
        fused = diverse(list(fused), depth, search_context.diversity)
    best = spread(capped(fused, search_context.per_document, names.named), names.named)
    if search_context.reranker is None:
        first = hits_of_tables(await _asked_tables(search_context, query, scope, shelf, names), fused)
        if first or names.weights:
            plain = permitted(search_context.store, fuse(found[0], vector, search_context.ranking, {}, parts), scope)
            best = with_first(first, best, plain[:PLAIN])
    return [replace(hit, rank=rank) for rank, hit in enumerate(uncrowded(best, k), 1)]


def with_first(first: Sequence[Hit], best: Sequence[Hit], plain: Sequence[Hit]) -> list[Hit]:
    """`first`, then `best`, each hit once; but those of `plain` are within the first ten."""
    ordered = {hit.passage.id: hit for hit in (*first, *best)}
    own = {hit.passage.id: hit for hit in plain}
    head = list(ordered)[:WITHIN]
    others = [id for id in head if id not in own][: WITHIN - len(own)]
    kept = [id for id in head if id in own or id in others]
    return list(({id: ordered[id] for id in kept} | own | ordered).values())


def hits_of_tables(asked: Sequence[AskedTable], hits: Sequence[Hit]) -> list[Hit]:
    """For each table the hit that has most of the rows it is asked for; the better one among equals."""
    listed = hit_list(hits)
    found: dict[str, Hit] = {}
    for table in asked:
        places = (at for at, doc_id in enumerate(listed.doc_ids) if doc_id == table.document)
        near = ((hit, hit.passage) for hit in map(listed.__getitem__, places))
        inside = [hit for hit, passage in near if passage.start < table.end and table.start < passage.end]
        best = max(inside, key=lambda hit: _rows_in(hit.passage, table), default=None)
        if best is not None and len(found) < MOST_TABLES:
            found.setdefault(best.passage.id, best)
    return list(found.values())


def _rows_in(passage: Passage, table: AskedTable) -> int:
    words = set(content_terms(passage.text))
    return sum(any(spelling <= words for spelling in row.spellings) for row in table.rows)


async def _asked_tables(
    search_context: SearchContext, query: str, scope: Scope, shelf: Shelf, names: NamedWeights
) -> list[AskedTable]:
    """The tables that a question asks for in the documents that it names, or in the only one."""
    named = [id for id in names.named if names.weights[id] >= SAME_WEIGHT * names.weights[names.named[0]]]
    if not names.weights and len(shelf.names.documents) == 1:
        named = [shelf.names.documents[0].id]
    if not named:
        return []
    store = search_context.store
    if shelf.kinds is None:
        shelf.kinds = await asyncio.to_thread(lambda: learn_kinds(documents.labels_of_tables(store, scope).values()))
    tables = documents.labels_of_tables(store, scope, named[:MOST_ASKED])
    in_order = {id: tables[id] for id in named if id in tables}
    return asked_tables(query, shelf.kinds, in_order, search_context.glossary)


async def query_vectors(search_context: SearchContext, queries: Sequence[str]) -> list[np.ndarray]:
    """Vectors of queries, each embedded once per run."""
    new = [query for query in dict.fromkeys(queries) if query not in search_context.vectors]
    if new:
        search_context.vectors.update(zip(new, await search_context.embedder.queries(new), strict=True))
    return [search_context.vectors[query] for query in queries]


async def _pool(
    indexes: Sequence[Index], query: str, vectors: Sequence[np.ndarray], where: Filter, depth: int
) -> dict[str, Sequence[Hit]]:
    """The hits of both channels. Lexical first: an engine may run it on its own threads while this one multiplies vectors."""
    lexical, *dense = await asyncio.gather(
        _channel([partial(index.lexical, query, depth, where) for index in indexes], "lexical", depth),
        *(
            _channel([partial(index.dense, vector, depth, where) for index in indexes], "dense", depth)
            for vector in vectors
        ),
    )
    return {"lexical": lexical, "dense": _once(dense, "dense")}


async def _channel(searches: Sequence[Callable[[], Awaitable[Sequence[Hit]]]], name: str, depth: int) -> Sequence[Hit]:
    """One channel over all bases, best first."""
    if len(searches) == 1:
        return await searches[0]()
    found = [hit_list(each, name) for each in await asyncio.gather(*(search() for search in searches))]
    places = [(hits, at) for hits in found for at in range(len(hits))]
    return pick(sorted(places, key=lambda place: (-place[0].scores[place[1]], place[0].ids[place[1]]))[:depth])


def _once(searches: Sequence[Sequence[Hit]], name: str) -> Sequence[Hit]:
    """The hits of several searches of one channel, each once."""
    if len(searches) == 1:
        return searches[0]
    first: dict[str, tuple[HitList, int]] = {}
    for hits in (hit_list(each, name) for each in searches):
        for at, id in enumerate(hits.ids):
            first.setdefault(id, (hits, at))
    return pick(list(first.values()))


def query_sentences(query: str) -> list[str]:
    """The sentences of a query that has several; none otherwise."""
    spans = split_sentences(query)
    parts = [part for start, end in spans for part in re.split(r"(?<=:)\s+", query[start:end])]
    parts = [part for part in parts if len(content_terms(part)) >= 2]
    return parts[:MOST_SENTENCES] if len(parts) > 1 else []


def _shelf(search_context: SearchContext, scope: Scope) -> Shelf:
    """What the documents that the scope may read are called. Built anew when they changed."""
    store, shelves = search_context.store, search_context.shelves
    state = (scope, documents.state_of(store, scope))
    if state not in shelves:
        found = documents.identities(store, scope)
        while len(shelves) >= SHELVES:
            shelves.pop(next(iter(shelves)))
        shelves[state] = Shelf(name_table(named_document(id, uri, meta) for id, (uri, meta) in found.items()))
    return shelves[state]


async def _common_words(indexes: Sequence[Index], query: str, shelf: Shelf, may_read: Filter) -> list[str]:
    """Words of organisations' names in a query that other documents have, too: they name nobody."""
    words = words_of_names(query, shelf.names)
    for word in words.keys() - shelf.common.keys():
        others = both(may_read, Not(In("doc", tuple(sorted(words[word])))))
        found = await _channel([partial(index.lexical, word, RARE_HITS, others) for index in indexes], "", RARE_HITS)
        elsewhere = len(set(hit_list(found).doc_ids))
        shelf.common[word] = elsewhere > max(RARE_DOCUMENTS, RARE_SHARE * len(shelf.names.documents))
    return [word for word in words if shelf.common[word]]


def readable(scope: Scope) -> Filter:
    """The access filter: the knowledge bases and labels that the scope may read."""
    return both(In("base", tuple(base.id for base in scope.bases)), In("label", tuple(sorted(scope.labels))))


def permitted(store: Store, hits: Sequence[Hit], scope: Scope) -> HitList:
    """The hits whose document may be read according to the current state of the store, with its title."""
    listed = hit_list(hits)
    titles = documents.titles(store, listed.doc_ids, scope)
    kept = listed.take([at for at, doc_id in enumerate(listed.doc_ids) if doc_id in titles])

    def titled(at: int) -> Hit:
        hit = kept[at]
        title = titles[hit.passage.doc_id]
        return hit if hit.title == title else replace(hit, title=title)

    return HitList(kept.ids, kept.doc_ids, kept.vectors, kept.scores, titled)


async def fetch(search_context: SearchContext, ids: Sequence[str], scope: Scope) -> list[Hit]:
    """Passages by id; those that are gone or that the scope may not read are left out."""
    found = await asyncio.gather(
        *(
            search_context.indexes[base.id].fetch(ids, readable(scope))
            for base in scope.bases
            if base.id in search_context.indexes
        )
    )
    return list(permitted(search_context.store, [hit for hits in found for hit in hits], scope))
