"""The folder of the Lance tables: table names, creation, opening, the writer lock, and flushing to disk."""

from __future__ import annotations

import asyncio
import os
import shutil
import uuid
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.core.errors import StoreError, UserError
from assay.index.encoding import require_dimensions, table_name
from assay.index.lance.lazy_import import load_lancedb
from assay.index.lance.rows import schema
from assay.index.lease import file_lease
from assay.index.protocol import NO_INDEX

if TYPE_CHECKING:
    from lancedb.table import AsyncTable


def tables(folder: Path, name: str) -> list[Path]:
    """The folders of a table. Its creation is part of the folder name: a table that is dropped and recreated has another
    folder, so a reader that still has the old one open cannot take the new rows for the old ones.
    """
    return sorted(folder.glob(f"{name}.*.lance"))


def has_index(folder: Path, base_id: str) -> bool:
    """Whether the base has an index, intact or damaged."""
    return bool(tables(folder, table_name(base_id)))


async def create_table(folder: Path, name: str, dim: int) -> None:
    """Create a table in a temporary folder and rename it into place, so that a partial table can never be opened."""
    unfinished = folder / f"{name}.new"
    shutil.rmtree(unfinished, ignore_errors=True)
    table = await (await _connect(unfinished)).create_table("table", schema=schema(dim))
    await build_indices(table)
    (unfinished / "table.lance").rename(folder / f"{name}.{uuid.uuid4().hex[:12]}.lance")
    shutil.rmtree(unfinished, ignore_errors=True)


async def open_table(folder: Path, name: str, dim: int) -> AsyncTable:
    found = tables(folder, name)
    if not found:
        raise UserError(NO_INDEX)
    try:
        table = await (await _connect(folder)).open_table(found[0].stem)
        columns = await table.schema()
        held = columns.field("vector").type.list_size
    except Exception as error:
        raise damaged(folder, error) from error
    if columns.names != schema(held).names:
        raise damaged(folder, ValueError("another version of Assay made it"))
    require_dimensions(held, dim)
    return table


async def drop_tables(folder: Path, base_id: str, *, lock_timeout: float = 60.0) -> None:
    """Delete a knowledge base's index from the disk with all its content, intact or damaged."""
    name = table_name(base_id)
    async with file_lease(folder / f"{name}.lock", lock_timeout):
        for path in tables(folder, name):
            await asyncio.to_thread(shutil.rmtree, path)
        (folder / f"{name}.erase").unlink(missing_ok=True)


async def build_indices(table: AsyncTable) -> None:
    """Build the full-text index and the indices of the two fields that searches filter by, from the current rows.

    An empty table has them too: rows not yet indexed are searched with the tokenizer of the index, and without an
    index Lance would neither stem nor fold. The merge key `id` has none: Lance is reported to lose updates with one.
    """
    from lancedb.index import FTS, Bitmap, BTree

    await table.create_index("body", config=FTS(with_position=False, max_token_length=64), replace=True)
    await table.create_index("f_label", config=Bitmap(), replace=True)
    await table.create_index("f_doc", config=BTree(), replace=True)


def flush(folder: Path, since: float) -> None:
    """Flush (fsync) what was written since `since`: Lance leaves that to the system, which may lose power."""
    for place in (folder / "data", folder / "_deletions", folder / "_versions"):
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


def damaged(folder: Path, error: Exception) -> StoreError:
    reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
    return StoreError(
        f"The search index in {folder} cannot be used ({reason}). Nothing is lost with it: "
        "run `assay reindex` to build it again from the documents."
    )


async def _connect(folder: Path) -> Any:
    lancedb = await asyncio.to_thread(load_lancedb)  # slow the first time
    # Every read checks for a newer version first, since another process may have written; the check costs 0.1 ms.
    return await lancedb.connect_async(folder, read_consistency_interval=timedelta(0))
