"""A workspace as one file: `assay backup` and `assay restore`. Caches are left out, since they can be rebuilt."""

from __future__ import annotations

import tarfile
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from assay.core.errors import UserError
from assay.core.private_files import create_private
from assay.store import documents, facts, jobs
from assay.store.access import members
from assay.store.blobs import MARK, ORIGINALS, UPLOADS, Blobs, FolderBlobs, Uploads
from assay.store.database import Store, copy_state, open_store
from assay.store.erasure import add_backup

RESTORED = "ended when a backup was restored"
STATE, LEFT_BEHIND = "state.db", ("cache.db",)


@contextmanager
def hold_writer_locks(locks: Mapping[str, Path]) -> Iterator[None]:
    """Hold the writer locks of these knowledge bases, so that nothing is added meanwhile."""
    import filelock

    with ExitStack() as held:
        for name, lock in locks.items():
            try:
                held.enter_context(filelock.FileLock(lock, timeout=10))
            except filelock.Timeout as error:
                raise UserError(f"Something is being added to {name!r}. Back up when it has finished.") from error
        yield


def backup(folder: Path, store: Store, to: Path, blobs: Blobs | None = None, uploads: Uploads | None = None) -> int:
    """Write the workspace to `to` (tar, gzip); complete, or not there at all. Returns its size.

    blobs, uploads: the originals, and files that wait to be read, where they are not in the folder; a restored backup
    has them there

    The caller holds the writers' locks, so that state and index belong to the same moment.
    """
    if to.exists():
        raise UserError(f"{str(to)!r} exists already. Choose another name for the backup.")
    if not to.parent.is_dir():
        raise UserError(f"There is no folder {str(to.parent)!r} to write the backup to.")
    if to.resolve().is_relative_to(folder.resolve()):
        raise UserError(f"{str(to)!r} is inside the workspace. Choose a place outside it for the backup.")
    partial = to.with_name(to.name + ".part")
    partial.unlink(missing_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=to.parent) as space:
            state = Path(space) / STATE
            copy_state(store, state)
            with create_private(partial) as file, tarfile.open(fileobj=file, mode="w:gz", compresslevel=1) as archive:
                archive.add(state, arcname=STATE)
                for each in _files(folder):
                    archive.add(each, arcname=str(each.relative_to(folder)), recursive=False)
                if blobs is not None:
                    _add_originals(archive, store, blobs)
                if uploads is not None:
                    _add_uploads(archive, store, uploads)
        partial.replace(to)
        add_backup(store, str(to.resolve()))  # so that an erasure can report that this copy exists
    finally:
        partial.unlink(missing_ok=True)
    return to.stat().st_size


def _add_originals(archive: tarfile.TarFile, store: Store, blobs: Blobs) -> None:
    unpacked = FolderBlobs(Path(ORIGINALS))
    for digest in sorted(documents.digests_in_use(store, blobs.digests())):
        with blobs.as_file(digest) as original:
            archive.add(original, arcname=str(unpacked.path(digest)), recursive=False)


def _add_uploads(archive: tarfile.TarFile, store: Store, uploads: Uploads) -> None:
    for job in sorted(jobs.going(store)):
        with uploads.reading(job) as folder:
            for each in jobs.files(store, job):
                with suppress(FileNotFoundError):  # it was read meanwhile
                    uploads.fetch(job, each.n, folder)
                    archive.add(folder / str(each.n), arcname=f"{UPLOADS}/{job}/{each.n}", recursive=False)


def _files(folder: Path) -> Iterator[Path]:
    for file in sorted(folder.rglob("*")):
        top = file.relative_to(folder).parts[0]
        if (
            file.is_file()
            and not top.startswith((STATE, ".", *LEFT_BEHIND))
            and not file.name.endswith((".part", MARK))
        ):
            yield file


def restore(archive: Path, folder: Path, *, keep_credentials: bool = False) -> int:
    """Unpack a backup into a new workspace. An existing one is never overwritten. Returns how many people have to be given a
    password or key again: those of the backup may have been taken back since, so they end unless `keep_credentials`."""
    folder = folder.resolve()  # resolves a symlink, which stays
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{str(folder)!r} is a file; a workspace is a folder.")
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"{str(folder)!r} is not empty. Restore into a new folder.")
    if not archive.is_file():
        raise UserError(f"There is no backup {str(archive)!r}.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as space:
        unpacked = Path(space) / "workspace"
        unpacked.mkdir(mode=0o700)
        try:
            with tarfile.open(archive, "r:gz") as packed:
                packed.extractall(unpacked, filter="data")  # refuses links and paths that lead out of the folder
        except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
            raise UserError(f"{str(archive)!r} is not a whole backup of Assay's ({error}).") from error
        if not (unpacked / STATE).is_file():
            raise UserError(f"{str(archive)!r} is not a backup of Assay's: it has no {STATE}.")
        store = open_store(unpacked / STATE, create=False)  # a newer or damaged one fails here, before the move
        try:
            facts.forget_owner_mark(store)
            ended = 0 if keep_credentials else members.end_all_credentials(store, RESTORED)
        finally:
            store.close()
        if folder.exists():
            folder.rmdir()
        unpacked.rename(folder)
    return ended
