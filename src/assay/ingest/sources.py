"""Lists the sources of documents: files, folders and standard input. Nothing is parsed yet."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from assay.core.errors import UserError
from assay.core.printable import printable_name
from assay.core.types import STDIN

PASSED_OVER = {"__pycache__", "node_modules", "$RECYCLE.BIN", "__MACOSX"}
WORKSPACE = "state.db"  # a folder with this and one of the next is a workspace, not a folder of documents
BESIDE = {"index", "originals", "cache.db"}
SYSTEM_FILES = {"thumbs.db", "desktop.ini"}


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file, or bytes with a name. `fetch` brings a file that is elsewhere to its path.

    listed: its size, where the place tells it before the file is fetched
    digests: those of files by location that are known without reading; what is read is added
    refused: it could not be read before, and neither it nor what decides on that has changed
    """

    uri: str
    name: str
    path: Path | None = None
    data: bytes | None = None
    fetch: Callable[[], None] | None = field(default=None, compare=False)
    listed: int | None = None
    digests: dict[str, str] | None = field(default=None, compare=False)
    refused: bool = False

    def read(self) -> bytes:
        return self.data if self.data is not None else self.place().read_bytes()

    def size(self) -> int:
        if self.listed is not None:
            return self.listed
        return len(self.data) if self.data is not None else self.place().stat().st_size

    def digest(self) -> str:
        """SHA-256 of the content, read in pieces: a source may be larger than memory."""
        if self.digests is None:
            return self._digest()
        if self.uri not in self.digests:
            self.digests[self.uri] = self._digest()
        return self.digests[self.uri]

    def _digest(self) -> str:
        if self.data is not None or self.path is None:
            return hashlib.sha256(self.data or b"").hexdigest()
        with self.place().open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def place(self) -> Path:
        """The path, with the file there."""
        place = Path(self.uri if self.path is None else self.path)
        if self.fetch is not None and not place.exists():
            self.fetch()
        return place


def find_sources(paths: Sequence[Path]) -> list[SourceFile]:
    """Every file under these paths, in a fixed order, each once. UserError if a path does not exist."""
    found: dict[str, SourceFile] = {}
    for path in paths:
        path = _there(path)
        if path.is_dir():
            files = list(_walk(path))
            if not files:
                raise UserError(f"There is nothing to read in {str(path)!r}: the folder has no files.")
        elif path.is_file():
            files = [path]
        else:
            raise UserError(f"{str(path)!r} is neither a file nor a folder.")
        for file in files:
            place = file.resolve()
            uri = printable_path(str(place))
            found.setdefault(uri, SourceFile(uri=uri, name=printable_path(file.name), path=place))
    return list(found.values())


def printable_path(path: str) -> str:
    """A path that can be stored and shown: bytes that are not UTF-8 are escaped, and characters that would break or
    reorder the line it stands on."""
    return printable_name(os.fsencode(path).decode("utf-8", "backslashreplace"))


def _there(path: Path) -> Path:
    """The path with `~` expanded. UserError if it does not exist."""
    try:
        path = path.expanduser()
        there = path.exists()
    except RuntimeError as error:
        raise UserError(f"{str(path)!r} begins with the home folder of somebody who is not known here.") from error
    except OSError as error:
        raise UserError(f"{str(path)!r} cannot be opened: {error.strerror}.") from error
    if not there:
        raise UserError(f"There is no file or folder {str(path)!r}.")
    return path


def source_from_stdin(name: str, data: bytes) -> SourceFile:
    """The source for the content of standard input."""
    if not data:
        raise UserError("Standard input was empty: there is nothing to add.")
    name = printable_path(name)
    return SourceFile(uri=f"{STDIN}{name}", name=name, data=data)


def _walk(folder: Path) -> Iterator[Path]:
    """Files below a folder. Hidden files and links to folders are skipped, so that there are no cycles; so are links to files
    elsewhere, so that a folder from a third party includes nothing from outside it.

    A folder that cannot be listed is an error, since it would look empty, and `sync` forgets what an empty folder had.
    """
    unseen: list[OSError] = []
    within = folder.resolve()
    for place, folders, files in os.walk(folder, followlinks=False, onerror=unseen.append):
        if WORKSPACE in files and BESIDE & {*folders, *files}:
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if not is_passed_over(PurePath(name)))
        for name in sorted(files):
            if is_passed_over(PurePath(name)):
                continue
            file = Path(place) / name
            if file.is_file() and (not file.is_symlink() or file.resolve().is_relative_to(within)):
                yield file
    if unseen:
        names = ", ".join(repr(str(error.filename)) for error in unseen[:3]) + (" …" if len(unseen) > 3 else "")
        raise UserError(f"{names} cannot be listed: {unseen[0].strerror}. Check its permissions.")


def is_passed_over(name: PurePath) -> bool:
    """Whether nobody means this by a document: a hidden file or folder, one of the system or of a program."""
    return name.name.lower() in SYSTEM_FILES or any(
        part.startswith((".", "~$")) or part in PASSED_OVER for part in name.parts
    )
