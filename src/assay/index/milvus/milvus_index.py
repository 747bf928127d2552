"""An index in a collection of Milvus: dense vectors, and BM25 over words that are folded and stemmed here.

Reads see every write made before them (consistency level Strong). What Milvus cannot filter exactly is checked here,
with more rows read until enough have passed. A collection that was made on a server without BM25 has no words: `lexical`
finds nothing in it.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from assay.core.errors import AssayError, StoreError
from assay.core.types import Hit, Row
from assay.index.encoding import StoredRow, pack, query_vector, row_vector, unpack
from assay.index.filters import EVERYTHING, Eq, Filter, matches
from assay.index.memory_index import words
from assay.index.milvus_index import Expression
from assay.index.milvus_index import columns
from assay.index.milvus_index import compile
from assay.index.milvus_index import facets

MOST = 16_384  # rows that Milvus returns at once
LONGEST = 65_535  # bytes of a text
BATCH = 500  # rows in one request
QUERY_WORDS = 512  # a longer query is cut: words so far back carry no intent
COLUMNS = ["content", "vector"]


@dataclass(frozen=True, slots=True)
class MilvusIndex:
    """has_words: whether the collection has BM25, which servers from 2.5 on give it"""

    client: Any
    collection: str
    dim: int
    has_words: bool

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def upsert(self, rows: Sequence[Row]) -> None:
        records = [self._record(row) for row in {row.passage.id: row for row in rows}.values()]
        for start in range(0, len(records), BATCH):
            await self._call(self.client.upsert, self.collection, records[start : start + BATCH])

    async def delete(self, where: Filter) -> int:
        keys = [_key(stored.passage.id) for stored, _ in await self._matching(where)]
        for start in range(0, len(keys), BATCH):
            await self._call(self.client.delete, self.collection, ids=keys[start : start + BATCH])
        return len(keys)

    async def relabel(self, document: str, label: str) -> int:
        rows = [stored.row(vector) for stored, vector in await self._matching(Eq("doc", document))]
        await self.upsert([replace(row, fields={**row.fields, "label": label}) for row in rows])
        return len(rows)

    async def optimise(self) -> None:
        await self._call(self.client.flush, self.collection)

    async def is_untidy(self) -> bool:
        return False

    async def purge(self) -> tuple[str, ...]:
        """Compact. Milvus keeps old segments until its own retention has passed, so the collection is always named."""
        await self.optimise()
        await self._call(self.client.compact, self.collection)
        return (f"old segments of the Milvus collection {self.collection}",)

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def dense(self, vector: np.ndarray, k: int, where: Filter) -> list[Hit]:
        query = query_vector(vector, self.dim)
        return await self._search("dense", "vector", query.tolist(), k, where) if k > 0 else []

    async def lexical(self, query: str, k: int, where: Filter) -> list[Hit]:
        asked = " ".join(list(dict.fromkeys(words(query.encode("utf-8", "ignore").decode())))[:QUERY_WORDS])
        return await self._search("lexical", "sparse", asked, k, where) if self.has_words and k > 0 and asked else []

    async def fetch(self, ids: Sequence[str], where: Filter) -> list[Hit]:
        found = await self._by_id(ids)
        wanted = [found[id] for id in dict.fromkeys(ids) if id in found and matches(where, found[id][0].fields)]
        return [stored.hit(vector, rank) for rank, (stored, vector) in enumerate(wanted, start=1)]

    async def count(self, where: Filter) -> int:
        test = self._compiled(where)
        if not test.exact:
            return len(await self._matching(where))
        found = await self._call(
            self.client.query, self.collection, filter=test.text, output_fields=["count(*)"], consistency_level="Strong"
        )
        return int(found[0]["count(*)"])

    async def ids(self) -> list[str]:
        return sorted(stored.passage.id for stored, _ in await self._matching(EVERYTHING, ["content"]))

    async def rows(self, ids: Sequence[str]) -> list[Row]:
        found = await self._by_id(ids)
        return [found[id][0].row(found[id][1]) for id in ids if id in found]

    # ── internals ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _record(self, row: Row) -> dict[str, object]:
        record = {
            "pk": _key(row.passage.id),
            "content": _packed(row),
            "facets": facets(row.fields),
            "vector": row_vector(row, self.dim).tolist(),
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
            found = await self._nearest(column, query, limit, test)
            scores = [abs(score) if channel == "lexical" else score for _, _, score in found]
            kept = [
                (-score, stored.passage.id, stored, vector)
                for (stored, vector, _), score in zip(found, scores, strict=True)
                if test.exact or matches(where, stored.fields)
            ]
            kept.sort(key=lambda each: each[:2])
            # Milvus breaks ties arbitrarily: read on until the k-th score has no tie beyond what was read.
            settled = len(kept) >= k and -kept[k - 1][0] > min(scores)
            if len(found) < limit or settled or limit >= MOST:
                break
            limit = min(limit * 4, MOST)
        return [
            stored.hit(vector, rank, **{channel: -score})
            for rank, (score, _, stored, vector) in enumerate(kept[:k], start=1)
        ]

    async def _nearest(
        self, column: str, query: object, limit: int, test: Expression
    ) -> list[tuple[StoredRow, np.ndarray, float]]:
        found = await self._call(
            self.client.search, self.collection, data=[query], anns_field=column, limit=limit, filter=test.text,
            output_fields=COLUMNS, consistency_level="Strong",
        )  # fmt: skip
        return [(*_stored(each["entity"]), float(each["distance"])) for each in found[0]]

    async def _matching(self, where: Filter, output: Sequence[str] = COLUMNS) -> list[tuple[StoredRow, np.ndarray]]:
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
        return [(stored, vector) for stored, vector in found if test.exact or matches(where, stored.fields)]

    async def _by_id(self, ids: Sequence[str]) -> dict[str, tuple[StoredRow, np.ndarray]]:
        keys = [_key(id) for id in dict.fromkeys(ids)]
        found: dict[str, tuple[StoredRow, np.ndarray]] = {}
        for start in range(0, len(keys), BATCH):
            listed = ", ".join(f'"{key}"' for key in keys[start : start + BATCH])
            rows = await self._call(
                self.client.query, self.collection, filter=f"pk in [{listed}]", output_fields=COLUMNS,
                consistency_level="Strong",
            )  # fmt: skip
            found |= {stored.passage.id: (stored, vector) for stored, vector in map(_stored, rows)}
        return found

    async def _call(self, call: Callable[..., Any], *values: Any, **named: Any) -> Any:
        try:
            return await asyncio.to_thread(call, *values, **named)
        except AssayError:
            raise
        except Exception as error:
            raise unusable(error) from error


def unusable(error: Exception) -> StoreError:
    reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
    return StoreError(f"Milvus refused a request or cannot be reached ({reason}). Check the address in `index`.")


def _key(id: str) -> str:
    return hashlib.sha256(id.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def _packed(row: Row) -> str:
    """The row as JSON, compressed where Milvus would refuse its length."""
    text = pack(row)
    if len(text.encode()) <= LONGEST:
        return text
    small = "z" + base64.b64encode(zlib.compress(text.encode())).decode()
    if len(small) > LONGEST:
        raise StoreError(f"Passage {row.passage.id} is too long for Milvus, which takes {LONGEST} bytes.")
    return small


def _stored(entity: Any) -> tuple[StoredRow, np.ndarray]:
    content = entity["content"]
    text = zlib.decompress(base64.b64decode(content[1:])).decode() if content.startswith("z") else content
    return unpack(text), np.asarray(entity.get("vector", ()), np.float32)
