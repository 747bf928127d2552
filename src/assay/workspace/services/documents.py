"""Adding, refreshing and removing documents."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import date as clock_date
from pathlib import Path
from typing import TYPE_CHECKING

from assay.core.access import Base, Scope
from assay.core.codec import digest
from assay.core.errors import AssayError, Missing, UserError
from assay.core.events import SearchFilters
from assay.core.formats import format_named
from assay.core.printable import clean_text
from assay.core.types import UPLOAD, Document, LeftOut
from assay.index.search_filter import Choice, choices, count_left_out, described_so
from assay.ingest import pipeline
from assay.ingest.changes import Watched, plan
from assay.ingest.near_copies import Restricted, restricted
from assay.ingest.parsed import PageBox, file_limits, is_unread
from assay.ingest.pipeline import IngestContext, Progress, current_parsers, recipe_of
from assay.ingest.places import YOUNG, Listed, Place, location, open_place
from assay.ingest.readiness import Readiness, summarise_files
from assay.ingest.sandbox.process import describe_missing
from assay.ingest.sources import SourceFile
from assay.ingest.workers import DocumentReader, LocalWorkers, local_workers
from assay.language.dates import first_day
from assay.language.terms import fold_case
from assay.models.factory import embedder_languages, is_folder
from assay.store import document_list, fetched
from assay.store import documents as stored
from assay.store.access import document_access, grants
from assay.store.dialect import parts
from assay.store.document_list import named
from assay.store.documents import PENDING, READY, UNREADABLE, Entry, correct
from assay.store.fetched import Fetched
from assay.workspace.context import OnStore, Service
from assay.workspace.forecast import WorkForecast
from assay.workspace.services import forecast
from assay.workspace.services.people import People
from assay.workspace.services.records import Records
from assay.workspace.types import DEFAULT_BASE, Synced

if TYPE_CHECKING:
    from assay.ingest.ray_workers import RayWorkers
    from assay.store.database import Store

Say = Callable[[Progress], None]
NOTED_AT_ONCE = 20  # files of a place
MARKED_AT_ONCE = 500  # documents in one transaction: others write in between
MAX_TAGS, MAX_TAG = 50, 100  # of a document; characters of one


class _Notes:
    """Remembers what was read of a place, a few files at a time: a sync that is killed fetches only the last ones again."""

    def __init__(
        self, store: Store, base: Base, address: str, files: Mapping[str, Listed], digests: Mapping[str, str], how: str
    ) -> None:
        self._store, self._base, self._place, self._how = store, base, digest(address), how
        self._files, self._digests = files, digests
        self._waiting: dict[str, Fetched] = {}

    def read(self, uri: str) -> None:
        listed, sha = self._files.get(uri), self._digests.get(uri)
        if listed is not None and sha and listed.mark and not listed.young:
            self._waiting[uri] = Fetched(self._place, listed.mark, sha, self._how)
        if len(self._waiting) >= NOTED_AT_ONCE:
            self.write()

    def write(self) -> None:
        fetched.note(self._store, self._base, self._waiting)
        self._waiting = {}


def _unchanged(listed: Listed, before: Fetched | None) -> Fetched | None:
    return before if before is not None and listed.mark and listed.mark == before.mark else None


def _digests(sources: Iterable[SourceFile]) -> set[str]:
    """The digests of their contents; one that cannot be read now is reported when it is added."""
    found: set[str] = set()
    for source in sources:
        with suppress(OSError):
            found.add(source.digest())
    return found


@dataclass(frozen=True)
class Documents(Service):
    """The documents of a workspace: adding, refreshing, correcting and removing them."""

    bytes_owned = OnStore(stored.bytes_owned)
    counts = OnStore(document_list.counts)
    create_base = OnStore(grants.create_base)
    describe_base = OnStore(grants.describe)
    entry = OnStore(document_list.entry)
    every = OnStore(document_list.every)
    forget = OnStore(stored.remove)
    get_or_create_base = OnStore(grants.get_or_create_base)
    head = OnStore(document_list.head)
    in_state = OnStore(stored.listing)
    page = OnStore(document_list.page)
    pending = OnStore(stored.pending)
    quoted_pages = OnStore(stored.quoted_pages)
    restrict = OnStore(document_access.restrict)
    stretch = OnStore(document_list.stretch)
    sums = OnStore(document_list.sums)
    tags = OnStore(document_list.tags)
    texts_for = OnStore(stored.texts_for)
    titles = OnStore(stored.titles)

    def listing(self, bases: Sequence[str] = ()) -> list[Entry]:
        """Every document this person may read, and every file that could not be read."""
        return self.context.sources(bases)

    def get(self, document: str) -> Document | None:
        return self.context.document(document)

    def titles_of_any(self, ids: Iterable[str]) -> dict[str, str]:
        """Titles of documents that this person may read, also of versions that were replaced."""
        return {id: found.title for id in ids if (found := self.get(id))}

    def named(self, name: str, scope: Scope) -> list[Entry]:
        """Documents with this name. One name may fit several; the name of a folder fits all files in it."""
        return named(name, stored.listing(self.store, scope, READY, PENDING, UNREADABLE))

    def original(self, document: Document) -> bytes | None:
        """The bytes of the file as it was added."""
        with suppress(Missing), self.context.blobs.as_file(document.digest) as path:
            return path.read_bytes()
        return None

    async def boxes(self, document: str, start: int, end: int) -> list[PageBox]:
        """The location of a span on the pages of a PDF; empty for formats without fixed pages."""
        from assay.ingest.pdf.ocr import find_boxes

        found = self.get(document)
        data = self.original(found) if found and format_named(found.kind).page_images else None
        return await find_boxes(found, data, start, end, file_limits(self.settings)) if found and data else []

    def left_out(self, where: SearchFilters) -> LeftOut | None:
        """How many of the documents that this person may read a search with these limits leaves out; None without limits."""
        return count_left_out(where, lambda: self.context.traits(where.bases))

    def described_so(self, where: SearchFilters) -> list[str] | None:
        """The ids of the searchable documents that have the dates and metadata of these limits; None without such limits."""
        if not (where.since or where.until or where.meta):
            return None
        return [each.id for each in described_so(where, self.context.traits(where.bases))]

    def choices(self, bases: Sequence[str] = ()) -> dict[str, tuple[Choice, ...]]:
        """What the searchable documents that this person may read can be chosen by."""
        return choices(self.context.traits(bases))

    def is_off(self, document: str) -> bool:
        """Whether a document is switched off."""
        entry = document_list.entry(self.store, document, self.context.scope())
        return entry is not None and entry.off

    def expect_again(self, entry: Entry) -> None:
        """Have a document read again when its file is next added, though neither has changed."""
        stored.note_parser(self.store, entry.id, "")

    def forecast(self, files: Sequence[SourceFile], base: str) -> WorkForecast:
        """What adding these files is expected to take."""
        return forecast.forecast_files(self.context, files, base)

    def record_added(self, expected: WorkForecast, report: Readiness) -> None:
        """Store a forecast of added files with what adding them took."""
        forecast.record_added(self.context, expected, report)

    async def add_sources(
        self,
        files: Sequence[SourceFile],
        base: str = DEFAULT_BASE,
        *,
        description: str = "",
        only_for: Sequence[str] = (),
        say: Say = lambda _: None,
        reader: DocumentReader | None = None,
        rebuild: bool = False,
        read_again: bool = True,
        around: pipeline.Surroundings | None = None,
    ) -> Readiness:
        """Make sources searchable, and what is pending.

        only_for: the people and groups who may read the sources besides the owner, from the first moment on; empty: as before
        reader: replaces the parsers
        rebuild: discard the index, damaged or not, so that every document is pending
        read_again: read pending documents of an earlier version from their originals; otherwise split the text that there is
        around: the place that the sources are of
        """
        async with self._workers(reader) as workers:
            if files or rebuild:
                await workers.check_guards()  # before anything is changed
            into = grants.get_or_create_base(self.store, base, self.principal, description)
            if rebuild:
                async with self.context.writer_lock(into):
                    grants.set_embedder(self.store, into, "", 0)
            began, last = time.monotonic(), None

            def listen(progress: Progress) -> None:
                nonlocal last
                last = progress
                say(progress)

            own = self.context.path.resolve()  # a workspace inside the folder that is added must not add itself
            files = [
                one
                for one in files
                if not one.path or one.fetch or one.uri.startswith(UPLOAD) or not one.path.is_relative_to(own)
            ]
            listen(Progress(0, len(files), 0, 0, 0.0))  # the total, before models are loaded and anything is read
            if only_for:
                uris = [one.uri for one in files]
                document_access.restrict(self.store, into, uris, only_for, self.principal.id)
            async with self._ingest_context(into, workers) as ingest:
                known = await asyncio.to_thread(self._restricted, into) if files else []
                ingest = replace(ingest, read_again=read_again, restricted=known, place=around)
                done = await pipeline.add_files(ingest, files, listen)
        seconds, embedded = time.monotonic() - began, last.embedded if last else 0
        known = embedder_languages(self.settings)
        report = summarise_files(into.name, str(self.context.path), done, known, seconds, embedded)
        return replace(report, warnings=(*report.warnings, *describe_missing(workers.missing_guards)))

    def _workers(self, reader: DocumentReader | None) -> AbstractAsyncContextManager[LocalWorkers | RayWorkers]:
        """Those that the setting `ingest_engine` names. With a reader of the caller's own, this process."""
        settings = self.settings
        limits, languages = file_limits(settings), settings.ocr_languages if settings.ocr else ""
        if settings.ingest_engine == "local" or reader is not None:
            return local_workers(limits, languages, reader)
        from assay.ingest.ray_workers import ray_workers

        return ray_workers(
            settings.ray_address, limits, languages, settings.ray_embedder_gpus, self.context.check_cluster_consent
        )

    @asynccontextmanager
    async def _ingest_context(self, base: Base, workers: LocalWorkers | RayWorkers) -> AsyncIterator[IngestContext]:
        """The pipeline for one base, while no other process writes to it."""
        async with self.context.writer_lock(base):
            fresh = grants.embedder_of(self.store, base)[0] != self.context.embedder.name
            index = await self.context.index(base, create=True)
            size, overlap = self.context.passage_size(self.context.embedder)
            yield IngestContext(
                store=self.store,
                cache=self.context.cache,
                blobs=self.context.blobs,
                workspace=self.context.path,
                engine=workers.engine(self.context.embedder, size, overlap),
                index=index,
                base=base,
                recipe=recipe_of(size, overlap, self.context.embedder.name),
                most_bytes=file_limits(self.settings).bytes,
                most_passages=self.settings.file_max_passages,
                fresh=fresh,
            )

    async def sync(
        self, place: Place | Path | str, base: str = DEFAULT_BASE, *, say: Say = lambda _: None
    ) -> tuple[Readiness, list[Entry]]:
        """Make the base agree with a place: a folder, an address or a connector of one's own. Adds new and changed files, and
        removes those that are gone."""
        synced = await self.look(place, base, say=say)
        assert synced.report is not None
        return synced.report, synced.removed

    async def look(
        self,
        place: Place | Path | str,
        base: str = DEFAULT_BASE,
        *,
        watched: Watched | None = None,
        say: Say = lambda _: None,
        reader: DocumentReader | None = None,
    ) -> Synced:
        """One sync. With the memory of a watch only what has changed is looked at, and what is gone goes after a while."""
        if isinstance(place, Path | str):
            place = open_place(place, self.settings)
        listed = await asyncio.to_thread(place.listed)
        if not listed:
            raise UserError(f"There is nothing to read in {place.address}, so nothing is removed either.")
        into = grants.get_or_create_base(self.store, base, self.principal)
        files = {location(place, each.name): each for each in listed}
        known, entries = fetched.known(self.store, into), self.context.sources([into.id])
        how = f"{pipeline.PARSER} {self.settings.ocr_languages if self.settings.ocr else ''}".strip()
        todo = plan(place.address, files, known, entries, how, watched, time.monotonic())
        if watched and not todo.read and not todo.remove and not any(each.state == PENDING for each in entries):
            return Synced(None, [], len(files), todo.again)
        digests = {
            uri: before.sha for uri, each in files.items() if (before := _unchanged(each, known.get(digest(uri))))
        }
        from assay.ingest.places.held import held_files

        with held_files(self.context.blobs.scratch, place) as hold:
            sources = {
                uri: replace(hold(uri, each), digests=digests, refused=uri in todo.refused)
                for uri, each in files.items()
            }
            reading = [sources[uri] for uri in todo.read]
            if todo.vanished:
                arriving = await asyncio.to_thread(_digests, reading)
                lost = [entry for entry in todo.vanished if entry.digest not in arriving]
                document_access.note_vanished(self.store, into, lost)
            note = _Notes(self.store, into, place.address, files, digests, how)

            def listen(progress: Progress) -> None:
                if progress.report is not None:
                    hold.release(progress.report.path)
                    note.read(progress.report.path)
                say(progress)

            around = pipeline.Surroundings(place.address, sources)
            try:
                report = await self.add_sources(reading, into.name, say=listen, around=around, reader=reader)
            finally:
                note.write()
        if watched is not None:
            unopened = {uri for uri in todo.read if uri not in digests}
            if unopened - watched.unopened:  # they went while they were read: perhaps to another name
                todo = replace(todo, remove=set[str](), again=YOUNG)
            watched.unopened = unopened
        removed = [each for each in self.context.sources([into.id]) if each.uri in todo.remove]
        await Records(self.context).erase(removed, self.context.scope([into.id]))
        own = digest(place.address)
        stale = {key for key, each in known.items() if each.place == own} - set(map(digest, files))
        fetched.forget(self.store, into, stale if watched is None else stale & set(map(digest, todo.remove)))
        return Synced(report, removed, len(files), todo.again)

    async def watch(
        self, place: Place | Path | str, base: str = DEFAULT_BASE, *, tell: Callable[[Synced | AssayError], None]
    ) -> None:
        """Keep the base in agreement with a place, until cancelled. `tell` hears what each look came to."""
        if isinstance(place, Path | str):
            place = open_place(place, self.settings)
        watched, every = Watched(self.settings.watch_grace), self.settings.watch_every
        from assay.ingest.places.watch import told_of_changes

        async with told_of_changes(place, self.context.path) as changed:
            while True:
                changed.clear()
                began = time.monotonic()
                try:
                    synced = await self.look(place, base, watched=watched)
                    pause = min(every, synced.again)
                    tell(synced)
                except AssayError as error:  # a disk that is not mounted, a server that is away
                    pause = every
                    tell(error)
                await asyncio.sleep(min(every, time.monotonic() - began))  # looking takes half of the time at most
                with suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), pause)

    def _restricted(self, base: Base) -> list[Restricted]:
        return [restricted(*each) for each in stored.restricted_texts(self.store, base)]

    async def remove(self, names: Sequence[str], base: str = "") -> list[Entry]:
        """Remove documents by path, file name, title or id, with everything that was stored of them."""
        bases = [base] if base else []
        entries = self.context.sources(bases)
        selected = list({entry.id: entry for name in names for entry in named(name, entries)}.values())
        await Records(self.context).erase(selected, self.context.scope(bases))
        return selected

    async def reindex(self, base: str = DEFAULT_BASE, *, say: Say = lambda _: None) -> Readiness:
        """Rebuild the index of a base with the current settings. The files are not needed: documents that an earlier version
        read are read again from their stored originals, of the others the text is split. Cached vectors of this embedder are
        reused. Where OCR is on, it reads the pages that it has not read."""
        into = self.context.require_owner(self.context.scope().named(base))
        with ExitStack() as held:
            unread: list[SourceFile] = []
            for entry in self.context.sources([into.id]) if self.settings.ocr else ():
                if is_unread(entry.status, entry.warnings) and self.context.blobs.has(entry.digest):
                    path = held.enter_context(self.context.blobs.as_file(entry.digest))
                    unread.append(SourceFile(entry.uri, entry.name, path, fetch=lambda: None))
                    self.expect_again(entry)
            return await self.add_sources(unread, into.name, say=say, rebuild=True)

    async def tidy_indexes(self) -> int:
        """Optimise the indexes to which much was written since that was done, and to which nobody adds documents now: an
        ingestion does it itself. Returns their number."""
        tidied = 0
        for base in grants.every_base(self.store):
            index = await self.context.existing_index(base)
            if index is None or not await index.is_untidy():
                continue
            with suppress(UserError):  # somebody holds the lease
                async with self.context.writer_lock(base, 0.0):
                    await index.optimise()
                    tidied += 1
        return tidied

    async def edit(self, document: str, title: str | None = None, date: str | None = None) -> None:
        """Correct what was found out about a document: its title, its date (empty: none). Its owner only; it is recorded."""
        base, entry = People(self.context).owned_document(document)
        if entry.state != READY:
            raise UserError(f"{entry.name} is being read, or could not be read: there is nothing to correct yet.")
        words = entry.title if title is None else " ".join(clean_text(title).split())
        if not words:
            raise UserError("A document needs a title.")
        day = entry.date if date is None else date or None
        if day:
            first_day(day, clock_date.today().isoformat())  # raises unless there is such a day
        async with self.context.writer_lock(base):
            correct(self.store, document, words, day, self.principal.id)
        # What is pending is made searchable again. The document is not read again: a new text would be a new document.
        await self.add_sources([], base.name, read_again=False)

    def mark(
        self,
        document: str,
        off: bool | None = None,
        tags: Sequence[str] | None = None,
        *,
        add: Sequence[str] = (),
        remove: Sequence[str] = (),
    ) -> Entry:
        """Switch a document off or on, and change its tags; None: as before. Its owner only; it is recorded, and holds at
        once."""
        _, entry = People(self.context).owned_document(document)
        if entry.state == UNREADABLE:
            raise UserError(f"{entry.name} could not be read: there is nothing to search in it.")
        marked = _marked(entry, off, tags, add, remove)
        if marked != entry:
            stored.mark(self.store, [marked], self.principal.id)
        return marked

    def mark_all(
        self,
        entries: Sequence[Entry],
        off: bool | None = None,
        tags: Sequence[str] | None = None,
        *,
        add: Sequence[str] = (),
        remove: Sequence[str] = (),
    ) -> tuple[list[Entry], int]:
        """The same for many documents at once, as they are listed; those of others, and what could not be read, are left out.
        Returns those that have changed, as they were before, and how many were left out."""
        owned = {base.id for base in self.context.scope().bases if self.principal.owns(base)}
        pairs = [
            (entry, _marked(entry, off, tags, add, remove))
            for entry in entries
            if entry.base in owned and entry.state in (READY, PENDING)
        ]
        changed = [(entry, marked) for entry, marked in pairs if entry != marked]
        for some in parts([marked for _, marked in changed], MARKED_AT_ONCE):
            stored.mark(self.store, some, self.principal.id)
        return [entry for entry, _ in changed], len(entries) - len(pairs)

    def outdated(self, bases: Sequence[str] = ()) -> str:
        """A sentence about documents of this person that a reindex would read or split otherwise; empty if there are none."""
        return self._describe_outdated([base for base in self.context.scope(bases).bases if self.principal.owns(base)])

    def outdated_of_all(self) -> str:
        """The same about the documents of everybody: for the operator."""
        return self._describe_outdated(grants.every_base(self.store))

    def _describe_outdated(self, bases: Sequence[Base]) -> str:
        """The sentence about these bases; empty if there is nothing to say."""
        counted = document_list.outdated(self.store, bases, current_parsers(), self._recipe())
        old, total = sum(old for old, _ in counted.values()), sum(total for _, total in counted.values())
        names = sorted(base.name for base in bases if counted.get(base.id, (0, 0))[0])
        if not old:
            return ""
        command = f"`assay reindex --base {names[0]}`" if len(names) == 1 else "`assay reindex --base NAME`"
        each = "" if len(names) == 1 else f" for each of {', '.join(names)}"
        counted_words = (
            f"{old:,} of {total:,} {'document' if total == 1 else 'documents'} {'was' if old == 1 else 'were'}"
        )
        return (
            f"{counted_words} read by an earlier version or with other settings: run {command}{each} to read and index "
            f"{'it' if old == 1 else 'them'} as it is done now."
        )

    def _recipe(self) -> str | None:
        """How passages are made with the current settings; None if the embedder cannot be used now, or would have to be
        loaded."""
        if self.context.parts.embedder is None and is_folder(self.settings.embedder):
            return None
        with suppress(AssayError, OSError):
            embedder = self.context.embedder
            return recipe_of(*self.context.passage_size(embedder), embedder.name)
        return None


def _marked(
    entry: Entry, off: bool | None, tags: Sequence[str] | None, add: Sequence[str], remove: Sequence[str]
) -> Entry:
    gone = set(map(fold_case, parse_tags(remove)))
    wanted = parse_tags((*(entry.tags if tags is None else tags), *add))
    kept = tuple(tag for tag in wanted if fold_case(tag) not in gone)
    return replace(entry, off=entry.off if off is None else off, tags=kept)


def parse_tags(given: Iterable[str]) -> tuple[str, ...]:
    """Tags as they are kept, in order: a comma separates two, and case does not make another."""
    words = (" ".join(clean_text(part).split()) for each in given for part in each.split(","))
    tags: dict[str, str] = {}
    for tag in filter(None, words):
        tags.setdefault(fold_case(tag), tag)
    if len(tags) > MAX_TAGS or any(len(tag) > MAX_TAG for tag in tags.values()):
        raise UserError(f"A document has at most {MAX_TAGS} tags of {MAX_TAG} characters.")
    return tuple(tag for _, tag in sorted(tags.items()))
