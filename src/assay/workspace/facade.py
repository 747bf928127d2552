"""The façade and the only composition root: open a workspace, then add, search, ask. Everything below is wired here."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.core.access import LOCAL, Base, Principal, Scope
from assay.core.errors import UserError
from assay.core.events import Event, SearchFilters
from assay.core.formats import format_named
from assay.core.settings import Settings, load_settings
from assay.core.types import UPLOAD, Document, Hit
from assay.ingest.parsed import limits_from
from assay.ingest.sources import Source, digests, sources
from assay.store import documents, facts
from assay.store.access import grants
from assay.store.database import STATE, Store, claim, open_cache, open_store
from assay.store.documents import Entry
from assay.store.runs import erasure

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from assay.core.account import Account
    from assay.core.run import Run
    from assay.index.protocol import Index, IndexEngine
    from assay.index.retrieve import SearchContext
    from assay.ingest.parsed import PageBox
    from assay.ingest.pipeline import IngestContext, Progress, Reader
    from assay.ingest.readiness import Readiness
    from assay.models.embedder import Embedder
    from assay.store.threads import Thread
    from assay.workspace.ask import AskOptions
    from assay.workspace.synthesise import SynthesisRequest

CACHE, ORIGINALS = "cache.db", "originals"
DEFAULT_BASE = "default"
PATIENCE = 3600.0  # seconds to wait for somebody else who fills the same base


def default_workspace() -> Path:
    """Where documents are kept when nobody says otherwise: $ASSAY_WORKSPACE, or the user's own data folder."""
    import platformdirs

    given = os.environ.get("ASSAY_WORKSPACE")
    return Path(given) if given else Path(platformdirs.user_data_dir("assay", appauthor=False)) / "workspace"


def open_workspace(
    path: Path | str | None = None, *, create: bool = False, principal: Principal = LOCAL, **flags: Any
) -> Workspace:
    """The workspace in `path`, as one person sees it. `flags` are settings that win over environment and file."""
    folder = Path(path).expanduser() if path else default_workspace()
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{str(folder)!r} is a file; a workspace is a folder.")
    if create:
        claim(folder)
    store = open_store(folder / STATE, create=create)
    opened = Workspace(folder, load_settings(folder, flags), store, principal)
    if erasure.unfinished(store):
        from assay.workspace.erase import finish_now

        finish_now(opened)
    return opened


@dataclass
class Workspace:
    """Documents, their index and the runs over them, for one person."""

    path: Path
    settings: Settings
    store: Store
    principal: Principal = LOCAL
    _indexes: dict[str, Index] = field(default_factory=dict)
    _whole: Workspace | None = None  # whose parts are used, where this is another person's view

    # Parts, made when first needed: most commands need few of them, and some are heavy.

    @cached_property
    def cache(self) -> Engine:
        return self._whole.cache if self._whole else open_cache(self.path / CACHE)

    @cached_property
    def embedder(self) -> Embedder:
        from assay.models.factory import embedder_for

        self._agreed(self.settings.embedder)
        return self._whole.embedder if self._whole else embedder_for(self.settings)

    @cached_property
    def index_engine(self) -> IndexEngine:
        from assay.index.factory import index_engine

        return index_engine(self.settings, self.path)

    def _agreed(self, address: str) -> None:
        """Nothing is sent to another machine before the person has agreed to it, once."""
        from assay.models.factory import remote_hosts

        self._agreed_to(remote_hosts(address, self.settings.proxy))

    def models_agreed(self) -> None:
        from assay.models.factory import model_hosts

        self._agreed_to(model_hosts(self.settings))

    def _agreed_to(self, hosts: Sequence[str]) -> None:
        for host in hosts:
            if not facts.agreed(self.store, host):
                raise UserError(
                    f"Questions and the text of your documents would be sent to {host}. "
                    f"If you agree to that, run `assay config agree {host}` once."
                )

    def scope(self, bases: Sequence[str] = ()) -> Scope:
        """What this person may read, as of now; only these bases when they are named."""
        return grants.scope_of(self.store, self.principal).narrowed(bases)

    def seen_by(self, principal: Principal) -> Workspace:
        """The same workspace as another person sees it; what is heavy is shared, whoever needs it first."""
        return Workspace(self.path, self.settings, self.store, principal, self._indexes, self._whole or self)

    def close(self) -> None:
        self.store.close()
        if "cache" in self.__dict__:
            self.cache.dispose()

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Documents

    async def add(
        self,
        paths: Sequence[Path | str],
        base: str = DEFAULT_BASE,
        *,
        description: str = "",
        say: Callable[[Progress], None] = lambda _: None,
    ) -> Readiness:
        """Make files and folders searchable. Unchanged ones cost nothing; a stopped add is carried on."""
        return await self.add_sources(sources([Path(path) for path in paths]), base, description=description, say=say)

    async def add_sources(
        self,
        files: Sequence[Source],
        base: str = DEFAULT_BASE,
        *,
        description: str = "",
        say: Callable[[Progress], None] = lambda _: None,
        reader: Reader | None = None,
    ) -> Readiness:
        """The same for sources that are at hand; `reader` takes the place of the parsers where there is nothing to parse."""
        from assay.ingest import pipeline

        into = grants.base_named(self.store, base, self.principal, description)
        began, last = time.monotonic(), None

        def listen(progress: Progress) -> None:
            nonlocal last
            last = progress
            say(progress)

        own = self.path.resolve()  # a workspace inside the folder that is added does not swallow itself
        sent = UPLOAD
        files = [one for one in files if not one.path or one.uri.startswith(sent) or not one.path.is_relative_to(own)]
        async with self._intake(into, reader) as intake:
            files_done = await pipeline.add(intake, files, listen)
        return self._readiness(into, files_done, time.monotonic() - began, last.embedded if last else 0)

    def _readiness(self, base: Base, files: Sequence[Any], seconds: float, embedded: int) -> Readiness:
        from assay.ingest.readiness import readiness
        from assay.models.factory import embedder_languages

        return readiness(base.name, str(self.path), files, embedder_languages(self.settings), seconds, embedded)

    @asynccontextmanager
    async def _intake(self, base: Base, reader: Reader | None = None) -> AsyncIterator[IngestContext]:
        """The pipeline for one base, while no other process fills it."""
        from assay.ingest.pdf import ocr
        from assay.ingest.pipeline import IngestContext
        from assay.ingest.sandbox.runner import Sandbox

        async with self.only_writer(base):
            made_before = grants.embedder_of(self.store, base)[0] == self.embedder.name
            index = await self._index(base, create=True)
            fresh = not made_before
            size, overlap = self.split(self.embedder)
            sandbox = Sandbox(limits=limits_from(self.settings))
            try:
                yield IngestContext(
                    store=self.store,
                    cache=self.cache,
                    originals=self.path / ORIGINALS,
                    reader=reader
                    or (ocr.Reader(sandbox, self.settings.ocr_languages) if self.settings.ocr else sandbox),
                    embedder=self.embedder,
                    index=index,
                    base=base,
                    size=size,
                    overlap=overlap,
                    most_bytes=limits_from(self.settings).bytes,
                    fresh=fresh,
                )
            finally:
                sandbox.close()

    def split(self, embedder: Embedder) -> tuple[int, int]:
        """Size and overlap of passages; never more than the embedder reads."""
        size = min(self.settings.passage_tokens, embedder.window)
        return size, min(self.settings.passage_overlap, size // 2)

    def only_writer(self, base: Base, patience: float = PATIENCE) -> AbstractAsyncContextManager[None]:
        """While nobody else, in this process or another, fills the base. UserError after `patience` seconds."""
        return self.index_engine.lease(base.id, patience)

    def owned(self, base: Base) -> Base:
        """The base, if this person may change it."""
        if not self.principal.owns(base):
            raise UserError(f"The knowledge base {base.name!r} is not yours to change.")
        return base

    def drop_index(self, base: Base) -> None:
        """What is open of a base's index is not looked at any more."""
        self._indexes.pop(base.id, None)

    async def _index(self, base: Base, *, create: bool = False) -> Index:
        """The base's index, with vectors of the embedder that the settings name."""
        made_by, dim = grants.embedder_of(self.store, base)
        lost = bool(made_by) and not self.index_engine.exists(base.id)
        if create and (lost or made_by != self.embedder.name):
            # In this order, so that a kill in between leaves a base without an index, and not one with a wrong index.
            grants.set_embedder(self.store, base, "", 0)
            self._indexes.pop(base.id, None)
            await self.index_engine.drop(base.id)
            self._indexes[base.id] = await self.index_engine.open(base.id, self.embedder.dim, create=True)
            grants.set_embedder(self.store, base, self.embedder.name, self.embedder.dim)
        elif made_by and made_by != self.embedder.name:
            raise UserError(
                f"The knowledge base {base.name!r} was made with another embedder ({made_by}). "
                f"Run `assay reindex --base {base.name}`, or set the embedder back."
            )
        if base.id not in self._indexes:
            self._indexes[base.id] = await self.index_engine.open(base.id, dim, create=create)
        return self._indexes[base.id]

    async def sync(
        self, folder: Path | str, base: str = DEFAULT_BASE, *, say: Callable[[Progress], None] = lambda _: None
    ) -> tuple[Readiness, list[Entry]]:
        """Make the base agree with a folder: new and changed files are added, those that are gone are removed."""
        root = await asyncio.to_thread(lambda: Path(folder).expanduser().resolve())
        if not root.is_dir():
            raise UserError(f"There is no folder {str(folder)!r} to sync with.")
        files = await asyncio.to_thread(sources, [root])
        here = {source.uri for source in files}
        arriving = await asyncio.to_thread(digests, files)
        grants.base_named(self.store, base, self.principal)
        gone = [
            entry
            for entry in self.sources([base])
            if Path(entry.uri).is_relative_to(root) and entry.uri not in here and entry.digest not in arriving
        ]
        await self._removed(gone, self.scope([base]))
        return await self.add_sources(files, base, say=say), gone

    async def remove(self, names: Sequence[str], base: str = "") -> list[Entry]:
        """Remove documents by path, file name, title or id, with their words, their rows and their original bytes."""
        scope = self.scope([base] if base else [])
        entries = self.sources([base] if base else [])
        chosen = {entry.id: entry for name in names for entry in self.named(name, scope, entries)}
        await self._removed(list(chosen.values()), scope)
        return list(chosen.values())

    async def _removed(self, chosen: Sequence[Entry], scope: Scope) -> None:
        from assay.workspace.erase import erase

        await erase(self, chosen, scope)

    async def reindex(self, base: str = DEFAULT_BASE, *, say: Callable[[Progress], None] = lambda _: None) -> Readiness:
        """Build a base's index again, as the settings say now. Texts are kept, so the files are not needed; vectors too,
        so that only what is new to this embedder is embedded."""
        into = self.owned(self.scope().named(base))
        async with self.only_writer(into):
            grants.set_embedder(self.store, into, "", 0)  # nothing in the index counts any more, damaged or not
        return await self.add_sources([], into.name, say=say)

    async def delete_base(self, name: str) -> None:
        """A knowledge base with everything in it."""
        from assay.workspace.erase import erase_base

        await erase_base(self, self.owned(self.scope().named(name)))

    def backup(self, to: Path) -> int:
        """The whole workspace as one file, while nobody writes."""
        from assay.governance.backup import backup, while_nobody_adds
        from assay.index.lease import lease_path

        everyones = grants.told_apart(grants.every_base(self.store), self.principal.id)
        with while_nobody_adds({base.name: lease_path(self.path, base.id) for base in everyones}):
            return backup(self.path, self.store, to)

    def named(self, name: str, scope: Scope, entries: Sequence[Entry] | None = None) -> list[Entry]:
        """Documents that go by this name; one name may fit several, a folder's name fits all below it."""
        from assay.store.document_names import named

        if entries is None:
            entries = documents.listing(self.store, scope, documents.READY, documents.PENDING, documents.UNREADABLE)
        return named(name, entries)

    def sources(self, bases: Sequence[str] = ()) -> list[Entry]:
        """Every document this person may read, and every file that could not be read."""
        return documents.listing(
            self.store, self.scope(bases), documents.READY, documents.PENDING, documents.UNREADABLE
        )

    def document(self, document: str) -> Document | None:
        return documents.get(self.store, document, self.scope())

    def original(self, document: Document) -> bytes | None:
        """The bytes as they came in."""
        from assay.ingest.pipeline import original_path

        place = original_path(self.path / ORIGINALS, document.digest)
        return place.read_bytes() if place.exists() else None

    async def boxes(self, document: str, start: int, end: int) -> list[PageBox]:
        """Where a span stands on the pages of a PDF; nothing for formats without pages of their own."""
        from assay.ingest.pdf.ocr import boxes_of

        found = self.document(document)
        data = self.original(found) if found and format_named(found.kind).page_images else None
        return await boxes_of(found, data, start, end, limits_from(self.settings)) if found and data else []

    # Searching

    async def search_context(self, scope: Scope) -> SearchContext:
        """What a search looks through, for one run."""
        from assay.index.retrieve import SearchContext
        from assay.models.factory import reranker_for

        self._agreed(self.settings.reranker)
        filled = [base for base in scope.bases if grants.embedder_of(self.store, base)[0]]
        return SearchContext(
            store=self.store,
            indexes={base.id: await self._index(base) for base in filled},
            embedder=self.embedder,
            reranker=reranker_for(self.settings, self.embedder),
            pool=self.settings.pool,
            per_document=self.settings.per_document,
            diversity=self.settings.diversity,
        )

    async def search(self, query: str, k: int = 10, where: SearchFilters | None = None) -> list[Hit]:
        """The k best passages for a query."""
        from assay.index.retrieve import retrieve
        from assay.index.search_filter import filter_for

        where = where or SearchFilters()
        scope = self.scope(where.bases)
        return await retrieve(await self.search_context(scope), query, k, scope, filter_for(where))

    # Asking: the work is in `asking.py`

    def ask(self, question: str, how: AskOptions | None = None, **given: Any) -> AsyncIterator[tuple[Run, Event]]:
        """Research a question; every event is on disk before it is given out, with the run as it then stands. How is said
        with a `How`, or with its fields: `ask(question, mode=Mode.quick)`."""
        from assay.workspace import ask as asking

        return asking.ask(self, question, how or asking.AskOptions(**given))

    def resume(self, run_id: str, choice: str = "", words: str = "") -> AsyncIterator[tuple[Run, Event]]:
        """Carry on a run that was stopped, has failed or waits for a choice; what is recorded is not done again."""
        from assay.workspace import ask as asking

        return asking.resume(self, self.run(run_id), choice, words)

    def chat(self, question: str, thread: str = "", how: AskOptions | None = None) -> AsyncIterator[tuple[Run, Event]]:
        """One turn of a conversation: in a thread, or, where none is named, in a new one."""
        from assay.workspace import ask as asking
        from assay.workspace import chat as chatting

        return chatting.chat(self, question, thread, how or asking.AskOptions())

    def threads(self, limit: int = 50) -> list[Thread]:
        """This person's conversations, the latest first."""
        from assay.store import threads

        return threads.listing(self.store, self.principal.id, limit)

    def thread(self, name: str) -> tuple[Thread, list[Run]]:
        """A conversation with its turns."""
        from assay.workspace import chat as chatting

        return chatting.thread(self, name)

    def synthesise(
        self, documents: Sequence[str], wish: SynthesisRequest | None = None
    ) -> AsyncIterator[tuple[Run, Event]]:
        """Read these documents, by id, and write one account of them; `resume` carries it on like any run."""
        from assay.workspace import synthesise as synthesising

        return synthesising.synthesise(self, documents, wish or synthesising.SynthesisRequest())

    def account(self, run_id: str) -> Account:
        """What a synthesis has come to, as a page, a file or a program wants it."""
        from assay.workspace import synthesise as synthesising

        return synthesising.account(self, self.run(run_id))

    def run(self, run_id: str) -> Run:
        """A run as it was recorded, with the words of the documents that this person may still read."""
        from assay.core.run import Run
        from assay.store.runs import records

        scope = self.scope()
        texts = documents.texts_for(self.store, scope)
        return Run(run_id, tuple(records.events_of(self.store, run_id, self.principal.id, texts, scope)))
