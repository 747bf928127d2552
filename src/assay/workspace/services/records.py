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
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr
from sqlalchemy import Engine, make_url, select

from assay.core.access import Base, Principal, Scope
from assay.core.errors import AssayError, Missing, StoreError, Unwritable, UserError
from assay.core.settings import secret
from assay.governance.audit.witness import erasure_signer
from assay.governance.backup import backup, hold_writer_locks
from assay.index.factory import copy_index, index_engine
from assay.index.lease import lease_path
from assay.ingest.pipeline import forget_originals, synchronise_index
from assay.store import documents, embedding_cache, erasure, jobs, schema
from assay.store.access import grants, members
from assay.store.blobs import copy_blobs, is_bucket, open_blobs, open_uploads
from assay.store.database import (
    delete_state,
    discard_erased,
    former_states,
    move_state,
    open_store,
    plain_errors,
    state_address,
    truncate_log,
    version_of,
)
from assay.store.documents import Entry
from assay.store.runs import records as run_records
from assay.workspace.context import OnStore, Service
from assay.workspace.text_places import scrub_evaluations
from assay.workspace.types import ErasureReport

log = logging.getLogger(__name__)

WITH_DOCUMENT = "erased with a document"
WITH_PERSON = "erased with a person"
READER_TIMEOUT = 5.0  # seconds to wait for readers of the database


@dataclass(frozen=True)
class Records(Service):
    """What is kept: erased for good, written to a backup, moved to another place."""

    log = OnStore(run_records.workspace_log)
    version = OnStore(version_of)

    def cached_vectors(self) -> int:
        return embedding_cache.size(self.context.cache)

    async def erase(self, selected: Sequence[Entry], scope: Scope, by: str = "") -> ErasureReport:
        """Erase documents with all their versions and everything that was made of them."""
        ids: list[str] = []
        count, purged = 0, True
        for base in scope.bases:
            uris = {entry.uri for entry in selected if entry.base == base.id}
            if not uris:
                continue
            async with self.context.writer_lock(self.context.require_owner(base)):
                entries = documents.versions(self.store, base, uris)
                count += self._erase_from_store(base, entries, by)
                purged &= await self._erase_from_index(base)
            ids += [entry.id for entry in entries]
        return await self._finish(tuple(ids), count, purged)

    async def erase_base(self, name: str) -> ErasureReport:
        """Erase a knowledge base of this person with everything in it."""
        return await self._erase_base(self.context.require_owner(self.context.scope().named(name)))

    async def _erase_base(self, base: Base, by: str = "") -> ErasureReport:
        async with self.context.writer_lock(base):
            entries = documents.all_of(self.store, base)
            count = self._erase_from_store(base, entries, by)
            await self.context.drop_index(base, forget_embedder=False)
            grants.forget_base(self.store, base)
            for job in jobs.filling(self.store, base):
                await asyncio.to_thread(self.context.uploads.delete, job)
        return await self._finish(tuple(entry.id for entry in entries), count)

    async def erase_person(self, name: str, *, with_documents: bool = False, by: str = "") -> ErasureReport:
        """Erase a person's questions, answers and credentials. Their spending stays, without a name. The name of somebody who
        was removed stands for what they left, unless somebody else has the name now."""
        store, by = self.store, by or self.principal.id
        member = members.named(store, name)
        if member is None and (former := members.former_names(store, name)):
            reports = [await self.erase_person(each, with_documents=with_documents, by=by) for each in former]
            return await self._finish_all(self._erase_records(name, by), reports)
        owned = [base for base in grants.every_base(store) if base.owner == name]
        with store.read() as connection:
            sent = set(connection.scalars(select(schema.jobs.c.id).where(schema.jobs.c.who == name)))
            known = (select(table.c.who).where(table.c.who == name).limit(1) for table in (schema.runs, schema.threads))
            exists = member or owned or sent or any(connection.scalar(each) for each in known)
        if not exists:
            raise Missing(f"There is nothing here of a person called {name!r}.")
        if owned and not with_documents:
            names = ", ".join(sorted(base.name for base in owned))
            raise UserError(
                f"{name} owns documents ({names}). Hand them over first (`assay user remove {name} --give-to NAME`), "
                "or erase them too with --with-documents."
            )
        theirs = self.context.for_principal(Principal(name))
        reports = [await Records(theirs)._erase_base(base, by) for base in owned]
        count = self._erase_records(name, by)
        embedding_cache.forget_owner(self.context.cache, name)
        for job in sent & (await asyncio.to_thread(self.context.uploads.jobs)).keys():
            await asyncio.to_thread(self.context.uploads.delete, job)
        return await self._finish_all(count, reports)

    def _erase_records(self, name: str, by: str) -> int:
        with self.store.write() as connection:
            sign = erasure_signer(self.context.path, self.settings)
            return erasure.erase_person(connection, self.store, name, WITH_PERSON, by, sign)

    async def _finish_all(self, count: int, reports: Sequence[ErasureReport]) -> ErasureReport:
        ids = tuple(each for one in reports for each in one.documents)
        return await self._finish(ids, count + sum(one.records for one in reports))

    def _erase_from_store(self, base: Base, entries: Sequence[Entry], by: str) -> int:
        # Cached vectors of these documents go, and those of documents that are not there any more.
        kept = documents.ids_of_owner(self.store, base.owner) - {entry.id for entry in entries}
        embedding_cache.forget_all_but(self.context.cache, base.owner, kept)
        if not entries:
            return 0
        store, by = self.store, by or self.principal.id
        with store.write() as connection:
            sign = erasure_signer(self.context.path, self.settings)
            return erasure.erase_documents(connection, store, base, entries, WITH_DOCUMENT, by, sign)

    async def _erase_from_index(self, base: Base) -> bool:
        """Erase rows with their old versions and word lists; False if some text may remain. A damaged index is deleted as a
        whole: it can be built again. One that cannot be reached stays, and the erasure is finished later."""
        with suppress(StoreError):
            return await self._purge_index(base)
        try:
            await self.context.index_engine.versions()
        except AssayError as error:
            log.warning("the index of %r cannot be reached and still holds erased text (%s)", base.name, error)
            return False
        try:
            return await self._purge_index(base)
        except StoreError as error:
            log.warning(
                "the index of %r is damaged and was deleted; `assay reindex` builds it again (%s)", base.name, error
            )
            await self.context.drop_index(base, forget_embedder=True)
            return await self._purge_index(base)

    async def _purge_index(self, base: Base) -> bool:
        index = await self.context.existing_index(base)
        if index is None:
            documents.swept(self.store, documents.leftover(self.store, base))
            return True
        await synchronise_index(self.store, index, base)
        remaining = await index.purge()
        if remaining:
            log.warning("the index of %r may still hold erased text in %s", base.name, ", ".join(remaining))
        return not remaining

    async def _finish(self, ids: tuple[str, ...], count: int, purged: bool = True) -> ErasureReport:
        files, whole = await asyncio.to_thread(self._erase_files, purged)
        return ErasureReport(ids, count, files, erasure.list_backups(self.store), whole)

    def _erase_files(self, purged: bool) -> tuple[tuple[str, ...], bool]:
        """Delete originals that no document needs, states from before a migration, leftovers of killed writers, and write-ahead
        files. Returns the older states, and whether nothing is left to erase, in the indexes too (`purged`)."""
        store = self.store
        due = erasure.originals_to_delete(store)
        try:
            forget_originals(store, self.context.blobs, self.context.path, due)
            if due and self.context.blobs.keeps_deleted():
                log.warning("the bucket keeps old versions of what is deleted, and so of these originals")
                purged = False
            erasure.mark_originals_deleted(store, due)
        except UserError as error:  # the place is another workspace's
            log.warning("these originals could not be deleted: %s", error)
            purged = False
        scrub_evaluations(store, self.context.path)
        older = former_states(self.context.path)
        for path in (*older, *self._partial_originals()):
            path.unlink(missing_ok=True)
        with store.read() as connection:
            purged = purged and connection.scalar(select(schema.leftovers.c.document).limit(1)) is None
        flushed = all([_rewritten(store.engine), _rewritten(self.context.cache)])  # a list, so that both are rewritten
        if flushed and purged:
            erasure.mark_finished(store)
            flush(store.engine)
        return tuple(str(path) for path in older), flushed and purged

    def _partial_originals(self) -> list[Path]:
        """Incomplete originals left by killed processes. Empty while documents are being added, since they may belong to
        that process."""
        import filelock

        with ExitStack() as locks:
            try:
                for base in grants.every_base(self.store):
                    locks.enter_context(filelock.FileLock(lease_path(self.context.path, base.id), timeout=0))
            except filelock.Timeout:
                return []
            return sorted(self.context.blobs.scratch.glob("*.part"))

    def finish_pending(self) -> None:
        """Finish an interrupted erasure, in a thread with its own event loop. What fails is tried again when the workspace is
        next opened."""
        with suppress(AssayError, OSError), ThreadPoolExecutor(1) as pool:
            pool.submit(asyncio.run, self._finish_pending()).result()

    async def _finish_pending(self) -> None:
        purged = True
        for base in grants.every_base(self.store):
            async with self.context.writer_lock(base, 0.0):  # raises a UserError if another process is still erasing
                purged &= await self._erase_from_index(base)
        await asyncio.to_thread(self._erase_files, purged)

    def backup(self, to: Path) -> int:
        """Write the whole workspace to one file while no documents are added. Returns the size of the file."""
        blobs = self.context.blobs if self.settings.blobs else None
        uploads = self.context.uploads if is_bucket(self.settings.blobs) else None
        with hold_writer_locks(self._writer_locks()):
            return backup(self.context.path, self.store, to, blobs, uploads)

    async def copy_indexes(self, to: str) -> dict[str, int]:
        """Copy the index of every knowledge base to the engine that `to` names, and compare both. The caller changes the
        setting `index`, then drops the former indexes. Returns the number of passages by knowledge base."""
        if to == self.settings.index:
            raise UserError("The index is there already.")
        target = index_engine(self.settings.model_copy(update={"index": to}), self.context.path)
        copied: dict[str, int] = {}
        for base in grants.with_distinct_names(grants.every_base(self.store), self.principal.id):
            source = await self.context.existing_index(base)
            if source is None:
                continue
            dim = grants.embedder_of(self.store, base)[1]
            async with self.context.writer_lock(base):
                index = await target.open(base.id, dim, create=True)
                if set(await index.ids()) - set(await source.ids()):  # of an earlier copy: documents were removed since
                    await target.drop(base.id)
                    index = await target.open(base.id, dim, create=True)
                copied[base.name] = await copy_index(source, index)
        return copied

    async def drop_indexes(self) -> None:
        """Delete the indexes of all knowledge bases; they can be built again from the texts."""
        for base in grants.every_base(self.store):
            await self.context.drop_index(base, forget_embedder=False)

    def copy_originals(self, to: str) -> int:
        """Copy the originals to the place that `to` names, and compare each with its digest, while no documents are added. The
        caller changes the setting `blobs`, then drops the former ones. Returns their number."""
        source, target = self.context.blobs, open_blobs(to, self.context.path, self.context.owner)
        if source == target:
            raise UserError("The originals are there already.")
        if self.context.uploads != open_uploads(to, self.context.path, self.context.owner) and jobs.going(self.store):
            raise UserError(
                "Uploads wait to be read, from where they are now. Let a server finish them, or stop them, first."
            )
        with hold_writer_locks(self._writer_locks()):
            target.check()
            return copy_blobs(source, target, sorted(self.context.owner.uses(set(source.digests()))))

    def drop_originals(self) -> int:
        """Delete all originals of this workspace from where they were when it was opened. Returns the number of originals that
        are left there: others', or those that others may use too."""
        blobs = self.context.blobs
        assert blobs.owner is not None
        with suppress(UserError):  # the place may be another's
            blobs.claim()
            for digest in blobs.owner.uses(set(blobs.digests())):
                blobs.delete(digest)
            blobs.release()
        return sum(1 for _ in blobs.digests())

    def missing_originals(self) -> list[str]:
        """The locations of documents whose originals should be stored and are not."""
        there = set(self.context.blobs.digests())
        return [uri for uri, digest in documents.stored_originals(self.store) if digest not in there]

    def move_state(self, to: str) -> dict[str, int]:
        """Copy the state to a database server, or with an empty address to a file, while no documents are added. The caller
        changes the setting `state`. Returns the number of rows by table."""
        address = state_address(self.context.path, to)
        if address == state_address(self.context.path, secret(self.settings.state)):
            raise UserError("The state is there already.")
        with hold_writer_locks(self._writer_locks()):
            target = open_store(address, create=True)
            try:
                moved = move_state(self.store, target)
                if not to:  # until it is deleted, the former state is a copy that erasures do not reach
                    erasure.add_backup(target, masked_address(secret(self.settings.state)))
                return moved
            finally:
                target.close()

    def delete_former_state(self, former: str) -> None:
        """Delete the state from the server where it was. One that is gone already is no fault."""
        with suppress(Missing):
            store = open_store(state_address(self.context.path, secret(SecretStr(former))), create=False)
            try:
                delete_state(store)
            finally:
                store.close()
        erasure.forget_backup(self.store, masked_address(secret(SecretStr(former))))

    def _writer_locks(self) -> dict[str, Path]:
        bases = grants.with_distinct_names(grants.every_base(self.store), self.principal.id)
        return {base.name: lease_path(self.context.path, base.id) for base in bases}


def masked_address(address: str) -> str:
    """The address of a database without its password."""
    return make_url(address).render_as_string(hide_password=True)


def _rewritten(engine: Engine) -> bool:
    """Rewrite a database without what was erased from it; False if that is not possible now."""
    try:
        with plain_errors(), engine.connect() as connection:
            discard_erased(connection)
        return flush(engine)
    except (StoreError, Unwritable) as error:
        log.warning("a database could not be rewritten and may still hold erased text (%s)", error)
        return False


def flush(engine: Engine) -> bool:
    """Move the write-ahead file into the database and truncate it; False if readers prevent that for too long."""
    until = time.monotonic() + READER_TIMEOUT
    while True:
        with plain_errors(), engine.connect() as connection:
            if truncate_log(connection):
                return True
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
