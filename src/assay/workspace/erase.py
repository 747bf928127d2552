"""Erasing everything of a document, a base or a person from the workspace folder: first from the store, so that nothing can be
found any more, then from the index and its old versions, cached vectors, originals, copies of older states and write-ahead
files. An interrupted erasure is finished when the workspace is next opened."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

from sqlalchemy import Engine, select

from assay.core.access import Base, Principal, Scope
from assay.core.errors import AssayError, Missing, StoreError, UserError
from assay.governance.audit.witness import erasure_signer
from assay.index.lease import lease_path
from assay.ingest.forget import forget_originals, forget_vectors
from assay.ingest.pipeline import synchronise_index
from assay.store import documents, embedding_cache, erasure, jobs, schema
from assay.store.access import grants, members
from assay.store.database import discard_erased, plain_errors
from assay.store.documents import Entry
from assay.store.schema import bases, leftovers, runs, threads
from assay.store.schema import members as people
from assay.workspace.context import WorkspaceContext
from assay.workspace.types import ErasureReport

log = logging.getLogger(__name__)

WITH_DOCUMENT = "erased with a document"
WITH_PERSON = "erased with a person"
OLDER_STATES = "state-version-*.bak"  # written before a migration
READER_TIMEOUT = 5.0  # seconds to wait for readers of the database


async def erase(context: WorkspaceContext, selected: Sequence[Entry], scope: Scope, by: str = "") -> ErasureReport:
    """Erase documents with all their versions and everything that was made of them."""
    ids: list[str] = []
    count, purged = 0, True
    for base in scope.bases:
        uris = {entry.uri for entry in selected if entry.base == base.id}
        if not uris:
            continue
        async with context.writer_lock(context.require_owner(base)):
            entries = documents.versions(context.store, base, uris)
            count += _erase_from_store(context, base, entries, by)
            purged &= await _erase_from_index(context, base)
        ids += [entry.id for entry in entries]
    return await _finish(context, tuple(ids), count, purged)


async def erase_base(context: WorkspaceContext, base: Base, by: str = "") -> ErasureReport:
    """Erase a knowledge base with everything in it."""
    async with context.writer_lock(base):
        entries = documents.all_of(context.store, base)
        count = _erase_from_store(context, base, entries, by)
        await context.drop_index(base, forget_embedder=False)
        grants.forget_base(context.store, base)
        for job in jobs.filling(context.store, base):
            await asyncio.to_thread(context.uploads.delete, job)
    return await _finish(context, tuple(entry.id for entry in entries), count)


async def erase_person(
    context: WorkspaceContext, name: str, *, with_documents: bool = False, by: str = ""
) -> ErasureReport:
    """Erase a person's questions, answers and credentials. Their spending stays, without a name. The name of somebody who was
    removed stands for what they left, unless somebody else has the name now."""
    store, by, sign = context.store, by or context.principal.id, erasure_signer(context.path, context.settings)
    if members.named(store, name) is None:
        former = members.former_names(store, name)
        if former:
            reports = [await erase_person(context, each, with_documents=with_documents, by=by) for each in former]
            with store.write() as connection:
                count = erasure.erase_person(connection, store, name, WITH_PERSON, by, sign)
            ids = tuple(each for one in reports for each in one.documents)
            return await _finish(context, ids, count + sum(one.records for one in reports))
    with store.read() as connection:
        owned = [Base(*row) for row in connection.execute(_BASES.where(bases.c.owner == name))]
        sent = set(connection.scalars(select(schema.jobs.c.id).where(schema.jobs.c.who == name)))
        known = (select(table.c.who).where(table.c.who == name).limit(1) for table in (runs, threads))
        exists = connection.scalar(select(people.c.name).where(people.c.name == name)) or owned or sent
        exists = exists or any(connection.scalar(each) for each in known)
    if not exists:
        raise Missing(f"There is nothing here of a person called {name!r}.")
    if owned and not with_documents:
        names = ", ".join(sorted(base.name for base in owned))
        raise UserError(
            f"{name} owns documents ({names}). Hand them over first (`assay user remove {name} --give-to NAME`), "
            "or erase them too with --with-documents."
        )
    theirs = context.for_principal(Principal(name))
    reports = [await erase_base(theirs, base, by) for base in owned]
    with store.write() as connection:
        count = erasure.erase_person(connection, store, name, WITH_PERSON, by, sign)
    embedding_cache.forget_owner(context.cache, name)
    for job in sent & (await asyncio.to_thread(context.uploads.jobs)).keys():
        await asyncio.to_thread(context.uploads.delete, job)
    ids = tuple(each for one in reports for each in one.documents)
    return await _finish(context, ids, count + sum(one.records for one in reports))


_BASES = select(bases.c.id, bases.c.name, bases.c.owner, bases.c.description)


def _erase_from_store(context: WorkspaceContext, base: Base, entries: Sequence[Entry], by: str) -> int:
    forget_vectors(context.store, context.cache, base, entries)
    if not entries:
        return 0
    store, by = context.store, by or context.principal.id
    with store.write() as connection:
        sign = erasure_signer(context.path, context.settings)
        return erasure.erase_documents(connection, store, base, entries, WITH_DOCUMENT, by, sign)


async def _erase_from_index(context: WorkspaceContext, base: Base) -> bool:
    """Erase rows with their old versions and word lists; False if some text may remain. A damaged index is deleted as a whole:
    it can be built again. One that cannot be reached stays, and the erasure is finished later."""
    with suppress(StoreError):
        return await _purge_index(context, base)
    try:
        await context.index_engine.versions()
    except AssayError as error:
        log.warning("the index of %r cannot be reached and still holds erased text (%s)", base.name, error)
        return False
    try:
        return await _purge_index(context, base)
    except StoreError as error:
        log.warning(
            "the index of %r is damaged and was deleted; `assay reindex` builds it again (%s)", base.name, error
        )
        await context.drop_index(base, forget_embedder=True)
        return await _purge_index(context, base)


async def _purge_index(context: WorkspaceContext, base: Base) -> bool:
    index = await context.existing_index(base)
    if index is None:
        documents.swept(context.store, documents.leftover(context.store, base))
        return True
    await synchronise_index(context.store, index, base)
    remaining = await index.purge()
    if remaining:
        log.warning("the index of %r may still hold erased text in %s", base.name, ", ".join(remaining))
    return not remaining


async def _finish(context: WorkspaceContext, ids: tuple[str, ...], count: int, purged: bool = True) -> ErasureReport:
    files, whole = await asyncio.to_thread(_erase_files, context, purged)
    return ErasureReport(ids, count, files, erasure.list_backups(context.store), whole)


def _erase_files(context: WorkspaceContext, purged: bool) -> tuple[tuple[str, ...], bool]:
    """Delete originals that no document needs, states from before a migration, leftovers of killed writers, and write-ahead
    files. Returns the older states, and whether nothing is left to erase, in the indexes too (`purged`)."""
    store = context.store
    due = erasure.originals_to_delete(store)
    forget_originals(store, context.blobs, context.path, due)
    if due and context.blobs.keeps_deleted():
        log.warning("the bucket keeps old versions of what is deleted, and so of these originals")
        purged = False
    erasure.mark_originals_deleted(store, due)
    older = sorted(context.path.glob(OLDER_STATES))
    for path in (*older, *_partial_originals(context)):
        path.unlink(missing_ok=True)
    with store.read() as connection:
        purged = purged and connection.scalar(select(leftovers.c.document).limit(1)) is None
    flushed = all([flush(store.engine), flush(context.cache)])  # a list, so that both are flushed
    if flushed and purged:
        erasure.mark_finished(store)
        flush(store.engine)
    return tuple(str(path) for path in older), flushed and purged


def _partial_originals(context: WorkspaceContext) -> list[Path]:
    """Incomplete originals left by killed processes. Empty while documents are being added, since they may belong to
    that process."""
    import filelock

    with ExitStack() as locks:
        try:
            for base in grants.every_base(context.store):
                locks.enter_context(filelock.FileLock(lease_path(context.path, base.id), timeout=0))
        except filelock.Timeout:
            return []
        return sorted(context.blobs.scratch.glob("*.part"))


def flush(engine: Engine) -> bool:
    """Move the write-ahead file into the database and truncate it; False if readers prevent that for too long."""
    until = time.monotonic() + READER_TIMEOUT
    while True:
        with plain_errors(), engine.connect() as connection:
            if discard_erased(connection):
                return True
        if time.monotonic() > until:
            return False
        time.sleep(0.05)


def finish_pending(context: WorkspaceContext) -> None:
    """Finish an interrupted erasure, in a thread with its own event loop. What fails is tried again when the workspace is
    next opened."""
    with suppress(AssayError, OSError), ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, _finish_pending(context)).result()


async def _finish_pending(context: WorkspaceContext) -> None:
    purged = True
    for base in grants.every_base(context.store):
        async with context.writer_lock(base, 0.0):  # raises a UserError if another process is still erasing
            purged &= await _erase_from_index(context, base)
    await asyncio.to_thread(_erase_files, context, purged)
