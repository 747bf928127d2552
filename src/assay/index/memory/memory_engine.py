"""Indexes in the memory of this process, for tests and small experiments. They are lost when the process ends."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from assay.core.errors import UserError
from assay.index.encoding import require_dimensions
from assay.index.lease import file_lease, lease_path
from assay.index.memory_index import MemoryIndex
from assay.index.protocol import NO_INDEX

_INDEXES: dict[tuple[Path, str], MemoryIndex] = {}  # by workspace and base; shared by all users of a workspace


@dataclass(frozen=True, slots=True)
class MemoryEngine:
    workspace: Path

    async def versions(self) -> dict[str, str]:
        return {}

    def limits(self) -> tuple[str, ...]:
        return ("It is lost when the process ends.",)

    def exists(self, base_id: str) -> bool:
        return self._key(base_id) in _INDEXES

    async def open(self, base_id: str, dim: int, *, create: bool = False) -> MemoryIndex:
        if not create and not self.exists(base_id):
            raise UserError(NO_INDEX)
        index = _INDEXES.setdefault(self._key(base_id), MemoryIndex(dim=dim))
        require_dimensions(index.dim, dim)
        return index

    async def drop(self, base_id: str) -> None:
        _INDEXES.pop(self._key(base_id), None)

    def lease(self, base_id: str, patience: float) -> AbstractAsyncContextManager[None]:
        return file_lease(lease_path(self.workspace, base_id), patience)

    def _key(self, base_id: str) -> tuple[Path, str]:
        return self.workspace.resolve(), base_id
