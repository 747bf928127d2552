"""Everything specific to the database, which is SQLite. All other modules of the store are written against
SQLAlchemy."""

from __future__ import annotations

import sqlite3
import time
from enum import Enum, auto
from pathlib import Path
from typing import Any

from sqlalchemy import (
    URL,
    ColumnElement,
    Connection,
    Engine,
    Insert,
    MetaData,
    Table,
    Update,
    create_engine,
    event,
    func,
    insert,
    update,
)
from sqlalchemy.exc import OperationalError

DEFER_FOREIGN_KEYS = "PRAGMA defer_foreign_keys = ON"
VARIABLES = 500  # values per statement: well below the limit of the database
WAL_ATTEMPTS = 100  # 2 seconds
DriverError = sqlite3.DatabaseError


def engine_for(path: Path) -> Engine:
    """The engine of a database file, with the settings required for durability and erasure."""
    address = URL.create("sqlite", database=str(path))  # a path may contain any character, even a question mark
    engine = create_engine(
        address, connect_args={"timeout": 60.0, "check_same_thread": False}, pool_size=16, max_overflow=64
    )

    @event.listens_for(engine, "connect")
    def _connected(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None  # transactions are begun only below
        _use_write_ahead_log(connection)
        for pragma in ("synchronous=FULL", "foreign_keys=ON", "secure_delete=ON"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begun(connection: Connection) -> None:
        writes = connection.get_execution_options().get("assay_writes")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Switch a new database to WAL. The switch does not wait for other processes that do the same, so it is repeated."""
    for attempt in range(WAL_ATTEMPTS):
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError:
            if attempt == WAL_ATTEMPTS - 1:
                raise
            time.sleep(0.02)


def create_tables(engine: Engine, tables: MetaData) -> None:
    """Create the tables that are missing, in one write transaction: another process may be doing the same."""
    with engine.connect().execution_options(assay_writes=True) as connection, connection.begin():
        tables.create_all(connection)


class Trouble(Enum):
    """Database failures that someone can fix."""

    full = auto()
    locked = auto()
    unwritable = auto()


def trouble_of(error: OperationalError) -> Trouble | None:
    words = str(error.orig)
    if "full" in words:
        return Trouble.full
    if "locked" in words:
        return Trouble.locked
    return Trouble.unwritable if "readonly" in words or "unable to open" in words else None


def insert_new(table: Table) -> Insert:
    """An insert that leaves existing rows unchanged."""
    return insert(table).prefix_with("OR IGNORE")


def update_where_free(table: Table) -> Update:
    """An update that skips rows whose new key is taken."""
    return update(table).prefix_with("OR IGNORE")


def insert_or_replace(table: Table) -> Insert:
    return insert(table).prefix_with("OR REPLACE")


def json_value(column: ColumnElement[Any], path: str) -> ColumnElement[Any]:
    """The value at a path (`$.answer.outcome`) of a JSON text."""
    return func.json_extract(column, path)


def json_length(column: ColumnElement[Any], path: str = "$") -> ColumnElement[Any]:
    """The length of a JSON list; null if there is none."""
    return func.json_array_length(column, path)


def copy_into(connection: Connection, path: Path) -> None:
    """Copy the whole database; safe during concurrent writes."""
    connection.exec_driver_sql("COMMIT")  # this cannot run inside a transaction
    connection.exec_driver_sql("VACUUM INTO ?", (str(path),))
    connection.exec_driver_sql("BEGIN")


def empty_write_ahead(connection: Connection) -> bool:
    """Checkpoint and truncate the write-ahead log; not possible while there are readers."""
    connection.exec_driver_sql("COMMIT")
    connection.exec_driver_sql("PRAGMA busy_timeout=500")
    row = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").first()
    connection.exec_driver_sql("PRAGMA busy_timeout=60000")
    connection.exec_driver_sql("BEGIN")
    return row is None or not row[0]
