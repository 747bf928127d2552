"""Exact search in memory over a table's vectors, fields and, if they fit, terms and texts. Pure; `read.py` loads them.

A snapshot is a few immutable blocks. The snapshot of a newer version shares the blocks of the last one, with deleted rows
masked out, and adds a block for the new rows, so an update costs what changed, not the size of the table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from assay.index.filters import And, Contains, Filter, In, Not, Or, matches
from assay.index.lance.words import WordBlock, WordWeights, bm25, joined, word_weights
from assay.index.protocol import Vectors

SPARSE = 0.25  # below this share of matching rows, gathering them is cheaper than multiplying all
NARROW = 1e-5  # wider than the rounding error of a float32 product, so that no tie is missed
MASKS = 32  # filters cached per snapshot, including the access filters


@dataclass(frozen=True, slots=True)
class FieldColumn:
    """One field of every row as codes of its distinct values; −1 if a row does not have the field."""

    codes: np.ndarray
    values: Mapping[str, int]  # with their codes, in the order of these


@dataclass(frozen=True, slots=True, eq=False)
class VectorBlock:
    """Rows ordered by row id. `alive` says which of them still belong to the table."""

    row_ids: np.ndarray
    ids: np.ndarray
    doc_ids: np.ndarray  # empty for a row without
    vectors: np.ndarray
    lengths: np.ndarray  # of the vectors, in double precision; infinite for a vector of zeros
    columns: Mapping[str, FieldColumn]
    alive: np.ndarray
    texts: np.ndarray | None = None  # of each living row, as bytes; None if they exceed the limit
    text_bytes: int = 0  # of all texts, including those of rows deleted since
    words: WordBlock | None = None  # None if there are too many rows

    @property
    def living(self) -> int:
        return int(np.count_nonzero(self.alive))


class RowMask(NamedTuple):
    """Which rows of a block are alive and satisfy a filter, and how many."""

    kept: np.ndarray
    wanted: int


class LocatedRow(NamedTuple):
    id: str
    vector: np.ndarray
    text: bytes | None


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """One version of a table in memory."""

    version: int
    blocks: tuple[VectorBlock, ...] = ()
    _masks: dict[Filter, tuple[RowMask, ...]] = field(default_factory=dict)
    _weights: list[WordWeights] = field(default_factory=list)  # made by the first search by words

    @property
    def rows(self) -> int:
        return sum(len(each.row_ids) for each in self.blocks)

    @property
    def has_texts(self) -> bool:
        return all(each.texts is not None for each in self.blocks)

    @property
    def has_words(self) -> bool:
        return all(each.words is not None for each in self.blocks)

    @property
    def text_bytes(self) -> int:
        return sum(each.text_bytes for each in self.blocks)

    def masks(self, where: Filter) -> tuple[RowMask, ...]:
        """The rows of each block that satisfy a filter. Cached, because the same filters come with every search; filters
        that are equal have the same meaning, even if their numbers differ in type.
        """
        known = self._masks.get(where)
        if known is None:
            known = tuple(_mask(each, where) for each in self.blocks)
            if len(self._masks) >= MASKS:
                self._masks.clear()
            self._masks[where] = known
        return known

    @property
    def word_weights(self) -> WordWeights:
        if not self._weights:
            self._weights.append(word_weights([(each.words, each.alive) for each in self.blocks if each.words]))
        return self._weights[0]

    def without(self, **parts: object) -> Snapshot:
        """The same rows, with these parts of their blocks emptied."""
        return Snapshot(self.version, tuple(replace(each, **parts) for each in self.blocks))

    def located(self, row_ids: Sequence[int]) -> dict[int, LocatedRow]:
        """The known data of those of these rows that are alive."""
        wanted = np.asarray(row_ids, np.uint64)
        found: dict[int, LocatedRow] = {}
        for block in self.blocks:
            at = np.minimum(np.searchsorted(block.row_ids, wanted), len(block.row_ids) - 1)
            at = at[(block.row_ids[at] == wanted) & block.alive[at]]
            rows = zip(block.ids[at].tolist(), block.vectors[at], _texts(block, at), strict=True)
            found.update(zip(block.row_ids[at].tolist(), map(LocatedRow._make, rows), strict=True))
        return found


class RankedRows(NamedTuple):
    """Rows that a search has found, best first, as columns: a search finds a hundred, and columns are quickly made."""

    scores: Sequence[float]
    ids: Sequence[str]
    row_ids: Sequence[int]
    doc_ids: Sequence[str]  # empty for a row without
    vectors: Vectors
    texts: Sequence[bytes | None]

    def take(self, places: Sequence[int]) -> RankedRows:
        return RankedRows._make([each[place] for place in places] for each in self)


NO_ROWS = RankedRows((), (), (), (), (), ())


def column(values: Sequence[str | None]) -> FieldColumn:
    known: dict[str, int] = {}
    codes = (-1 if value is None else known.setdefault(value, len(known)) for value in values)
    return FieldColumn(np.fromiter(codes, np.int32, len(values)), known)


def block(
    row_ids: np.ndarray,
    ids: np.ndarray,
    vectors: np.ndarray,
    columns: Mapping[str, FieldColumn],
    texts: np.ndarray | None = None,
    words: WordBlock | None = None,
) -> VectorBlock:
    """A block of living rows, which come sorted by row id."""
    size = 0 if texts is None else sum(map(len, texts))
    alive = np.ones(len(row_ids), bool)
    of = columns.get("doc")  # the last entry is what code −1 points to
    doc_ids = np.full(len(row_ids), "", object) if of is None else np.array([*of.values, ""], object)[of.codes]
    return VectorBlock(row_ids, ids, doc_ids, vectors, _lengths(vectors), columns, alive, texts, size, words)


def _lengths(vectors: np.ndarray) -> np.ndarray:
    parts = (vectors[start : start + 4096].astype(np.float64) for start in range(0, len(vectors), 4096))
    lengths = np.concatenate([np.empty(0), *(np.sqrt(np.vecdot(part, part)) for part in parts)])
    lengths[lengths == 0] = np.inf
    return lengths


def advance(old: Snapshot, version: int, living: np.ndarray, fresh: VectorBlock | None) -> Snapshot:
    """The snapshot of a newer version: `living` are all its row ids in order, `fresh` the rows that `old` did not have."""
    blocks = [_survivors(each, np.isin(each.row_ids, living, assume_unique=True)) for each in old.blocks]
    blocks = [each for each in blocks if each.living]
    if fresh is not None and len(fresh.row_ids):
        blocks.append(fresh)
    # Merging neighbours of similar size keeps the number of blocks logarithmic and bounds how often each row is copied.
    while len(blocks) > 1 and len(blocks[-1].row_ids) * 2 >= len(blocks[-2].row_ids):
        blocks[-2:] = [_merged(blocks[-2], blocks[-1])]
    return Snapshot(version, tuple(blocks))


def missing(old: Snapshot, living: np.ndarray) -> np.ndarray:
    """The living row ids that a snapshot does not contain yet."""
    for each in old.blocks:
        living = living[~np.isin(living, each.row_ids, assume_unique=True)]
    return living


def nearest(snapshot: Snapshot, query: np.ndarray, k: int, where: Filter) -> RankedRows:
    """The k rows nearest by cosine, best first; ties break on passage id."""
    pairs = zip(snapshot.blocks, snapshot.masks(where), strict=True)
    found = [_nearest(each, query, k, mask) for each, mask in pairs if mask.wanted and k > 0]
    return _merge(found, k)


def best_by_words(snapshot: Snapshot, terms: np.ndarray, k: int, where: Filter) -> RankedRows:
    """The k best rows by BM25, best first; ties break on passage id. Only for a snapshot that has words."""
    found: list[RankedRows] = []
    scores = bm25(terms, snapshot.word_weights)
    for each, score, (kept, wanted) in zip(snapshot.blocks, scores, snapshot.masks(where), strict=True):
        if wanted < len(kept):
            score *= kept
        least = _kth_best(score, k) if k < len(score) else 0.0
        rows = (score >= least if least > 0 else score).nonzero()[0]
        found.append(_ranked(each, rows, score[rows], k))
    return _merge(found, k)


def holds(where: Filter, block: VectorBlock) -> np.ndarray:
    """Which rows of a block satisfy a filter. Each distinct value is evaluated by `filters.matches` itself."""
    size = len(block.row_ids)
    match where:
        case And(parts):
            kept = np.ones(size, bool)
            for part in parts:
                kept &= holds(part, block)
            return kept
        case Or(parts):
            kept = np.zeros(size, bool)
            for part in parts:
                kept |= holds(part, block)
            return kept
        case Not(part):
            return ~holds(part, block)
        case _:
            col = block.columns.get(where.field)
            return np.full(size, matches(where, {})) if col is None else _verdicts(where, col)[col.codes]


def _verdicts(where: In | Contains, col: FieldColumn) -> np.ndarray:
    """The filter's result for each distinct value, and at the end, where code −1 points, for a missing one."""
    if isinstance(where, In):
        verdicts = np.zeros(len(col.values) + 1, bool)
        verdicts[[col.values[value] for value in where.values if value in col.values]] = True
        return verdicts
    found = [matches(where, {where.field: value}) for value in col.values]
    return np.array([*found, matches(where, {})], bool)


def _mask(block: VectorBlock, where: Filter) -> RowMask:
    kept = block.alive if where == And() else block.alive & holds(where, block)
    return RowMask(kept, int(np.count_nonzero(kept)))


def _nearest(block: VectorBlock, query: np.ndarray, k: int, mask: RowMask) -> RankedRows:
    kept, wanted = mask
    exact = query.astype(np.float64)
    length = math.sqrt(exact @ exact)
    unit = (query / length if length else query).astype(np.float32)
    if wanted < SPARSE * len(kept):
        rows = np.flatnonzero(kept)
        scores = np.vecdot(block.vectors[rows], unit) / block.lengths[rows]
    else:
        rows = None
        # Not `@`: BLAS would use threads that wait for each other on a busy machine (0.7 → 16 ms at 10k rows).
        scores = np.einsum("ij,j->i", block.vectors, unit)
        scores /= block.lengths.astype(np.float32)
        if wanted < len(kept):
            scores[~kept] = -np.inf
    least = _kth_best(scores, k) if k < wanted else -2.0
    close = (scores >= least - NARROW).nonzero()[0]
    rows = close if rows is None else rows[close]
    # Rounding depends on the position in the matrix, so equal vectors might not tie: score the few candidates again, exactly.
    parts = (rows[start : start + 4096] for start in range(0, len(rows), 4096))
    products = [np.vecdot(block.vectors.take(part, 0).astype(np.float64), exact) for part in parts]
    product = products[0] if len(products) == 1 else np.concatenate([np.empty(0), *products])
    return _ranked(block, rows, product / (block.lengths[rows] * (length or np.inf)), k)


def _kth_best(scores: np.ndarray, k: int) -> float:
    ordered = scores.copy()
    ordered.partition(len(ordered) - k)
    return float(ordered[len(ordered) - k])


def _ranked(block: VectorBlock, rows: np.ndarray, scores: np.ndarray, k: int) -> RankedRows:
    """The k best of some rows, best first; ties break on passage id."""
    order = (-scores).argsort()
    ranked = scores[order]
    if (ranked[1:] == ranked[:-1]).any():
        by_id = np.array(sorted(range(len(rows)), key=block.ids[rows].tolist().__getitem__), np.intp)
        order = by_id[np.argsort(-scores[by_id], kind="stable")]
    order = order[:k]
    best = rows[order]
    ids, row_ids = block.ids[best].tolist(), block.row_ids[best].tolist()
    vectors, texts = block.vectors.take(best, 0), _texts(block, best)
    return RankedRows(ranked[:k].tolist(), ids, row_ids, block.doc_ids[best].tolist(), vectors, texts)


def _merge(found: Sequence[RankedRows], k: int) -> RankedRows:
    if len(found) == 1:
        return found[0]
    rows = RankedRows._make(list(chain.from_iterable(each)) for each in zip(*found, strict=True)) if found else NO_ROWS
    return rows.take(sorted(range(len(rows.ids)), key=lambda at: (-rows.scores[at], rows.ids[at]))[:k])


def _texts(block: VectorBlock, rows: np.ndarray) -> Sequence[bytes | None]:
    return [None] * len(rows) if block.texts is None else block.texts[rows].tolist()


def _survivors(block: VectorBlock, alive: np.ndarray) -> VectorBlock:
    """The block with fewer rows alive, and without the texts of deleted rows."""
    texts = block.texts
    if texts is not None and not alive.all():
        texts = texts.copy()
        texts[~alive] = None
    return replace(block, alive=alive, texts=texts)


def _merged(left: VectorBlock, right: VectorBlock) -> VectorBlock:
    """One block of the living rows of two. The order is kept because a table only ever adds higher row ids."""
    keep, more = left.alive, right.alive
    columns = {
        name: _joined(left.columns.get(name), right.columns.get(name), keep, more)
        for name in dict.fromkeys([*left.columns, *right.columns])
    }
    return block(
        np.concatenate([left.row_ids[keep], right.row_ids[more]]),
        np.concatenate([left.ids[keep], right.ids[more]]),
        np.concatenate([left.vectors[keep], right.vectors[more]]),
        columns,
        None if left.texts is None or right.texts is None else np.concatenate([left.texts[keep], right.texts[more]]),
        None if left.words is None or right.words is None else joined(left.words, right.words, keep, more),
    )


def _joined(left: FieldColumn | None, right: FieldColumn | None, keep: np.ndarray, more: np.ndarray) -> FieldColumn:
    known = dict(left.values) if left else {}
    first = left.codes[keep] if left else np.full(np.count_nonzero(keep), -1, np.int32)
    second = np.full(np.count_nonzero(more), -1, np.int32)
    if right:
        codes = [known.setdefault(value, len(known)) for value in right.values]
        second = np.array([*codes, -1], np.int32)[right.codes[more]]  # the last entry maps code −1
    return FieldColumn(np.concatenate([first, second]), known)
