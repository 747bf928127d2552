"""What every service of a workspace takes: the store, the settings, the person, and parts that are made when first needed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from assay.core.access import LOCAL, Base, Principal, Scope
from assay.core.errors import UserError
from assay.core.run import Run
from assay.store import documents, facts
from assay.store.access import grants
from assay.store.blobs import Blobs, Owner, Uploads, open_blobs, open_uploads, owner_of
from assay.store.database import open_cache

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from assay.core.settings import Settings
    from assay.core.types import Document
    from assay.index.protocol import Index, IndexEngine
    from assay.index.retrieve import SearchContext, Shelf
    from assay.language.glossary import Glossary
    from assay.models.embedder import Embedder
    from assay.models.llm import AnswerModel
    from assay.store.database import Store
    from assay.store.documents import Entry, Traits

CACHE = "cache.db"
LOCK_TIMEOUT = 3600.0  # seconds to wait for another process that writes to the same base


@dataclass
class SharedParts:
    """Parts that are expensive to make. All views of one workspace share them."""

    cache: Engine | None = None
    owner: Owner | None = None
    embedder: Embedder | None = None
    answer_model: AnswerModel | None = None
    index_engine: IndexEngine | None = None
    indexes: dict[str, Index] = field(default_factory=dict)  # by base id
    shelves: dict[object, Shelf] = field(default_factory=dict)  # see `index/retrieve.py`
    tried: dict[object, asyncio.Future[Any]] = field(
        default_factory=dict
    )  # the models that are being tried: `services/models.py`


@dataclass
class WorkspaceContext:
    """One workspace as one person uses it."""

    path: Path
    settings: Settings
    store: Store
    principal: Principal = LOCAL  # a server updates the groups of a person here while their run is under way
    parts: SharedParts = field(default_factory=SharedParts)

    def for_principal(self, principal: Principal) -> Self:
        """The same workspace for another person. Expensive parts are shared."""
        return replace(self, principal=principal)

    @property
    def cache(self) -> Engine:
        if self.parts.cache is None:
            self.parts.cache = open_cache(self.path / CACHE)
        return self.parts.cache

    @property
    def embedder(self) -> Embedder:
        from assay.models.factory import embedder_for

        self._check_consent(self.settings.embedder)
        if self.parts.embedder is None:
            self.parts.embedder = embedder_for(self.settings)
        return self.parts.embedder

    @embedder.setter
    def embedder(self, embedder: Embedder) -> None:
        """Use this embedder instead of the one that the settings name."""
        self.parts.embedder = embedder

    @property
    def answer_model(self) -> AnswerModel | None:
        """None if this installation has none."""
        from assay.models.local.bundled import bundled_answer_model

        return self.parts.answer_model or bundled_answer_model()

    @property
    def index_engine(self) -> IndexEngine:
        from assay.index.factory import index_engine

        if self.parts.index_engine is None:
            self.parts.index_engine = index_engine(self.settings, self.path)
        return self.parts.index_engine

    @property
    def owner(self) -> Owner:
        """This workspace, as the owner of places."""
        if self.parts.owner is None:
            self.parts.owner = owner_of(self.store)
        return self.parts.owner

    @property
    def blobs(self) -> Blobs:
        """The original bytes of documents."""
        return open_blobs(self.settings.blobs, self.path, self.owner)

    @property
    def uploads(self) -> Uploads:
        """Files that were sent to a server and are not read yet."""
        return open_uploads(self.settings.blobs, self.path, self.owner)

    async def check_reachable(self) -> None:
        """Raise if the database, the index or the originals cannot be reached now."""
        await asyncio.to_thread(facts.remembered, self.store, "version")
        await self.index_engine.versions()
        await asyncio.to_thread(self.blobs.has, "0" * 64)

    def close(self) -> None:
        self.store.close()
        if self.parts.cache is not None:
            self.parts.cache.dispose()

    def _check_consent(self, address: str) -> None:
        from assay.models.factory import remote_hosts, require_allowed

        require_allowed(self.settings)
        self._require_consent(remote_hosts(address, self.settings.proxy))

    def check_model_consent(self) -> None:
        """Refuse to use language models on another machine before the user has agreed to it, once per host."""
        from assay.models.factory import model_hosts, require_allowed

        require_allowed(self.settings)
        self._require_consent(model_hosts(self.settings))

    def check_cluster_consent(self, host: str) -> None:
        """Refuse to send files to a cluster on other machines before the user has agreed to it."""
        if not facts.agreed(self.store, host):
            raise UserError(
                f"Your files would be sent as a whole to the Ray cluster at {host}. If you agree to that, "
                f"run `assay config agree {host}` once."
            )

    def _require_consent(self, hosts: Sequence[str]) -> None:
        for host in hosts:
            if not facts.agreed(self.store, host):
                raise UserError(
                    f"Questions, text and figures of your documents would be sent to {host}. If you agree to that, "
                    f"run `assay config agree {host}` once."
                )

    def scope(self, bases: Sequence[str] = ()) -> Scope:
        """What this person may read now, limited to `bases` if any are named."""
        return grants.scope_of(self.store, self.principal).narrowed(bases)

    def sources(self, bases: Sequence[str] = ()) -> list[Entry]:
        """Every document this person may read, and every file that could not be read."""
        return documents.listing(
            self.store, self.scope(bases), documents.READY, documents.PENDING, documents.UNREADABLE
        )

    def traits(self, bases: Sequence[str] = ()) -> list[Traits]:
        """What filters know of each searchable document this person may read."""
        return documents.traits(self.store, self.scope(bases))

    def document(self, document: str) -> Document | None:
        return documents.get(self.store, document, self.scope())

    def run(self, run_id: str) -> Run:
        """A recorded run, with the text of the documents that this person may still read."""
        from assay.store.runs import records

        scope = self.scope()
        texts = documents.texts_for(self.store, scope)
        return Run(run_id, tuple(records.events_of(self.store, run_id, self.principal.id, texts, scope)))

    def require_owner(self, base: Base) -> Base:
        """The base, if this person may change it."""
        if not self.principal.owns(base):
            raise UserError(f"The knowledge base {base.name!r} is not yours to change.")
        return base

    def passage_size(self, embedder: Embedder) -> tuple[int, int]:
        """Size and overlap of passages in tokens, never more than the embedder can read."""
        size = min(self.settings.passage_tokens, embedder.window)
        return size, min(self.settings.passage_overlap, size // 2)

    def writer_lock(self, base: Base, timeout: float = LOCK_TIMEOUT) -> AbstractAsyncContextManager[None]:
        """Exclude every other writer of the base, in this process or another. UserError after `timeout` seconds."""
        return self.index_engine.lease(base.id, timeout)

    async def index(self, base: Base, *, create: bool = False) -> Index:
        """The index of the base, with vectors of the embedder that the settings name."""
        made_by, dim = grants.embedder_of(self.store, base)
        embedder, engine, indexes = self.embedder, self.index_engine, self.parts.indexes
        if create and (made_by != embedder.name or not engine.exists(base.id)):
            # In this order a kill in between leaves a base without an index, never one with the wrong index.
            await self.drop_index(base, forget_embedder=True)
            indexes[base.id] = await engine.open(base.id, embedder.dim, create=True)
            grants.set_embedder(self.store, base, embedder.name, embedder.dim)
        elif made_by and made_by != embedder.name:
            raise UserError(
                f"The knowledge base {base.name!r} was made with another embedder ({made_by}). "
                f"Run `assay reindex --base {base.name}`, or set `embedder` back if you changed it."
            )
        if base.id not in indexes:
            indexes[base.id] = await engine.open(base.id, dim, create=create)
        return indexes[base.id]

    async def existing_index(self, base: Base) -> Index | None:
        """The index of the base, whichever embedder made its vectors; None if there is none."""
        made_by, dim = grants.embedder_of(self.store, base)
        if not made_by or not self.index_engine.exists(base.id):
            return None
        return await self.index_engine.open(base.id, dim)

    async def drop_index(self, base: Base, *, forget_embedder: bool) -> None:
        """Delete the index of a base from the disk, damaged or not."""
        if forget_embedder:
            grants.set_embedder(self.store, base, "", 0)
        self.parts.indexes.pop(base.id, None)
        await self.index_engine.drop(base.id)

    @property
    def glossary(self) -> Glossary:
        """Measures and names of rows, with the team's own."""
        from assay.language.glossary import load_glossary

        return load_glossary(Path(self.settings.glossary) if self.settings.glossary else None)

    async def search_context(self, scope: Scope) -> SearchContext:
        """What a search needs, for the bases in `scope`."""
        from assay.index.fusion import Ranking
        from assay.index.retrieve import SearchContext
        from assay.models.factory import reranker_for
        from assay.models.local.bundled import LEXICAL, BundledEmbedder

        self._check_consent(self.settings.reranker)
        filled = [base for base in scope.bases if grants.embedder_of(self.store, base)[0]]
        embedder = self.embedder
        return SearchContext(
            store=self.store,
            indexes={base.id: await self.index(base) for base in filled},
            embedder=embedder,
            reranker=reranker_for(self.settings, embedder, self.answer_model),
            answer_model=self.answer_model,
            ranking=Ranking(lexical=LEXICAL) if isinstance(embedder, BundledEmbedder) else Ranking(),
            pool=self.settings.pool,
            per_document=self.settings.per_document,
            diversity=self.settings.diversity,
            glossary=self.glossary,
            shelves=self.parts.shelves,
        )


@dataclass(frozen=True)
class Service:
    """Things of one kind that can be done with a workspace, for one person."""

    context: WorkspaceContext

    @property
    def store(self) -> Store:
        return self.context.store

    @property
    def settings(self) -> Settings:
        return self.context.settings

    @property
    def principal(self) -> Principal:
        return self.context.principal


P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class OnStore(Generic[P, R]):
    """A function of the store as a method of a service: the store is given to it."""

    function: Callable[Concatenate[Store, P], R]

    def __get__(self, service: Service, owner: type[Service]) -> Callable[P, R]:
        return partial(self.function, service.store)
