"""Creates and opens Lance tables, wherever they are."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from assay.core.errors import AssayError, StoreError, UserError
from assay.index.encoding import require_dimensions
from assay.index.lance.tables import load_lancedb
from assay.index.lance.tables import TablePlace
from assay.index.lance.rows import schema
from assay.index.protocol import NO_INDEX

if TYPE_CHECKING:
    from lancedb.table import AsyncTable


async def connect(address: str, options: dict[str, str] | None = None) -> Any:
    lancedb = await asyncio.to_thread(load_lancedb)  # slow the first time
    # Every read checks for a newer version first, since another process may have written; in a folder that costs 0.1 ms.
    return await lancedb.connect_async(address, read_consistency_interval=timedelta(0), storage_options=options)


async def new_table(connection: Any, name: str, dim: int) -> None:
    await build_indices(await connection.create_table(name, schema=schema(dim)))


async def open_table(place: TablePlace, name: str, dim: int) -> AsyncTable:
    found = await asyncio.to_thread(place.find, name)
    if found is None:
        raise UserError(NO_INDEX)
    try:
        table = await (await place.connect()).open_table(found)
        columns = await table.schema()
        held = columns.field("vector").type.list_size
    except AssayError:
        raise
    except Exception as error:
        raise damaged(place, error) from error
    if columns.names not in (schema(held).names, schema(held).names[:-1]):  # the last column, `terms`, came later
        raise damaged(place, ValueError("another version of Assay made it"))
    require_dimensions(held, dim)
    return table


async def build_indices(table: AsyncTable) -> None:
    """Build the full-text index and the indices of the two fields that searches filter by, from the current rows.

    An empty table has them too: rows not yet indexed are searched with the tokenizer of the index, and without an
    index Lance would neither stem nor fold. The merge key `id` has none: Lance is reported to lose updates with one.
    """
    from lancedb.index import FTS, Bitmap, BTree

    await table.create_index("body", config=FTS(with_position=False, max_token_length=64), replace=True)
    await table.create_index("f_label", config=Bitmap(), replace=True)
    await table.create_index("f_doc", config=BTree(), replace=True)


def damaged(place: TablePlace, error: Exception) -> StoreError:
    reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
    elsewhere = "Check with `assay doctor` that the storage can be reached. " if "://" in place.address else ""
    return StoreError(
        f"The search index in {place.address} cannot be used ({reason}). {elsewhere}Nothing is lost with it: "
        "run `assay reindex` to build it again from the documents."
    )
