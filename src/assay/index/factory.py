"""Chooses the index engine that the setting `index` names. No module outside this package imports an engine.

A new engine is a folder in this package and one entry in `ENGINES`; `tests/contracts/test_index.py` checks it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from assay.core.errors import UserError
from assay.core.settings import Settings, secret
from assay.index.protocol import IndexEngine


def index_engine(settings: Settings, workspace: Path) -> IndexEngine:
    """The engine for the indexes of the workspace in this folder. Nothing is loaded or opened yet."""
    name, _, place = settings.index.partition(":")
    build = ENGINES.get(name)
    if build is None:
        raise UserError(f"There is no index engine {name!r}. Set `index` to one of: {', '.join(ENGINES)}.")
    return build(settings, workspace, place)


def _lance(settings: Settings, workspace: Path, place: str) -> IndexEngine:
    from assay.index.lance.tables import Bucket
    from assay.index.lance.tables import Folder
    from assay.index.lance.lance_index import LanceEngine
    from assay.store.blobs import is_bucket
    from assay.store.blobs import open_bucket

    own = workspace / "index"
    if is_bucket(place):
        open_bucket(place)  # an address that is none, or a client that is missing, is told at once
        database = secret(settings.state)
        return LanceEngine(workspace, Bucket(place.rstrip("/"), own, database), database)
    if "://" in place:
        raise UserError("Lance keeps its tables in a folder or on S3. Set `index` to `lance:PATH` or `lance:s3://…`.")
    return LanceEngine(workspace, Folder(Path(place).expanduser() if place else own))


def _memory(settings: Settings, workspace: Path, place: str) -> IndexEngine:
    from assay.index.memory_index import MemoryEngine

    return MemoryEngine(workspace)


def _milvus(settings: Settings, workspace: Path, place: str) -> IndexEngine:
    from assay.index.milvus_index import MilvusEngine

    if not place:
        raise UserError('`index = "milvus:…"` needs the address of a server (http://…), or a file that ends in .db.')
    return MilvusEngine(workspace, place)


def _postgres(settings: Settings, workspace: Path, place: str) -> IndexEngine:
    from assay.index.postgres_index import PostgresEngine

    address = secret(settings.state)
    if not address:
        raise UserError('`index = "postgres"` uses the database that `state` names. Set `state` to postgresql://….')
    return PostgresEngine(workspace, address)


ENGINES: Mapping[str, Callable[[Settings, Path, str], IndexEngine]] = {
    "lance": _lance,
    "memory": _memory,
    "milvus": _milvus,
    "postgres": _postgres,
}
