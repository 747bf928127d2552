"""The original bytes of documents, by their digest: in a folder, or in a bucket. The setting `blobs` says where."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

from assay.core.errors import Missing, StoreError
from assay.store.database import Store
from assay.store.database import hold_lock
from assay.store.blobs import PIECE
from assay.store.blobs import check_bucket
from assay.store.blobs import endpoint
from assay.store.blobs import is_bucket
from assay.store.blobs import is_unencrypted
from assay.store.blobs import keeps_versions
from assay.store.blobs import open_bucket
from assay.store.blobs import plain_errors
from assay.store.blobs import read_object

if TYPE_CHECKING:
    from obstore.store import S3Store

ORIGINALS = "originals"  # the folder in the workspace
_DIGEST = re.compile("[0-9a-f]{64}")  # other files may be there too


class Blobs(Protocol):
    @property
    def scratch(self) -> Path:
        """A folder on this machine for copies that are incomplete or needed for a moment. Their names end in `.part`."""
        ...

    def put(self, digest: str, copy: Path) -> None:
        """Keep the bytes of a file in `scratch`, durably. The file may be gone afterwards."""
        ...

    def has(self, digest: str) -> bool: ...

    def as_file(self, digest: str) -> AbstractContextManager[Path]:
        """A file with the bytes, to be read until the end of the context. Missing if there are none."""
        ...

    def delete(self, digest: str) -> None: ...

    def digests(self) -> Iterator[str]: ...

    def check(self) -> tuple[str, ...]:
        """Try whether bytes can be kept there; an AssayError if not. What it does not promise, a sentence each."""
        ...

    def keeps_deleted(self) -> bool:
        """Whether the storage keeps what is deleted."""
        ...


def open_blobs(place: str, workspace: Path) -> Blobs:
    """The originals at a value of the setting `blobs`. Nothing is opened yet."""
    own = workspace / ORIGINALS
    if is_bucket(place):
        open_bucket(place)  # an address that is none, or a client that is missing, is told at once
        return BucketBlobs(place.rstrip("/"), own)
    return FolderBlobs(Path(place).expanduser() if place else own)


@contextmanager
def lock_original(store: Store, workspace: Path, digest: str) -> Iterator[None]:
    """Held while it is decided whether an original is needed, and while one is stored with its document; by one process at a
    time, on all machines that share the state."""
    from filelock import FileLock

    with FileLock(workspace / f".{ORIGINALS}.lock"), hold_lock(store.engine, f"original {digest}"):
        yield


def copy_blobs(source: Blobs, target: Blobs) -> int:
    """Copy what `target` does not have, and read every copy again. An interrupted copy goes on where it stopped. Returns the
    number of originals."""
    number = 0
    for digest in source.digests():
        if not _is_whole(target, digest):
            with source.as_file(digest) as original, part_file(target.scratch) as (copy, file):
                with original.open("rb") as reading:
                    while piece := reading.read(PIECE):
                        file.write(piece)
                file.close()
                target.put(digest, copy)
            if not _is_whole(target, digest):
                raise StoreError(
                    f"The original {digest} has other bytes than when it was stored, here or in the copy; nothing was "
                    "moved. Remove its document and add it again, or restore a backup."
                )
        number += 1
    return number


def _is_whole(blobs: Blobs, digest: str) -> bool:
    if not blobs.has(digest):
        return False
    with blobs.as_file(digest) as path, path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == digest


@contextmanager
def part_file(folder: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """A temporary file, which is deleted unless it was moved away."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(suffix=".part", dir=folder, delete=False) as file:
        try:
            yield Path(file.name), file  # type: ignore[misc]
        finally:
            Path(file.name).unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class FolderBlobs:
    folder: Path

    @property
    def scratch(self) -> Path:
        return self.folder

    def path(self, digest: str) -> Path:
        return self.folder / digest[:2] / digest

    def put(self, digest: str, copy: Path) -> None:
        place = self.path(digest)
        place.parent.mkdir(exist_ok=True)
        copy.replace(place)

    def has(self, digest: str) -> bool:
        return bool(digest) and self.path(digest).is_file()

    @contextmanager
    def as_file(self, digest: str) -> Iterator[Path]:
        if not self.has(digest):
            raise _missing(digest)
        yield self.path(digest)

    def delete(self, digest: str) -> None:
        self.path(digest).unlink(missing_ok=True)

    def digests(self) -> Iterator[str]:
        yield from sorted(path.name for path in self.folder.glob("??/*") if _DIGEST.fullmatch(path.name))

    def check(self) -> tuple[str, ...]:
        try:
            with part_file(self.folder):
                pass
        except OSError as error:
            raise StoreError(f"Originals cannot be kept in {self.folder} ({error.strerror}). Check `blobs`.") from error
        return ()

    def keeps_deleted(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class BucketBlobs:
    address: str  # s3://BUCKET/PREFIX
    scratch: Path

    def put(self, digest: str, copy: Path) -> None:
        import obstore

        with plain_errors(self.address):
            obstore.put(self._objects, digest, copy)

    def has(self, digest: str) -> bool:
        import obstore

        with plain_errors(self.address):
            try:
                obstore.head(self._objects, digest or "none")
            except FileNotFoundError:
                return False
        return True

    @contextmanager
    def as_file(self, digest: str) -> Iterator[Path]:
        """A copy on this machine, which is deleted afterwards: an erasure on another machine would not find it."""
        with part_file(self.scratch) as (path, file):
            try:
                for piece in read_object(self.address, digest):
                    file.write(piece)
            except FileNotFoundError:
                raise _missing(digest) from None
            file.close()
            yield path

    def delete(self, digest: str) -> None:
        import obstore

        with plain_errors(self.address), suppress(FileNotFoundError):
            obstore.delete(self._objects, digest)

    def digests(self) -> Iterator[str]:
        import obstore

        with plain_errors(self.address):
            found = [each["path"] for objects in obstore.list(self._objects) for each in objects]
        yield from sorted(path for path in found if _DIGEST.fullmatch(path))

    def check(self) -> tuple[str, ...]:
        check_bucket(self.address)
        limits = []
        if self.keeps_deleted():
            limits.append("The bucket keeps old versions, and erased documents in them: let a rule of it delete them.")
        if is_unencrypted():
            limits.append(f"Documents go to {endpoint()} without encryption.")
        return tuple(limits)

    def keeps_deleted(self) -> bool:
        return keeps_versions(self.address)

    @property
    def _objects(self) -> S3Store:
        return open_bucket(self.address)


def _missing(digest: str) -> Missing:
    return Missing(f"There are no original bytes with the digest {digest!r}.")
