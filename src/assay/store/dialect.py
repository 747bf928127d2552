"""What databases spell differently, statements that are compiled once, and group commit. All other modules of the store are
written against SQLAlchemy.

The commits of a run change nothing outside the machine until something is shown or sent because of them. So they are made
without a flush, and whoever is about to show or send something waits for one, together with all others who do.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Executable, Insert, MetaData, Table, Update, and_, exists, update
from sqlalchemy.dialects.postgresql import insert  # SQLite understands its ON CONFLICT
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql import functions
from sqlalchemy.types import Boolean, Integer, Text

from assay.core.codec import dumps
from assay.core.errors import StoreError

WRITES = (
    "writes"  # mark of a connection whose next transaction takes the write lock: whether its commit waits for the disk
)
VARIABLES = 500  # values per statement: well below the limit of each database
V = TypeVar("V")


def parts(values: Sequence[V], size: int = VARIABLES) -> Iterator[Sequence[V]]:
    """Split into chunks, since a statement takes a limited number of values."""
    return (values[first : first + size] for first in range(0, len(values), size))


@contextmanager
def writing(engine: Engine, *, waits: bool = True) -> Iterator[Connection]:
    """A transaction that takes the write lock immediately, so that it cannot fail half-way waiting for it."""
    with engine.connect() as connection:
        connection.info[WRITES] = waits
        with connection.begin():
            yield connection


def create_tables(engine: Engine, tables: MetaData) -> None:
    """Create the tables that are missing, in one write transaction: another process may be doing the same."""
    with writing(engine) as connection:
        tables.create_all(connection)


def insert_new(table: Table) -> Insert:
    """An insert that leaves existing rows unchanged."""
    return insert(table).on_conflict_do_nothing()


def insert_or_replace(table: Table) -> Insert:
    made = insert(table)
    keys = [column.name for column in table.primary_key]
    others = {column.name: made.excluded[column.name] for column in table.columns if column.name not in keys}
    return made.on_conflict_do_update(index_elements=keys, set_=others) if others else made.on_conflict_do_nothing()


def update_where_free(table: Table, where: ColumnElement[bool], **new: Any) -> Update:
    """An update that skips rows whose new key is taken."""
    other = table.alias()
    same = [other.c[key.name] == new.get(key.name, key) for key in table.primary_key]
    return update(table).where(where, ~exists().where(and_(*same))).values(new)


class one_of(functions.GenericFunction[bool]):
    """Whether a value is in a list, which is given as JSON. Unlike IN it is the same statement for any number of values."""

    type = Boolean()
    inherit_cache = True

    def self_group(self, against: Any = None) -> Any:
        return self  # for SQLite, others add `= 1`, and then no index is used


def among(column: ColumnElement[str], values: Iterable[str]) -> ColumnElement[bool]:
    """Whether a text is one of these, however many."""
    return one_of(column, dumps(sorted(values)))


class json_text(functions.GenericFunction[str]):
    """The value at a path (`$.answer.outcome`) of a JSON text, as JSON; null if there is none."""

    type = Text()
    inherit_cache = True


class json_length(functions.GenericFunction[int]):
    """The length of the JSON list at a path; null if there is none."""

    type = Integer()
    inherit_cache = True


class Prepared:
    """A statement with named values."""

    def __init__(self, statement: Executable) -> None:
        self._statement = statement
        self._compiled: dict[str, tuple[str, Mapping[str, Any], Sequence[str] | None]] = {}  # by database

    def all(self, connection: Connection, **values: Any) -> list[tuple[Any, ...]]:
        return self._cursor(connection, values).fetchall()

    def first(self, connection: Connection, **values: Any) -> tuple[Any, ...] | None:
        rows = self.all(connection, **values)
        return rows[0] if rows else None

    def run(self, connection: Connection, **values: Any) -> None:
        self._cursor(connection, values)

    def run_many(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        self._cursor(connection, *rows)

    def _cursor(self, connection: Connection, *rows: Mapping[str, Any]) -> Any:
        sql, fixed, places = self._for(connection)
        named = [{**fixed, **row} for row in rows]
        given = named if places is None else [[row[place] for place in places] for row in named]
        if not connection.in_transaction():
            connection.begin()
        cursor = connection.connection.cursor()
        try:
            cursor.execute(sql, given[0]) if len(given) == 1 else cursor.executemany(sql, given)
        except (database := connection.dialect.loaded_dbapi).Error as error:
            raise DBAPIError.instance(sql, None, error, database.Error, dialect=connection.dialect) from error
        return cursor

    def _for(self, connection: Connection) -> tuple[str, Mapping[str, Any], Sequence[str] | None]:
        found = self._compiled.get(connection.dialect.name)
        if found is None:
            made: Any = self._statement.compile(dialect=connection.dialect)  # type: ignore[reportAttributeAccessIssue]
            fixed = {name: value for name, value in made.params.items() if value is not None}
            found = made.string, fixed, made.positiontup
            self._compiled[connection.dialect.name] = found
        return found


SETTLED = 0.1  # seconds after which a later write surely has a later time in the file system


class FileFlush:
    """Flushes of one file, which any process may write to. A flush covers all that was written before it began."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._next: Future[None] | None = None  # the flush that has not begun: whoever asks now waits for it
        self._worker: ThreadPoolExecutor | None = None
        self._flushed: int | None = None  # when the file had last been written to, as of the last flush
        self._failed: OSError | None = None  # what was lost then is not noticed by a later flush

    async def wait(self) -> None:
        """Return when all that was written before this call is on disk."""
        await asyncio.shield(asyncio.wrap_future(self._joined()))  # one who leaves cancels it for nobody else

    def now(self) -> None:
        """The same for a caller that cannot await."""
        try:
            written = self._path.stat().st_mtime_ns
            if written != self._flushed:
                began = time.time_ns()
                self._sync()
                self._flushed = written if began - written > SETTLED * 1e9 else None
        except FileNotFoundError:
            pass  # the last connection was closed, and everything is in the database
        except OSError as error:
            raise StoreError(f"The workspace could not be written to disk: {error.strerror}.") from error

    def _sync(self) -> None:
        if self._failed is not None:
            raise self._failed
        file = os.open(self._path, os.O_RDWR)
        try:
            sync_file(file)
        except OSError as error:
            self._failed = error
            raise
        finally:
            os.close(file)

    def close(self) -> None:
        if self._worker is not None:
            self._worker.shutdown()

    def _joined(self) -> Future[None]:
        with self._lock:
            if self._next is None:
                self._worker = self._worker or ThreadPoolExecutor(1, "assay-flush")
                self._next = self._worker.submit(self._begin)
            return self._next

    def _begin(self) -> None:
        with self._lock:
            self._next = None
        self.now()


sync_file = getattr(os, "fdatasync", os.fsync)  # not every system has both
