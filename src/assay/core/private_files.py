"""Makes files and folders that only their owner can read: they contain words of documents."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

OTHERS = 0o077  # the rights of the group and of everybody


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


def make_private(folder: Path) -> None:
    """Take a folder, and the files directly in it, from everybody but its owner. Somebody else's are left as they are."""
    if os.name != "posix":
        return
    for each in (folder, *folder.iterdir()):
        if not each.is_symlink() and each.stat().st_uid == os.getuid() and each.stat().st_mode & OTHERS:
            each.chmod(each.stat().st_mode & 0o700)


def readable_by(path: Path) -> str:
    """Who else can read a file or enter a folder: `group`, `everybody` or nobody (empty)."""
    mode = path.stat().st_mode
    return "everybody" if mode & 0o007 else "group" if mode & 0o070 else ""
