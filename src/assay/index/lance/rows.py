"""The row format of a Lance table: the schema, rows → Arrow, Arrow → hits and blocks. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pydantic_core import from_json

from assay.core.errors import StoreError
from assay.core.types import Hit, Passage, Row, Scalar
from assay.index.encoding import row_vector
from assay.index.lance import matrix
from assay.index.lance.sql import COLUMNS, exact, folded, has_column
from assay.index.lance.words import WordBlock, pack_terms, word_block
from assay.index.protocol import HitList, Vectors

if TYPE_CHECKING:
    import pyarrow as pa

PAYLOAD = ["body", "about"]
IN_MEMORY = ["id", "vector", "extra", *(f"f_{c}" for c in COLUMNS)]
TERMS = "terms"


def schema(dim: int) -> pa.Schema:
    import pyarrow as pa

    return pa.schema(
        [
            pa.field("id", pa.string(), nullable=False),
            pa.field("body", pa.string(), nullable=False),  # lead + newline + text
            # JSON of the other attributes of a hit. Lance reads two columns of a hundred rows three times as fast as
            # seventeen, and only filterable fields need their own column.
            pa.field("about", pa.string(), nullable=False),
            pa.field("extra", pa.string(), nullable=False),  # JSON of the fields without a column
            pa.field("exact", pa.string(), nullable=False),
            pa.field("folded", pa.string(), nullable=False),
            *(pa.field(f"f_{name}", pa.string()) for name in COLUMNS),
            pa.field("vector", pa.list_(pa.float32(), dim), nullable=False),
            pa.field(TERMS, pa.list_(pa.uint64())),  # of the body, for searching in memory
        ]
    )


def to_arrow(rows: Sequence[Row], dim: int, shape: pa.Schema, *, terms: bool) -> pa.Table:
    """Rows as Arrow. Of rows with the same passage id only the last is kept: a merge would insert all of them.

    terms: whether they get any; a table that is too large for searching words in memory has no use for them
    """
    import pyarrow as pa

    rows = list({row.passage.id: row for row in rows}.values())
    passages = [row.passage for row in rows]
    vectors = np.stack([row_vector(row, dim) for row in rows])
    bodies = [f"{row.lead}\n{row.passage.text}" for row in rows]
    columns = {
        "id": [passage.id for passage in passages],
        "body": bodies,
        "about": [_about(row) for row in rows],
        "extra": [
            _json({name: value for name, value in row.fields.items() if not has_column(name, value)}) for row in rows
        ],
        "exact": [exact(row.fields) for row in rows],
        "folded": [folded(row.fields) for row in rows],
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), dim),
        **{f"f_{name}": [_text(row.fields.get(name)) for row in rows] for name in COLUMNS},
    }
    if TERMS in shape.names:
        columns[TERMS] = [pack_terms(body) if terms else None for body in bodies]
    try:
        return pa.table(columns, schema=shape)
    except UnicodeEncodeError as error:
        raise StoreError("A passage or one of its fields holds half a character (a lone surrogate).") from error


def with_label(table: pa.Table, label: str) -> pa.Table:
    """The same rows with another label, in every column that contains it."""
    import pyarrow as pa

    abouts = [json.loads(about) for about in table["about"].to_pylist()]
    for about in abouts:
        about[-1]["label"] = label
    columns = {
        "about": [_json(about) for about in abouts],
        "exact": [exact(about[-1]) for about in abouts],
        "folded": [folded(about[-1]) for about in abouts],
        "f_label": [label] * len(abouts),
    }
    for name, values in columns.items():
        table = table.set_column(table.schema.get_field_index(name), table.schema.field(name), pa.array(values))
    return table


class StoredPassage(NamedTuple):
    """A hit's data from its row, without the vector."""

    passage: Passage
    title: str
    fields: Mapping[str, Scalar]


def to_stored(table: pa.Table) -> list[StoredPassage]:
    bodies, abouts = table["body"].to_pylist(), table["about"].to_pylist()
    return [_stored(body, json.loads(about)) for body, about in zip(bodies, abouts, strict=True)]


def to_rows(table: pa.Table, dim: int) -> list[Row]:
    """Rows as they were written."""
    leads = [
        body[: json.loads(about)[6]]
        for body, about in zip(table["body"].to_pylist(), table["about"].to_pylist(), strict=True)
    ]
    rows = zip(to_stored(table), vectors_of(table, dim), leads, strict=True)
    return [Row(stored.passage, vector, lead, stored.fields) for stored, vector, lead in rows]


def packed(table: pa.Table) -> np.ndarray:
    """The payload of each row as one byte string, which takes a fraction of the memory of the objects."""
    import pyarrow as pa
    import pyarrow.compute as pc

    both = (table[name].cast(pa.large_binary()) for name in ("about", "body"))
    texts = np.empty(table.num_rows, object)
    texts[:] = pc.binary_join_element_wise(*both, pa.scalar(b"\n", pa.large_binary())).to_pylist()  # type: ignore[reportAttributeAccessIssue]
    return texts


def unpacked(payload: bytes) -> StoredPassage:
    about, body = payload.split(b"\n", 1)  # JSON has no newline
    return _stored(body.decode(), from_json(about))


def made_on_demand(rows: matrix.RankedRows, channel: str) -> HitList:
    """Rows whose texts are in memory as hits."""

    def make(at: int) -> Hit:
        stored = unpacked(rows.texts[at] or b"")
        return Hit(stored.passage, rows.vectors[at], {channel: rows.scores[at]}, at + 1, stored.title, stored.fields)

    return HitList(rows.ids, rows.doc_ids, rows.vectors, rows.scores, make)


def to_hits(
    stored: Sequence[StoredPassage], vectors: Vectors, channel: str = "", scores: Sequence[float] = ()
) -> list[Hit]:
    """Hits in the given order, with the channel's scores if there is a channel."""
    kept = [{channel: score} for score in scores] if channel else [{} for _ in stored]
    rows = zip(stored, vectors, kept, range(1, len(stored) + 1), strict=True)
    return [Hit(each.passage, vector, score, rank, each.title, each.fields) for each, vector, score, rank in rows]


def take_rows(table: pa.Table, positions: Sequence[int]) -> pa.Table:
    import pyarrow as pa

    return table.take(pa.array(positions, pa.int64()))  # typed, because Arrow cannot take by an empty list


def vectors_of(table: pa.Table, dim: int) -> np.ndarray:
    chunks = [chunk.flatten().to_numpy().reshape(-1, dim) for chunk in table["vector"].chunks]
    return np.concatenate(chunks) if chunks else np.empty((0, dim), np.float32)


def to_block(table: pa.Table, dim: int, texts: np.ndarray | None = None) -> matrix.VectorBlock:
    columns = {name: _dictionary(table[f"f_{name}"]) for name in COLUMNS}
    extras: list[dict[str, Scalar]] = [json.loads(text) if text != "{}" else {} for text in table["extra"].to_pylist()]
    for name in dict.fromkeys(name for extra in extras for name in extra):
        own = matrix.column([extra.get(name) for extra in extras])
        columns[name] = _laid_over(columns[name], own) if name in columns else own
    ids = np.empty(table.num_rows, object)
    ids[:] = table["id"].to_pylist()
    words = _words(table[TERMS]) if TERMS in table.column_names else None
    return matrix.block(table["_rowid"].to_numpy(), ids, vectors_of(table, dim), columns, texts, words)


def in_row_order(table: pa.Table) -> pa.Table:
    row_ids = table["_rowid"].to_numpy()
    return table if np.all(row_ids[1:] >= row_ids[:-1]) else take_rows(table, np.argsort(row_ids).tolist())


def _words(lists: pa.ChunkedArray) -> WordBlock | None:
    """The words of the rows, unless some were written without terms."""
    if lists.null_count:
        return None
    whole: Any = lists.combine_chunks()
    sizes = whole.value_lengths().to_numpy(zero_copy_only=False)
    return word_block(whole.flatten().to_numpy(zero_copy_only=False), sizes)


def _about(row: Row) -> str:
    of = row.passage
    context = [of.context] if of.context else []
    return _json([of.id, of.doc_id, of.start, of.end, of.heading, of.page, len(row.lead), *context, dict(row.fields)])


def _stored(body: str, about: list[Any]) -> StoredPassage:
    id, doc_id, start, end, heading, page, lead, *context, fields = about
    passage = Passage(id, doc_id, body[lead + 1 :], start, end, heading, page, *context)
    return StoredPassage(passage, str(fields.get("title", "")), fields)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _text(value: Scalar | None) -> str | None:
    return value if isinstance(value, str) else None


def _dictionary(values: pa.ChunkedArray) -> matrix.FieldColumn:
    encoded = values.combine_chunks().dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
    texts = encoded.dictionary.to_pylist()
    return matrix.FieldColumn(codes, tuple(texts), {(str, text): code for code, text in enumerate(texts)})


def _laid_over(texts: matrix.FieldColumn, others: matrix.FieldColumn) -> matrix.FieldColumn:
    """A well-known field with numbers in some rows: one column of both."""
    values: list[Scalar | None] = [
        others.values[other] if other >= 0 else texts.values[text] if text >= 0 else None
        for text, other in zip(texts.codes, others.codes, strict=True)
    ]
    return matrix.column(values)
