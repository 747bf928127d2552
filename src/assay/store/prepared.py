"""Statements that a run needs at every step: compiled once and run by the driver, with plain tuples as rows.

SQLAlchemy takes ten times as long for a statement as SQLite. Values and results are those of the driver, so this is for text
and numbers alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Executable
from sqlalchemy.exc import DBAPIError


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
