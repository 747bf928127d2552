"""The collections of a workspace's indexes: on a Milvus server, or in a file of Milvus Lite."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from contextlib import AbstractAsyncContextManager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.core.errors import AssayError, UserError
from assay.index.encoding import require_dimensions
from assay.index.lease import file_lease, lease_path
from assay.index.milvus_index import SEARCHED
from assay.index.milvus_index import SORTED
from assay.index.protocol import NO_INDEX

if TYPE_CHECKING:
    from assay.index.milvus_index import MilvusIndex

OLDEST = (2, 3, 5)  # it has arrays, cosine and upsert
WITH_BM25 = (2, 5)

log = logging.getLogger("assay.index")


class MilvusEngine:
    """Several workspaces may use one server: the folder of the workspace is part of the names of its collections."""

    def __init__(self, workspace: Path, address: str) -> None:
        self.workspace = workspace
        self.address = address

    async def versions(self) -> dict[str, str]:
        from importlib.metadata import version

        return {"Milvus": await asyncio.to_thread(self._server_version), "pymilvus": version("pymilvus")}

    def limits(self) -> tuple[str, ...]:
        server = self._server_version()
        wordless = (
            f"Milvus {server} has no BM25: passages are found by meaning, not by their words. "
            "Use Milvus 2.5 or newer, then run `assay reindex`."
        )
        return (
            *(() if has_bm25(server) else (wordless,)),
            "Erased text stays in old segments until Milvus removes them.",
            "Only machines that share the workspace folder keep each other from writing.",
        )

    def exists(self, base_id: str) -> bool:
        return bool(self._client.has_collection(self._name(base_id)))

    async def open(self, base_id: str, dim: int, *, create: bool = False) -> MilvusIndex:
        from assay.index.milvus_index import MilvusIndex
        from assay.index.milvus_index import unusable

        name = self._name(base_id)
        try:
            if not await asyncio.to_thread(self.exists, base_id):
                if not create:
                    raise UserError(NO_INDEX)
                server = await asyncio.to_thread(self._server_version)
                await asyncio.to_thread(_create, self._client, name, dim, words=has_bm25(server))
            about = await asyncio.to_thread(self._client.describe_collection, name)
            await asyncio.to_thread(self._client.load_collection, name)
        except AssayError:
            raise
        except Exception as error:
            raise unusable(error) from error
        fields = {field["name"]: field for field in about["fields"]}
        require_dimensions(int(fields["vector"]["params"]["dim"]), dim)
        if "sparse" not in fields:
            _warn_of_no_words(self.address)
        return MilvusIndex(self._client, name, dim, has_words="sparse" in fields)

    async def drop(self, base_id: str) -> None:
        await asyncio.to_thread(self._client.drop_collection, self._name(base_id))

    def lease(self, base_id: str, patience: float) -> AbstractAsyncContextManager[None]:
        return file_lease(lease_path(self.workspace, base_id), patience)

    @property
    def _client(self) -> Any:
        return _client(self.address)

    def _server_version(self) -> str:
        from assay.index.milvus_index import unusable

        try:
            server = str(self._client.get_server_version())
        except AssayError:
            raise
        except Exception as error:
            raise unusable(error) from error
        if _numbers(server) < OLDEST:
            raise UserError(f"Milvus {server} is too old. The oldest version that Assay can use is 2.3.5.")
        return server

    def _name(self, base_id: str) -> str:
        """Milvus takes letters, digits and underscores."""
        of = f"{self.workspace.resolve()}\n{base_id}"
        return "assay_" + hashlib.sha256(of.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def has_bm25(server: str) -> bool:
    return _numbers(server) >= WITH_BM25


def _numbers(version: str) -> tuple[int, ...]:
    """(2, 3, 5) of `v2.3.5-lite`. A build without a number counts as new."""
    found = re.search(r"\d{1,6}(?:\.\d{1,6}){1,4}", version)
    return tuple(map(int, found[0].split("."))) if found else WITH_BM25


@lru_cache(maxsize=4)
def _warn_of_no_words(address: str) -> None:
    """Once for each server in a process."""
    log.warning(
        "The search index on Milvus was made on a server without BM25: passages are found by meaning, not by their words. "
        "Use Milvus 2.5 or newer, then run `assay reindex`."
    )


@lru_cache(maxsize=4)
def _client(address: str) -> Any:
    try:
        from pymilvus import MilvusClient  # type: ignore[reportMissingImports]
    except ImportError as error:
        raise UserError("An index on Milvus needs its client: `pip install 'assay[milvus]'`.") from error
    from assay.index.milvus_index import unusable

    try:
        return MilvusClient(address)
    except Exception as error:
        raise unusable(error) from error


def _create(client: Any, name: str, dim: int, *, words: bool) -> None:
    from pymilvus import DataType, Function, FunctionType  # type: ignore[reportMissingImports]

    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("pk", DataType.VARCHAR, max_length=64, is_primary=True)
    schema.add_field("content", DataType.VARCHAR, max_length=65_535)
    schema.add_field("facets", DataType.ARRAY, element_type=DataType.VARCHAR, max_capacity=1024, max_length=64)
    for column in (*(f"s_{name}" for name in SORTED), *(f"c_{name}" for name in SEARCHED)):
        schema.add_field(column, DataType.VARCHAR, max_length=8192)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dim)
    indexes = client.prepare_index_params()
    indexes.add_index("vector", index_type="FLAT", metric_type="COSINE")
    if words:
        schema.add_field("words", DataType.VARCHAR, max_length=65_535, enable_analyzer=True)
        schema.add_field("sparse", DataType.SPARSE_FLOAT_VECTOR)
        bm25 = Function(
            name="bm25", function_type=FunctionType.BM25, input_field_names=["words"], output_field_names=["sparse"]
        )
        schema.add_function(bm25)
        indexes.add_index("sparse", index_type="SPARSE_INVERTED_INDEX", metric_type="BM25")
    client.create_collection(name, schema=schema, index_params=indexes, consistency_level="Strong")
