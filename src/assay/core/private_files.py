"""Writes files that only their owner can read: they contain words of documents."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO


def create_private(path: Path) -> BinaryIO:
    """A new file with mode 0600, whatever the process's umask is. It must not exist yet."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def write_private(path: Path, data: bytes) -> None:
    """Write a file with mode 0600: whole, or not at all."""
    partial = path.with_name(f".{path.name}.part")
    partial.unlink(missing_ok=True)
    try:
        with create_private(partial) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
