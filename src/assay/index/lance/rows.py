"""The row format of a Lance table: the schema, rows → Arrow, Arrow → hits and blocks; and filter → SQL, of which
`filters.matches` defines the semantics. Pure.

The well-known fields have their own columns. Any other field is in `exact`, a string of `key value` pairs; `folded` has every
field case-folded, because SQL's lower() is not Python's casefold(). Unicode noncharacters delimit both, and noncharacters
inside keys and values are escaped by three others, so that no key or value can cross a delimiter.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic_core import from_json

from assay.core.errors import StoreError, UserError
from assay.core.types import Hit, Passage, Row
from assay.index.encoding import join_conditions, row_vector, storable, storable_key
from assay.index.filters import And, Contains, Filter, In, Not, Or
from assay.index.lance import matrix
from assay.index.lance.words import WordBlock, pack_terms, word_block
from assay.index.protocol import HitList

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ("base", "doc", "source", "title", "date", "type", "language", "label")
MAX_DEPTH = 16  # Lance's parser fails between 20 and 40 levels
PAYLOAD = ["body", "about"]
IN_MEMORY = ["id", "vector", "extra", *(f"f_{c}" for c in COLUMNS)]
TERMS = "terms"
LEAD, FIELDS = 6, -1  # places in `about`


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
        "extra": [_json({name: value for name, value in row.fields.items() if name not in COLUMNS}) for row in rows],
        "exact": [exact(row.fields) for row in rows],
        "folded": [folded(row.fields) for row in rows],
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), dim),
        **{f"f_{name}": [row.fields.get(name) for row in rows] for name in COLUMNS},
    }
    if TERMS in shape.names:
        columns[TERMS] = [pack_terms(body) if terms else None for body in bodies]
    try:
        return pa.table(columns, schema=shape)
    except UnicodeEncodeError as error:
        raise StoreError("A passage or one of its fields holds half a character (a lone surrogate).") from error


def to_rows(table: pa.Table, dim: int) -> list[Row]:
    """Rows as they were written."""
    payloads = zip(table["body"].to_pylist(), map(json.loads, table["about"].to_pylist()), strict=True)
    hits = zip(payloads, vectors_of(table, dim), strict=True)
    return [Row(_passage(body, about), vector, body[: about[LEAD]], about[FIELDS]) for (body, about), vector in hits]


def packed(table: pa.Table) -> np.ndarray:
    """The payload of each row as one byte string, which takes a fraction of the memory of the objects."""
    import pyarrow as pa
    import pyarrow.compute as pc

    both = (table[name].cast(pa.large_binary()) for name in ("about", "body"))
    texts = np.empty(table.num_rows, object)
    texts[:] = pc.binary_join_element_wise(*both, pa.scalar(b"\n", pa.large_binary())).to_pylist()  # type: ignore[reportAttributeAccessIssue]
    return texts


def made_on_demand(rows: matrix.RankedRows, channel: str) -> HitList:
    """Rows as hits. Their texts are packed, and unpacked for the hits that are looked at."""

    def make(at: int) -> Hit:
        about, body = (rows.texts[at] or b"").split(b"\n", 1)  # JSON has no newline
        return hit_of(body.decode(), from_json(about), rows.vectors[at], {channel: rows.scores[at]}, at + 1)

    return HitList(rows.ids, rows.doc_ids, rows.vectors, rows.scores, make)


def take_rows(table: pa.Table, positions: Sequence[int]) -> pa.Table:
    import pyarrow as pa

    return table.take(pa.array(positions, pa.int64()))  # typed, because Arrow cannot take by an empty list


def vectors_of(table: pa.Table, dim: int) -> np.ndarray:
    chunks = [chunk.flatten().to_numpy().reshape(-1, dim) for chunk in table["vector"].chunks]
    return np.concatenate(chunks) if chunks else np.empty((0, dim), np.float32)


def to_block(table: pa.Table, dim: int, texts: np.ndarray | None = None) -> matrix.VectorBlock:
    columns = {name: _dictionary(table[f"f_{name}"]) for name in COLUMNS}
    extras: list[dict[str, str]] = [json.loads(text) if text != "{}" else {} for text in table["extra"].to_pylist()]
    for name in dict.fromkeys(name for extra in extras for name in extra):
        columns[name] = matrix.column([extra.get(name) for extra in extras])
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


def _passage(body: str, about: list[Any]) -> Passage:
    id, doc_id, start, end, heading, page, lead, *context, _ = about
    return Passage(id, doc_id, body[lead + 1 :], start, end, heading, page, *context)


def hit_of(body: str, about: list[Any], vector: np.ndarray, scores: dict[str, float], rank: int) -> Hit:
    fields = about[FIELDS]
    return Hit(_passage(body, about), vector, scores, rank, fields.get("title", ""), fields)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _dictionary(values: pa.ChunkedArray) -> matrix.FieldColumn:
    encoded = values.combine_chunks().dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
    texts = encoded.dictionary.to_pylist()
    return matrix.FieldColumn(codes, {text: code for code, text in enumerate(texts)})


_END, _MID = "\ufdd0", "\ufdd1"
_ESCAPES = {0xFDD0 + i: "\ufdd2" + chr(0xFDE0 + (i >> 4)) + chr(0xFDE0 + (i & 15)) for i in range(32)}


def compile(where: Filter) -> str:
    """SQL that is true for exactly the rows that `filters.matches` accepts. For others it is false or null, which is equivalent
    because NOT is only applied to leaves.
    """
    return _compile(where, wanted=True, depth=0)


def exact(fields: Mapping[str, str]) -> str:
    """The fields that have no column of their own: `⟨key|value⟨key|value⟨`."""
    return _pairs({name: _value(value) for name, value in fields.items() if name not in COLUMNS})


def folded(fields: Mapping[str, str]) -> str:
    """Every field as case-folded text, which `Contains` searches."""
    return _pairs({name: value.casefold().translate(_ESCAPES) for name, value in fields.items()})


def literal(text: str) -> str:
    """A SQL string literal. A doubled quote is the only escape: Lance takes backslashes literally."""
    return "'" + text.replace("'", "''") + "'"


def _compile(where: Filter, *, wanted: bool, depth: int) -> str:
    if depth > MAX_DEPTH:
        raise UserError(f"This filter is nested more than {MAX_DEPTH} levels deep; write it flatter.")
    match where:
        case And(parts) | Or(parts):
            # De Morgan, so that NOT is only applied to leaves: the parser's nesting limit is low.
            every = isinstance(where, And) == wanted
            compiled = [_compile(part, wanted=wanted, depth=depth + 1) for part in parts]
            return join_conditions("AND" if every else "OR", compiled) if compiled else "TRUE" if every else "FALSE"
        case Not(part):
            return _compile(part, wanted=not wanted, depth=depth + 1)
        case _:
            leaf = _leaf(where)
            return leaf if wanted else f"(NOT coalesce({leaf}, FALSE))"


def _leaf(where: In | Contains) -> str:
    match where:
        case In(name, values):
            return _among(name, values)
        case Contains(_, ""):
            return "TRUE"
        case Contains(_, text) if not storable(text):
            return "FALSE"
        case Contains(name, text):
            start, sought = literal(_END + _key(name) + _MID), literal(text.casefold().translate(_ESCAPES))
            return f"contains(split_part(split_part(folded, {start}, 2), {literal(_END)}, 1), {sought})"


def _among(name: str, values: Sequence[str]) -> str:
    usable = sorted({value for value in values if storable(value)})
    if name in COLUMNS:
        return f"f_{name} IN ({', '.join(map(literal, usable))})" if usable else "FALSE"
    tests = [f"contains(exact, {literal(_END + _key(name) + _MID + _value(value) + _END)})" for value in usable]
    return join_conditions("OR", tests) if tests else "FALSE"


def _pairs(values: Mapping[str, str]) -> str:
    pairs = [_key(name) + _MID + value for name, value in sorted(values.items())]
    return _END + _END.join(pairs) + _END if pairs else ""


def _key(name: str) -> str:
    return storable_key(name).translate(_ESCAPES)


def _value(value: str) -> str:
    return "s" + value.translate(_ESCAPES)
