"""The tables of a workspace's indexes in the database that `state` names, in a schema of their own."""

from __future__ import annotations

import asyncio
import hashlib
import re
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from assay.core.errors import UserError
from assay.index.encoding import require_dimensions, table_name
from assay.index.lease import index_database, lease_path, shared_lease
from assay.index.protocol import NO_INDEX

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from assay.index.postgres_index import PostgresIndex

SCHEMA = "assay_index"
OLDEST = (0, 8)  # of pgvector


class PostgresEngine:
    def __init__(self, workspace: Path, address: str) -> None:
        self.workspace, self.address = workspace, address

    def limits(self) -> tuple[str, ...]:
        return ("Its search by words is not BM25: it does not count how rare a word is.",)

    def exists(self, base_id: str) -> bool:
        from assay.store.database import plain_errors

        with plain_errors(), self._engine.connect() as connection:
            return _dimensions(connection, _table(base_id)) is not None

    async def open(self, base_id: str, dim: int, *, create: bool = False) -> PostgresIndex:
        from assay.index.postgres_index import PostgresIndex

        held = await asyncio.to_thread(self._prepare, base_id, dim if create else 0)
        if held is None:
            raise UserError(NO_INDEX)
        require_dimensions(held, dim)
        return PostgresIndex(self._engine, _table(base_id), dim)

    async def drop(self, base_id: str) -> None:
        def drop() -> None:
            from assay.store.database import plain_errors

            with plain_errors(), self._engine.begin() as connection:
                connection.exec_driver_sql(f"DROP TABLE IF EXISTS {_table(base_id)}")

        await asyncio.to_thread(drop)

    def lease(self, base_id: str, patience: float) -> AbstractAsyncContextManager[None]:
        return shared_lease(lease_path(self.workspace, base_id), self.address, f"{SCHEMA}.{base_id}", patience)

    async def versions(self) -> dict[str, str]:
        """The versions of the server's parts, for `assay doctor`."""

        def read() -> dict[str, str]:
            from assay.store.database import plain_errors

            with plain_errors(), self._engine.connect() as connection:
                server = connection.exec_driver_sql("SHOW server_version").scalar_one()
                vectors = connection.exec_driver_sql(
                    "SELECT default_version FROM pg_available_extensions WHERE name = 'vector'"
                ).scalar()
            if vectors is None:
                raise no_pgvector()
            require_recent(str(vectors))
            return {"PostgreSQL": str(server), "pgvector": str(vectors)}

        return await asyncio.to_thread(read)

    @property
    def _engine(self) -> Engine:
        return index_database(self.address)

    def _prepare(self, base_id: str, create: int) -> int | None:
        """The dimensions of a base's table; with `create`, it is created first if it does not exist."""
        from sqlalchemy.exc import ProgrammingError

        from assay.store.database import plain_errors

        table = _table(base_id)
        with plain_errors():
            with self._engine.connect() as connection:
                held = _dimensions(connection, table)
            if held is None and create:
                try:
                    with self._engine.begin() as connection:
                        _create(connection, table, create)
                        held = _dimensions(connection, table)
                except ProgrammingError as error:
                    raise no_pgvector() from error
            return held


def require_recent(pgvector: str) -> None:
    """Older versions lose rows in a large table when a filter keeps few of them."""
    if tuple(int(part) for part in re.findall(r"\d+", pgvector)[:2]) < OLDEST:
        raise UserError(f"The database server has pgvector {pgvector}. Assay needs 0.8 or later: upgrade it there.")


def no_pgvector() -> UserError:
    return UserError(
        "The database server has no pgvector, which the setting `index` needs. Install it there and run "
        "`CREATE EXTENSION vector` in the database as its administrator."
    )


def _table(base_id: str) -> str:
    name = table_name(base_id)
    if len(name) > 40:  # the server cuts names at 63 bytes
        name = "digest_" + hashlib.sha256(name.encode()).hexdigest()[:32]
    return f'{SCHEMA}."{name}"'


def _create(connection: Connection, table: str, dim: int) -> None:
    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock(hashtext('{SCHEMA}'))")  # another process may do the same
    connection.exec_driver_sql("CREATE EXTENSION IF NOT EXISTS vector")
    require_recent(
        str(connection.exec_driver_sql("SELECT extversion FROM pg_extension WHERE extname = 'vector'").scalar_one())
    )
    connection.exec_driver_sql(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    connection.exec_driver_sql(
        f"""CREATE TABLE IF NOT EXISTS {table} (id text COLLATE "C" PRIMARY KEY, content text NOT NULL,
        fields jsonb NOT NULL, folded jsonb NOT NULL, words tsvector NOT NULL, vector vector({dim}) NOT NULL)"""
    )
    # In the row if they fit: a search reads those of many rows, and each that is elsewhere costs some pages.
    for name in ("vector", "words", "fields", "folded"):
        connection.exec_driver_sql(f"ALTER TABLE {table} ALTER {name} SET STORAGE MAIN")
    for name in ("content", "fields", "folded", "words"):  # the server's statistics would keep samples of erased text
        connection.exec_driver_sql(f"ALTER TABLE {table} ALTER {name} SET STATISTICS 0")
    connection.exec_driver_sql(f"CREATE INDEX ON {table} USING gin (words)")
    for name in ("doc", "label"):
        connection.exec_driver_sql(f"CREATE INDEX ON {table} ((fields ->> '{name}'))")


def _dimensions(connection: Connection, table: str) -> int | None:
    sql = "SELECT atttypmod FROM pg_attribute WHERE attrelid = to_regclass(%(table)s) AND attname = 'vector'"
    return connection.exec_driver_sql(sql, {"table": table}).scalar()
