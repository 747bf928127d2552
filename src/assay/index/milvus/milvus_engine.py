"""The collections of a workspace's indexes: on a Milvus server, or in a file of Milvus Lite."""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import AbstractAsyncContextManager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.core.errors import UserError
from assay.index.encoding import require_dimensions
from assay.index.lease import file_lease, lease_path
from assay.index.milvus.expression import SEARCHED, SORTED
from assay.index.protocol import NO_INDEX

if TYPE_CHECKING:
    from assay.index.milvus.milvus_index import MilvusIndex


class MilvusEngine:
    """Several workspaces may use one server: the folder of the workspace is part of the names of its collections."""

    def __init__(self, workspace: Path, address: str) -> None:
        self.workspace = workspace
        self.address = address

    async def versions(self) -> dict[str, str]:
        from importlib.metadata import version

        from assay.index.milvus.milvus_index import unusable

        try:
            server = await asyncio.to_thread(self._client.get_server_version)
        except Exception as error:
            raise unusable(error) from error
        return {"Milvus": str(server), "pymilvus": version("pymilvus")}

    def limits(self) -> tuple[str, ...]:
        return (
            "Erased text stays in old segments until Milvus removes them.",
            "Only machines that share the workspace folder keep each other from writing.",
        )

    def exists(self, base_id: str) -> bool:
        return bool(self._client.has_collection(self._name(base_id)))

    async def open(self, base_id: str, dim: int, *, create: bool = False) -> MilvusIndex:
        from assay.index.milvus.milvus_index import MilvusIndex, unusable

        name = self._name(base_id)
        try:
            if not await asyncio.to_thread(self.exists, base_id):
                if not create:
                    raise UserError(NO_INDEX)
                await asyncio.to_thread(_create, self._client, name, dim)
            about = await asyncio.to_thread(self._client.describe_collection, name)
            await asyncio.to_thread(self._client.load_collection, name)
        except UserError:
            raise
        except Exception as error:
            raise unusable(error) from error
        held = next(field["params"]["dim"] for field in about["fields"] if field["name"] == "vector")
        require_dimensions(int(held), dim)
        return MilvusIndex(self._client, name, dim)

    async def drop(self, base_id: str) -> None:
        await asyncio.to_thread(self._client.drop_collection, self._name(base_id))

    def lease(self, base_id: str, patience: float) -> AbstractAsyncContextManager[None]:
        return file_lease(lease_path(self.workspace, base_id), patience)

    @property
    def _client(self) -> Any:
        return _client(self.address)

    def _name(self, base_id: str) -> str:
        """Milvus takes letters, digits and underscores."""
        of = f"{self.workspace.resolve()}\n{base_id}"
        return "assay_" + hashlib.sha256(of.encode("utf-8", "surrogatepass")).hexdigest()[:40]


@lru_cache(maxsize=4)
def _client(address: str) -> Any:
    try:
        from pymilvus import MilvusClient  # type: ignore[reportMissingImports]
    except ImportError as error:
        raise UserError("An index on Milvus needs its client: `pip install 'assay[milvus]'`.") from error
    from assay.index.milvus.milvus_index import unusable

    try:
        return MilvusClient(address)
    except Exception as error:
        raise unusable(error) from error


def _create(client: Any, name: str, dim: int) -> None:
    from pymilvus import DataType, Function, FunctionType  # type: ignore[reportMissingImports]

    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("pk", DataType.VARCHAR, max_length=64, is_primary=True)
    schema.add_field("content", DataType.VARCHAR, max_length=65_535)
    schema.add_field("facets", DataType.ARRAY, element_type=DataType.VARCHAR, max_capacity=1024, max_length=64)
    for column in (*(f"s_{name}" for name in SORTED), *(f"c_{name}" for name in SEARCHED)):
        schema.add_field(column, DataType.VARCHAR, max_length=8192)
    schema.add_field("words", DataType.VARCHAR, max_length=65_535, enable_analyzer=True)
    schema.add_field("sparse", DataType.SPARSE_FLOAT_VECTOR)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dim)
    schema.add_function(
        Function(
            name="bm25", function_type=FunctionType.BM25, input_field_names=["words"], output_field_names=["sparse"]
        )
    )
    indexes = client.prepare_index_params()
    indexes.add_index("vector", index_type="FLAT", metric_type="COSINE")
    indexes.add_index("sparse", index_type="SPARSE_INVERTED_INDEX", metric_type="BM25")
    client.create_collection(name, schema=schema, index_params=indexes, consistency_level="Strong")
