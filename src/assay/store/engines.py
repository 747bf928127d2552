"""The databases that can hold the state: which one an address names, and what each does in its own way."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import ModuleType

from sqlalchemy import Connection, Engine

from assay.core.errors import UserError
from assay.store import sqlite
from assay.store.dialect import FileFlush

POSTGRES = "postgresql://"


def engine_for(address: Path | str) -> Engine:
    """The engine of a database file, or of a server's address."""
    if isinstance(address, Path):
        return sqlite.engine_for(address)
    if address.startswith(POSTGRES):
        from assay.store import postgres

        return postgres.engine_for(address)
    raise UserError(f"The setting `state` must be empty or begin with {POSTGRES}.")


def _of(connection: Connection | Engine) -> ModuleType:
    """The module of this connection's database."""
    if connection.dialect.name == "sqlite":
        return sqlite
    from assay.store import postgres

    return postgres


def copy_into(connection: Connection, path: Path) -> None:
    """Copy the whole database to a file; safe during concurrent writes."""
    _of(connection).copy_into(connection, path)


def continue_numbering(connection: Connection) -> None:
    """Number new rows after those that were inserted with their numbers."""
    _of(connection).continue_numbering(connection)


def discard_erased(connection: Connection) -> bool:
    """Discard what the database keeps of erased rows; False if readers prevent that now."""
    return _of(connection).discard_erased(connection)


def hold_lock(engine: Engine, name: str) -> AbstractContextManager[None]:
    """Hold a lock of this name, which processes on other machines see where the database is on a server."""
    return _of(engine).hold_lock(engine, name)


def flush_of(engine: Engine) -> FileFlush | None:
    """What flushes commits that did not wait for the disk; None where every commit waits."""
    return _of(engine).flush_of(engine)


def changes(engine: Engine, stopped: threading.Event) -> Iterator[None]:
    """Yield after others have written to the database, until `stopped` is set. Several writes may be told as one."""
    return _of(engine).changes(engine, stopped)
