"""The bytes of documents: originals, by their digest, and uploads that are not read yet, by job and number. They are in a
folder, or in a bucket of S3 or of a server that speaks its protocol; the setting `blobs` says where. A place has the mark of
the one workspace that may write and delete there.

Where the server of a bucket is and the keys come from the usual variables of the environment (AWS_ENDPOINT_URL,
AWS_ACCESS_KEY_ID, …), or from the role of the machine.
"""

from __future__ import annotations

import errno
import hashlib
import ipaddress
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import urlsplit

from assay.core.errors import AssayError, Missing, StoreError, UserError
from assay.store import documents, facts
from assay.store.database import Store, hold_lock

if TYPE_CHECKING:
    from obstore.store import S3Store

ORIGINALS = "originals"  # the folder in the workspace
_DIGEST = re.compile("[0-9a-f]{64}")  # other files may be there too


MARK = ".owner"  # the file or object that says whose a place is


@dataclass(frozen=True, slots=True)
class Owner:
    """A workspace, to which places belong."""

    id: str
    uses: Callable[[set[str]], set[str]] = field(compare=False)  # those of these originals that its documents refer to


def owner_of(store: Store) -> Owner:
    return Owner(facts.owner_mark(store), partial(documents.digests_in_use, store))


def open_blobs(place: str, workspace: Path, owner: Owner | None = None) -> Blobs:
    """The originals at a value of the setting `blobs`. Nothing is opened yet.

    owner: who may write there; None: nobody is asked
    """
    own = workspace / ORIGINALS
    if is_bucket(place):
        open_bucket(place)  # an address that is none, or a client that is missing, is told at once
        return BucketBlobs(place.rstrip("/"), own, owner)
    if place:
        return FolderBlobs(Path(place).expanduser(), owner)
    return FolderBlobs(own, replace(owner, uses=set) if owner else None)  # all that is there is of this workspace


def _claim(blobs: Blobs, owner: Owner) -> None:
    """Mark a place as its owner's. A UserError if it is another's, or may be."""
    if not blobs.read_mark():
        there = set(blobs.digests())
        if strange := there - owner.uses(there):
            raise UserError(
                f"{blobs.place} has originals of no document of this workspace ({len(strange)}). They may be another "
                "workspace's: move yours to a place of their own (`assay migrate --blobs PLACE`)."
            )
        blobs.write_mark(owner.id)
    if not blobs.is_owned():
        raise UserError(
            f"{blobs.place} belongs to another workspace. Name a place of its own for this one (`blobs`); what it has "
            "there already is moved by `assay migrate --blobs PLACE`."
        )


@contextmanager
def lock_original(store: Store, workspace: Path, digest: str) -> Iterator[None]:
    """Held while it is decided whether an original is needed, and while one is stored with its document; by one process at a
    time, on all machines that share the state."""
    from filelock import FileLock

    with FileLock(workspace / f".{ORIGINALS}.lock"), hold_lock(store.engine, f"original {digest}"):
        yield


def copy_blobs(source: Blobs, target: Blobs, digests: Iterable[str]) -> int:
    """Copy what `target` does not have, and read every copy again. An interrupted copy goes on where it stopped. Returns the
    number of originals."""
    number = 0
    for digest in digests:
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
    owner: Owner | None = None

    @property
    def place(self) -> str:
        return str(self.folder)

    @property
    def scratch(self) -> Path:
        """A folder on this machine for copies that are incomplete or needed for a moment. Their names end in `.part`."""
        return self.folder

    def path(self, digest: str) -> Path:
        return self.folder / digest[:2] / digest

    def put(self, digest: str, copy: Path) -> None:
        """Keep the bytes of a file in `scratch`, durably. The file may be gone afterwards."""
        self.claim()
        place = self.path(digest)
        place.parent.mkdir(exist_ok=True)
        copy.replace(place)

    def has(self, digest: str) -> bool:
        return bool(digest) and self.path(digest).is_file()

    @contextmanager
    def as_file(self, digest: str) -> Iterator[Path]:
        """A file with the bytes, to be read until the end of the context. Missing if there are none."""
        if not self.has(digest):
            raise _missing(digest)
        yield self.path(digest)

    def delete(self, digest: str) -> None:
        if self.has(digest):
            self.claim()
            self.path(digest).unlink(missing_ok=True)

    def claim(self) -> None:
        """See that the place is its owner's before anything changes there."""
        if self.owner is not None:
            _claim(self, self.owner)

    def is_owned(self) -> bool:
        return self.owner is None or self.read_mark() == self.owner.id

    def release(self) -> None:
        """Leave the place to whoever wants it."""
        if self.owner is not None and self.is_owned():
            (self.folder / MARK).unlink(missing_ok=True)

    def read_mark(self) -> str:
        try:
            return (self.folder / MARK).read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""

    def write_mark(self, owner: str) -> None:
        """Unless there is one."""
        with part_file(self.folder) as (made, file):
            file.write(owner.encode())
            file.close()
            with suppress(FileExistsError):
                os.link(made, self.folder / MARK)

    def digests(self) -> Iterator[str]:
        yield from sorted(path.name for path in self.folder.glob("??/*") if _DIGEST.fullmatch(path.name))

    def check(self) -> tuple[str, ...]:
        """Try whether bytes can be kept there; an AssayError if not. What it does not promise, a sentence each."""
        try:
            with part_file(self.folder):
                pass
        except OSError as error:
            raise StoreError(f"Originals cannot be kept in {self.folder} ({error.strerror}). Check `blobs`.") from error
        self.claim()
        return ()

    def keeps_deleted(self) -> bool:
        """Whether the storage keeps what is deleted."""
        return False


@dataclass(frozen=True, slots=True)
class BucketBlobs:
    address: str  # s3://BUCKET/PREFIX
    scratch: Path
    owner: Owner | None = None

    @property
    def place(self) -> str:
        return self.address

    def put(self, digest: str, copy: Path) -> None:
        self.claim()
        with plain_errors(self.address):
            self._objects.put(digest, copy)

    def has(self, digest: str) -> bool:
        with plain_errors(self.address):
            try:
                self._objects.head(digest or "none")
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
        if self.has(digest):
            self.claim()
            self._delete(digest)

    def _delete(self, name: str) -> None:
        with plain_errors(self.address), suppress(FileNotFoundError):
            self._objects.delete(name)

    def claim(self) -> None:
        if self.owner is not None:
            _claim_bucket(self, self.owner, endpoint())

    def is_owned(self) -> bool:
        return self.owner is None or self.read_mark() == self.owner.id

    def release(self) -> None:
        _claim_bucket.cache_clear()
        if self.owner is not None and self.is_owned():
            self._delete(MARK)

    def read_mark(self) -> str:
        try:
            return b"".join(read_object(self.address, MARK)).decode()
        except FileNotFoundError:
            return ""

    def write_mark(self, owner: str) -> None:
        from obstore.exceptions import AlreadyExistsError

        with plain_errors(self.address), suppress(AlreadyExistsError):
            self._objects.put(MARK, owner.encode(), mode="create")

    def digests(self) -> Iterator[str]:
        with plain_errors(self.address):
            found = [each["path"] for objects in self._objects.list() for each in objects]
        yield from sorted(path for path in found if _DIGEST.fullmatch(path))

    def check(self) -> tuple[str, ...]:
        check_bucket(self.address)
        self.claim()
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


Blobs = FolderBlobs | BucketBlobs


@lru_cache(maxsize=8)
def _claim_bucket(blobs: BucketBlobs, owner: Owner, at: str) -> None:
    """Once per process: to read the mark before each write would double the requests."""
    _claim(blobs, owner)


def _missing(digest: str) -> Missing:
    return Missing(f"There are no original bytes with the digest {digest!r}.")


SCHEME = "s3://"
PIECE = 1 << 20  # bytes


def is_bucket(address: str) -> bool:
    return address.startswith(SCHEME)


def open_bucket(address: str, login: tuple[str, str] | None = None) -> S3Store:
    """The objects below `s3://BUCKET/PREFIX`. Nothing is sent yet. Without a login the keys are those of the environment."""
    parts = urlsplit(address)
    if not is_bucket(address) or not parts.hostname or "@" in parts.netloc:
        raise UserError(
            f"{address!r} is not a place on object storage. Write s3://BUCKET/PREFIX; keys belong in the environment "
            "(AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)."
        )
    return _open(parts.netloc, parts.path.strip("/"), endpoint(), login)


@lru_cache(maxsize=8)
def _open(bucket: str, prefix: str, at: str, login: tuple[str, str] | None) -> S3Store:
    try:
        from obstore.store import S3Store
    except ImportError as error:
        raise UserError("Object storage needs a client: `pip install 'assay[s3]'`.") from error
    keys: dict[str, Any] = {"access_key_id": login[0], "secret_access_key": login[1]} if login else {}
    return S3Store(
        bucket,
        prefix=prefix or None,
        **keys,
        client_options={"allow_http": at.startswith("http://"), "connect_timeout": "5s", "timeout": "120s"},
        retry_config={"max_retries": 5, "retry_timeout": timedelta(seconds=60)},
    )


def endpoint() -> str:
    """The address of the server, where it is not that of Amazon."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""


def is_unencrypted() -> bool:
    """Whether objects go to another machine without encryption."""
    at = urlsplit(endpoint())
    if at.scheme != "http":
        return False
    try:
        return not ipaddress.ip_address(at.hostname or "").is_loopback
    except ValueError:
        return at.hostname != "localhost"


def check_bucket(address: str) -> None:
    """Write, read and delete an object. A StoreError if that fails, or if the server overwrites what may only be created: two
    writers could then lose each other's work."""
    from obstore.exceptions import AlreadyExistsError

    bucket, probe = open_bucket(address), f"check-{secrets.token_hex(8)}"
    with plain_errors(address):
        bucket.put(probe, b"first", mode="create")
        try:
            bucket.put(probe, b"second", mode="create")
        except AlreadyExistsError:
            pass
        else:
            raise StoreError(
                f"The object storage of {address} ignores conditional writes (If-None-Match). Use one that knows them."
            )
        finally:
            bucket.delete(probe)


def read_object(address: str, name: str) -> Iterator[bytes]:
    """The bytes of an object, in pieces. FileNotFoundError if there is none."""
    with plain_errors(address):
        try:
            found = open_bucket(address).get(name)
        except FileNotFoundError:
            found = None
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), f"{address}/{name}")
    with plain_errors(address):
        yield from map(bytes, found.stream(PIECE))


def keeps_versions(address: str) -> bool:
    """Whether the bucket keeps what is deleted or overwritten."""
    bucket, probe = open_bucket(address), f"check-{secrets.token_hex(8)}"
    with plain_errors(address):
        written = bucket.put(probe, b"")
        bucket.delete(probe)
    return written["version"] is not None


@contextmanager
def plain_errors(address: str) -> Iterator[None]:
    """Turn the client's errors into a StoreError that says what to check."""
    from obstore.exceptions import BaseError

    try:
        yield
    except AssayError:
        raise
    except (BaseError, OSError) as error:
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise StoreError(
            f"{address} cannot be used ({reason}). Check the bucket, AWS_ENDPOINT_URL and the keys in the environment."
        ) from error


UPLOADS = "uploads"  # the folder in the workspace, and the prefix in a bucket
PUTS_AT_ONCE = 4
_OBJECT = re.compile(rf"{UPLOADS}/(j[0-9a-f]+)/[0-9]+")  # other objects may be there too


def open_uploads(place: str, workspace: Path, owner: Owner | None = None) -> Uploads:
    """The uploads at a value of the setting `blobs`. Nothing is opened yet."""
    folder = workspace / UPLOADS
    return BucketUploads(place.rstrip("/"), folder, owner) if is_bucket(place) else FolderUploads(folder)


@dataclass(frozen=True, slots=True)
class FolderUploads:
    folder: Path

    def receiving(self, job: str) -> Path:
        """A new folder on this machine, into which the files of a job are written under their numbers."""
        place = self.folder / job
        place.mkdir(mode=0o700, parents=True)
        return place

    def keep(self, job: str) -> None:
        """Make what was received readable for every process that may take the job, durably: it is where it was written."""

    @contextmanager
    def reading(self, job: str) -> Iterator[Path]:
        """A folder on this machine for the files of a job, until the end of the context. A file is there once it is fetched."""
        yield self.folder / job

    def fetch(self, job: str, number: int, folder: Path) -> None:
        """Bring a file to the folder of `reading`. A FileNotFoundError, now or when it is opened, if there is none."""

    def delete(self, job: str) -> None:
        shutil.rmtree(self.folder / job, ignore_errors=True)

    def jobs(self) -> dict[str, float]:
        """The jobs that have files here, and when something of each was last written, in seconds since 1970."""
        return {each.name: _changed(each) for each in _within(self.folder)}


@dataclass(frozen=True, slots=True)
class BucketUploads:
    """On this machine there are files only while they arrive (in a folder JOB) or are read (in JOB-…)."""

    address: str  # s3://BUCKET/PREFIX
    folder: Path
    owner: Owner | None = None

    def _claim(self) -> None:
        BucketBlobs(self.address, self.folder, self.owner).claim()

    def receiving(self, job: str) -> Path:
        return FolderUploads(self.folder).receiving(job)

    def keep(self, job: str) -> None:
        def put(file: Path) -> None:
            with plain_errors(self.address):
                bucket.put(f"{UPLOADS}/{job}/{file.name}", file, max_concurrency=2)

        self._claim()
        bucket, place = open_bucket(self.address), self.folder / job
        with ThreadPoolExecutor(PUTS_AT_ONCE) as pool:
            for _ in pool.map(put, sorted(place.iterdir())):
                pass
        shutil.rmtree(place, ignore_errors=True)

    @contextmanager
    def reading(self, job: str) -> Iterator[Path]:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f"{job}-", dir=self.folder, ignore_cleanup_errors=True) as folder:
            yield Path(folder)

    def fetch(self, job: str, number: int, folder: Path) -> None:
        part = folder / f"{number}.part"
        with part.open("wb") as file:
            for piece in read_object(self.address, f"{UPLOADS}/{job}/{number}"):
                file.write(piece)
        part.replace(folder / str(number))

    def delete(self, job: str) -> None:
        for place in _within(self.folder):
            if _job_of(place) == job:
                shutil.rmtree(place, ignore_errors=True)
        names = [name for _, name, _ in self._objects(f"{UPLOADS}/{job}")]
        if names:
            self._claim()
            with plain_errors(self.address):
                open_bucket(self.address).delete(names)

    def jobs(self) -> dict[str, float]:
        self._claim()  # what no job of the owner needs is deleted
        found: dict[str, float] = {}
        here = [(_job_of(place), _changed(place)) for place in _within(self.folder)]
        for job, changed in (*here, *((job, changed) for job, _, changed in self._objects(UPLOADS))):
            found[job] = max(found.get(job, 0.0), changed)
        return found

    def _objects(self, prefix: str) -> list[tuple[str, str, float]]:
        """The files below a prefix: their job, their name, and when they were written."""
        with plain_errors(self.address):
            listed = [each for some in open_bucket(self.address).list(prefix) for each in some]
        found = ((_OBJECT.fullmatch(each["path"]), each["last_modified"].timestamp()) for each in listed)
        return [(name[1], name[0], changed) for name, changed in found if name]


Uploads = FolderUploads | BucketUploads


def _within(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def _job_of(place: Path) -> str:
    return place.name.partition("-")[0]


def _changed(folder: Path) -> float:
    """When something in a folder was last written."""
    try:
        return max(each.stat().st_mtime for each in (folder, *folder.iterdir()))
    except OSError:  # it is being deleted
        return float("inf")
