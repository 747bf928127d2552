"""Takes the files of a folder on the server's own disk into an upload job, as if they had been sent."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from assay.core.errors import UserError
from assay.ingest.sources import find_sources
from assay.serve.upload_files import keep_folder
from assay.serve.upload_files import safe_file_name
from assay.serve.upload_files import too_large
from assay.store.jobs import JobFile


def copy_folder(path: str, workspace: Path, into: Path, most_bytes: int, admit: Callable[[int], None]) -> list[JobFile]:
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
