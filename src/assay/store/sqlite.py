"""SQLite: the state of a workspace in a file."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.ext.compiler import compiles

from assay.store.dialect import WRITES, FileFlush, json_length, json_text, one_of

DEFER_FOREIGN_KEYS = "PRAGMA defer_foreign_keys = ON"
WAL_ATTEMPTS = 100  # 2 seconds
LOOK = 0.05  # seconds between two looks at whether the file has changed


def engine_for(path: Path) -> Engine:
    """The engine of a database file, with the settings required for durability and erasure."""
    log = path.with_name(f"{path.name}-wal")
    # In a folder that cannot be written to, no log can be made beside the file. Without one it is as it was closed.
    fixed = path.exists() and not os.access(path.parent, os.W_OK) and not (log.exists() and log.stat().st_size)
    # A path may contain any character, even a question mark.
    named = f"{path.absolute().as_uri()}?immutable=1" if fixed else str(path)
    address = URL.create("sqlite", database=named, query={"uri": "true"} if fixed else {})
    engine = create_engine(
        address, connect_args={"timeout": 60.0, "check_same_thread": False}, pool_size=16, max_overflow=64
    )

    @event.listens_for(engine, "connect")
    def _connected(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None  # transactions are begun only below
        if not fixed:
            _use_write_ahead_log(connection)
        for pragma in ("synchronous=FULL", "foreign_keys=ON", "secure_delete=ON"):
            connection.execute(f"PRAGMA {pragma}")

    # Not a listener: an engine with listeners looks for more of them at every statement, which doubles what one costs.
    engine.dialect.do_begin = _begin  # type: ignore[reportAttributeAccessIssue]
    return engine


def _begin(connection: Any) -> None:
    begins, writes = connection.cursor(), connection.info.pop(WRITES, None)
    if writes is not None:  # FULL flushes the log at the commit, NORMAL leaves that to `FileFlush`
        begins.execute(f"PRAGMA synchronous={'FULL' if writes else 'NORMAL'}")
    begins.execute("BEGIN" if writes is None else "BEGIN IMMEDIATE")


def flush_of(engine: Engine) -> FileFlush:
    return FileFlush(Path(f"{engine.url.database}-wal"))


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


@compiles(one_of, "sqlite")
def _one_of(element: one_of, compiler: Any, **options: Any) -> str:
    value, given = (compiler.process(each, **options) for each in element.clauses)
    return f"{value} IN (SELECT value FROM json_each({given}))"


@compiles(json_text, "sqlite")
def _json_text(element: json_text, compiler: Any, **options: Any) -> str:
    at = _arguments(element, compiler, **options)
    value = f"NULLIF(json_quote(json_extract({at})), 'null')"
    return f"CASE json_type({at}) WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' ELSE {value} END"


@compiles(json_length, "sqlite")
def _json_length(element: json_length, compiler: Any, **options: Any) -> str:
    return f"json_array_length({_arguments(element, compiler, **options)})"


def _arguments(element: Any, compiler: Any, **options: Any) -> str:
    column, *path = element.clauses
    return ", ".join([compiler.process(column, **options), *(f"'{each.value}'" for each in path)])


def copy_into(connection: Connection, path: Path) -> None:
    """Copy the whole database to a file; safe during concurrent writes."""
    connection.exec_driver_sql("COMMIT")  # this cannot run inside a transaction
    connection.exec_driver_sql("VACUUM INTO ?", (str(path),))
    connection.exec_driver_sql("BEGIN")


def continue_numbering(connection: Connection) -> None:
    """Nothing to do: a new row is numbered after the last one."""


def discard_erased(connection: Connection) -> None:
    """Rewrite the file: `secure_delete` overwrites a deleted row, but not the copy that is left where its page was divided."""
    connection.exec_driver_sql("COMMIT")  # this cannot run inside a transaction
    connection.exec_driver_sql("VACUUM")
    connection.exec_driver_sql("BEGIN")


def truncate_log(connection: Connection) -> bool:
    """Checkpoint and truncate the write-ahead log; not possible while there are readers."""
    connection.exec_driver_sql("COMMIT")
    connection.exec_driver_sql("PRAGMA busy_timeout=500")
    row = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").first()
    connection.exec_driver_sql("PRAGMA busy_timeout=60000")
    connection.exec_driver_sql("BEGIN")
    return row is None or not row[0]


def changes(engine: Engine, stopped: threading.Event) -> Iterator[None]:
    """Yield after others have written, until `stopped` is set; several writes may be told as one. A file tells nobody of its
    changes, so its version is read often; that takes microseconds."""
    borrowed = engine.raw_connection()
    try:
        last = None
        while not stopped.wait(LOOK):
            version = borrowed.cursor().execute("PRAGMA data_version").fetchone()
            if version != last:
                last = version
                yield
    finally:
        borrowed.close()


def hold_lock(engine: Engine, name: str) -> AbstractContextManager[None]:
    """A lock file is enough: one machine uses the database."""
    return nullcontext()
