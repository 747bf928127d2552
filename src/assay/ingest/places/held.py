"""Copies of files from elsewhere, kept on this machine while they are read."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath

from assay.core.printable import printable_name
from assay.ingest.places import Listed, Place
from assay.ingest.places.folder import Folder
from assay.ingest.sources import SourceFile


@dataclass
class Held:
    """Makes a source of each file of a place. One from elsewhere is fetched when it is first read."""

    place: Place
    scratch: Path  # what a killed process leaves there, an erasure finds
    _paths: dict[str, Path] = field(default_factory=dict)

    def __call__(self, uri: str, listed: Listed) -> SourceFile:
        name = printable_name(PurePosixPath(listed.name).name)
        if isinstance(self.place, Folder):
            return SourceFile(uri, name, self.place.file(listed.name), listed=listed.size)
        path = self._paths[uri] = self.scratch / f"fetched-{secrets.token_hex(8)}.part"
        return SourceFile(uri, name, path, fetch=partial(_fetch, self.place, listed.name, path), listed=listed.size)

    def release(self, uri: str) -> None:
        """The copy is not needed any more."""
        if (path := self._paths.get(uri)) is not None:
            path.unlink(missing_ok=True)

    def release_all(self) -> None:
        for path in self._paths.values():
            with suppress(OSError):
                path.unlink(missing_ok=True)


@contextmanager
def held_files(scratch: Path, place: Place) -> Iterator[Held]:
    held = Held(place, scratch)
    try:
        yield held
    finally:
        held.release_all()


def _fetch(place: Place, name: str, path: Path) -> None:
    """A file that was fetched in part is not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".half.part")
    try:
        place.fetch(name, part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
