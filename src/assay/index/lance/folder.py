"""Lance tables in a folder: names, creation, the writer lock, and flushing to disk."""

from __future__ import annotations

import asyncio
import os
import shutil
import uuid
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.index.lance.tables import connect, new_table
from assay.index.lease import file_lease


@dataclass(frozen=True, slots=True)
class Folder:
    """A `TablePlace`."""

    path: Path

    @property
    def address(self) -> str:
        return str(self.path)

    async def check(self) -> dict[str, str]:
        return {}

    def limits(self) -> tuple[str, ...]:
        return ()

    def find(self, name: str) -> str | None:
        return next((path.stem for path in self._tables(name)), None)

    async def connect(self) -> Any:
        return await connect(str(self.path))

    async def create(self, name: str, dim: int) -> None:
        """In a temporary folder that is renamed into place, so that a partial table can never be opened."""
        unfinished = self.path / f"{name}.new"
        shutil.rmtree(unfinished, ignore_errors=True)
        await new_table(await connect(str(unfinished)), "table", dim)
        (unfinished / "table.lance").rename(self.path / f"{name}.{uuid.uuid4().hex[:12]}.lance")
        shutil.rmtree(unfinished, ignore_errors=True)

    async def drop(self, name: str) -> None:
        for path in self._tables(name):
            await asyncio.to_thread(shutil.rmtree, path)
        await self.unmark(name)

    def lock(self, name: str, patience: float) -> AbstractAsyncContextManager[None]:
        return file_lease(self.path / f"{name}.lock", patience)

    async def files(self, table: str, part: str) -> list[str]:
        try:
            # Not `Path / …`: joining would take as long as reading.
            with os.scandir(f"{self.path}/{table}.lance/{part}") as entries:
                return [entry.name for entry in entries]
        except FileNotFoundError:
            return []

    async def flush(self, table: str, since: float) -> None:
        await asyncio.to_thread(_flush, self.path / f"{table}.lance", since)

    async def mark(self, name: str) -> None:
        self._marker(name).touch()

    async def is_marked(self, name: str) -> bool:
        return self._marker(name).exists()

    async def unmark(self, name: str) -> None:
        self._marker(name).unlink(missing_ok=True)

    async def kept_copies(self) -> tuple[str, ...]:
        return ()

    def _tables(self, name: str) -> list[Path]:
        return sorted(self.path.glob(f"{name}.*.lance"))

    def _marker(self, name: str) -> Path:
        return self.path / f"{name}.erase"


def _flush(table: Path, since: float) -> None:
    """Flush (fsync) what was written since `since`: Lance leaves that to the system, which may lose power."""
    for place in (table / "data", table / "_deletions", table / "_versions"):
        if not place.is_dir():
            continue
        with os.scandir(place) as entries:
            fresh = [entry.path for entry in entries if entry.stat().st_mtime >= since - 1]
        for path in [*fresh, str(place)]:
            handle = os.open(path, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
