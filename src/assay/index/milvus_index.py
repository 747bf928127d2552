"""Indexes in collections of Milvus, on a server or in a file of Milvus Lite: dense vectors, and BM25 over words that are folded
and stemmed here.

Reads see every write made before them (consistency level Strong). An expression contains only digests and hex digits, so no
value can be mistaken for syntax. It may let more rows pass than the filter: texts are cut, and old servers cannot search in
them. Such rows are checked here, with more rows read until enough have passed. A collection that was made on a server without
BM25 has no words: `lexical` finds nothing in it.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from assay.core.errors import AssayError, StoreError, UserError
from assay.core.types import Hit, Row
from assay.index import encoding
from assay.index.filters import EVERYTHING, And, Contains, Filter, In, Not, Or, matches
from assay.index.lease import file_lease, lease_path
from assay.index.memory_index import words
from assay.index.protocol import NO_INDEX, Index

MOST = 16_384  # rows that Milvus returns at once
LONGEST = 65_535  # bytes of a text
BATCH = 500  # rows in one request
COLUMNS = ["content", "vector"]


@dataclass(frozen=True, slots=True)
class MilvusIndex(Index):
    """has_words: whether the collection has BM25, which servers from 2.5 on give it"""

    client: Any
    collection: str
    dim: int
    has_words: bool

    async def upsert(self, rows: Sequence[Row]) -> None:
        records = [self._record(row) for row in {row.passage.id: row for row in rows}.values()]
        for start in range(0, len(records), BATCH):
            await self._call(self.client.upsert, self.collection, records[start : start + BATCH])

    async def delete(self, where: Filter) -> int:
        keys = [_key(row.passage.id) for row in await self.matching(where)]
        for start in range(0, len(keys), BATCH):
            await self._call(self.client.delete, self.collection, ids=keys[start : start + BATCH])
        return len(keys)

    async def optimise(self) -> None:
        await self._call(self.client.flush, self.collection)

    async def purge(self) -> tuple[str, ...]:
        """Compact. Milvus keeps old segments until its own retention has passed, so the collection is always named."""
        await self.optimise()
        await self._call(self.client.compact, self.collection)
        return (f"old segments of the Milvus collection {self.collection}",)

    async def dense(self, vector: np.ndarray, k: int, where: Filter) -> list[Hit]:
        query = encoding.query_vector(vector, self.dim)
        return await self._search("dense", "vector", query.tolist(), k, where) if k > 0 else []

    async def lexical(self, query: str, k: int, where: Filter) -> list[Hit]:
        asked = encoding.query_words(words(query.encode("utf-8", "ignore").decode()))
        return await self._search("lexical", "sparse", asked, k, where) if self.has_words and k > 0 and asked else []

    async def count(self, where: Filter) -> int:
        test = self._compiled(where)
        if not test.exact:
            return len(await self.matching(where))
        found = await self._call(
            self.client.query, self.collection, filter=test.text, output_fields=["count(*)"], consistency_level="Strong"
        )
        return int(found[0]["count(*)"])

    async def ids(self) -> list[str]:
        return sorted(row.passage.id for row in await self.matching(EVERYTHING, ["content"]))

    def _record(self, row: Row) -> dict[str, object]:
        record = {
            "pk": _key(row.passage.id),
            "content": _packed(row),
            "facets": sorted({_facet(name, value) for name, value in row.fields.items()}),
            "vector": encoding.row_vector(row, self.dim).tolist(),
            **columns(row.fields),
        }
        if self.has_words:
            searched = " ".join(words(f"{row.lead}\n{row.passage.text}"))
            record["words"] = searched.encode()[:LONGEST].decode(errors="ignore")
        return record

    def _compiled(self, where: Filter) -> Expression:
        return compile(where, infix=self.has_words)  # 2.4 brought it, 2.5 brought BM25

    async def _search(self, channel: str, column: str, query: object, k: int, where: Filter) -> list[Hit]:
        test, limit = self._compiled(where), min(k + 8, MOST)
        while True:
            answered = await self._call(
                self.client.search, self.collection, data=[query], anns_field=column, limit=limit, filter=test.text,
                output_fields=COLUMNS, consistency_level="Strong",
            )  # fmt: skip
            found = [(_stored(each["entity"]), float(each["distance"])) for each in answered[0]]
            scores = [abs(score) if channel == "lexical" else score for _, score in found]
            kept = [
                (-score, row.passage.id, row)
                for (row, _), score in zip(found, scores, strict=True)
                if test.exact or matches(where, row.fields)
            ]
            kept.sort(key=lambda each: each[:2])
            # Milvus breaks ties arbitrarily: read on until the k-th score has no tie beyond what was read.
            settled = len(kept) >= k and -kept[k - 1][0] > min(scores)
            if len(found) < limit or settled or limit >= MOST:
                break
            limit = min(limit * 4, MOST)
        best = enumerate(kept[:k], start=1)
        return [encoding.hit_of(row, rank, **{channel: -score}) for rank, (score, _, row) in best]

    async def matching(self, where: Filter, output: Sequence[str] = COLUMNS) -> list[Row]:
        test = self._compiled(where)

        def read() -> list[Any]:
            rows: list[Any] = []
            pages = self.client.query_iterator(
                self.collection,
                batch_size=BATCH,
                filter=test.text,
                output_fields=list(output),
                consistency_level="Strong",
            )
            while page := pages.next():
                rows += page
            pages.close()
            return rows

        found = map(_stored, await self._call(read))
        return [row for row in found if test.exact or matches(where, row.fields)]

    async def with_ids(self, ids: Sequence[str]) -> list[Row]:
        found: list[Row] = []
        for start in range(0, len(ids), BATCH):
            listed = ", ".join(f'"{_key(id)}"' for id in ids[start : start + BATCH])
            rows = await self._call(
                self.client.query, self.collection, filter=f"pk in [{listed}]", output_fields=COLUMNS,
                consistency_level="Strong",
            )  # fmt: skip
            found += map(_stored, rows)
        return found

    async def _call(self, call: Callable[..., Any], *values: Any, **named: Any) -> Any:
        with plain_errors():
            return await asyncio.to_thread(call, *values, **named)


@contextmanager
def plain_errors() -> Iterator[None]:
    try:
        yield
    except AssayError:
        raise
    except Exception as error:
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        why = f"Milvus refused a request or cannot be reached ({reason}). Check the address in `index`."
        raise StoreError(why) from error


def _key(id: str) -> str:
    return hashlib.sha256(id.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def _packed(row: Row) -> str:
    """The row as JSON, compressed where Milvus would refuse its length."""
    text = encoding.pack(row)
    if len(text.encode()) <= LONGEST:
        return text
    small = "z" + base64.b64encode(zlib.compress(text.encode())).decode()
    if len(small) > LONGEST:
        raise StoreError(f"Passage {row.passage.id} is too long for Milvus, which takes {LONGEST} bytes.")
    return small


def _stored(entity: Any) -> Row:
    content = entity["content"]
    text = zlib.decompress(base64.b64decode(content[1:])).decode() if content.startswith("z") else content
    return encoding.unpack(text, np.asarray(entity.get("vector", ()), np.float32))


OLDEST = (2, 3, 5)  # it has arrays, cosine and upsert
WITH_BM25 = (2, 5)

log = logging.getLogger("assay.index")


@dataclass(frozen=True, slots=True)
class MilvusEngine:
    """Several workspaces may use one server: the folder of the workspace is part of the names of its collections."""

    workspace: Path
    address: str

    async def versions(self) -> dict[str, str]:
        from importlib.metadata import version

        return {"Milvus": await asyncio.to_thread(self._server_version), "pymilvus": version("pymilvus")}

    def limits(self) -> tuple[str, ...]:
        server = self._server_version()
        wordless = (
            f"Milvus {server} has no BM25: passages are found by meaning, not by their words. "
            "Use Milvus 2.5 or newer, then run `assay reindex`."
        )
        return (
            *(() if has_bm25(server) else (wordless,)),
            "Erased text stays in old segments until Milvus removes them.",
            "Only machines that share the workspace folder keep each other from writing.",
        )

    def exists(self, base_id: str) -> bool:
        return bool(self._client.has_collection(self._name(base_id)))

    async def open(self, base_id: str, dim: int, *, create: bool = False) -> MilvusIndex:
        name = self._name(base_id)
        with plain_errors():
            if not await asyncio.to_thread(self.exists, base_id):
                if not create:
                    raise UserError(NO_INDEX)
                server = await asyncio.to_thread(self._server_version)
                await asyncio.to_thread(_create, self._client, name, dim, words=has_bm25(server))
            about = await asyncio.to_thread(self._client.describe_collection, name)
            await asyncio.to_thread(self._client.load_collection, name)
        fields = {field["name"]: field for field in about["fields"]}
        encoding.require_dimensions(int(fields["vector"]["params"]["dim"]), dim)
        if "sparse" not in fields:
            _warn_of_no_words(self.address)
        return MilvusIndex(self._client, name, dim, has_words="sparse" in fields)

    async def drop(self, base_id: str) -> None:
        await asyncio.to_thread(self._client.drop_collection, self._name(base_id))

    def lease(self, base_id: str, patience: float) -> AbstractAsyncContextManager[None]:
        return file_lease(lease_path(self.workspace, base_id), patience)

    @property
    def _client(self) -> Any:
        return _client(self.address)

    def _server_version(self) -> str:
        with plain_errors():
            server = str(self._client.get_server_version())
        if _numbers(server) < OLDEST:
            raise UserError(f"Milvus {server} is too old. The oldest version that Assay can use is 2.3.5.")
        return server

    def _name(self, base_id: str) -> str:
        """Milvus takes letters, digits and underscores."""
        of = f"{self.workspace.resolve()}\n{base_id}"
        return "assay_" + hashlib.sha256(of.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def has_bm25(server: str) -> bool:
    return _numbers(server) >= WITH_BM25


def _numbers(version: str) -> tuple[int, ...]:
    """(2, 3, 5) of `v2.3.5-lite`. A build without a number counts as new."""
    found = re.search(r"\d{1,6}(?:\.\d{1,6}){1,4}", version)
    return tuple(map(int, found[0].split("."))) if found else WITH_BM25


@lru_cache(maxsize=4)
def _warn_of_no_words(address: str) -> None:
    """Once for each server in a process."""
    log.warning(
        "The search index on Milvus was made on a server without BM25: passages are found by meaning, not by their words. "
        "Use Milvus 2.5 or newer, then run `assay reindex`."
    )


@lru_cache(maxsize=4)
def _client(address: str) -> Any:
    try:
        from pymilvus import MilvusClient  # type: ignore[reportMissingImports]
    except ImportError as error:
        raise UserError("An index on Milvus needs its client: `pip install 'assay[milvus]'`.") from error

    with plain_errors():
        return MilvusClient(address)


def _create(client: Any, name: str, dim: int, *, words: bool) -> None:
    from pymilvus import DataType, Function, FunctionType  # type: ignore[reportMissingImports]

    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("pk", DataType.VARCHAR, max_length=64, is_primary=True)
    schema.add_field("content", DataType.VARCHAR, max_length=65_535)
    schema.add_field("facets", DataType.ARRAY, element_type=DataType.VARCHAR, max_capacity=1024, max_length=64)
    for column in ("s_date", *(f"c_{name}" for name in SEARCHED)):
        schema.add_field(column, DataType.VARCHAR, max_length=8192)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dim)
    indexes = client.prepare_index_params()
    indexes.add_index("vector", index_type="FLAT", metric_type="COSINE")
    if words:
        schema.add_field("words", DataType.VARCHAR, max_length=65_535, enable_analyzer=True)
        schema.add_field("sparse", DataType.SPARSE_FLOAT_VECTOR)
        bm25 = Function(
            name="bm25", function_type=FunctionType.BM25, input_field_names=["words"], output_field_names=["sparse"]
        )
        schema.add_function(bm25)
        indexes.add_index("sparse", index_type="SPARSE_INVERTED_INDEX", metric_type="BM25")
    client.create_collection(name, schema=schema, index_params=indexes, consistency_level="Strong")


SEARCHED = ("source", "title")  # fields that `Contains` finds in a column
DATE_BYTES = 32
SEARCHED_BYTES = 2000
ALL, NONE = 'pk != ""', 'pk == ""'


@dataclass(frozen=True, slots=True)
class Expression:
    """exact: whether it is true for exactly the rows that the filter accepts, or for more"""

    text: str
    exact: bool


def columns(fields: Mapping[str, str]) -> dict[str, str]:
    """The columns of texts, in hex. Nothing reads the date: collections have it, and Milvus wants it written."""
    searched = {f"c_{name}": _hex(fields.get(name, "").casefold(), SEARCHED_BYTES) for name in SEARCHED}
    return {"s_date": _hex(fields.get("date", ""), DATE_BYTES), **searched}


def compile(where: Filter, *, infix: bool, wanted: bool = True) -> Expression:
    """infix: whether the server takes `like` with a text in the middle; wanted: whether rows that match are looked for"""
    match where:
        case And(parts) | Or(parts):
            every = isinstance(where, And) == wanted
            compiled = [compile(part, wanted=wanted, infix=infix) for part in parts]
            if not compiled:
                return Expression(ALL if every else NONE, True)
            text = encoding.join_conditions("and" if every else "or", [each.text for each in compiled])
            return Expression(text, all(each.exact for each in compiled))
        case Not(part):
            return compile(part, wanted=not wanted, infix=infix)
        case In(name, values):
            return _among(name, values, wanted)
        case Contains(name, text):
            needle = text.casefold()
            if not (wanted and infix and name in SEARCHED and needle and encoding.storable(needle)):
                return Expression(ALL, False)
            # A longer text than the column holds is not searched here: its column ends in `~`.
            column = f"c_{name}"
            return Expression(f'({column} like "%{_hex(needle, SEARCHED_BYTES // 2)}%" or {column} like "%~")', False)


def _among(name: str, values: tuple[str, ...], wanted: bool) -> Expression:
    digests = sorted({_facet(name, value) for value in values if encoding.storable(value)})
    if not digests:
        return Expression(NONE if wanted else ALL, True)
    listed = ", ".join(f'"{digest}"' for digest in digests)
    test = f"array_contains_any(facets, [{listed}])"
    return Expression(test if wanted else f"(not {test})", True)


def _facet(name: str, value: str) -> str:
    return hashlib.sha256(f"{len(name)} {encoding.storable_key(name)} s{value}".encode()).hexdigest()[:32]


def _hex(text: str, most: int) -> str:
    data = text.encode("utf-8", "surrogatepass")
    return data[:most].hex() + ("~" if most == SEARCHED_BYTES and len(data) > most else "")
