"""Workspaces as earlier versions made them, for the tests of migrations."""

from __future__ import annotations

from pathlib import Path

from assay.core.codec import START, digest, dumps, to_json
from assay.core.events import Event
from assay.store.database import Store, engine_for
from assay.store.runs.records import link

VERSION_3 = Path(__file__).with_name("version_3.sql")
ADDED = {3: ("turns", "threads"), 2: ("spending",)}  # tables that came with a version


def older(path: Path, version: int) -> Store:
    """An empty workspace of version 1, 2 or 3, not yet brought up to date."""
    store = Store(engine_for(path))
    with store.write() as connection:
        for statement in VERSION_3.read_text(encoding="utf-8").split(";"):
            if statement.strip():
                connection.exec_driver_sql(statement)
        for table in (table for since, tables in ADDED.items() if since > version for table in tables):
            connection.exec_driver_sql(f"DROP TABLE {table}")
        connection.exec_driver_sql(
            "INSERT INTO facts (name, value) VALUES ('version', ?), ('id', 'w')", (str(version),)
        )
    return store


def with_a_run(store: Store, event: Event, who: str) -> str:
    """A run with one record, as versions before 5 wrote it."""
    run, at, body = "r" + store.new_id(), store.now(), dumps(to_json(event, words=False))
    hash = link(run, 0, at, type(event).__name__, digest(body), START)
    with store.write() as connection:
        for statement, values in (
            ("INSERT INTO runs (id, who, started, delivered) VALUES (?, ?, ?, 0)", (run, who, at)),
            (
                "INSERT INTO records (run, seq, at, kind, digest, prev, hash) VALUES (?, 0, ?, ?, ?, ?, ?)",
                (run, at, type(event).__name__, digest(body), START, hash),
            ),
            ("INSERT INTO payloads (run, seq, body) VALUES (?, 0, ?)", (run, body)),
        ):
            connection.exec_driver_sql(statement, values)
    return run
