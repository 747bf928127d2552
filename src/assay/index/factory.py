"""Chooses the index engine that the setting `index` names, and copies an index from one to another. No module outside this
package imports an engine.

A new engine is a module in this package and one entry in `ENGINES`; `tests/contracts/test_index.py` checks it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np

from assay.core.errors import StoreError, UserError
from assay.core.settings import Settings, secret
from assay.core.types import Row
from assay.index.encoding import pack
from assay.index.protocol import Index, IndexEngine
from assay.store.dialect import parts


def index_engine(settings: Settings, workspace: Path) -> IndexEngine:
    """The engine for the indexes of the workspace in this folder. Nothing is loaded or opened yet."""
    name, _, place = settings.index.partition(":")
    build = ENGINES.get(name)
    if build is None:
        raise UserError(f"There is no index engine {name!r}. Set `index` to one of: {', '.join(ENGINES)}.")
    return build(settings, workspace, place)


def _lance(settings: Settings, workspace: Path, place: str) -> IndexEngine:
    from assay.index.lance.lance_index import LanceEngine
    from assay.index.lance.tables import Bucket, Folder
    from assay.store.blobs import is_bucket, open_bucket

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


async def copy_index(source: Index, target: Index) -> int:
    """Make `target` hold the rows of `source`, and compare both row by row. Returns the number of rows.

    Rows that are there already are not written again, so a copy that was interrupted goes on where it stopped. The target
    may not hold other rows.
    """
    ids = await source.ids()
    for batch in parts(ids):
        held = {row.passage.id: row_digest(row) for row in await target.rows(batch)}
        missing = [row for row in await source.rows(batch) if held.get(row.passage.id) != row_digest(row)]
        await target.upsert(missing)
    await target.optimise()
    if await target.ids() != ids or await index_digest(target, ids) != await index_digest(source, ids):
        raise StoreError("The copy of the index is not the same; nothing was moved. Run the same command again.")
    return len(ids)


async def index_digest(index: Index, ids: Sequence[str]) -> str:
    """A digest of these rows, with their vectors."""
    digest = sha256()
    for batch in parts(ids):
        for row in await index.rows(batch):
            digest.update(row_digest(row))
    return digest.hexdigest()


def row_digest(row: Row) -> bytes:
    return sha256(pack(row).encode() + np.asarray(row.vector, "<f4").tobytes()).digest()
