"""For tests of tools: a store and an index in memory, filled by hand, and a desk over them for either of two people."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from sqlalchemy import insert, update

from assay.agent.tool import Result, ToolContext
from assay.agent.toolbox import TOOLS
from assay.answer.weigh import evidence_key, quote
from assay.core.access import Base, Principal
from assay.core.errors import ToolError
from assay.core.types import Document, Evidence, Row
from assay.evaluate.plain_text import WordEmbedder
from assay.index.memory_index import MemoryIndex
from assay.index.retrieve import SearchContext
from assay.ingest.pipeline import passage_context, search_fields
from assay.ingest.split import split_passages
from assay.store import documents
from assay.store.access import grants as people
from assay.store.database import Store
from assay.store.schema import acceptances, grants
from assay.store.schema import documents as documents_table

ANN, BOB = Principal("ann"), Principal("bob")
TODAY = "2025-07-01"

PUMPS = (
    "The spare pump stands in Hall 2. Clearhelm Chemicals delivered it in May 2025. It moves 40 m3 of water an hour."
)
VALVES = "The valve at Hall 2 was replaced by Ridgemoor. It opens at 12 bar, and the pump must be off before."
SECRET = "Clearhelm Chemicals will lose its contract for the pump. Nobody is to know before 1 August 2025."


@dataclass
class Library:
    """A store and an index per base, filled by hand."""

    store: Store
    embedder: WordEmbedder = field(default_factory=WordEmbedder)
    indexes: dict[str, MemoryIndex] = field(default_factory=dict)

    def base(self, name: str, owner: Principal, description: str = "") -> Base:
        made = people.get_or_create_base(self.store, name, owner, description)
        self.indexes.setdefault(made.id, MemoryIndex())
        return made

    def add(self, base: Base, name: str, text: str, *, label: str = "", size: int = 60, **more: Any) -> Document:
        kind = more.pop("kind", "text")
        title = more.pop("title", name.partition(".")[0].replace("-", " ").capitalize())
        document = Document("d" + self.store.new_id(), base.id, f"/docs/{name}", "x", title, text, kind=kind, **more)
        documents.put_pending(self.store, document, parser="1", size=len(text), warnings=())
        pieces = split_passages(document, self.embedder.tokens, size, 0)
        documents.mark_ready(self.store, base, {document.id: len(pieces)}, "r")
        told = search_fields(document) | ({"label": label} if label else {})
        vectors = asyncio.run(self.embedder.passages([piece.text for piece in pieces]))
        rows = [
            Row(piece, vector, passage_context(document, piece), told)
            for piece, vector in zip(pieces, vectors, strict=True)
        ]
        asyncio.run(self.indexes[base.id].upsert(rows))
        if label:
            with self.store.write() as connection:
                connection.execute(
                    update(documents_table).where(documents_table.c.id == document.id).values(label=label)
                )
        return document

    def grant(self, label: str, who: Principal) -> None:
        with self.store.write() as connection:
            connection.execute(insert(grants).values(label=label, name=f"user:{who.id}"))
            connection.execute(insert(acceptances).values(base=label, name=f"user:{who.id}", accepted=True))

    def revoke(self, label: str, who: Principal) -> None:
        with self.store.write() as connection:
            connection.execute(grants.delete().where(grants.c.label == label, grants.c.name == f"user:{who.id}"))

    def tool_context(self, who: Principal = ANN, **more: Any) -> ToolContext:
        search_context = SearchContext(self.store, self.indexes, self.embedder)
        return ToolContext(
            search_context, lambda: people.scope_of(self.store, who), today=TODAY, mark="0123456789ab", **more
        )


def call(tool_context: ToolContext, name: str, /, **arguments: Any) -> Result:
    return asyncio.run(TOOLS[name](tool_context, arguments))


def refused(tool_context: ToolContext, name: str, arguments: Any) -> str:
    with pytest.raises(ToolError) as error:
        asyncio.run(TOOLS[name](tool_context, arguments))
    return str(error.value)


def after(tool_context: ToolContext, *results: Result) -> ToolContext:
    """The desk of a run that these results have come back to."""
    found = tool_context.found + tuple(each for result in results for each in result.found)
    evidence = tuple(
        Evidence(evidence_key(each.passage), each.passage, quote(each.passage, 0, len(each.passage.text)), 5.0, "q")
        for each in {each.passage.id: each for each in found}.values()
    )
    return replace(tool_context, found=found, evidence=evidence)


def names_found(result: Result, library: Library) -> set[str]:
    uris = {each.id: each.name for each in library.tool_context(ANN).sources()}
    return {uris[each.passage.doc_id] for each in result.found}
