"""The state of a workspace: which database an address names, opening and migrating it, moving it to another, and hearing of
changes by others. Database-independent."""

from __future__ import annotations

import logging
import secrets
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

from filelock import FileLock
from sqlalchemy import Executable, Table, delete, func, insert, inspect, select, update
from sqlalchemy.engine import Connection, CursorResult, Engine, RowMapping
from sqlalchemy.exc import DatabaseError, IntegrityError, OperationalError

from assay.core.codec import dumps
from assay.core.errors import AssayError, Missing, StoreError, Unwritable, UserError
from assay.core.private_files import make_private
from assay.store import dialect, schema, sqlite
from assay.store.dialect import FileFlush, create_tables
from assay.store.migrations import MIGRATIONS, Migration, now
from assay.store.schema import copy_rows


@dataclass(frozen=True, slots=True)
class Store:
    """The state of one workspace. Clock and id source are injected, so that a run can be repeated exactly."""

    engine: Engine
    now: Callable[[], str] = now
    new_id: Callable[[], str] = field(default=lambda: secrets.token_hex(8))
    flush: FileFlush | None = None  # of commits that did not wait for the disk; None: every commit waits
    waits: bool = True  # whether a commit waits for the disk

    @contextmanager
    def read(self) -> Iterator[Connection]:
        with plain_errors(), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that takes the write lock immediately, or the one that this write is part of."""
        shared = _shared.get()
        if shared is not None and shared.engine is self.engine:
            yield shared
            return
        with plain_errors(), dialect.writing(self.engine, waits=self.waits) as connection:
            yield connection

    # One statement in a transaction of its own.

    def scalar(self, query: Executable) -> Any:
        with self.read() as connection:
            return connection.scalar(query)

    def scalars(self, query: Executable) -> list[Any]:
        with self.read() as connection:
            return list(connection.scalars(query))

    def rows(self, query: Executable, values: Mapping[str, Any] | None = None) -> Sequence[Any]:
        with self.read() as connection:
            return connection.execute(query, values).all()

    def mappings(self, query: Executable, values: Mapping[str, Any] | None = None) -> Sequence[RowMapping]:
        with self.read() as connection:
            return connection.execute(query, values).mappings().all()

    def first(self, query: Executable) -> Any | None:
        with self.read() as connection:
            return connection.execute(query).first()

    def execute(self, statement: Executable, rows: Sequence[Mapping[str, Any]] | None = None) -> CursorResult[Any]:
        with self.write() as connection:
            return connection.execute(statement, rows)

    def deferred(self) -> Store:
        """The same store, whose commits do not wait for the disk. Whoever shows or sends something because of one awaits
        `flushed` first."""
        return replace(self, waits=self.flush is None)

    async def flushed(self) -> None:
        """Return when all commits so far are on disk."""
        if self.flush is not None:
            await self.flush.wait()

    @contextmanager
    def read_shown(self) -> Iterator[Connection]:
        """A read of what will be shown: no commit of any process that it may see is still on its way to the disk."""
        with self.read() as connection:
            yield connection
            if self.flush is not None:
                self.flush.now()

    @contextmanager
    def one_transaction(self) -> Iterator[None]:
        """All writes within are one transaction: one flush, and all of them or none. Nothing may be awaited within."""
        with self.write() as connection:
            token = _shared.set(connection)
            try:
                yield
            finally:
                _shared.reset(token)

    def close(self) -> None:
        if self.flush is not None:
            self.flush.close()
        self.engine.dispose()


def shifted(moment: str, **span: float) -> str:
    """A moment so many days, hours or seconds later."""
    later = datetime.fromisoformat(moment) + timedelta(**span)
    return later.isoformat(timespec="milliseconds").replace("+00:00", "Z")


_shared: ContextVar[Connection | None] = ContextVar("shared", default=None)  # the transaction that writes join


# Failures that someone can fix: what a database says, and what the reader is told.
FAILURES: tuple[tuple[tuple[str, ...], Callable[[str], AssayError]], ...] = (
    (
        ("full", "No space left"),
        lambda _: Unwritable("The disk is full. Free some space and run the same command again."),
    ),
    (
        ("locked", "lock timeout"),
        lambda _: StoreError("Another process has kept the workspace locked too long. Try again in a moment."),
    ),
    (("connection",), lambda words: StoreError(f"The database that `state` names cannot be reached: {words}.")),
    (
        ("readonly", "unable to open"),
        lambda _: Unwritable(
            "The workspace cannot be written to, so that only searches work: everything else is recorded. Check the "
            "permissions of its folder."
        ),
    ),
)


@contextmanager
def plain_errors() -> Iterator[None]:
    """Translate database errors into messages that say what to do."""
    try:
        yield
    except OperationalError as error:
        words = str(error.orig)
        for signs, told in FAILURES:
            if any(sign in words for sign in signs):
                raise told(words.splitlines()[0]) from error
        raise StoreError(f"The workspace's state could not be used: {words}.") from error
    except IntegrityError as error:
        raise StoreError(f"Somebody changed the workspace at the same time ({error.orig}). Try again.") from error
    except DatabaseError as error:
        raise UserError(DAMAGED.format(words=error.orig)) from error


STATE = "state.db"  # the file in the workspace folder
DAMAGED = "This workspace is damaged ({words}). Restore a backup with `assay restore`, or start a new workspace."


def state_address(folder: Path, state: str) -> Path | str:
    """Where the state of a workspace is: the server that the setting `state` names, or a file in its folder."""
    return state or folder / STATE


def open_store(address: Path | str, *, create: bool, migrations: Mapping[int, Migration] = MIGRATIONS) -> Store:
    """Open the state at `address`, a file or a server; create it if `create` is set, and migrate it (a file after a
    backup) if it is older."""
    if not create and isinstance(address, Path) and not address.exists():
        raise UserError(f"There is no workspace in {address.parent}. `assay add PATH` makes one.")
    engine = engine_for(address)
    store = Store(engine, now=_clock(engine), flush=_of(engine).flush_of(engine))
    with plain_errors():
        missing = (create or not isinstance(address, Path)) and not _tables(store)
        if missing and not create:
            raise Missing("There is no workspace in the database that `state` names. `assay add PATH` makes one.")
        if missing:
            _make(store)
        _bring_up_to_date(store, address, migrations)
    return store


def _clock(engine: Engine) -> Callable[[], str]:
    """The clock that all processes share: a server's, or that of the one machine with the file."""
    return now if engine.dialect.name == "sqlite" else _of(engine).ServerClock(engine)


def _tables(store: Store) -> list[str]:
    with store.read() as connection:
        return inspect(connection).get_table_names()


def _make(store: Store) -> None:
    """Create all tables and the version in one transaction; another process may be doing the same concurrently."""
    with store.write() as connection:
        if inspect(connection).has_table("facts"):
            return
        schema.schema.create_all(connection)
        connection.execute(insert(schema.facts).values(name="version", value=str(schema.VERSION)))
        connection.execute(insert(schema.facts).values(name="id", value=secrets.token_hex(8)))
        connection.execute(insert(schema.facts).values(name=schema.RIGHTS_RECORDED, value=store.now()))


def open_cache(path: Path) -> Engine:
    """Open the caches in `path`, creating them if missing: losing them only costs time."""
    try:
        engine = engine_for(path)
        create_tables(engine, schema.cache_schema)
    except DatabaseError as error:
        if isinstance(error, OperationalError):
            raise StoreError(f"The cache {path} cannot be used: {error.orig}.") from error
        for part in path.parent.glob(f"{path.name}*"):  # no longer a valid database
            part.unlink()
        engine = engine_for(path)
        create_tables(engine, schema.cache_schema)
    return engine


def version_of(store: Store) -> int:
    with store.read() as connection:
        try:
            value = connection.scalar(select(schema.facts.c.value).where(schema.facts.c.name == "version"))
        except OperationalError as error:
            raise UserError(DAMAGED.format(words=error.orig)) from error
    if value is None:
        raise UserError(DAMAGED.format(words="it does not say which version it is"))
    return int(value)


def _bring_up_to_date(store: Store, address: Path | str, migrations: Mapping[int, Migration]) -> None:
    version = version_of(store)
    target = max([schema.VERSION, *(start + 1 for start in migrations)])
    if version > target:
        raise UserError(
            f"This workspace was made by a newer Assay (workspace version {version}, this one reads {target}). Upgrade Assay."
        )
    if version == target:
        return
    file = address if isinstance(address, Path) else None
    with FileLock(file.with_name(".migration.lock")) if file else nullcontext():  # of several processes one migrates
        if file and (version := version_of(store)) < target:
            former = file.with_name(f"{file.stem}-version-{version}.bak")
            if not former.exists():
                copy_state(store, former)
            for other in former_states(file.parent):  # one is kept: each holds all texts
                if other != former:
                    other.unlink(missing_ok=True)
        while (version := version_of(store)) < target:
            with store.write() as connection:
                migrations[version](connection)
                newer = update(schema.facts).where(schema.facts.c.name == "version").values(value=str(version + 1))
                connection.execute(newer)


FORMER_STATES = ("state-version-*.bak", "state-version-*.part")


def former_states(folder: Path) -> list[Path]:
    """The states that an upgrade or a move has left in a workspace's folder."""
    return sorted(path for pattern in FORMER_STATES for path in folder.glob(pattern))


def copy_state(store: Store, to: Path) -> None:
    """Copy the whole state; safe during concurrent writes."""
    partial = to.with_suffix(".part")
    partial.unlink(missing_ok=True)
    with store.read() as connection:
        _of(connection).copy_into(connection, partial)
    shutil.move(partial, to)


def claim(folder: Path, *, state_elsewhere: bool = False) -> None:
    """Create the folder, readable by its owner alone. Raises `UserError` if it contains other files and is not a workspace."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # not readable by other users
        foreign = [
            item.name for item in folder.iterdir() if item.name != "assay.toml" and not item.name.startswith(".")
        ]
    except OSError as error:
        raise UserError(f"The workspace {str(folder)!r} cannot be made: {error.strerror}.") from error
    if foreign and not state_elsewhere and not (folder / STATE).exists():
        raise UserError(
            f"{str(folder)!r} has other files in it ({foreign[0]} …) and is not a workspace. Choose an empty folder."
        )
    if not (folder / STATE).exists():
        make_private(folder)  # it may have been made by somebody else's rules


def move_state(source: Store, target: Store) -> dict[str, int]:
    """Copy the whole state to an empty database and compare both. Nobody writes to either meanwhile; if anything fails,
    the target stays empty. A target that has the same rows, of a move that was interrupted, is left as it is. Returns the
    number of rows by table."""
    with source.write() as reading, target.write() as writing:
        tables = [table for table in schema.schema.sorted_tables if table is not schema.facts]
        there = {table.name: writing.scalar(select(func.count()).select_from(table)) or 0 for table in tables}
        if any(there.values()):
            if all(table_digest(reading, table) == table_digest(writing, table) for table in tables):
                return there
            raise UserError("The database to move to has a workspace in it already. Choose an empty one.")
        writing.execute(delete(schema.facts))
        copied = copy_rows(reading, writing)
        _of(writing).continue_numbering(writing)
        differing = [
            table.name
            for table in schema.schema.sorted_tables
            if table_digest(reading, table) != table_digest(writing, table)
        ]
        if differing:
            raise StoreError(f"The copy is not the same in {', '.join(differing)}; nothing was moved.")
    return copied


def delete_state(store: Store) -> None:
    """Delete the whole state from a database, which then has no workspace."""
    with store.write() as connection:
        schema.schema.drop_all(connection)


def table_digest(connection: Connection, table: Table) -> str:
    """A digest of all rows of a table, by primary key."""
    digest = sha256()
    rows = connection.execute(select(table).order_by(*table.primary_key))
    for row in rows:
        digest.update(dumps(list(row)).encode())
    return digest.hexdigest()


log = logging.getLogger(__name__)

RETRY = 5.0  # seconds until a listener that lost its connection makes another


class ChangeListener:
    """Calls `changed` in a thread of its own after others have written. While `hears` is false nobody is told, and whoever
    waits for a change has to look."""

    def __init__(self, store: Store, changed: Callable[[], object]) -> None:
        self._store = store
        self._changed = changed
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="assay-changes", daemon=True)
        self.hears = False

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def _listen(self) -> None:
        while not self._stopped.is_set():
            try:
                for _ in _of(self._store.engine).changes(self._store.engine, self._stopped):
                    self.hears = True
                    self._changed()
            except Exception as error:  # the server restarts, or the network is away
                log.warning("changes by other processes are not heard now: %s", type(error).__name__)
            self.hears = False
            self._stopped.wait(RETRY)


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
    """The module of this connection's database: `sqlite` and `postgres` have the same functions."""
    if connection.dialect.name == "sqlite":
        return sqlite
    from assay.store import postgres

    return postgres


def discard_erased(connection: Connection) -> None:
    """Rewrite what holds content, so that nothing of erased rows stays in the files."""
    _of(connection).discard_erased(connection)


def truncate_log(connection: Connection) -> bool:
    """Empty the write-ahead log, which may hold erased rows; False if readers prevent that now."""
    return _of(connection).truncate_log(connection)


def hold_lock(engine: Engine, name: str) -> AbstractContextManager[None]:
    """Hold a lock of this name, which processes on other machines see where the database is on a server."""
    return _of(engine).hold_lock(engine, name)
