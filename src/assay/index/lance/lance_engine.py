"""The Lance tables of a workspace: one per knowledge base, in the folder `index`."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assay.index.lance.folder import drop_tables, has_index
from assay.index.lease import file_lease, lease_path

if TYPE_CHECKING:
    from assay.index.lance.lance_index import LanceIndex


@dataclass(frozen=True, slots=True)
class LanceEngine:
    workspace: Path
    elsewhere: Path | None = None  # the folder of the tables, if not in the workspace

    @property
    def folder(self) -> Path:
        return self.elsewhere or self.workspace / "index"

    async def versions(self) -> dict[str, str]:
        from importlib.metadata import version

        return {"LanceDB": version("lancedb")}

    def limits(self) -> tuple[str, ...]:
        return ()

    def exists(self, base_id: str) -> bool:
        return has_index(self.folder, base_id)

    async def open(self, base_id: str, dim: int, *, create: bool = False) -> LanceIndex:
        from assay.index.lance.lance_index import open_index

        return await open_index(self.folder, base_id, dim, create=create)

    async def drop(self, base_id: str) -> None:
        await drop_tables(self.folder, base_id)

    def lease(self, base_id: str, patience: float) -> AbstractAsyncContextManager[None]:
        return file_lease(lease_path(self.workspace, base_id), patience)
