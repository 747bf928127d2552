"""The ingestion pipeline of a knowledge base: read, store, split, embed, index, report.

The order of writes makes a kill at any point harmless: a document is first stored as *pending* with its text, then its rows go
into the index, and only then is it *ready* and reported. The next `add` finishes pending documents, without their files; those
of an earlier version are read again from the stored originals. Index rows of documents that are not ready are never shown (see
`index/retrieve.py`).
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import io
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from assay.core.access import Base, Scope
from assay.core.codec import digest, dumps, to_json
from assay.core.errors import Missing
from assay.core.identity import searched_identity, unsaid_identity
from assay.core.types import HIDDEN, STDIN, UPLOAD, Document, Passage, Row
from assay.index.filters import In
from assay.index.protocol import Index
from assay.ingest.near_copies import Restricted, held_inside, restricted
from assay.ingest.parsed import FileLimits, Parsed, Status, Unreadable
from assay.ingest.pdf.ocr import OCR_LANGUAGES
from assay.ingest.places import is_address, is_below
from assay.ingest.readiness import FileReport
from assay.ingest.sources import SourceFile
from assay.ingest.workers import BATCH, IngestEngine
from assay.store import documents, embedding_cache
from assay.store.access import document_access
from assay.store.blobs import Blobs, lock_original
from assay.store.database import Store
from assay.store.documents import Entry

if TYPE_CHECKING:
    from sqlalchemy import Engine

PARSER = "6"  # incremented when the same file would now give a different text, other tables or figures
WAITING = 64  # documents read ahead of the embedder: enough to keep it busy, few enough for memory
BYTES_AT_ONCE = 128_000_000  # of files that are read at the same time; a larger file is read alone
ENOUGH = 32  # passages of which a batch does not wait for more
MOMENT = 1.0  # seconds that a smaller batch waits
OPTIMISE_EVERY = 20  # batches
SWITCHED_OFF = "It is switched off, so it is not searched. `assay on` switches it on."
TEXT_KEPT = "The text that an earlier version read was kept. {why}"
PARTLY = "Only the first {most:,} of its {all:,} passages can be searched; split it, or raise `file_max_passages`."


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of an ingestion; `report` is set when a file has just been finished."""

    files: int
    of: int
    passages: int
    embedded: int
    seconds: float
    report: FileReport | None = None


@dataclass(frozen=True, slots=True)
class IngestContext:
    """The dependencies of the pipeline."""

    store: Store
    cache: Engine
    blobs: Blobs
    workspace: Path  # its folder, for locks
    engine: IngestEngine
    index: Index
    base: Base
    recipe: str  # how passages are made: see `recipe_of`
    most_bytes: int = 200_000_000
    most_passages: int = 20_000
    fresh: bool = False  # the index was just created, so it has no old rows to delete
    read_again: bool = True  # pending documents that an earlier version read, from their originals
    restricted: list[Restricted] = field(default_factory=list)  # documents that may be in new ones in another form
    place: Surroundings | None = None  # where the files come from, if they are those of a place


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The files of a place as it listed them: what is not among them is gone from there."""

    address: str
    files: Mapping[str, SourceFile]  # by location

    def still_says(self, uri: str, sha: str) -> bool:
        return uri in self.files and self.files[uri].digest() == sha


def recipe_of(size: int, overlap: int, embedder: str) -> str:
    """How passages are made: their size and overlap in tokens, and the embedder's name."""
    return f"{size}/{overlap}/{embedder}"


def current_parsers() -> tuple[str, str]:
    """The parser versions of texts that this version would not read otherwise now."""
    return PARSER, kept_text_parser()


@dataclass(slots=True)
class _Tally:
    """The progress of both halves of the pipeline."""

    of: int
    say: Callable[[Progress], None]
    began: float = field(default_factory=time.monotonic)
    reports: list[FileReport] = field(default_factory=list)
    passages: int = 0
    embedded: int = 0

    def done(self, report: FileReport) -> None:
        self.reports.append(report)
        self.tick(report)

    def tick(self, report: FileReport | None = None) -> None:
        spent = time.monotonic() - self.began
        self.say(
            Progress(len(self.reports), max(self.of, len(self.reports)), self.passages, self.embedded, spent, report)
        )


@dataclass(frozen=True, slots=True)
class _Ready:
    """A parsed document on its way to the index, and the report of its file."""

    document: Document
    report: FileReport
    pieces: Sequence[Passage] = ()


@dataclass(frozen=True, slots=True)
class _New:
    """A file that is to be read: how it is reported then, and the document that was at its location."""

    outcome: str
    former: Entry | None


_Embedded = tuple[Sequence[_Ready], Sequence[Row]]  # documents, and the rows of their passages


async def add_files(
    intake: IngestContext, files: Sequence[SourceFile], say: Callable[[Progress], None] = lambda _: None
) -> list[FileReport]:
    """Make these files searchable, and finish what an earlier add left pending. Every file ends in a report."""
    await synchronise_index(intake.store, intake.index, intake.base)
    redo = documents.pending(intake.store, intake.base)
    asked_for = {source.uri for source in files}
    tally = _Tally(of=len(files) + sum(entry.uri not in asked_for for entry in redo), say=say)
    queue: asyncio.Queue[_Ready | None] = asyncio.Queue(WAITING)
    done: asyncio.Queue[_Embedded | None] = asyncio.Queue(1)

    async def split(ready: _Ready | None) -> None:
        if ready is not None:
            pieces = ready.pieces or (await intake.engine.split(ready.document))[: intake.most_passages]
            await queue.put(replace(ready, pieces=pieces))

    async def read(work: Awaitable[_Ready | None]) -> None:
        await split(await work)

    async def read_all(reading: _FilesUnderWay) -> None:
        for entry in redo:
            if entry.uri in asked_for or (document := _kept(intake, entry)) is None:
                continue
            if intake.read_again and entry.parser != PARSER:
                await reading.room(entry.bytes)
                reading.start(read(_parsed_again(intake, entry, document)), entry.uri, entry.digest, size=entry.bytes)
            else:
                await reading.room()
                reading.start(split(_Ready(document, _report(entry, "finished"))))
        for source in await asyncio.to_thread(_restricted_first, intake, files):
            if source is None:
                await reading.all_done()
                continue
            await reading.room()
            try:
                if (source.listed or 0) > intake.most_bytes:  # it is not fetched for nothing
                    why = FileLimits(bytes=intake.most_bytes).describe_excess(source.size())
                    _refuse(intake, source, Unreadable(Status.too_large, why), "", source.size(), tally)
                    continue
                size, sha = await asyncio.to_thread(lambda source=source: (source.size(), source.digest()))
                await reading.settled(source.uri, sha)
                found = await _compared(intake, source, sha, tally)
            except OSError as error:
                _report_unopened(intake, source, error, tally)
                continue
            if isinstance(found, _New):
                await reading.room(size)
                reading.start(read(_parsed(intake, source, size, found, tally)), source.uri, sha, size=size)
            elif found is not None:
                reading.start(split(found))
        await reading.all_done()
        await queue.put(None)

    try:
        async with asyncio.TaskGroup() as stages:  # reading and indexing continue while the embedder works
            stages.create_task(read_all(_FilesUnderWay(stages, intake.engine.files_at_once)))
            stages.create_task(_embed_all(intake, queue, done, tally))
            stages.create_task(_index_all(intake, done, tally))
    except ExceptionGroup as group:
        raise group.exceptions[0] from group  # the first error suffices; the other stages were cancelled
    await synchronise_index(intake.store, intake.index, intake.base)
    await intake.index.optimise()
    return tally.reports


def _kept(intake: IngestContext, entry: Entry) -> Document | None:
    own = Scope(intake.base.owner, (intake.base,), frozenset({entry.label}))
    return documents.get(intake.store, entry.id, own)


def _report(entry: Entry, outcome: str, why: str = "") -> FileReport:
    why = " ".join(filter(None, (why or entry.why, SWITCHED_OFF if entry.off else "")))
    return FileReport(
        entry.uri, entry.status, outcome, entry.pages, entry.characters, entry.passages, why,
        entry.title, entry.language, entry.warnings,
    )  # fmt: skip


class _FilesUnderWay:
    """The files that are being read, at most so many at a time. Whether a file is new, a duplicate or a moved one is decided in
    the order of the files, and after every earlier file with its location or content: the same however many are under way."""

    def __init__(self, stages: asyncio.TaskGroup, most: int) -> None:
        self._stages, self._most = stages, most
        self._tasks: dict[asyncio.Task[None], tuple[frozenset[str], int]] = {}  # locations and digests, bytes

    async def room(self, size: int = 0) -> None:
        """Wait until one more file of `size` bytes may be read."""
        await self._until(
            lambda: (
                len(self._tasks) < self._most and size + sum(held for _, held in self._tasks.values()) <= BYTES_AT_ONCE
            )
        )

    async def settled(self, *keys: str) -> None:
        """Wait until no file under way has one of these locations or digests."""
        await self._until(lambda: all(known.isdisjoint(keys) for known, _ in self._tasks.values()))

    async def all_done(self) -> None:
        await self._until(lambda: not self._tasks)

    def start(self, work: Coroutine[None, None, None], *keys: str, size: int = 0) -> None:
        task = self._stages.create_task(work)
        self._tasks[task] = frozenset(keys), size
        task.add_done_callback(self._tasks.pop)

    async def _until(self, met: Callable[[], bool]) -> None:
        while self._tasks and not met():
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)


def _report_unopened(intake: IngestContext, source: SourceFile, error: OSError, tally: _Tally) -> None:
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        raise error
    why = f"The file could not be opened ({error.strerror}). Check its permissions and add it again."
    _refuse(intake, source, Unreadable(Status.unreadable, why), "", 0, tally)


async def _compared(intake: IngestContext, source: SourceFile, sha: str, tally: _Tally) -> _Ready | _New | None:
    """Compare a file with the documents that there are. None: there is nothing to do, and that is reported."""
    store, base = intake.store, intake.base
    known = documents.at(store, base, source.uri)
    if known and known.digest == sha and known.parser == PARSER:
        if known.state == documents.READY and known.recipe == intake.recipe:
            tally.done(_report(known, "unchanged"))
            return None
        if (document := _kept(intake, known)) is not None and known.state in {documents.READY, documents.PENDING}:
            if known.state == documents.READY:  # the splitter or the embedder has changed, the text has not
                documents.mark_pending(store, [known.id])
            return _Ready(document, _report(known, "finished"))
    if known and source.refused and known.state == documents.UNREADABLE and known.digest == sha:
        tally.done(_report(known, "failed"))
        return None
    twin = next((entry for entry in documents.with_digest(store, base, sha) if entry.uri != source.uri), None)
    if twin and twin.parser == PARSER:
        if await asyncio.to_thread(_still_says, intake.place, twin):
            documents.retire(store, base, source.uri)  # the previous document at this URI is no longer its content
            why = f"The same content as {twin.uri}; kept once."
            if document_access.label_at(store, base, source.uri) not in {base.id, twin.label}:
                why += " Whoever may read that one may read it: the access list given here changes nothing."
            tally.done(_report(replace(twin, uri=source.uri), "duplicate", why))
            return None
        # Its rows are rewritten under the new URI; its vectors are cached.
        twin = replace(twin, label=documents.move(store, twin, source.uri))
        if (document := _kept(intake, twin)) is not None:
            listed = " Only those on its access list may read it." if document_access.has_own_list(twin) else ""
            return _Ready(document, _report(replace(twin, uri=source.uri), "moved", f"Was {twin.uri}.{listed}"))
    return _New("replaced" if known and known.characters else "added", known)


async def _parsed(intake: IngestContext, source: SourceFile, size: int, new: _New, tally: _Tally) -> _Ready | None:
    """Copy the bytes, then parse the copy: a file that changes meanwhile cannot be read half old and half new. The copy becomes
    the stored original together with the document."""
    try:
        if size > intake.most_bytes:  # the reader refuses it, so it is not stored
            return await _read_copy(intake, source, "", None, size, new, tally)
        sha, copy = await asyncio.to_thread(copy_original, intake.blobs.scratch, source)
        try:
            return await _read_copy(intake, source, sha, copy, size, new, tally)
        finally:
            await asyncio.to_thread(copy.unlink, True)
            # The bytes of a scan that could not be read are held by nothing else.
            if (before := new.former) and before.status == Status.scanned and before.digest != sha:
                await intake.store.flushed()
                await asyncio.to_thread(forget_originals, intake.store, intake.blobs, intake.workspace, [before.digest])
    except OSError as error:
        _report_unopened(intake, source, error, tally)
        return None


async def _read_copy(
    intake: IngestContext, source: SourceFile, sha: str, copy: Path | None, size: int, new: _New, tally: _Tally
) -> _Ready | None:
    data = source.data if source.data is not None else copy or source.path or source.read()
    parsed = await intake.engine.reader.read(data, source.name)
    if isinstance(parsed, Parsed) and not parsed.text.strip():  # a document without text never counts as read
        parsed = Unreadable(Status.empty, "The file has no text.")
    if isinstance(parsed, Unreadable):
        if parsed.status is Status.scanned and copy is not None:  # it can be read with OCR later
            with lock_original(intake.store, intake.workspace, sha):
                intake.blobs.put(sha, copy)
                _refuse(intake, source, parsed, sha, size, tally)
            return None
        _refuse(intake, source, parsed, sha, size, tally)
        return None
    document = _document(intake, source.uri, source.name, sha, parsed)
    return await _stored(intake, document, parsed.warnings, copy, size, new)


async def _parsed_again(intake: IngestContext, entry: Entry, kept: Document) -> _Ready:
    """Parse the original of a document again. Its text stays where the original is gone or can no longer be read."""
    parsed = await _read_original(intake, entry)
    if isinstance(parsed, Parsed):
        document = _document(intake, entry.uri, entry.name, entry.digest, parsed)
        new = _New("replaced", documents.at(intake.store, intake.base, entry.uri))
        return await _stored(intake, document, parsed.warnings, None, entry.bytes, new)
    documents.note_parser(intake.store, entry.id, kept_text_parser())
    warnings = (*entry.warnings, TEXT_KEPT.format(why=parsed.why))
    return _Ready(kept, replace(_report(entry, "finished", " ".join(warnings)), warnings=warnings))


def kept_text_parser() -> str:
    """The parser version of a text that an earlier parser read, and that this one could not read again."""
    return f"{PARSER}/kept"


async def _read_original(intake: IngestContext, entry: Entry) -> Parsed | Unreadable:
    try:
        with ExitStack() as held:
            path = await asyncio.to_thread(held.enter_context, intake.blobs.as_file(entry.digest))
            if await asyncio.to_thread(SourceFile(entry.uri, entry.name, path=path).digest) != entry.digest:
                return Unreadable(Status.corrupt, "Its stored original is damaged: add the file again.")
            parsed = await intake.engine.reader.read(path, entry.name)
    except Missing:
        return Unreadable(Status.unreadable, "Its original is not stored any more: add the file again.")
    if isinstance(parsed, Unreadable):
        return parsed
    if OCR_LANGUAGES in entry.meta and OCR_LANGUAGES not in parsed.meta:
        return Unreadable(Status.scanned, "It was read with OCR, which is off: use --ocr, or the setting `ocr`.")
    return parsed if parsed.text.strip() else Unreadable(Status.empty, "Now the file has no text.")


def _document(intake: IngestContext, uri: str, name: str, sha: str, parsed: Parsed) -> Document:
    """A new document, with the title and the date as a person corrected them for the same content."""
    corrected = documents.corrected(intake.store, intake.base, uri, sha)
    title, date = corrected or (parsed.title or Path(name).stem, parsed.date)
    return Document(
        id="d" + intake.store.new_id(), base=intake.base.id, uri=uri, digest=sha,
        title=title, text=parsed.text, authors=parsed.authors, date=date,
        abstract=parsed.abstract, sections=parsed.sections, pages=parsed.pages, kind=parsed.kind,
        language=parsed.language, meta=parsed.meta, tables=parsed.tables, figures=parsed.figures, scan=parsed.scan,
    )  # fmt: skip


async def _stored(
    intake: IngestContext, document: Document, warnings: Sequence[str], copy: Path | None, size: int, new: _New
) -> _Ready:
    """Store a document that was just read. If an earlier version read the same text from the same file, it is that document."""
    former, outcome = new.former, new.outcome
    same = former is not None and former.digest == document.digest and _reads_alike(_kept(intake, former), document)
    if former is not None and same:
        document, outcome = replace(document, id=former.id), "finished"
    pieces, warnings = await intake.engine.split(document), tuple(warnings)
    if len(pieces) > intake.most_passages:
        warnings = (*warnings, PARTLY.format(most=intake.most_passages, all=len(pieces)))
    await asyncio.to_thread(_put, intake, document, copy, size, warnings, anew=not same)
    paged = len(document.pages) if document.page_at(0) else 0
    stored = documents.at(intake.store, intake.base, document.uri)
    off = [SWITCHED_OFF] if stored and stored.off else []
    held = document_access.held(intake.store, [stored]) if stored and document_access.has_own_list(stored) else {}
    why = " ".join((*warnings, *held.values(), *off))
    report = FileReport(
        document.uri, Status.read, outcome, paged, len(document.text), 0, why,
        document.title, document.language, warnings,
    )  # fmt: skip
    return _Ready(document, report, pieces[: intake.most_passages])


def _reads_alike(former: Document | None, now: Document) -> bool:
    """Whether offsets, headings and tables of the one hold for the other, so that quotations of it stay right."""

    def citable(document: Document) -> str:
        about = {"id": "", "title": "", "authors": (), "date": None, "language": None, "meta": {}, "figures": ()}
        return dumps(to_json(replace(document, **about)))

    return former is not None and former.text == now.text and citable(former) == citable(now)


def _restricted_first(intake: IngestContext, files: Sequence[SourceFile]) -> list[SourceFile | None]:
    """The files whose places are restricted before the others, and None between them: the others may hold one of those."""
    with_list = document_access.restricted_places(intake.store, intake.base, (each.uri for each in files))
    if not with_list:
        return [*files]
    others = [each for each in files if each.uri not in with_list]
    return [*(each for each in files if each.uri in with_list), None, *others]


def _put(
    intake: IngestContext, document: Document, copy: Path | None, size: int, warnings: Sequence[str], *, anew: bool
) -> None:
    """Store the document with its original. No erasure of the same bytes elsewhere can come in between. The commit does not
    wait for the disk: those of a batch are flushed together, before it is embedded.

    anew: as a new document; otherwise what was found out about it is updated
    """
    store = intake.store.deferred()
    with lock_original(intake.store, intake.workspace, document.digest):
        if copy is not None:
            intake.blobs.put(document.digest, copy)
        if not anew:
            documents.update_pending(store, document, parser=PARSER, warnings=warnings)
            return
        found = held_inside(document, intake.restricted)
        label = documents.put_pending(store, document, parser=PARSER, size=size, warnings=warnings, inherited=found)
        if label != intake.base.id:
            intake.restricted.append(restricted(document.id, label, document.uri, document.text))


def _refuse(intake: IngestContext, source: SourceFile, found: Unreadable, sha: str, size: int, tally: _Tally) -> None:
    """Record a file without text with the reason. Its bytes are kept only if OCR may read them."""
    documents.put_unreadable(
        intake.store, intake.base, source.uri, digest=sha, size=size, status=found.status, why=found.why
    )
    tally.done(FileReport(source.uri, found.status, "failed", why=found.why))


def _still_says(place: Surroundings | None, entry: Entry) -> bool:
    """Whether a document's file still exists with the same content; always true for what cannot be asked now: standard input,
    uploads, and places that are elsewhere."""
    if place is not None and is_below(place.address, entry.uri):
        return place.still_says(entry.uri, entry.digest)
    if entry.uri.startswith((STDIN, UPLOAD)) or is_address(entry.uri):
        return True
    try:
        return SourceFile(entry.uri, entry.name, path=Path(entry.uri)).digest() == entry.digest
    except OSError:
        return False


def copy_original(folder: Path, source: SourceFile) -> tuple[str, Path]:
    """Copy the original bytes to a temporary file. Returns their digest, and the file."""
    folder.mkdir(parents=True, exist_ok=True)
    opened = io.BytesIO(source.read()) if source.path is None else source.place().open("rb")
    with opened as file, tempfile.NamedTemporaryFile("w+b", suffix=".part", dir=folder, delete=False) as copy:
        try:
            shutil.copyfileobj(file, copy, 1 << 20)
            copy.seek(0)
            return hashlib.file_digest(copy, "sha256").hexdigest(), Path(copy.name)  # type: ignore[arg-type]
        except BaseException:
            Path(copy.name).unlink(missing_ok=True)
            raise


async def _embed_all(
    intake: IngestContext, queue: asyncio.Queue[_Ready | None], done: asyncio.Queue[_Embedded | None], tally: _Tally
) -> None:
    """Embeds what was read, in large batches. This is the bottleneck: the other stages wait for it, never the reverse."""
    size = intake.engine.batch
    async for batch in _batches(queue, size):
        pieces = [(ready.document, piece) for ready in batch for piece in ready.pieces]
        rows: list[Row] = []
        await intake.store.flushed()  # vectors and rows are only kept of documents that are
        labels = await asyncio.to_thread(documents.labels, intake.store, [ready.document.id for ready in batch])
        for first in range(0, len(pieces), size):
            part = pieces[first : first + size]
            texts = [(document.id, embedding_text(document, piece)) for document, piece in part]
            vectors = await embed_texts(intake, texts, tally)
            for (document, piece), vector in zip(part, vectors, strict=True):
                fields = search_fields(document, labels.get(document.id, ""))
                rows.append(Row(piece, vector, searched_context(document, piece), fields))
            tally.passages += len(part)
            tally.tick()
        await done.put((batch, rows))
    await done.put(None)


async def _index_all(intake: IngestContext, done: asyncio.Queue[_Embedded | None], tally: _Tally) -> None:
    """Indexes what is embedded; a document is ready, and reported, once all its rows are in the index."""
    batches = 0
    while (embedded := await done.get()) is not None:
        batch, rows = embedded
        again = tuple(each.document.id for each in batch if each.report.outcome in {"finished", "moved"})
        if again and not intake.fresh:  # an earlier attempt, or another splitter, may have left other rows
            await intake.index.delete(In("doc", again))
        for first in range(0, len(rows), BATCH):
            await intake.index.upsert(rows[first : first + BATCH])
        counts = {each.document.id: len(each.pieces) for each in batch}
        await asyncio.to_thread(documents.mark_ready, intake.store, intake.base, counts, intake.recipe)
        given = {row.passage.doc_id: row.fields["label"] for row in rows}
        now = await asyncio.to_thread(documents.labels, intake.store, list(given))
        if changed := {each: now[each] for each in given if now.get(each, given[each]) != given[each]}:
            await intake.index.relabel(changed)  # access was changed meanwhile
        for each in batch:
            tally.done(replace(each.report, passages=len(each.pieces)))
        batches += 1
        if batches % OPTIMISE_EVERY == 0:
            await intake.index.optimise()


async def _batches(queue: asyncio.Queue[_Ready | None], size: int) -> AsyncIterator[list[_Ready]]:
    """Batches of what is there, up to about one batch of text. If that is little, a moment is spent to collect more: a few
    passages take the embedder and the index nearly as long as many, but an idle embedder is worse.
    """
    following = await queue.get()
    while following is not None:
        batch: list[_Ready] = []
        characters = passages = 0
        until = time.monotonic() + MOMENT
        while following is not None:
            batch.append(following)
            characters += len(following.document.text)
            passages += len(following.pieces)
            left = 0.0 if passages >= ENOUGH else until - time.monotonic()
            if characters >= size * 600 or (queue.empty() and left <= 0):
                break
            try:
                following = queue.get_nowait() if not queue.empty() else await asyncio.wait_for(queue.get(), left)
            except TimeoutError:
                break
        yield batch
        if following is not None:
            following = await queue.get()


def passage_context(document: Document, piece: Passage) -> str:
    """Text that is searched with a passage but is not part of it: whose document it is and of when, its title, the section's
    heading, and what its first block stands under, or caption and header of a table that began before it."""
    below = piece.heading.removeprefix(document.title).removeprefix(" › ")
    above = " › ".join(filter(None, (unsaid_identity(document.title, document.meta), document.title, below)))
    return f"{above}\n{piece.context}" if piece.context else above


def searched_context(document: Document, piece: Passage) -> str:
    """Words that find a passage by the document it is of: its context, and the document's identity."""
    identity = searched_identity(document.title, document.uri, document.meta)
    context = passage_context(document, piece)
    return f"{context} · {identity}" if identity else context


def search_fields(document: Document, label: str = "") -> dict[str, str]:
    """All fields that a search can filter by. A document without its own label has that of its base."""
    return {
        "base": document.base,
        "doc": document.id,
        "source": document.uri,
        "title": document.title,
        "date": document.date or "",
        "type": document.kind,
        "language": document.language or "",
        "label": label or document.base,
        **{f"meta.{name}": value for name, value in document.meta.items() if name != HIDDEN},
    }


def embedding_text(document: Document, piece: Passage) -> str:
    """The text that is embedded for a passage."""
    above = passage_context(document, piece)
    return f"{above}\n{piece.text}" if above else piece.text


async def embed_texts(intake: IngestContext, texts: Sequence[tuple[str, str]], tally: _Tally) -> list[np.ndarray]:
    """The vectors of texts, each given with its document, from the cache if they are known."""
    keys = [digest(text) for _, text in texts]
    owner, name = intake.base.owner, intake.engine.embedder
    sources = [(document, key) for (document, _), key in zip(texts, keys, strict=True)]
    await asyncio.to_thread(embedding_cache.note_sources, intake.cache, owner, sources)
    known = await asyncio.to_thread(embedding_cache.recall, intake.cache, owner, name, keys)
    missing = {key: text for key, (_, text) in zip(keys, texts, strict=True) if key not in known}
    if missing:
        fresh = await intake.engine.embed(list(missing.values()))
        made = dict(zip(missing, fresh, strict=True))
        await asyncio.to_thread(embedding_cache.remember, intake.cache, owner, name, made)
        known |= made
        tally.embedded += len(made)
    return [known[key] for key in keys]


async def synchronise_index(store: Store, index: Index, base: Base) -> None:
    """Delete from the index what the store no longer has, and update access labels that the index does not have yet."""
    gone = documents.leftover(store, base)
    for first in range(0, len(gone), 500):
        part = gone[first : first + 500]
        await index.delete(In("doc", tuple(part)))
        documents.swept(store, part)
    late = document_access.outdated_labels(store, base)
    if late:
        await index.relabel(late)  # in one write: readers could not follow many
    document_access.mark_labels_written(store, late.items())


def forget_originals(store: Store, blobs: Blobs, workspace: Path, digests: Iterable[str]) -> None:
    """Delete the original bytes that no document refers to any more."""
    for original in sorted(set(digests)):
        with lock_original(store, workspace, original):  # the same bytes may be added to another base at this moment
            if not documents.digests_in_use(store, {original}):
                blobs.delete(original)
