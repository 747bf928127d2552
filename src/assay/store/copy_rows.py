"""Copies the rows of all tables from one database to another."""

from __future__ import annotations

from sqlalchemy import Connection, insert, select

from assay.store import schema

BATCH = 500  # rows at once


def copy_rows(source: Connection, target: Connection) -> dict[str, int]:
    """Copy the rows of all tables, those that others refer to first. Returns the number of rows by table."""
    copied: dict[str, int] = {}
    for table in schema.schema.sorted_tables:
        copied[table.name] = 0
        for rows in source.execute(select(table)).mappings().partitions(BATCH):
            target.execute(insert(table), [dict(row) for row in rows])
            copied[table.name] += len(rows)
    return copied
