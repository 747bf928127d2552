"""Adding, refreshing and removing documents."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import replace
from datetime import date as clock_date
from pathlib import Path

from assay.core.access import Base
from assay.core.errors import UserError
from assay.core.printable import clean_text
from assay.core.types import UPLOAD
from assay.ingest import pipeline
from assay.ingest.engine import DocumentReader, Workers, local_workers
from assay.ingest.parsed import file_limits
from assay.ingest.pipeline import IngestContext, Progress
from assay.ingest.readiness import Readiness, summarise_files
from assay.ingest.sandbox.process import describe_missing
from assay.ingest.sources import SourceFile, content_digests, find_sources
from assay.language.dates import first_day
from assay.language.terms import fold_case
from assay.models.factory import embedder_languages
from assay.store import documents as stored
from assay.store.access import document_access, grants
from assay.store.document_list import named
from assay.store.documents import READY, UNREADABLE, Entry, correct
from assay.workspace.context import WorkspaceContext
from assay.workspace.erase import erase
from assay.workspace.share import owned_document

Say = Callable[[Progress], None]
MAX_TAGS, MAX_TAG = 50, 100  # of a document; characters of one


async def add_sources(
    context: WorkspaceContext,
    files: Sequence[SourceFile],
    base: str,
    *,
    description: str = "",
    only_for: Sequence[str] = (),
    say: Say = lambda _: None,
    reader: DocumentReader | None = None,
    rebuild: bool = False,
    read_again: bool = True,
) -> Readiness:
    """Make sources searchable, and what is pending.

    only_for: the people and groups who may read the sources besides the owner, from the first moment on; empty: as before
    reader: replaces the parsers
    rebuild: discard the index, damaged or not, so that every document is pending
    read_again: read pending documents of an earlier version from their originals; otherwise split the text that there is
    """
    async with _workers(context, reader) as workers:
        if files or rebuild:
            await workers.check_guards()  # before anything is changed
        into = grants.get_or_create_base(context.store, base, context.principal, description)
        if rebuild:
            async with context.writer_lock(into):
                grants.set_embedder(context.store, into, "", 0)
        began, last = time.monotonic(), None

        def listen(progress: Progress) -> None:
            nonlocal last
            last = progress
            say(progress)

        own = context.path.resolve()  # a workspace inside the folder that is added must not add itself
        files = [one for one in files if not one.path or one.uri.startswith(UPLOAD) or not one.path.is_relative_to(own)]
        listen(Progress(0, len(files), 0, 0, 0.0))  # the total, before models are loaded and anything is read
        if only_for:
            uris = [one.uri for one in files]
            document_access.restrict(context.store, into, uris, only_for, context.principal.id)
        async with _ingest_context(context, into, workers) as ingest:
            done = await pipeline.add_files(replace(ingest, read_again=read_again), files, listen)
    seconds, embedded = time.monotonic() - began, last.embedded if last else 0
    known = embedder_languages(context.settings)
    report = summarise_files(into.name, str(context.path), done, known, seconds, embedded)
    return replace(report, warnings=(*report.warnings, *describe_missing(workers.missing_guards)))


def _workers(context: WorkspaceContext, reader: DocumentReader | None) -> AbstractAsyncContextManager[Workers]:
    """Those that the setting `ingest_engine` names. With a reader of the caller's own, this process."""
    settings = context.settings
    limits, languages = file_limits(settings), settings.ocr_languages if settings.ocr else ""
    if settings.ingest_engine == "local" or reader is not None:
        return local_workers(limits, languages, reader)
    from assay.ingest.on_ray.cluster import ray_workers

    return ray_workers(
        settings.ray_address, limits, languages, settings.ray_embedder_gpus, context.check_cluster_consent
    )


@asynccontextmanager
async def _ingest_context(context: WorkspaceContext, base: Base, workers: Workers) -> AsyncIterator[IngestContext]:
    """The pipeline for one base, while no other process writes to it."""
    async with context.writer_lock(base):
        fresh = grants.embedder_of(context.store, base)[0] != context.embedder.name
        index = await context.index(base, create=True)
        size, overlap = context.passage_size(context.embedder)
        yield IngestContext(
            store=context.store,
            cache=context.cache,
            blobs=context.blobs,
            workspace=context.path,
            engine=workers.engine(context.embedder, size, overlap),
            index=index,
            base=base,
            size=size,
            overlap=overlap,
            most_bytes=file_limits(context.settings).bytes,
            most_passages=context.settings.file_max_passages,
            fresh=fresh,
        )


async def sync(
    context: WorkspaceContext, folder: Path | str, base: str, say: Say = lambda _: None
) -> tuple[Readiness, list[Entry]]:
    """Make the base agree with a folder: add new and changed files, remove those that are gone."""
    root = await asyncio.to_thread(lambda: Path(folder).expanduser().resolve())
    if not root.is_dir():
        raise UserError(f"There is no folder {str(folder)!r} to sync with.")
    files = await asyncio.to_thread(find_sources, [root])
    here = {source.uri for source in files}
    arriving = await asyncio.to_thread(content_digests, files)
    grants.get_or_create_base(context.store, base, context.principal)
    removed = [
        entry
        for entry in context.sources([base])
        if Path(entry.uri).is_relative_to(root) and entry.uri not in here and entry.digest not in arriving
    ]
    await erase(context, removed, context.scope([base]))
    return await add_sources(context, files, base, say=say), removed


async def remove(context: WorkspaceContext, names: Sequence[str], base: str = "") -> list[Entry]:
    """Remove documents by path, file name, title or id, with everything that was stored of them."""
    bases = [base] if base else []
    entries = context.sources(bases)
    selected = list({entry.id: entry for name in names for entry in named(name, entries)}.values())
    await erase(context, selected, context.scope(bases))
    return selected


async def reindex(context: WorkspaceContext, base: str, say: Say = lambda _: None) -> Readiness:
    """Rebuild the index of a base with the current settings. The files are not needed: documents that an earlier version read
    are read again from their stored originals, of the others the text is split. Cached vectors of this embedder are reused."""
    into = context.require_owner(context.scope().named(base))
    return await add_sources(context, [], into.name, say=say, rebuild=True)


async def tidy_indexes(context: WorkspaceContext) -> int:
    """Optimise the indexes to which much was written since that was done, and to which nobody adds documents now: an
    ingestion does it itself. Returns their number."""
    tidied = 0
    for base in grants.every_base(context.store):
        index = await context.existing_index(base)
        if index is None or not await index.is_untidy():
            continue
        with suppress(UserError):  # somebody holds the lease
            async with context.writer_lock(base, 0.0):
                await index.optimise()
                tidied += 1
    return tidied


async def edit(context: WorkspaceContext, document: str, title: str | None, date: str | None) -> None:
    """Correct what was found out about a document: its title, its date (empty: none). Its owner only; it is recorded."""
    base, entry = owned_document(context, document)
    if entry.state != READY:
        raise UserError(f"{entry.name} is being read, or could not be read: there is nothing to correct yet.")
    words = entry.title if title is None else " ".join(clean_text(title).split())
    if not words:
        raise UserError("A document needs a title.")
    day = entry.date if date is None else date or None
    if day:
        first_day(day, clock_date.today().isoformat())  # raises unless there is such a day
    async with context.writer_lock(base):
        correct(context.store, document, words, day, context.principal.id)
    # What is pending is made searchable again. The document is not read again: a new text would be a new document.
    await add_sources(context, [], base.name, read_again=False)


def mark(
    context: WorkspaceContext,
    document: str,
    off: bool | None = None,
    tags: Sequence[str] | None = None,
    add: Sequence[str] = (),
    remove: Sequence[str] = (),
) -> Entry:
    """Switch a document off or on, and change its tags; None: as before. Its owner only; it is recorded, and holds at once."""
    _, entry = owned_document(context, document)
    if entry.state == UNREADABLE:
        raise UserError(f"{entry.name} could not be read: there is nothing to search in it.")
    gone = set(map(fold_case, parse_tags(remove)))
    wanted = parse_tags((*(entry.tags if tags is None else tags), *add))
    kept = tuple(tag for tag in wanted if fold_case(tag) not in gone)
    marked = replace(entry, off=entry.off if off is None else off, tags=kept)
    if marked != entry:
        stored.mark(context.store, entry, marked.off, marked.tags, context.principal.id)
    return marked


def parse_tags(given: Iterable[str]) -> tuple[str, ...]:
    """Tags as they are kept, in order: a comma separates two, and case does not make another."""
    words = (" ".join(clean_text(part).split()) for each in given for part in each.split(","))
    tags: dict[str, str] = {}
    for tag in filter(None, words):
        tags.setdefault(fold_case(tag), tag)
    if len(tags) > MAX_TAGS or any(len(tag) > MAX_TAG for tag in tags.values()):
        raise UserError(f"A document has at most {MAX_TAGS} tags of {MAX_TAG} characters.")
    return tuple(tag for _, tag in sorted(tags.items()))
