"""The interface through which a tool accesses data, for one person and one run. It is read-only and cannot widen the
scope."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

import numpy as np
from pydantic import BaseModel

from assay.answer.weigh import evidence_key
from assay.core.access import Scope
from assay.core.errors import ToolError
from assay.core.events import Found
from assay.core.types import Document, Evidence, Hit, Passage
from assay.index.filters import EVERYTHING, Eq, Filter, both, matches
from assay.index.retrieve import SearchContext, permitted, readable, retrieve
from assay.index.search_filter import filter_fields
from assay.store import documents
from assay.store.documents import Entry, Traits

T = TypeVar("T", bound=BaseModel)


class Consult(Protocol):
    """Asks the model for a note of a given type; None if the budget or the model does not allow it."""

    def __call__(
        self, name: str, kind: type[T], build_prompt: Callable[[int], Mapping[str, str]], documents: Sequence[str]
    ) -> Awaitable[T | None]: ...


@dataclass(frozen=True, slots=True)
class Result:
    """A tool's result: passages, and a note about them. The note informs decisions and is never evidence.

    documents: documents the note mentions beside those of the passages
    left: number of further matching passages that were not returned
    whole: documents of which every passage was returned, by this call or earlier ones
    undated: number of documents that the call's dates left out for lack of one
    """

    found: tuple[Found, ...] = ()
    note: str = ""
    documents: tuple[str, ...] = ()
    left: int = 0
    whole: tuple[str, ...] = ()
    undated: int = 0


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool may access. The server alone computes the scope, for each call; tool arguments cannot affect it."""

    search_context: SearchContext
    scope: Callable[[], Scope]
    where: Filter = EVERYTHING  # filter set by the person
    seen: dict[str, Hit] = field(default_factory=dict)  # every hit of this run by passage id, with its vector
    found: tuple[Found, ...] = ()  # results of the run's calls, from its events
    evidence: tuple[Evidence, ...] = ()  # the results that were kept
    today: str = ""  # the day of asking
    mark: str = ""  # fence mark of the run
    consult: Consult | None = None
    most: int = 200  # most passages that an exhaustive search returns
    searched: dict[tuple[object, ...], tuple[int, list[Hit]]] = field(default_factory=dict)  # searches of this run

    @property
    def bases(self) -> dict[str, str]:
        """The searchable knowledge bases: name → description."""
        return {base.name: base.description for base in self.scope().bases}

    async def retrieve(self, query: str, k: int, where: Filter = EVERYTHING, *, deep: bool = False) -> list[Hit]:
        """The k best passages. `deep` is for reading a lot of one source: no cap per document, no reranking. The same
        search is made once for as long as nothing that it could find has changed."""
        scope, where = self.scope(), both(self.where, where)
        if deep:  # it reads much of which little is kept, and that can be fetched again
            search_context = replace(self.search_context, per_document=0, reranker=None, diversity=0.0)
            return await retrieve(search_context, query, k, scope, where)
        search = (query, where, scope, documents.state_of(self.search_context.store, scope))
        width, hits = self.searched.get(search, (0, []))
        if width < k:
            hits = await retrieve(self.search_context, query, k, scope, where)
            self.searched[search] = (k, hits)
        self.seen.update({hit.passage.id: hit for hit in hits[:k]})
        return hits[:k]

    async def passages(self, document: str) -> list[Hit]:
        """Every passage of a document in reading order; empty if it is gone, not readable by this person, or out of
        scope."""
        scope = self.scope()
        one = both(both(self.where, Eq("doc", document)), readable(scope))
        anywhere = np.full(self.search_context.embedder.dim, self.search_context.embedder.dim**-0.5, np.float32)
        indexes = [
            self.search_context.indexes[base.id] for base in scope.bases if base.id in self.search_context.indexes
        ]
        counts = await asyncio.gather(*(index.count(one) for index in indexes))
        filled = [(index, count) for index, count in zip(indexes, counts, strict=True) if count]
        # With k equal to the row count, nearest-neighbour search returns all rows of a document for any query vector.
        found = await asyncio.gather(*(index.dense(anywhere, count, one) for index, count in filled))
        hits = permitted(self.search_context.store, [hit for part in found for hit in part], scope)
        return sorted(hits, key=lambda hit: (hit.passage.start, hit.passage.end))

    def sources(self) -> list[Entry]:
        """The documents this person may read within the scope of the search, ordered by path."""
        scope = self.scope()
        entries = documents.listing(self.search_context.store, scope)
        return entries if self.where == EVERYTHING else [each for each in entries if self._is_searched(each)]

    def traits(self) -> list[Traits]:
        """What filters know of these documents."""
        return [each for each in documents.traits(self.search_context.store, self.scope()) if self._is_searched(each)]

    def _is_searched(self, of: Entry | Document | Traits) -> bool:
        return matches(self.where, filter_fields(of))

    def entries(self, ids: Sequence[str]) -> dict[str, Entry]:
        """The entries of those of these documents that this person may read now."""
        return documents.entries(self.search_context.store, ids, self.scope())

    def document(self, document: str) -> Document | None:
        """A document with its text; None if this person may not read it or it is out of scope."""
        found = documents.get(self.search_context.store, document, self.scope())
        return found if found is not None and self._is_searched(found) else None

    def titles(self, ids: Sequence[str]) -> dict[str, str]:
        """Titles of those of these documents that this person may read now, each with the rest of its identity."""
        return documents.identified_titles(self.search_context.store, ids, self.scope())

    def dates(self, ids: Sequence[str]) -> dict[str, str]:
        """Dates of those of these documents that this person may read now."""
        return documents.dates(self.search_context.store, ids, self.scope())

    def passage(self, name: str) -> Passage:
        """A passage that this run has found, by id or key. Raises for any other."""
        keys = {each.key: each.passage for each in self.evidence}
        known = {found.passage.id: found.passage for found in self.found}
        named = {evidence_key(passage): passage for passage in known.values()} | known | keys
        wanted = named.get(name.strip().strip("[]"))
        if wanted is None or wanted.doc_id not in self.titles([wanted.doc_id]):
            raise ToolError(f"There is no passage {name!r} among what was found. Use a key that a search has shown.")
        return wanted


def as_found(hits: Sequence[Hit]) -> tuple[Found, ...]:
    """Hits in order. Hits without a rank, because they were requested by name, get the full score."""
    return tuple(Found(hit.passage, rank, hit.scores.get("fused", 1.0)) for rank, hit in enumerate(hits, 1))
