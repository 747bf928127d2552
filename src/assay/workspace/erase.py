"""Erasing, everywhere under the workspace's folder: the store first, so that nothing can be found any more, then the index with
its old versions, cached vectors, kept originals, copies of older states and the write-ahead files. Whoever is killed in between
has it finished when the workspace is next opened."""

from __future__ import annotations

import asyncio
import logging
import shutil
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Engine, delete, select

from assay.core.access import Base, Principal, Scope
from assay.core.errors import AssayError, Missing, StoreError, UserError
from assay.index.lease import lease_path
from assay.ingest.forget import forget_originals, forget_vectors
from assay.ingest.pipeline import sweep
from assay.store import documents
from assay.store.access import grants
from assay.store.database import plain_errors
from assay.store.dialect import empty_write_ahead
from assay.store.documents import Entry
from assay.store.runs import erasure
from assay.store.runs.erasure import Backup
from assay.store.schema import bases, jobs, leftovers, members, runs, threads, vectors
from assay.workspace.share import index_of

if TYPE_CHECKING:
    from assay.workspace.facade import Workspace

log = logging.getLogger(__name__)

WITH_DOCUMENT = "erased with a document"
WITH_PERSON = "erased with a person"
OLDER_STATES = "state-version-*.bak"  # what a migration kept, in case it went wrong
READERS = 5.0  # seconds that whoever reads the state has to come to an end


@dataclass(frozen=True, slots=True)
class Gone:
    """What was erased: documents, by id; what records said; copies of older states. `backups` are elsewhere and still hold it;
    `whole` says that nothing is left to do here."""

    documents: tuple[str, ...] = ()
    records: int = 0
    files: tuple[str, ...] = ()
    backups: tuple[Backup, ...] = ()
    whole: bool = True


async def erase(workspace: Workspace, chosen: Sequence[Entry], scope: Scope, by: str = "") -> Gone:
    """Documents with all their versions, and whatever was made of them."""
    ids: list[str] = []
    count, purged = 0, True
    for base in scope.bases:
        places = {entry.uri for entry in chosen if entry.base == base.id}
        if not places:
            continue
        async with workspace.only_writer(workspace.owned(base)):
            entries = documents.versions(workspace.store, base, places)
            count += _out_of_store(workspace, base, entries, by)
            purged &= await _out_of_index(workspace, base)
        ids += [entry.id for entry in entries]
    return await _finished(workspace, tuple(ids), count, purged)


async def erase_base(workspace: Workspace, base: Base, by: str = "") -> Gone:
    """A knowledge base with everything in it."""
    async with workspace.only_writer(base):
        entries = documents.all_of(workspace.store, base)
        count = _out_of_store(workspace, base, entries, by)
        workspace.drop_index(base)
        await workspace.index_engine.drop(base.id)
        grants.forget_base(workspace.store, base)
    return await _finished(workspace, tuple(entry.id for entry in entries), count)


async def erase_person(workspace: Workspace, name: str, *, with_documents: bool = False, by: str = "") -> Gone:
    """What a person asked and was told, and all that lets them in. What they spent stays, under no name."""
    store = workspace.store
    with store.read() as connection:
        owned = [Base(*row) for row in connection.execute(_BASES.where(bases.c.owner == name))]
        sent = list(connection.scalars(select(jobs.c.id).where(jobs.c.who == name)))
        known = (select(table.c.who).where(table.c.who == name).limit(1) for table in (runs, threads, jobs))
        there = connection.scalar(select(members.c.name).where(members.c.name == name)) or owned or sent
        there = there or any(connection.scalar(each) for each in known)
    if not there:
        raise Missing(f"There is nothing here of a person called {name!r}.")
    if owned and not with_documents:
        names = ", ".join(sorted(base.name for base in owned))
        raise UserError(
            f"{name} owns documents ({names}). Hand them over first (`assay user remove {name} --give-to NAME`), "
            "or erase them too with --with-documents."
        )
    theirs = workspace.seen_by(Principal(name))
    gone = [await erase_base(theirs, base, by or workspace.principal.id) for base in owned]
    with store.write() as connection:
        count = erasure.erase_person(connection, store, name, WITH_PERSON, by or workspace.principal.id)
    with plain_errors(), workspace.cache.connect().execution_options(assay_writes=True) as cached, cached.begin():
        cached.execute(delete(vectors).where(vectors.c.owner == name))
    for job in sent:
        await asyncio.to_thread(shutil.rmtree, workspace.path / "uploads" / job, True)
    ids = tuple(each for one in gone for each in one.documents)
    return await _finished(workspace, ids, count + sum(one.records for one in gone))


_BASES = select(bases.c.id, bases.c.name, bases.c.owner, bases.c.description)


def _out_of_store(workspace: Workspace, base: Base, entries: Sequence[Entry], by: str) -> int:
    _forget_vectors(workspace, base, entries)
    if not entries:
        return 0
    with workspace.store.write() as connection:
        return erasure.erase_documents(
            connection, workspace.store, base, entries, WITH_DOCUMENT, by or workspace.principal.id
        )


def _forget_vectors(workspace: Workspace, base: Base, entries: Sequence[Entry]) -> None:
    """As far as they can be told: an embedder that cannot be used now must not keep anybody from erasing."""
    try:
        embedder = workspace.embedder
    except UserError:
        return
    size, overlap = workspace.split(embedder)
    forget_vectors(workspace.store, workspace.cache, base, entries, embedder.tokens, size, overlap)


async def _out_of_index(workspace: Workspace, base: Base) -> bool:
    """Remove the rows, and what old versions and word lists hold of them; False where some of it may remain.

    A damaged index is dropped as a whole: it can be built again.
    """
    try:
        index = await index_of(workspace, base)
        if index is None:
            return True
        await sweep(workspace.store, index, base)
        remaining = await index.purge()
        if remaining:
            log.warning("the index of %r may still hold erased text in %s", base.name, ", ".join(remaining))
        return not remaining
    except StoreError as error:
        log.warning(
            "the index of %r is damaged and was taken away; `assay reindex` builds it again (%s)", base.name, error
        )
        grants.set_embedder(workspace.store, base, "", 0)
        workspace.drop_index(base)
        await workspace.index_engine.drop(base.id)
        return True


async def _finished(workspace: Workspace, ids: tuple[str, ...], count: int, purged: bool = True) -> Gone:
    files, whole = await asyncio.to_thread(_out_of_files, workspace, purged)
    return Gone(ids, count, files, erasure.made_backups(workspace.store), whole)


def _out_of_files(workspace: Workspace, purged: bool) -> tuple[tuple[str, ...], bool]:
    """Originals that no document stands on, states from before a migration, what killed writers left, write-ahead files.

    purged: whether no index holds erased text any more; the erasure is not finished before
    """
    from assay.workspace.facade import ORIGINALS

    store = workspace.store
    due = erasure.originals_owed(store)
    forget_originals(store, workspace.path / ORIGINALS, due)
    erasure.originals_gone(store, due)
    older = sorted(workspace.path.glob(OLDER_STATES))
    for path in (*older, *_left_behind(workspace)):
        path.unlink(missing_ok=True)
    with store.read() as connection:
        purged = purged and connection.scalar(select(leftovers.c.document).limit(1)) is None
    # Both, whatever comes of the first.
    flushed = all([flush(store.engine), flush(workspace.cache)])
    if flushed and purged:
        erasure.finished(store)
        flush(store.engine)
    return tuple(str(path) for path in older), flushed and purged


def _left_behind(workspace: Workspace) -> list[Path]:
    """Parts of originals that a killed process has left; none while somebody adds, since they may be theirs."""
    import filelock

    from assay.workspace.facade import ORIGINALS

    with ExitStack() as held:
        try:
            for base in grants.every_base(workspace.store):
                held.enter_context(filelock.FileLock(lease_path(workspace.path, base.id), timeout=0))
        except filelock.Timeout:
            return []
        return sorted((workspace.path / ORIGINALS).glob("*.part"))


def flush(engine: Engine) -> bool:
    """Bring the write-ahead file into the database and empty it. Not, while somebody reads for longer than is waited for."""
    until = time.monotonic() + READERS
    while True:
        with plain_errors(), engine.connect() as connection:
            if empty_write_ahead(connection):
                return True
        if time.monotonic() > until:
            return False
        time.sleep(0.05)


# Carrying on


async def finish(workspace: Workspace) -> bool:
    """Do what is left of an erasure that was cut off. Where another process is still at it, it is left to that one."""
    purged = True
    for base in grants.every_base(workspace.store):
        try:
            async with workspace.only_writer(base, 0.0):
                purged &= await _out_of_index(workspace, base)
        except UserError:
            return False
    _, whole = await asyncio.to_thread(_out_of_files, workspace, purged)
    return whole


def finish_now(workspace: Workspace) -> None:
    """The same for whoever is in no event loop, or in one that must not be waited in. What does not work is tried again when
    the workspace is next opened."""
    with suppress(AssayError, OSError), ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, finish(workspace)).result()
