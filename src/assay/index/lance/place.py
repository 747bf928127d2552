"""Where the Lance tables of a workspace are kept: a folder (`folder.py`) or a bucket (`bucket.py`)."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol


class TablePlace(Protocol):
    """`name` stands for a knowledge base. `table` is its table: a table that is dropped and made again has another name, so
    that a reader who still has the old one open cannot take the new rows for the old ones."""

    @property
    def address(self) -> str:
        """Where it is, for messages."""
        ...

    async def check(self) -> dict[str, str]:
        """Try whether tables can be written there. The parts that it needs and their versions, or an AssayError."""
        ...

    def limits(self) -> tuple[str, ...]:
        """What it does less well than the contract says, a sentence each."""
        ...

    def find(self, name: str) -> str | None:
        """The table of this name, intact or damaged; None if there is none."""
        ...

    async def connect(self) -> Any:
        """A connection of lancedb in which tables are opened."""
        ...

    async def create(self, name: str, dim: int) -> None:
        """Create the table with its indices: `find` finds all of it or nothing. The caller holds the lock."""
        ...

    async def drop(self, name: str) -> None:
        """Delete the tables of this name with all their content. The caller holds the lock."""
        ...

    def lock(self, name: str, patience: float) -> AbstractAsyncContextManager[None]:
        """Held for each write, by one process at a time, wherever it is. UserError after `patience` seconds."""
        ...

    async def files(self, table: str, part: str) -> list[str]:
        """The names of the files in one part of a table, such as `_versions`."""
        ...

    async def flush(self, table: str, since: float) -> None:
        """Make durable what was written since this time."""
        ...

    async def mark(self, name: str) -> None:
        """Note that text of deleted or replaced rows may still be stored."""
        ...

    async def is_marked(self, name: str) -> bool: ...

    async def unmark(self, name: str) -> None: ...

    async def kept_copies(self) -> tuple[str, ...]:
        """What the storage keeps of deleted files, a phrase each."""
        ...
