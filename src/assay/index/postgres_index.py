"""Indexes in the database that `state` names, in a schema of their own: vectors by pgvector, words by the server's text search.

Dense search is exact up to `EXACT_LIMIT` rows; above that it uses an HNSW graph. The text search ranks by how often and how
closely words occur, not by how rare they are: it is not BM25. The column `fields` has every field: `s` and
its text. `folded` has every field case-folded, because SQL's lower() is not Python's casefold(). Values
only ever reach the database as parameters.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import Connection, Engine

from assay.core.errors import UserError
from assay.core.types import Hit, Row
from assay.index import encoding
from assay.index.filters import EVERYTHING, And, Contains, Filter, In, Not, Or
from assay.index.lease import index_database, lease_path, shared_lease
from assay.index.protocol import NO_INDEX, Index
from assay.store.database import plain_errors

EXACT_LIMIT = 200_000  # rows
WIDTH = 100  # candidates of a search in the graph; fewer are quicker and miss more
EDGES = 800  # bytes of a row beside its vector while the graph is built; some 700 were measured
BUILD_MEMORY = 2_500_000_000  # bytes at most; a graph that outgrows it takes hours to build instead of minutes
MOST_SCANNED = 200_000  # rows that a search in the graph looks at before it returns fewer than were asked for

COLUMNS = "content, vector_send(vector)"
WORDS = r"""(SELECT string_agg('''' || replace(replace(word, '\', '\\'), '''', '''''') || '''', ' | ')::tsquery AS query
    FROM unnest(tsvector_to_array(to_tsvector('english', %(query)s))) AS word)"""


@dataclass(frozen=True, slots=True)
class PostgresIndex(Index):
    engine: Engine
    table: str  # quoted, with its schema
    dim: int
    exact_limit: int = EXACT_LIMIT

    async def upsert(self, rows: Sequence[Row]) -> None:
        if rows:
            records = [self._record(row) for row in {row.passage.id: row for row in rows}.values()]
            await asyncio.to_thread(self._insert, records)

    async def delete(self, where: Filter) -> int:
        test = compile(where)
        return await self._run(f"DELETE FROM {self.table} WHERE {test.sql}", test.parameters)

    async def matching(self, where: Filter) -> list[Row]:
        test = compile(where)
        found = await self._run(f"SELECT {COLUMNS} FROM {self.table} WHERE {test.sql}", test.parameters)
        return [_row(*each) for each in found]

    async def optimise(self) -> None:
        rows = await self.count(EVERYTHING)
        if rows > self.exact_limit and not await self._has_graph():
            name = self._graph.rsplit(".", 1)[1]
            needed = min(rows * (4 * self.dim + EDGES), BUILD_MEMORY) // 1024
            memory = f"greatest({needed}, pg_size_bytes(current_setting('maintenance_work_mem')) / 1024) || 'kB'"
            await self._run(
                f"CREATE INDEX IF NOT EXISTS {name} ON {self.table} USING hnsw (vector vector_cosine_ops)",
                first=f"SELECT set_config('maintenance_work_mem', {memory}, true)",
            )
        await asyncio.to_thread(self._maintain, f"VACUUM (ANALYZE) {self.table}")

    async def purge(self) -> tuple[str, ...]:
        """Rewrite the table. What the server archives (write-ahead segments, replicas, dumps) is its operator's to delete."""
        await asyncio.to_thread(self._maintain, f"VACUUM (FULL, ANALYZE) {self.table}")
        return ()

    async def dense(self, vector: np.ndarray, k: int, where: Filter) -> list[Hit]:
        query, test = encoding.query_vector(vector, self.dim), compile(where)
        if k <= 0:
            return []
        distance = "(vector <=> %(vector)s::vector)"  # not a number where a vector is zero
        sql = f"""WITH compared AS MATERIALIZED (SELECT id, {distance} AS distance FROM {self.table} WHERE {test.sql}),
            best AS (SELECT id, CASE WHEN distance = 'NaN' THEN 0 ELSE 1 - distance END AS score FROM compared
                ORDER BY score DESC, id LIMIT %(k)s)
            SELECT {COLUMNS}, score FROM best JOIN {self.table} USING (id) ORDER BY score DESC, id"""
        first = ""
        if await self._has_graph():
            sql = f"""SELECT {COLUMNS}, 1 - {distance} AS score FROM {self.table} WHERE {test.sql}
                ORDER BY {distance} LIMIT %(k)s"""
            # Without an iterative scan a filter that keeps few rows would leave fewer than k, or none.
            first = f"""SELECT set_config('hnsw.iterative_scan', 'strict_order', true),
                set_config('hnsw.ef_search', '{min(max(2 * k, WIDTH), 1000)}', true),
                set_config('hnsw.max_scan_tuples', '{MOST_SCANNED}', true)"""
        found = await self._run(sql, {**test.parameters, "vector": _literal(query), "k": k}, first)
        return _hits("dense", found)

    async def lexical(self, query: str, k: int, where: Filter) -> list[Hit]:
        words = encoding.query_words(plain_words(query).split())
        if k <= 0 or not words:
            return []
        test = compile(where)
        sql = f"""SELECT {COLUMNS}, ts_rank(words, query, 1) AS score FROM {self.table}, {WORDS} AS asked
            WHERE words @@ query AND {test.sql} ORDER BY score DESC, id LIMIT %(k)s"""
        return _hits("lexical", await self._run(sql, {**test.parameters, "query": words, "k": k}))

    async def count(self, where: Filter) -> int:
        test = compile(where)
        return (await self._run(f"SELECT count(*) FROM {self.table} WHERE {test.sql}", test.parameters))[0][0]

    async def ids(self) -> list[str]:
        return [id for (id,) in await self._run(f"SELECT id FROM {self.table} ORDER BY id")]

    async def with_ids(self, ids: Sequence[str]) -> list[Row]:
        sql = f"SELECT {COLUMNS} FROM {self.table} WHERE id = ANY(%(ids)s::text[])"
        return [_row(*each) for each in await self._run(sql, {"ids": list(ids)})]

    def _record(self, row: Row) -> dict[str, object]:
        return {
            "id": row.passage.id,
            "content": encoding.pack(row),
            "fields": _json({_key(name): _value(value) for name, value in row.fields.items()}),
            "folded": _json({_key(name): value.casefold().translate(_ESCAPES) for name, value in row.fields.items()}),
            "words": plain_words(f"{row.lead}\n{row.passage.text}"),
            "vector": _literal(encoding.row_vector(row, self.dim)),
        }

    def _insert(self, records: list[dict[str, object]]) -> None:
        new = "content, fields, folded, words, vector".split(", ")
        sql = f"""INSERT INTO {self.table} (id, {", ".join(new)})
            VALUES (%(id)s, %(content)s, %(fields)s, %(folded)s, to_tsvector('english', %(words)s), %(vector)s)
            ON CONFLICT (id) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in new)}"""
        with plain_errors(), self.engine.begin() as connection:
            connection.exec_driver_sql(sql, records)

    @property
    def _graph(self) -> str:
        return f'{self.table[:-1]}_graph"'

    async def _has_graph(self) -> bool:
        return (await self._run("SELECT to_regclass(%(name)s) IS NOT NULL", {"name": self._graph}))[0][0]

    async def _run(self, sql: str, parameters: Mapping[str, object] | None = None, first: str = "") -> Any:
        """The rows of a statement, or how many it changed, in a transaction that begins with the statement `first`."""

        def run() -> Any:
            with plain_errors(), self.engine.begin() as connection:
                if first:
                    connection.exec_driver_sql(first)
                done = connection.exec_driver_sql(sql, dict(parameters or {}))
                return done.all() if done.returns_rows else done.rowcount

        return await asyncio.to_thread(run)

    def _maintain(self, sql: str) -> None:
        with plain_errors(), self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql(sql)


def plain_words(text: str) -> str:
    """Text without accents and without what the database cannot store."""
    if text.isascii():
        return text.replace("\x00", " ")
    plain = unicodedata.normalize("NFKD", text.encode("utf-8", "ignore").decode().replace("\x00", " "))
    return "".join(char for char in plain if not unicodedata.combining(char))


def _hits(channel: str, found: Sequence[Any]) -> list[Hit]:
    return [
        encoding.hit_of(_row(content, vector), rank, **{channel: float(score)})
        for rank, (content, vector, score) in enumerate(found, start=1)
    ]


def _literal(vector: np.ndarray) -> str:
    return str(vector.tolist())


def _row(content: str, sent: bytes) -> Row:
    """A vector in pgvector's binary form: two 16-bit numbers, then big-endian floats."""
    return encoding.unpack(content, np.frombuffer(sent, ">f4", offset=4).astype(np.float32))


SCHEMA = "assay_index"
OLDEST = (0, 8)  # of pgvector


@dataclass(frozen=True, slots=True)
class PostgresEngine:
    workspace: Path
    address: str

    def limits(self) -> tuple[str, ...]:
        return ("Its search by words is not BM25: it does not count how rare a word is.",)

    def exists(self, base_id: str) -> bool:
        with plain_errors(), self._engine.connect() as connection:
            return _dimensions(connection, _table(base_id)) is not None

    async def open(self, base_id: str, dim: int, *, create: bool = False) -> PostgresIndex:
        held = await asyncio.to_thread(self._prepare, base_id, dim if create else 0)
        if held is None:
            raise UserError(NO_INDEX)
        encoding.require_dimensions(held, dim)
        return PostgresIndex(self._engine, _table(base_id), dim)

    async def drop(self, base_id: str) -> None:
        def drop() -> None:
            with plain_errors(), self._engine.begin() as connection:
                connection.exec_driver_sql(f"DROP TABLE IF EXISTS {_table(base_id)}")

        await asyncio.to_thread(drop)

    def lease(self, base_id: str, patience: float) -> AbstractAsyncContextManager[None]:
        return shared_lease(lease_path(self.workspace, base_id), self.address, f"{SCHEMA}.{base_id}", patience)

    async def versions(self) -> dict[str, str]:
        """The versions of the server's parts, for `assay doctor`."""

        def read() -> dict[str, str]:
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
    name = encoding.table_name(base_id)
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


INDEXED = ("doc", "label")  # fields with an index

# PostgreSQL cannot store U+0000. Four characters are escaped by three of them, so that order and substrings stay.
_ESCAPES = {i: "\x01" + chr(2 + (i >> 1)) + chr(2 + (i & 1)) for i in range(4)}


@dataclass(frozen=True, slots=True)
class Condition:
    """An SQL condition in the style of psycopg, with its parameters."""

    sql: str
    parameters: Mapping[str, object]


def compile(where: Filter) -> Condition:
    """A condition that is true for exactly the rows that `filters.matches` accepts. It may be null for others: anything around
    a field would keep its index from being used."""
    parameters: dict[str, object] = {}
    return Condition(_compile(where, parameters), parameters)


def _add(parameters: dict[str, object], value: object) -> str:
    name = f"f{len(parameters)}"
    parameters[name] = value
    return f"%({name})s"


def _compile(where: Filter, parameters: dict[str, object]) -> str:
    match where:
        case And(parts):
            return "(" + " AND ".join(_compile(part, parameters) for part in parts) + ")" if parts else "TRUE"
        case Or(parts):
            return "(" + " OR ".join(_compile(part, parameters) for part in parts) + ")" if parts else "FALSE"
        case Not(part):
            return f"({_compile(part, parameters)} IS NOT TRUE)"  # also where a field is missing
        case In(name, values):
            usable = [_value(value) for value in values if encoding.storable(value)]
            column = f"'{name}'" if name in INDEXED else _add(parameters, _key(name))
            return f"((fields ->> {column}) = ANY({_add(parameters, usable)}::text[]))" if usable else "FALSE"
        case Contains(_, ""):
            return "TRUE"
        case Contains(_, text) if not encoding.storable(text):
            return "FALSE"
        case Contains(name, text):
            text = _add(parameters, text.casefold().translate(_ESCAPES))
            return f"(coalesce(strpos(folded ->> {_add(parameters, _key(name))}, {text}), 0) > 0)"


def _key(name: str) -> str:
    return encoding.storable_key(name).translate(_ESCAPES)


def _value(value: str) -> str:
    return "s" + value.translate(_ESCAPES)


def _json(value: Mapping[str, str]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
