"""Statements that databases spell differently. All other modules of the store are written against SQLAlchemy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum, auto
from typing import Any

from sqlalchemy import ColumnElement, Connection, Engine, Insert, MetaData, Table, Update, and_, exists, update
from sqlalchemy.dialects.postgresql import insert  # SQLite understands its ON CONFLICT
from sqlalchemy.exc import OperationalError
from sqlalchemy.sql import functions
from sqlalchemy.types import Boolean, Integer, Text

WRITES = "writes"  # mark of a connection whose next transaction takes the write lock
VARIABLES = 500  # values per statement: well below the limit of each database


class Write(Enum):
    """How a write transaction commits."""

    waits = auto()  # until it is on disk
    leaves = auto()  # flushed later


class Trouble(Enum):
    """Database failures that someone can fix."""

    full = auto()
    locked = auto()
    unwritable = auto()
    unreachable = auto()


@contextmanager
def writing(engine: Engine, *, waits: bool = True) -> Iterator[Connection]:
    """A transaction that takes the write lock immediately, so that it cannot fail half-way waiting for it."""
    with engine.connect() as connection:
        connection.info[WRITES] = Write.waits if waits else Write.leaves
        with connection.begin():
            yield connection


def create_tables(engine: Engine, tables: MetaData) -> None:
    """Create the tables that are missing, in one write transaction: another process may be doing the same."""
    with writing(engine) as connection:
        tables.create_all(connection)


def trouble_of(error: OperationalError) -> Trouble | None:
    words = str(error.orig)
    if "full" in words or "No space left" in words:
        return Trouble.full
    if "locked" in words or "lock timeout" in words:
        return Trouble.locked
    if "connection" in words:
        return Trouble.unreachable
    return Trouble.unwritable if "readonly" in words or "unable to open" in words else None


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


class json_text(functions.GenericFunction[str]):
    """The value at a path (`$.answer.outcome`) of a JSON text, as JSON; null if there is none."""

    type = Text()
    inherit_cache = True


class json_length(functions.GenericFunction[int]):
    """The length of the JSON list at a path; null if there is none."""

    type = Integer()
    inherit_cache = True
