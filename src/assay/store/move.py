"""Moves the state of a workspace to another database: all rows in one transaction, compared afterwards."""

from __future__ import annotations

from hashlib import sha256

from sqlalchemy import Connection, Table, delete, func, select

from assay.core.codec import dumps
from assay.core.errors import StoreError, UserError
from assay.store import schema
from assay.store.schema import copy_rows
from assay.store.database import Store
from assay.store.database import continue_numbering


def move_state(source: Store, target: Store) -> dict[str, int]:
    """Copy the whole state to an empty database and compare both. Nobody writes to either meanwhile; if anything fails,
    the target stays empty. Returns the number of rows by table."""
    with source.write() as reading, target.write() as writing:
        filled = [table.name for table in schema.schema.sorted_tables if table is not schema.facts]
        if any(_count(writing, schema.schema.tables[name]) for name in filled):
            raise UserError("The database to move to has a workspace in it already. Choose an empty one.")
        writing.execute(delete(schema.facts))
        copied = copy_rows(reading, writing)
        continue_numbering(writing)
        differing = [
            table.name
            for table in schema.schema.sorted_tables
            if table_digest(reading, table) != table_digest(writing, table)
        ]
        if differing:
            raise StoreError(f"The copy is not the same in {', '.join(differing)}; nothing was moved.")
    return copied


def table_digest(connection: Connection, table: Table) -> str:
    """A digest of all rows of a table, by primary key."""
    digest = sha256()
    rows = connection.execute(select(table).order_by(*table.primary_key))
    for row in rows:
        digest.update(dumps(list(row)).encode())
    return digest.hexdigest()


def _count(connection: Connection, table: Table) -> int:
    return connection.scalar(select(func.count()).select_from(table)) or 0
