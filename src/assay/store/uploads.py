"""The files of uploads that are not read yet, by the id of their job and their number; a name that somebody gave is never a
path. They are in a folder of the workspace, or with the originals in a bucket, where a worker on another machine finds them."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from assay.store.blobs import is_bucket
from assay.store.blobs import open_bucket
from assay.store.blobs import plain_errors
from assay.store.blobs import read_object

UPLOADS = "uploads"  # the folder in the workspace, and the prefix in a bucket
PUTS_AT_ONCE = 4
_OBJECT = re.compile(rf"{UPLOADS}/(j[0-9a-f]+)/[0-9]+")  # other objects may be there too


class Uploads(Protocol):
    @property
    def folder(self) -> Path:
        """On this machine."""
        ...

    def receiving(self, job: str) -> Path:
        """A new folder on this machine, into which the files of a job are written under their numbers."""
        ...

    def keep(self, job: str) -> None:
        """Make what was received readable for every process that may take the job, durably."""
        ...

    def reading(self, job: str) -> AbstractContextManager[Path]:
        """A folder on this machine for the files of a job, until the end of the context. A file is there once it is fetched."""
        ...

    def fetch(self, job: str, number: int, folder: Path) -> None:
        """Bring a file to the folder of `reading`. A FileNotFoundError, now or when it is opened, if there is none."""
        ...

    def delete(self, job: str) -> None: ...

    def jobs(self) -> dict[str, float]:
        """The jobs that have files here, and when something of each was last written, in seconds since 1970."""
        ...


def open_uploads(place: str, workspace: Path) -> Uploads:
    """The uploads at a value of the setting `blobs`. Nothing is opened yet."""
    folder = workspace / UPLOADS
    return BucketUploads(place.rstrip("/"), folder) if is_bucket(place) else FolderUploads(folder)


@dataclass(frozen=True, slots=True)
class FolderUploads:
    folder: Path

    def receiving(self, job: str) -> Path:
        place = self.folder / job
        place.mkdir(mode=0o700, parents=True)
        return place

    def keep(self, job: str) -> None:
        """They stay where they were written."""

    @contextmanager
    def reading(self, job: str) -> Iterator[Path]:
        yield self.folder / job

    def fetch(self, job: str, number: int, folder: Path) -> None:
        """They are there."""

    def delete(self, job: str) -> None:
        shutil.rmtree(self.folder / job, ignore_errors=True)

    def jobs(self) -> dict[str, float]:
        return {each.name: _changed(each) for each in _within(self.folder)}


@dataclass(frozen=True, slots=True)
class BucketUploads:
    """On this machine there are files only while they arrive (in a folder JOB) or are read (in JOB-…)."""

    address: str  # s3://BUCKET/PREFIX
    folder: Path

    def receiving(self, job: str) -> Path:
        return FolderUploads(self.folder).receiving(job)

    def keep(self, job: str) -> None:
        import obstore

        def put(file: Path) -> None:
            with plain_errors(self.address):
                obstore.put(bucket, f"{UPLOADS}/{job}/{file.name}", file, max_concurrency=2)

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
        import obstore

        for place in _within(self.folder):
            if _job_of(place) == job:
                shutil.rmtree(place, ignore_errors=True)
        names = [name for _, name, _ in self._objects(f"{UPLOADS}/{job}")]
        if names:
            with plain_errors(self.address):
                obstore.delete(open_bucket(self.address), names)

    def jobs(self) -> dict[str, float]:
        found: dict[str, float] = {}
        here = [(_job_of(place), _changed(place)) for place in _within(self.folder)]
        for job, changed in (*here, *((job, changed) for job, _, changed in self._objects(UPLOADS))):
            found[job] = max(found.get(job, 0.0), changed)
        return found

    def _objects(self, prefix: str) -> list[tuple[str, str, float]]:
        """The files below a prefix: their job, their name, and when they were written."""
        import obstore

        with plain_errors(self.address):
            listed = [each for some in obstore.list(open_bucket(self.address), prefix) for each in some]
        found = ((_OBJECT.fullmatch(each["path"]), each["last_modified"].timestamp()) for each in listed)
        return [(name[1], name[0], changed) for name, changed in found if name]


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
