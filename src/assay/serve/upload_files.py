"""The files of an upload, sent as a form or copied from a folder of this computer. A form is written to disk as it arrives, so
that no file is ever held in memory. File names are only labels and never used as paths."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import shutil
import unicodedata
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import BinaryIO

from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from assay.core.errors import UserError
from assay.core.printable import clean_text
from assay.ingest.parsed import Status
from assay.ingest.sources import find_sources
from assay.serve.upload_worker import FULL
from assay.workspace.stored import Entry, JobFile

Admit = Callable[[int], None]  # told of bytes before they are written; raises if they are too many

FIELD = "files"
PIECE = 1 << 20  # bytes collected from the network before a write
MAX_FILES = 5_000  # per upload
LONGEST_NAME, LONGEST_PART = 1_000, 200


class InvalidForm(Exception):
    """The body is not a form with files."""


async def receive_files(
    request: Request, folder: Path, most_bytes: int, admit: Admit = lambda _: None
) -> list[JobFile]:
    """Save every file of the request under its number, or record why it failed. Raises if the request as a whole is
    invalid; then nothing of it is kept. `admit` is told of bytes before they are written, and raises if they are too many."""
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    boundary = options.get(b"boundary", b"")
    if kind != b"multipart/form-data" or not 0 < len(boundary) <= 200:
        raise HTTPException(422, "Send the files as multipart/form-data, in the field `files`.")
    form = UploadForm(boundary, folder, most_bytes)
    try:
        async for piece in _pieces(request):
            admit(len(piece))
            await asyncio.to_thread(form.take, piece)
        return await asyncio.to_thread(form.finish)
    except (InvalidForm, FormParserError) as error:
        raise HTTPException(422, f"The form cannot be read: {error}") from error
    except ClientDisconnect as error:
        raise HTTPException(400, "The upload was cut off. Send the files again.") from error
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise HTTPException(507, FULL) from error
        raise
    finally:
        await asyncio.to_thread(form.close)


async def _pieces(request: Request):
    """The body in larger chunks, since each is handled in a thread at some cost."""
    held, size = [], 0
    async for chunk in request.stream():
        held.append(chunk)
        size += len(chunk)
        if size >= PIECE:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)


class UploadForm:
    """A form being received. Called from threads, one call at a time."""

    def __init__(self, boundary: bytes, folder: Path, most_bytes: int) -> None:
        self._folder, self._most = folder, most_bytes
        self._files: list[JobFile] = []
        self._headers: dict[str, bytes] = {}
        self._header, self._value = b"", b""
        self._open: BinaryIO | None = None
        self._name, self._size, self._ended = "", 0, False
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._part_begins,
                "on_header_field": self._header_field,
                "on_header_value": self._header_value,
                "on_header_end": self._header_ends,
                "on_headers_finished": self._headers_end,
                "on_part_data": self._data,
                "on_part_end": self._part_ends,
                "on_end": self._form_ends,
            },
        )

    def take(self, piece: bytes) -> None:
        self._parser.write(piece)

    def finish(self) -> list[JobFile]:
        """The received files, once they are safely on disk."""
        self._parser.finalize()
        if not self._ended:
            raise InvalidForm("it was cut off.")
        if not self._files:
            raise InvalidForm("it holds no file in the field `files`.")
        for folder in (self._folder, self._folder.parent, self._folder.parent.parent):
            keep_folder(folder)
        return self._files

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def _part_begins(self) -> None:
        self._headers, self._header, self._value = {}, b"", b""
        self._name, self._size = "", 0

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header_ends(self) -> None:
        self._headers[self._header.decode("latin-1").lower()] = self._value
        self._header, self._value = b"", b""

    def _headers_end(self) -> None:
        _, options = parse_options_header(self._headers.get("content-disposition", b""))
        if options.get(b"name", b"").decode("utf-8", "replace") != FIELD:
            return  # other fields are ignored
        if b"filename" not in options:
            raise InvalidForm("what is in the field `files` has to be a file, with a name.")
        given = options[b"filename"].decode("utf-8", "replace")
        if not given:
            return  # a browser sends an empty part if no file was chosen
        if len(self._files) >= MAX_FILES:
            raise InvalidForm(f"it holds more than {MAX_FILES:,} files. Send some of them first.")
        self._name = safe_file_name(given)
        self._open = (self._folder / str(len(self._files))).open("xb")

    def _data(self, data: bytes, start: int, end: int) -> None:
        if not self._name:
            return
        self._size += end - start
        if self._size > self._most:
            self.close()  # the rest of it is ignored
        elif self._open is not None:
            self._open.write(data[start:end])

    def _part_ends(self) -> None:
        if not self._name:
            return
        number = len(self._files)
        if self._open is None:
            (self._folder / str(number)).unlink(missing_ok=True)
            self._files.append(JobFile(number, self._name, self._size, "failed", too_large(self._size, self._most)))
            return
        self._open.flush()
        os.fsync(self._open.fileno())
        self.close()
        self._files.append(JobFile(number, self._name, self._size))

    def _form_ends(self) -> None:
        self._ended = True


def keep_folder(folder: Path) -> None:
    """Sync a folder to disk; ignored where the system does not support that."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise
    finally:
        os.close(handle)


def too_large(size: int, most: int) -> dict[str, str]:
    why = f"It has {size:,} bytes, more than the limit of {most:,}; split it or raise the limit on bytes."
    return {"status": Status.too_large, "why": why}


def safe_file_name(given: str) -> str:
    """A safe relative file name: no absolute or upward path, no invisible or control characters."""
    plain = unicodedata.normalize("NFC", clean_text(given.replace("%22", '"')))
    parts = [_part(part) for part in re.split(r"[/\\]", plain)]
    kept = [part for part in parts if part not in {"", ".", ".."} and not re.fullmatch("[A-Za-z]:", part)]
    while len(kept) > 1 and sum(map(len, kept)) > LONGEST_NAME:
        kept.pop(0)
    return "/".join(kept) or "file"


def _part(part: str) -> str:
    seen = "".join(sign if sign.isprintable() else " " for sign in part).strip()
    ending = PurePath(seen).suffix[:20]
    return seen if len(seen) <= LONGEST_PART else seen[: LONGEST_PART - len(ending)].rstrip() + ending


def copy_again(original: Path, entry: Entry, into: Path, admit: Admit) -> list[JobFile]:
    """Copy the stored file of a document, to be read once more with OCR in its place."""
    admit(0)
    with original.open("rb") as read, (into / "0").open("xb") as written:
        shutil.copyfileobj(read, written)
        written.flush()
        os.fsync(written.fileno())
    for place in (into, into.parent, into.parent.parent):
        keep_folder(place)
    return [JobFile(0, entry.name, entry.bytes, report={"uri": entry.uri, "ocr": True})]


def copy_folder(path: str, workspace: Path, into: Path, most_bytes: int, admit: Admit) -> list[JobFile]:
    """Copy the files of a folder. `admit` is told of bytes before they are written, and raises if they are too many."""
    folder = Path(path).expanduser()
    if not folder.is_absolute() or not folder.is_dir():
        raise UserError(f"{path!r} is no folder on this computer. Give its whole path, as /home/ada/papers.")
    folder = folder.resolve()
    if folder.is_relative_to(workspace.resolve()):
        raise UserError("That is the folder of the workspace itself. Choose a folder with your documents.")
    files: list[JobFile] = []
    for number, source in enumerate(find_sources([folder])):
        assert source.path is not None
        name, size = safe_file_name(str(source.path.relative_to(folder.parent))), source.size()
        if size > most_bytes:
            files.append(JobFile(number, name, size, "failed", too_large(size, most_bytes)))
            continue
        admit(size)
        with source.path.open("rb") as read, (into / str(number)).open("xb") as written:
            shutil.copyfileobj(read, written)
            written.flush()
            os.fsync(written.fileno())
        files.append(JobFile(number, name, size))
    for place in (into, into.parent, into.parent.parent):
        keep_folder(place)
    return files
