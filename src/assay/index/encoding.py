"""How engines store fields and rows so that no value can be mistaken for another. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from assay.core.errors import StoreError
from assay.core.types import Hit, Passage, Row


def table_name(base_id: str) -> str:
    """A table's name: the id itself if it is valid on every file system, else its digest. The two forms never collide."""
    if re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", base_id):
        return "base_" + base_id
    return "digest_" + hashlib.sha256(base_id.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def storable(text: str) -> bool:
    """Whether a text can be kept exactly. Half characters (lone surrogates) cannot."""
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)


def storable_key(name: str) -> str:
    return name if storable(name) else name.encode("utf-8", "backslashreplace").decode()


def join_conditions(word: str, parts: Sequence[str]) -> str:
    """Conditions as a balanced tree: a chain of a thousand parts would be a thousand levels for the parser."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return f"({join_conditions(word, parts[:middle])} {word} {join_conditions(word, parts[middle:])})"


QUERY_WORDS = 512  # a longer query is cut: words so far back carry no intent


def query_words(words: Iterable[str]) -> str:
    """The words of a query, each once."""
    return " ".join(list(dict.fromkeys(words))[:QUERY_WORDS])


def hit_of(row: Row, rank: int, **scores: float) -> Hit:
    vector = np.asarray(row.vector, np.float32)
    return Hit(row.passage, vector, scores, rank, row.fields.get("title", ""), dict(row.fields))


def pack(row: Row) -> str:
    """A row without its vector as JSON. Control characters are escaped, so any column of texts takes it."""
    of = row.passage
    about = [of.id, of.doc_id, of.text, of.start, of.end, of.heading, of.page, of.context, row.lead, dict(row.fields)]
    text = json.dumps(about, ensure_ascii=False, separators=(",", ":"))
    if not storable(text):
        raise StoreError("A passage or one of its fields holds half a character (a lone surrogate).")
    return text


def unpack(text: str, vector: np.ndarray) -> Row:
    about: list[Any] = json.loads(text)
    *passage, lead, fields = about
    return Row(Passage(*passage), vector, lead, fields)


def row_vector(row: Row, dim: int) -> np.ndarray:
    """The vector of a row, if it fits an index of `dim` dimensions."""
    vector = np.asarray(row.vector, np.float32)
    if vector.shape != (dim,):
        raise StoreError(
            f"A vector of shape {vector.shape} does not fit an index of {dim} dimensions: the embedder has changed. "
            "Run `assay reindex` to rebuild the index."
        )
    if not np.isfinite(vector).all():
        raise StoreError(f"The vector of passage {row.passage.id} holds a value that is not a number.")
    return vector


def query_vector(vector: np.ndarray, dim: int) -> np.ndarray:
    query = np.asarray(vector, np.float32)
    if query.shape != (dim,):
        raise StoreError(f"A query of shape {query.shape} does not fit an index of {dim} dimensions.")
    return query


def require_dimensions(held: int, dim: int) -> None:
    if held != dim:
        raise StoreError(
            f"The index holds vectors of {held} dimensions, the embedder makes {dim}: it has been changed. "
            "Set the old embedder again, or run `assay reindex` to rebuild the index."
        )
