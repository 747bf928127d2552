"""PostgreSQL: the state of a workspace on a server, for several processes and machines."""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, String, Text, create_engine, event, func, make_url, select, text
from sqlalchemy.exc import DatabaseError
from sqlalchemy.ext.compiler import compiles

from assay.core.errors import UserError
from assay.store import schema, sqlite
from assay.store.dialect import WRITES, json_length, json_text, one_of, writing
from assay.store.schema import copy_rows

WRITERS = 0x617373_6179  # the advisory lock that every write transaction takes
CONNECT = 10  # seconds
READ_AGAIN = 60.0  # seconds until the server's clock is read again
TICKS = getattr(
    time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC
)  # goes on while the machine sleeps, if there is such a clock
CHANNEL = "assay_writes"  # every write transaction notifies it
STOP = 0.25  # seconds until a listener notices that it is to stop
PAUSE = 0.03  # seconds in which several writes are told as one


def engine_for(address: str) -> Engine:
    """The engine of a server. One write transaction runs at a time, as with a file, so the chain of records is linear; a
    read transaction sees one moment."""
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise UserError("State on PostgreSQL needs a driver: `pip install 'assay[postgres]'`.") from error
    url = make_url(address).set(drivername="postgresql+psycopg")
    engine = create_engine(
        url, connect_args={"connect_timeout": CONNECT}, pool_size=16, max_overflow=64, pool_pre_ping=True
    )
    writer = secrets.token_hex(8)
    engine.update_execution_options(assay_writer=writer)

    @event.listens_for(engine, "begin")
    def _begun(connection: Connection) -> None:
        if connection.info.pop(WRITES, None) is not None:
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({WRITERS}), pg_notify('{CHANNEL}', '{writer}')")
        elif not connection.get_execution_options().get("assay_unlocked"):
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")

    return engine


class ServerClock:
    """The time by the server's clock, which all processes share. Between two readings it goes on by the time since this machine
    was started, so that nobody's wrong or changed clock moves a lease or a deadline."""

    def __init__(self, engine: Engine, ticks: Callable[[], float] = lambda: time.clock_gettime(TICKS)) -> None:
        self._engine, self._ticks = engine, ticks
        self._read: tuple[datetime, float] | None = None

    def __call__(self) -> str:
        ticks = self._ticks()
        if self._read is None or ticks - self._read[1] > READ_AGAIN:
            try:
                with self._engine.connect().execution_options(assay_unlocked=True) as connection:
                    self._read = (connection.execute(select(func.clock_timestamp())).scalar_one(), self._ticks())
            except DatabaseError:  # out of reach now: it goes on by itself
                if self._read is None:
                    raise
        at, then = self._read
        later = at.astimezone(UTC) + timedelta(seconds=max(0.0, ticks - then))
        return later.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def flush_of(engine: Engine) -> None:
    """Every commit waits: the server flushes those of several connections together."""


@compiles(String, "postgresql")
@compiles(Text, "postgresql")
def _text(element: Any, compiler: Any, **options: Any) -> str:
    return 'TEXT COLLATE "C"' if isinstance(options.get("type_expression"), schema.Column) else "TEXT"


def _path(element: Any, compiler: Any, **options: Any) -> tuple[str, str]:
    column, *path = element.clauses
    steps = path[0].value.removeprefix("$").strip(".").split(".") if path else []
    return compiler.process(column, **options), ",".join(filter(None, steps))


@compiles(one_of, "postgresql")
def _one_of(element: one_of, compiler: Any, **options: Any) -> str:
    value, given = (compiler.process(each, **options) for each in element.clauses)
    return f"{value} = ANY (ARRAY(SELECT jsonb_array_elements_text(({given})::jsonb)))"


@compiles(json_text, "postgresql")
def _json_text(element: json_text, compiler: Any, **options: Any) -> str:
    column, path = _path(element, compiler, **options)
    return f"NULLIF(({column}::jsonb #> '{{{path}}}')::text, 'null')"


@compiles(json_length, "postgresql")
def _json_length(element: json_length, compiler: Any, **options: Any) -> str:
    column, path = _path(element, compiler, **options)
    value = f"({column}::jsonb #> '{{{path}}}')"
    return f"CASE WHEN jsonb_typeof({value}) = 'array' THEN jsonb_array_length({value}) END"


def copy_into(connection: Connection, path: Path) -> None:
    """Copy all tables to a SQLite file: a backup is the same whatever the database."""
    file = sqlite.engine_for(path)
    try:
        with writing(file) as other:
            schema.schema.create_all(other)
            copy_rows(connection, other)
        with file.connect() as other:
            sqlite.truncate_log(other)
    finally:
        file.dispose()


def continue_numbering(connection: Connection) -> None:
    """Number new rows after those that were copied with their numbers."""
    for table in (schema.reviews, schema.spending):
        next_id = select(func.coalesce(func.max(table.c.id), 0) + 1).scalar_subquery()
        sequence = func.pg_get_serial_sequence(table.name, table.c.id.name)
        connection.execute(select(func.setval(sequence, next_id, False)))


def discard_erased(connection: Connection) -> None:
    """Rewrite the tables that hold content, so that erased rows do not stay in their files. What the server archives
    (write-ahead segments, replicas, dumps) is its operator's to delete."""
    connection.rollback()
    unlocked = connection.execution_options(isolation_level="AUTOCOMMIT", assay_unlocked=True)
    for name in ("payloads", "texts", "tables", "documents", "job_files", "reviews"):
        unlocked.execute(text(f"VACUUM FULL {name}"))


def truncate_log(connection: Connection) -> bool:
    """Nothing to do: the log is the server's."""
    return True


def changes(engine: Engine, stopped: threading.Event) -> Iterator[None]:
    """Listens on a connection of its own. What this engine has written itself is not told."""
    import psycopg

    own = engine.get_execution_options()["assay_writer"]
    address = engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(address, autocommit=True, connect_timeout=CONNECT) as connection:
        connection.execute(f"LISTEN {CHANNEL}")
        yield  # what was written before
        while not stopped.is_set():
            heard = list(connection.notifies(timeout=STOP, stop_after=1))
            if any(each.payload != own for each in heard):
                yield
                stopped.wait(PAUSE)


@contextmanager
def hold_lock(engine: Engine, name: str) -> Iterator[None]:
    """An advisory lock, which the server frees if the connection ends."""
    with engine.connect().execution_options(assay_unlocked=True) as connection, connection.begin():
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({lock_number(name)})")
        yield


def lock_number(name: str) -> int:
    """The number of an advisory lock of this name."""
    return int.from_bytes(hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:8], "big", signed=True)
