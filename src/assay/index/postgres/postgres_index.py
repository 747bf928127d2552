"""An index in a table of PostgreSQL: vectors by pgvector, words by the server's own text search.

Dense search is exact up to `EXACT_LIMIT` rows; above that it uses an HNSW graph. The text search ranks by how often and how
closely words occur, not by how rare they are: it is not BM25.
"""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sqlalchemy import Engine

from assay.core.types import Hit, Row
from assay.index.encoding import StoredRow, pack, query_vector, row_vector, unpack
from assay.index.filters import EVERYTHING, Eq, Filter
from assay.index.postgres_index import compile
from assay.index.postgres_index import fields_json
from assay.index.postgres_index import folded_json
from assay.store.database import plain_errors

EXACT_LIMIT = 200_000  # rows
WIDTH = 100  # candidates of a search in the graph; fewer are quicker and miss more
EDGES = 800  # bytes of a row beside its vector while the graph is built; some 700 were measured
BUILD_MEMORY = 2_500_000_000  # bytes at most; a graph that outgrows it takes hours to build instead of minutes
MOST_SCANNED = 200_000  # rows that a search in the graph looks at before it returns fewer than were asked for
QUERY_WORDS = 512  # a longer query is cut: words so far back carry no intent

COLUMNS = "content, vector_send(vector)"
WORDS = r"""(SELECT string_agg('''' || replace(replace(word, '\', '\\'), '''', '''''') || '''', ' | ')::tsquery AS query
    FROM unnest(tsvector_to_array(to_tsvector('english', %(query)s))) AS word)"""


@dataclass(frozen=True, slots=True)
class PostgresIndex:
    engine: Engine
    table: str  # quoted, with its schema
    dim: int
    exact_limit: int = EXACT_LIMIT

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def upsert(self, rows: Sequence[Row]) -> None:
        if rows:
            records = [self._record(row) for row in {row.passage.id: row for row in rows}.values()]
            await asyncio.to_thread(self._insert, records)

    async def delete(self, where: Filter) -> int:
        test = compile(where)
        return await self._write(f"DELETE FROM {self.table} WHERE {test.sql}", test.parameters)

    async def relabel(self, document: str, label: str) -> int:
        rows = await self._rows(Eq("doc", document))
        await self.upsert([replace(row, fields={**row.fields, "label": label}) for row in rows])
        return len(rows)

    async def optimise(self) -> None:
        rows = await self.count(EVERYTHING)
        if rows > self.exact_limit and not await self._has_graph():
            name = self._graph.rsplit(".", 1)[1]
            needed = min(rows * (4 * self.dim + EDGES), BUILD_MEMORY) // 1024
            memory = f"greatest({needed}, pg_size_bytes(current_setting('maintenance_work_mem')) / 1024) || 'kB'"
            await self._write(
                f"CREATE INDEX IF NOT EXISTS {name} ON {self.table} USING hnsw (vector vector_cosine_ops)",
                first=f"SELECT set_config('maintenance_work_mem', {memory}, true)",
            )
        await asyncio.to_thread(self._maintain, f"VACUUM (ANALYZE) {self.table}")

    async def is_untidy(self) -> bool:
        return False

    async def purge(self) -> tuple[str, ...]:
        """Rewrite the table. What the server archives (write-ahead segments, replicas, dumps) is its operator's to delete."""
        await asyncio.to_thread(self._maintain, f"VACUUM (FULL, ANALYZE) {self.table}")
        return ()

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def dense(self, vector: np.ndarray, k: int, where: Filter) -> list[Hit]:
        query, test = query_vector(vector, self.dim), compile(where)
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
        found = await self._read(sql, {**test.parameters, "vector": _literal(query), "k": k}, first)
        return _hits("dense", found)

    async def lexical(self, query: str, k: int, where: Filter) -> list[Hit]:
        words = " ".join(list(dict.fromkeys(plain_words(query).split()))[:QUERY_WORDS])
        if k <= 0 or not words:
            return []
        test = compile(where)
        sql = f"""SELECT {COLUMNS}, ts_rank(words, query, 1) AS score FROM {self.table}, {WORDS} AS asked
            WHERE words @@ query AND {test.sql} ORDER BY score DESC, id LIMIT %(k)s"""
        return _hits("lexical", await self._read(sql, {**test.parameters, "query": words, "k": k}))

    async def fetch(self, ids: Sequence[str], where: Filter) -> list[Hit]:
        found = await self._by_id(ids, where)
        wanted = [found[id] for id in dict.fromkeys(ids) if id in found]
        return [stored.hit(vector, rank) for rank, (stored, vector) in enumerate(wanted, start=1)]

    async def count(self, where: Filter) -> int:
        test = compile(where)
        rows = await self._read(f"SELECT count(*) FROM {self.table} WHERE {test.sql}", test.parameters)
        return rows[0][0]

    async def ids(self) -> list[str]:
        return [id for (id,) in await self._read(f"SELECT id FROM {self.table} ORDER BY id")]

    async def rows(self, ids: Sequence[str]) -> list[Row]:
        found = await self._by_id(ids, EVERYTHING)
        return [found[id][0].row(found[id][1]) for id in ids if id in found]

    # ── internals ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _record(self, row: Row) -> dict[str, object]:
        return {
            "id": row.passage.id,
            "content": pack(row),
            "fields": fields_json(row.fields),
            "folded": folded_json(row.fields),
            "words": plain_words(f"{row.lead}\n{row.passage.text}"),
            "vector": _literal(row_vector(row, self.dim)),
        }

    def _insert(self, records: list[dict[str, object]]) -> None:
        new = "content, fields, folded, words, vector".split(", ")
        sql = f"""INSERT INTO {self.table} (id, {", ".join(new)})
            VALUES (%(id)s, %(content)s, %(fields)s, %(folded)s, to_tsvector('english', %(words)s), %(vector)s)
            ON CONFLICT (id) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in new)}"""
        with plain_errors(), self.engine.begin() as connection:
            connection.exec_driver_sql(sql, records)

    async def _rows(self, where: Filter) -> list[Row]:
        test = compile(where)
        found = await self._read(f"SELECT {COLUMNS} FROM {self.table} WHERE {test.sql}", test.parameters)
        return [unpack(content).row(_vector(vector)) for content, vector in found]

    async def _by_id(self, ids: Sequence[str], where: Filter) -> dict[str, tuple[StoredRow, np.ndarray]]:
        test = compile(where)
        sql = f"SELECT {COLUMNS} FROM {self.table} WHERE id = ANY(%(ids)s::text[]) AND {test.sql}"
        found = await self._read(sql, {**test.parameters, "ids": list(dict.fromkeys(ids))})
        rows = ((unpack(content), _vector(vector)) for content, vector in found)
        return {stored.passage.id: (stored, vector) for stored, vector in rows}

    @property
    def _graph(self) -> str:
        return f'{self.table[:-1]}_graph"'

    async def _has_graph(self) -> bool:
        return (await self._read("SELECT to_regclass(%(name)s) IS NOT NULL", {"name": self._graph}))[0][0]

    async def _read(self, sql: str, parameters: Mapping[str, object] | None = None, first: str = "") -> Sequence[Any]:
        """The rows of a query, in a transaction that begins with the statement `first`."""

        def read() -> Sequence[Any]:
            with plain_errors(), self.engine.connect() as connection:
                if first:
                    connection.exec_driver_sql(first)
                return connection.exec_driver_sql(sql, dict(parameters or {})).all()

        return await asyncio.to_thread(read)

    async def _write(self, sql: str, parameters: Mapping[str, object] | None = None, first: str = "") -> int:
        def write() -> int:
            with plain_errors(), self.engine.begin() as connection:
                if first:
                    connection.exec_driver_sql(first)
                return connection.exec_driver_sql(sql, dict(parameters or {})).rowcount

        return await asyncio.to_thread(write)

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
        unpack(content).hit(_vector(vector), rank, **{channel: float(score)})
        for rank, (content, vector, score) in enumerate(found, start=1)
    ]


def _literal(vector: np.ndarray) -> str:
    return str(vector.tolist())


def _vector(sent: bytes) -> np.ndarray:
    """pgvector's binary form: two 16-bit numbers, then big-endian floats."""
    return np.frombuffer(sent, ">f4", offset=4).astype(np.float32)
