"""Opening a workspace's state: one engine with the right pragmas, the version check, and migrations with a backup."""

from __future__ import annotations

import secrets
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock
from sqlalchemy import URL, Connection, Engine, create_engine, event, insert, inspect, select, update
from sqlalchemy.exc import DatabaseError, IntegrityError, OperationalError

from assay.core.codec import START, digest, dumps, linked
from assay.core.errors import StoreError, UserError
from assay.store import schema

Migration = Callable[[Connection], None]


def _add_spending(connection: Connection) -> None:
    # Spelt out, and not taken from the schema: the step that follows starts from what the table is now.
    connection.exec_driver_sql(
        """CREATE TABLE spending (
            id INTEGER NOT NULL, who VARCHAR NOT NULL, run VARCHAR NOT NULL, role VARCHAR NOT NULL, model VARCHAR NOT NULL,
            day VARCHAR NOT NULL, state VARCHAR NOT NULL, calls INTEGER NOT NULL, reserved_tokens INTEGER NOT NULL,
            reserved_money FLOAT NOT NULL, tokens_in INTEGER NOT NULL, tokens_out INTEGER NOT NULL, money FLOAT NOT NULL,
            seconds FLOAT NOT NULL, PRIMARY KEY (id))"""
    )
    connection.exec_driver_sql("CREATE INDEX spending_by_run ON spending (run)")
    connection.exec_driver_sql("CREATE INDEX spending_by_day ON spending (who, day)")


def _add_threads(connection: Connection) -> None:
    connection.exec_driver_sql(
        """CREATE TABLE threads (
            id VARCHAR NOT NULL, who VARCHAR NOT NULL, title TEXT NOT NULL, created VARCHAR NOT NULL,
            updated VARCHAR NOT NULL, PRIMARY KEY (id))"""
    )
    connection.exec_driver_sql("CREATE INDEX threads_by_person ON threads (who, updated)")
    connection.exec_driver_sql(
        """CREATE TABLE turns (
            thread VARCHAR NOT NULL, n INTEGER NOT NULL, run VARCHAR NOT NULL, PRIMARY KEY (thread, n), UNIQUE (run),
            FOREIGN KEY(thread) REFERENCES threads (id), FOREIGN KEY(run) REFERENCES runs (id))"""
    )


def _add_people_and_jobs(connection: Connection) -> None:
    for statement in (
        """CREATE TABLE members (
            name VARCHAR NOT NULL, groups JSON NOT NULL, admin BOOLEAN NOT NULL, password TEXT NOT NULL,
            created VARCHAR NOT NULL, PRIMARY KEY (name))""",
        """CREATE TABLE keys (
            digest VARCHAR NOT NULL, id VARCHAR NOT NULL, who VARCHAR NOT NULL, label TEXT NOT NULL, created VARCHAR NOT NULL,
            used VARCHAR NOT NULL, PRIMARY KEY (digest), UNIQUE (id),
            FOREIGN KEY(who) REFERENCES members (name) ON DELETE CASCADE)""",
        """CREATE TABLE sessions (
            digest VARCHAR NOT NULL, who VARCHAR NOT NULL, csrf VARCHAR NOT NULL, created VARCHAR NOT NULL,
            expires VARCHAR NOT NULL, PRIMARY KEY (digest), FOREIGN KEY(who) REFERENCES members (name) ON DELETE CASCADE)""",
        """CREATE TABLE jobs (
            id VARCHAR NOT NULL, who VARCHAR NOT NULL, groups JSON NOT NULL, base VARCHAR NOT NULL, state VARCHAR NOT NULL,
            error TEXT NOT NULL, passages INTEGER NOT NULL, seconds FLOAT NOT NULL, created VARCHAR NOT NULL,
            updated VARCHAR NOT NULL, PRIMARY KEY (id))""",
        "CREATE INDEX documents_listed ON documents (base, state, label, added, id, passages)",
        "CREATE INDEX jobs_by_person ON jobs (who, created)",
        "CREATE INDEX jobs_by_state ON jobs (state)",
        """CREATE TABLE job_files (
            job VARCHAR NOT NULL, n INTEGER NOT NULL, name TEXT NOT NULL, bytes INTEGER NOT NULL, outcome VARCHAR NOT NULL,
            report JSON NOT NULL, PRIMARY KEY (job, n), FOREIGN KEY(job) REFERENCES jobs (id) ON DELETE CASCADE)""",
        """CREATE TABLE underway (
            run VARCHAR NOT NULL, who VARCHAR NOT NULL, groups JSON NOT NULL, PRIMARY KEY (run),
            FOREIGN KEY(run) REFERENCES runs (id))""",
        # A name is one's own from here on: the table is made anew, since a constraint cannot be changed. Documents refer to
        # its rows, which are back before anybody looks.
        "PRAGMA defer_foreign_keys = ON",
        "CREATE TABLE bases_before AS SELECT * FROM bases",
        "DROP TABLE bases",
        """CREATE TABLE bases (
            id VARCHAR NOT NULL, name VARCHAR NOT NULL, owner VARCHAR NOT NULL, description TEXT NOT NULL,
            embedder VARCHAR NOT NULL, dim INTEGER NOT NULL, created VARCHAR NOT NULL, PRIMARY KEY (id),
            UNIQUE (owner, name))""",
        """INSERT INTO bases (id, name, owner, description, embedder, dim, created)
            SELECT id, name, owner, description, embedder, dim, created FROM bases_before""",
        "DROP TABLE bases_before",
    ):
        connection.exec_driver_sql(statement)


def _add_trust(connection: Connection) -> None:
    for statement in (
        "ALTER TABLE bases ADD COLUMN review BOOLEAN NOT NULL DEFAULT '0'",
        "ALTER TABLE runs ADD COLUMN gated BOOLEAN NOT NULL DEFAULT '0'",
        "DROP TABLE heads",  # what took its place covers every record
        """CREATE TABLE seals (
            n INTEGER NOT NULL, link VARCHAR NOT NULL, at VARCHAR NOT NULL, key VARCHAR NOT NULL, signature VARCHAR NOT NULL,
            PRIMARY KEY (n))""",
        """CREATE TABLE reviews (
            id INTEGER NOT NULL, run VARCHAR NOT NULL, seal VARCHAR NOT NULL, who VARCHAR NOT NULL, state VARCHAR NOT NULL,
            reasons JSON NOT NULL, four_eyes BOOLEAN NOT NULL, "by" VARCHAR NOT NULL, note TEXT NOT NULL,
            created VARCHAR NOT NULL, decided VARCHAR NOT NULL, expires VARCHAR NOT NULL, notified VARCHAR NOT NULL,
            PRIMARY KEY (id), FOREIGN KEY(run) REFERENCES runs (id))""",
        "CREATE INDEX reviews_by_run ON reviews (run)",
        "CREATE INDEX mentions_by_run ON mentions (run, seq)",
        "CREATE INDEX reviews_by_state ON reviews (state, created)",
        "CREATE TABLE backups (path TEXT NOT NULL, at VARCHAR NOT NULL, PRIMARY KEY (path))",
        """CREATE TABLE forecasts (
            run VARCHAR NOT NULL, kind VARCHAR NOT NULL, who VARCHAR NOT NULL, alike VARCHAR NOT NULL,
            foreseen JSON NOT NULL, came JSON, at VARCHAR NOT NULL, PRIMARY KEY (run))""",
        "CREATE INDEX forecasts_alike ON forecasts (who, kind, alike, at)",
        "CREATE INDEX spending_of_day ON spending (day)",
    ):
        connection.exec_driver_sql(statement)
    _number_records(connection)


def _number_records(connection: Connection) -> None:
    """Every record that is there gets its place in the one chain, in the order in which they were written."""
    rows = connection.exec_driver_sql("SELECT * FROM records ORDER BY rowid").all()
    connection.exec_driver_sql("DROP TABLE records")
    connection.exec_driver_sql(
        """CREATE TABLE records (
            run VARCHAR NOT NULL, seq INTEGER NOT NULL, at VARCHAR NOT NULL, kind VARCHAR NOT NULL, digest VARCHAR NOT NULL,
            prev VARCHAR NOT NULL, hash VARCHAR NOT NULL, n INTEGER NOT NULL, link VARCHAR NOT NULL, PRIMARY KEY (run, seq),
            FOREIGN KEY(run) REFERENCES runs (id))"""
    )
    connection.exec_driver_sql("CREATE UNIQUE INDEX records_in_order ON records (n)")
    link = START
    for n, row in enumerate(rows, 1):
        link = linked(n, row.hash, link)
        values = (row.run, row.seq, row.at, row.kind, row.digest, row.prev, row.hash, n, link)
        connection.exec_driver_sql("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
    _note_what_is_gone(connection, len(rows) + 1, link)


def _note_what_is_gone(connection: Connection, n: int, before: str) -> None:
    """Payloads that went with their documents before that was noted. From here on, what no note names was tampered with."""
    gone: dict[str, list[int]] = {}
    for run, seq in connection.exec_driver_sql(
        "SELECT r.run, r.seq FROM records r LEFT JOIN payloads p ON p.run = r.run AND p.seq = r.seq "
        "WHERE p.run IS NULL ORDER BY r.run, r.seq"
    ):
        gone.setdefault(run, []).append(seq)
    if not gone:
        return
    body = dumps({"why": "before erasing was noted", "by": "", "gone": [], "records": gone})
    run, at, covered = "workspace", now(), digest(body)
    hash = digest(dumps([run, 0, at, "Erased", covered, START]))
    for statement, values in (
        ("INSERT INTO runs (id, who, started, delivered) VALUES (?, '', ?, 0)", (run, at)),
        (
            "INSERT INTO records VALUES (?, 0, ?, 'Erased', ?, ?, ?, ?, ?)",
            (run, at, covered, START, hash, n, linked(n, hash, before)),
        ),
        ("INSERT INTO payloads (run, seq, body) VALUES (?, 0, ?)", (run, body)),
    ):
        connection.exec_driver_sql(statement, values)


# From this version to the next.
MIGRATIONS: Mapping[int, Migration] = {1: _add_spending, 2: _add_threads, 3: _add_people_and_jobs, 4: _add_trust}


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class Store:
    """The state of one workspace. Clock and ids are handed in, so that a run can be repeated exactly."""

    engine: Engine
    now: Callable[[], str] = now
    new_id: Callable[[], str] = field(default=lambda: secrets.token_hex(8))

    @contextmanager
    def read(self) -> Iterator[Connection]:
        with plain_errors(), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that takes its place in the queue of writers at once, so that it cannot fail half-way for that."""
        with plain_errors(), self.engine.connect() as connection:
            connection = connection.execution_options(assay_writes=True)
            with connection.begin():
                yield connection

    def close(self) -> None:
        self.engine.dispose()


@contextmanager
def plain_errors() -> Iterator[None]:
    """Database errors in words that say what to do."""
    try:
        yield
    except OperationalError as error:
        words = str(error.orig)
        if "full" in words:
            raise UserError("The disk is full. Free some space and run the same command again.") from error
        if "locked" in words:
            raise StoreError(
                "Another process has kept the workspace locked too long. Try again in a moment."
            ) from error
        if "readonly" in words or "unable to open" in words:
            raise UserError("The workspace cannot be written to. Check the permissions of its folder.") from error
        raise StoreError(f"The workspace's state could not be used: {words}.") from error
    except IntegrityError as error:
        raise StoreError(f"Somebody changed the workspace at the same time ({error.orig}). Try again.") from error
    except DatabaseError as error:
        raise UserError(DAMAGED.format(words=error.orig)) from error


STATE = "state.db"  # the file in a workspace's folder
DAMAGED = "This workspace is damaged ({words}). Restore a backup with `assay restore`, or start a new workspace."


def engine_for(path: Path) -> Engine:
    address = URL.create("sqlite", database=str(path))  # a path may hold any sign, a question mark too
    engine = create_engine(
        address, connect_args={"timeout": 60.0, "check_same_thread": False}, pool_size=16, max_overflow=64
    )

    @event.listens_for(engine, "connect")
    def _connected(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None  # transactions are begun below, and only there
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "secure_delete=ON"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begun(connection: Connection) -> None:
        writes = connection.get_execution_options().get("assay_writes")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def open_store(path: Path, *, create: bool, migrations: Mapping[int, Migration] = MIGRATIONS) -> Store:
    """The state in `path`; made when `create` says so, migrated (after a backup) when it is older."""
    if not create and not path.exists():
        raise UserError(f"There is no workspace in {path.parent}. `assay add PATH` makes one.")
    store = Store(engine_for(path))
    with plain_errors():
        if create and not _tables(store):
            _make(store)
        _bring_up_to_date(store, path, migrations)
    return store


def _tables(store: Store) -> list[str]:
    with store.read() as connection:
        return inspect(connection).get_table_names()


def _make(store: Store) -> None:
    """All tables and the version, in one transaction; somebody else may be doing the same at this moment."""
    with store.write() as connection:
        if inspect(connection).has_table("facts"):
            return
        schema.schema.create_all(connection)
        connection.execute(insert(schema.facts).values(name="version", value=str(schema.VERSION)))
        connection.execute(insert(schema.facts).values(name="id", value=secrets.token_hex(8)))


def open_cache(path: Path) -> Engine:
    """The caches in `path`, made when they are not there: losing them costs time and nothing else."""
    try:
        engine = engine_for(path)
        schema.cache_schema.create_all(engine)
    except DatabaseError as error:
        if isinstance(error, OperationalError):
            raise StoreError(f"The cache {path} cannot be used: {error.orig}.") from error
        for part in path.parent.glob(f"{path.name}*"):  # not a database any more
            part.unlink()
        engine = engine_for(path)
        schema.cache_schema.create_all(engine)
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


def _bring_up_to_date(store: Store, path: Path, migrations: Mapping[int, Migration]) -> None:
    version = version_of(store)
    target = max([schema.VERSION, *(start + 1 for start in migrations)])
    if version > target:
        raise UserError(
            f"This workspace was made by a newer Assay (workspace version {version}, this one reads {target}). Upgrade Assay."
        )
    if version == target:
        return
    with FileLock(path.with_name(".migration.lock")):  # one of several that open it now does the work
        while (version := version_of(store)) < target:
            backup = path.with_name(f"{path.stem}-version-{version}.bak")
            if not backup.exists():
                copy_state(store, backup)
            with store.write() as connection:
                migrations[version](connection)
                newer = update(schema.facts).where(schema.facts.c.name == "version").values(value=str(version + 1))
                connection.execute(newer)


def copy_state(store: Store, to: Path) -> None:
    """A whole copy of the state, also while others write."""
    partial = to.with_suffix(".part")
    partial.unlink(missing_ok=True)
    with store.read() as connection:
        connection.exec_driver_sql("COMMIT")  # VACUUM INTO cannot run inside a transaction
        connection.exec_driver_sql("VACUUM INTO ?", (str(partial),))
        connection.exec_driver_sql("BEGIN")
    shutil.move(partial, to)


def claim(folder: Path) -> None:
    """Make the folder, unless something else lives there already."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # other people's eyes are not invited
        foreign = [
            item.name for item in folder.iterdir() if item.name != "assay.toml" and not item.name.startswith(".")
        ]
    except OSError as error:
        raise UserError(f"The workspace {str(folder)!r} cannot be made: {error.strerror}.") from error
    if foreign and not (folder / STATE).exists():
        raise UserError(
            f"{str(folder)!r} has other files in it ({foreign[0]} …) and is not a workspace. Choose an empty folder."
        )
