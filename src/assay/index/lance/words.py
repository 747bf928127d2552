"""BM25 in memory, for tables that are small. Pure; it ranks as Lance's word index does, with the same words and constants.

A row keeps its terms as numbers: eight bytes for each term, with its CRC-32 above and how often it occurs below. Two words
with one CRC are taken for one word; among a hundred thousand words, one in forty thousand meets another.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from assay.language.terms import fold_case, stem_word, word_list

K1, B = 1.2, 0.75
LONGEST = 64  # letters; longer ones are codes and garbage


@dataclass(frozen=True, slots=True, eq=False)
class WordBlock:
    """Which rows of a block have which terms.

    terms: all terms, in order; those at `i` are in the rows `rows[starts[i] : starts[i + 1]]`, `counts` times each
    lengths: how many words each row has
    """

    terms: np.ndarray
    starts: np.ndarray
    rows: np.ndarray
    counts: np.ndarray
    lengths: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class WordWeights:
    """What a term is worth in each row of some blocks, before its rarity."""

    blocks: tuple[WordBlock, ...]
    weights: tuple[np.ndarray, ...]  # one for each of `WordBlock.rows`
    holders: tuple[np.ndarray, ...]  # how many living rows have each of `WordBlock.terms`, and 0 for any other term
    rows: int  # alive


def terms_of(text: str) -> list[str]:
    """The stems of a text's words, in order and with repetitions."""
    ignored = word_list("lance_stop_words")
    stems = (stem_word(word) for word in re.findall(r"[^\W_]+", fold_case(text)) if len(word) <= LONGEST)
    return [stem for stem in stems if stem not in ignored]


def pack_terms(text: str) -> list[int]:
    found = Counter(map(_number, terms_of(text)))
    return [term << 32 | min(count, 255) for term, count in found.items()]


def query_terms(text: str) -> np.ndarray:
    return np.array([_number(term) for term in dict.fromkeys(terms_of(text))], np.uint64)


def word_block(entries: np.ndarray, sizes: np.ndarray) -> WordBlock:
    """A block of rows whose terms are given as they are stored, one row after the other; `sizes` says how many each has."""
    owners = np.repeat(np.arange(len(sizes), dtype=np.uint64), sizes)
    return _block_of(entries | owners << 8, len(sizes))


def joined(left: WordBlock, right: WordBlock, keep: np.ndarray, more: np.ndarray) -> WordBlock:
    """One block of the kept rows of two."""
    first, second = int(np.count_nonzero(keep)), int(np.count_nonzero(more))
    return _block_of(np.concatenate([_entries(left, keep, 0), _entries(right, more, first)]), first + second)


def _block_of(entries: np.ndarray, rows: int) -> WordBlock:
    """Entries with the number of their row between term and count: 32, 24 and 8 bits."""
    entries = np.sort(entries)
    owners, counts = (entries >> 8 & 0xFFFFFF).astype(np.int32), (entries & 0xFF).astype(np.uint8)
    terms, starts = np.unique(entries >> 32, return_index=True)
    lengths = np.bincount(owners, counts, rows).astype(np.float32)
    return WordBlock(terms, np.append(starts, len(entries)), owners, counts, lengths)


def _entries(block: WordBlock, keep: np.ndarray, first: int) -> np.ndarray:
    """The entries of the kept rows, which are numbered anew, from `first` on."""
    numbers = (np.cumsum(keep) + first - 1).astype(np.uint64)
    entries = np.repeat(block.terms, np.diff(block.starts)) << 32 | numbers[block.rows] << 8 | block.counts
    return entries[keep[block.rows]]


def word_weights(blocks: Sequence[tuple[WordBlock, np.ndarray]]) -> WordWeights:
    rows = sum(int(np.count_nonzero(alive)) for _, alive in blocks)
    mean = sum(float(np.dot(each.lengths, alive)) for each, alive in blocks) / max(rows, 1)
    norms = [np.float32(K1) * (1 - B + B * each.lengths / max(mean, 1e-9)) for each, _ in blocks]
    weights = [
        np.float32(K1 + 1) * each.counts / (each.counts + norm[each.rows])
        for (each, _), norm in zip(blocks, norms, strict=True)
    ]
    holders = [
        np.add.reduceat(alive[each.rows], each.starts[:-1], dtype=np.int64)
        if len(each.terms)
        else np.empty(0, np.int64)
        for each, alive in blocks
    ]
    counted = (np.append(each, 0) for each in holders)
    return WordWeights(tuple(each for each, _ in blocks), tuple(weights), tuple(counted), rows)


def bm25(terms: np.ndarray, of: WordWeights) -> list[np.ndarray]:
    """The score of every row of every block; 0 for rows without any of the terms."""
    places = [_places(each, terms) for each in of.blocks]
    held = sum((held[place] for held, place in zip(of.holders, places, strict=True)), np.zeros(len(terms)))
    rarity = np.log(1 + (of.rows - held + 0.5) / (held + 0.5)).astype(np.float32)
    return [_bm25(*each, rarity) for each in zip(of.blocks, of.weights, places, strict=True)]


def _bm25(block: WordBlock, weights: np.ndarray, places: np.ndarray, rarity: np.ndarray) -> np.ndarray:
    found = np.flatnonzero(places < len(block.terms))
    if not len(found):
        return np.zeros(len(block.lengths))
    places = places[found]
    slices = list(map(slice, block.starts[places].tolist(), block.starts[places + 1].tolist()))
    worth = [rare * weights[some] for rare, some in zip(rarity[found], slices, strict=True)]
    rows = np.concatenate([block.rows[some] for some in slices])
    return np.bincount(rows, np.concatenate(worth), len(block.lengths))


def _places(block: WordBlock, terms: np.ndarray) -> np.ndarray:
    """Where in the block's terms each of these is; behind the last one where it is not."""
    if not len(block.terms):
        return np.zeros(len(terms), np.intp)
    at = np.searchsorted(block.terms, terms)
    return np.where(block.terms[np.minimum(at, len(block.terms) - 1)] == terms, at, len(block.terms))


def _number(term: str) -> int:
    return crc32(term.encode("utf-8", "replace"))
