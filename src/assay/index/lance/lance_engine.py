"""The Lance tables of a workspace, one per knowledge base."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assay.index.encoding import table_name
from assay.index.lance.tables import TablePlace
from assay.index.lease import lease_path, shared_lease

if TYPE_CHECKING:
    from assay.index.lance.lance_index import LanceIndex


@dataclass(frozen=True, slots=True)
class LanceEngine:
    """With a `database`, writers on other machines are kept apart by its locks."""

    workspace: Path
    place: TablePlace
    database: str = ""

    async def versions(self) -> dict[str, str]:
        from importlib.metadata import version

        return {"LanceDB": version("lancedb"), **await self.place.check()}

    def limits(self) -> tuple[str, ...]:
        return self.place.limits()

    def exists(self, base_id: str) -> bool:
        return self.place.find(table_name(base_id)) is not None

    async def open(self, base_id: str, dim: int, *, create: bool = False) -> LanceIndex:
        from assay.index.lance.lance_index import open_index

        return await open_index(self.place, base_id, dim, create=create)

    async def drop(self, base_id: str) -> None:
        from assay.index.lance.lance_index import drop_index

        await drop_index(self.place, base_id)

    def lease(self, base_id: str, patience: float) -> AbstractAsyncContextManager[None]:
        return shared_lease(lease_path(self.workspace, base_id), self.database, f"lance {base_id}", patience)
