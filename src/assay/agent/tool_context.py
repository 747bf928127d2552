"""The desk: all that a tool can touch, for one person and one run. Nothing on it writes, and nothing on it widens the scope."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

import numpy as np
from pydantic import BaseModel

from assay.core.access import Scope
from assay.core.errors import ToolError
from assay.core.events import Found
from assay.core.types import Document, Evidence, Hit, Passage, Scalar
from assay.evidence.weigh import evidence_key
from assay.index.filters import EVERYTHING, Eq, Filter, both, matches
from assay.index.retrieve import SearchContext, permitted, readable, retrieve
from assay.store import documents
from assay.store.documents import Entry

T = TypeVar("T", bound=BaseModel)


class Consult(Protocol):
    """Asks the model for a note of a type; none where the budget or the model does not allow it."""

    def __call__(
        self, name: str, kind: type[T], build_prompt: Callable[[int], Mapping[str, str]], documents: Sequence[str]
    ) -> Awaitable[T | None]: ...


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool gives back: passages, and a note that says how it went. The note helps to decide and is never evidence.

    documents: those that the note speaks of beside the passages
    left: how many passages match as well and are not among them
    """

    found: tuple[Found, ...] = ()
    note: str = ""
    documents: tuple[str, ...] = ()
    left: int = 0


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool may touch. The scope is made anew at each call, by the server alone; arguments never reach it."""

    search_context: SearchContext
    scope: Callable[[], Scope]
    where: Filter = EVERYTHING  # what the person, or the question itself, limited the search to
    seen: dict[str, Hit] = field(default_factory=dict)  # every hit of this run by passage, with its vector
    found: tuple[Found, ...] = ()  # what the run's calls have returned, as its events say
    evidence: tuple[Evidence, ...] = ()  # what was kept of it
    today: str = ""  # the day of asking
    mark: str = ""  # of the run's fences
    consult: Consult | None = None
    most: int = 200  # passages that a search for everything returns

    @property
    def bases(self) -> dict[str, str]:
        """The knowledge bases that can be searched: name → description."""
        return {base.name: base.description for base in self.scope().bases}

    async def retrieve(self, query: str, k: int, where: Filter = EVERYTHING, *, deep: bool = False) -> list[Hit]:
        """The k best passages. `deep` is for reading much of one thing: no cap per document, no reranking."""
        search_context = (
            replace(self.search_context, per_document=0, reranker=None, diversity=0.0) if deep else self.search_context
        )
        hits = await retrieve(search_context, query, k, self.scope(), both(self.where, where))
        if not deep:  # of much that is read little is kept, and what is kept can be fetched again
            self.seen.update({hit.passage.id: hit for hit in hits})
        return hits

    async def passages(self, document: str) -> list[Hit]:
        """Every passage of a document, in reading order; none where it is gone, not theirs or outside the limits."""
        scope = self.scope()
        one = both(both(self.where, Eq("doc", document)), readable(scope))
        anywhere = np.full(self.search_context.embedder.dim, self.search_context.embedder.dim**-0.5, np.float32)
        indexes = [
            self.search_context.indexes[base.id] for base in scope.bases if base.id in self.search_context.indexes
        ]
        counts = await asyncio.gather(*(index.count(one) for index in indexes))
        filled = [(index, count) for index, count in zip(indexes, counts, strict=True) if count]
        # All rows of a document are its nearest rows, whatever they are to be near to.
        found = await asyncio.gather(*(index.dense(anywhere, count, one) for index, count in filled))
        hits = permitted(self.search_context.store, [hit for part in found for hit in part], scope)
        return sorted(hits, key=lambda hit: (hit.passage.start, hit.passage.end))

    def sources(self) -> list[Entry]:
        """The documents that can be searched, by place: those this person may read, within the limits of the search."""
        scope = self.scope()
        entries = documents.listing(self.search_context.store, scope)
        if self.where == EVERYTHING:
            return entries
        metas = documents.metas(self.search_context.store, scope)
        return [entry for entry in entries if matches(self.where, _fields(entry, metas.get(entry.id, {})))]

    def document(self, document: str) -> Document | None:
        """A document with its text, if this person may read it and it is within the limits."""
        found = documents.get(self.search_context.store, document, self.scope())
        if found is None or self.where == EVERYTHING:
            return found
        return found if matches(self.where, _fields(found, found.meta)) else None

    def titles(self, ids: Sequence[str]) -> dict[str, str]:
        """The titles of those of these documents that this person may read now."""
        return documents.titles(self.search_context.store, ids, self.scope())

    def dates(self, ids: Sequence[str]) -> dict[str, str]:
        """The dates of those of these documents that this person may read now."""
        return documents.dates(self.search_context.store, ids, self.scope())

    def passage(self, name: str) -> Passage:
        """A passage that this run has found, by its id or its key; whatever else is asked for is not there."""
        keys = {each.key: each.passage for each in self.evidence}
        known = {found.passage.id: found.passage for found in self.found}
        named = {evidence_key(passage): passage for passage in known.values()} | known | keys
        wanted = named.get(name.strip().strip("[]"))
        if wanted is None or wanted.doc_id not in self.titles([wanted.doc_id]):
            raise ToolError(f"There is no passage {name!r} among what was found. Use a key that a search has shown.")
        return wanted


def _fields(of: Entry | Document, meta: Mapping[str, str]) -> dict[str, Scalar]:
    """What filters look at, as far as a document can be told by it without the index."""
    return {
        "base": of.base,
        "doc": of.id,
        "source": of.uri,
        "title": of.title,
        "date": of.date or "",
        "type": of.kind,
        "language": of.language or "",
        **{f"meta.{name}": value for name, value in meta.items()},
    }


def as_found(hits: Sequence[Hit]) -> tuple[Found, ...]:
    """Hits in their order; what no search ranked, because it was asked for by name, counts in full."""
    return tuple(Found(hit.passage, rank, hit.scores.get("fused", 1.0)) for rank, hit in enumerate(hits, 1))
