"""Copies a whole workspace to a file, and its state, indexes and originals to other places."""

from __future__ import annotations

from pathlib import Path

from assay.core.errors import UserError
from assay.core.settings import secret
from assay.governance.backup import backup, hold_writer_locks
from assay.index.factory import copy_index, index_engine
from assay.index.lease import lease_path
from assay.store import jobs
from assay.store.access import grants
from assay.store.blobs import copy_blobs, is_bucket, open_blobs, open_uploads
from assay.store.database import move_state, open_store, state_address
from assay.workspace.context import WorkspaceContext


def backup_workspace(context: WorkspaceContext, to: Path) -> int:
    """Write the whole workspace to one file while no documents are added. Returns the size of the file."""
    blobs = context.blobs if context.settings.blobs else None
    uploads = context.uploads if is_bucket(context.settings.blobs) else None
    with hold_writer_locks(_writer_locks(context)):
        return backup(context.path, context.store, to, blobs, uploads)


async def copy_indexes(context: WorkspaceContext, to: str) -> dict[str, int]:
    """Copy the index of every knowledge base to the engine that `to` names, and compare both. The caller changes the
    setting `index`, then drops the former indexes. Returns the number of passages by knowledge base."""
    if to == context.settings.index:
        raise UserError("The index is there already.")
    target = index_engine(context.settings.model_copy(update={"index": to}), context.path)
    copied: dict[str, int] = {}
    for base in grants.with_distinct_names(grants.every_base(context.store), context.principal.id):
        source = await context.existing_index(base)
        if source is None:
            continue
        dim = grants.embedder_of(context.store, base)[1]
        async with context.writer_lock(base):
            index = await target.open(base.id, dim, create=True)
            if set(await index.ids()) - set(await source.ids()):  # of an earlier copy: documents were removed since
                await target.drop(base.id)
                index = await target.open(base.id, dim, create=True)
            copied[base.name] = await copy_index(source, index)
    return copied


async def drop_indexes(context: WorkspaceContext) -> None:
    """Delete the indexes of all knowledge bases; they can be built again from the texts."""
    for base in grants.every_base(context.store):
        await context.drop_index(base, forget_embedder=False)


def copy_originals(context: WorkspaceContext, to: str) -> int:
    """Copy the originals to the place that `to` names, and compare each with its digest, while no documents are added. The
    caller changes the setting `blobs`, then drops the former ones. Returns their number."""
    source, target = context.blobs, open_blobs(to, context.path)
    if source == target:
        raise UserError("The originals are there already.")
    if context.uploads != open_uploads(to, context.path) and jobs.going(context.store):
        raise UserError(
            "Uploads wait to be read, from where they are now. Let a server finish them, or stop them, first."
        )
    with hold_writer_locks(_writer_locks(context)):
        target.check()
        return copy_blobs(source, target)


def drop_originals(context: WorkspaceContext) -> None:
    """Delete all originals from where they were when this workspace was opened."""
    for digest in context.blobs.digests():
        context.blobs.delete(digest)


def move_state_to(context: WorkspaceContext, to: str) -> dict[str, int]:
    """Copy the state to a database server, or with an empty address to a file, while no documents are added. The caller
    changes the setting `state`. Returns the number of rows by table."""
    address = state_address(context.path, to)
    if address == state_address(context.path, secret(context.settings.state)):
        raise UserError("The state is there already.")
    with hold_writer_locks(_writer_locks(context)):
        target = open_store(address, create=True)
        try:
            return move_state(context.store, target)
        finally:
            target.close()


def _writer_locks(context: WorkspaceContext) -> dict[str, Path]:
    bases = grants.with_distinct_names(grants.every_base(context.store), context.principal.id)
    return {base.name: lease_path(context.path, base.id) for base in bases}
