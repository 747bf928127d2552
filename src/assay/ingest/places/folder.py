"""A folder of this machine as a place."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from assay.core.errors import UserError
from assay.ingest.places import YOUNG, Listed
from assay.ingest.sources import find_sources


@dataclass(frozen=True)
class Folder:
    """Its files are read where they are."""

    path: Path

    @cached_property
    def root(self) -> Path:
        return self.path.expanduser().resolve()

    @property
    def address(self) -> str:
        return str(self.root).rstrip("/")

    def listed(self) -> list[Listed]:
        if not self.root.is_dir():
            raise UserError(f"There is no folder {str(self.path)!r} to sync with.")
        now, found = time.time(), list[Listed]()
        for source in find_sources([self.root]):
            assert source.path is not None
            try:
                known = source.path.stat()
            except OSError:  # it went meanwhile, or cannot be opened: reading it tells
                found.append(Listed(source.path.relative_to(self.root).as_posix(), None, ""))
                continue
            # The time of the last change of its entry shows a change that was given an old date.
            mark = f"{known.st_size}-{known.st_mtime_ns}-{known.st_ctime_ns}-{known.st_ino}"
            young = now - max(known.st_mtime, known.st_ctime) < YOUNG
            found.append(Listed(source.path.relative_to(self.root).as_posix(), known.st_size, mark, young))
        return found

    def file(self, name: str) -> Path:
        return self.root / name

    def fetch(self, name: str, into: Path) -> None:
        shutil.copyfile(self.file(name), into)
