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

from assay.language.terms import fold_case, stem_word

K1, B = 1.2, 0.75
LONGEST = 64  # letters; longer ones are codes and garbage
STOP_WORDS = frozenset(
    """
    a about after again against ain all am an and are aren as at be been below between both but by can couldn d did
    didn do doesn don down each few for from further had hadn has hasn have haven he her here herself him himself
    his how i if in into is isn it itself just ll m ma me mightn more most mustn my myself needn no nor not now o of
    off on or other our out over own re s same shan she should shouldn so some such t than that the their them then
    there these they this those through to too under until up ve was wasn we were weren what when where which while
    who whom will with won wouldn y you your yourself
    """.split()
)  # stems that Lance's word index leaves out


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
    """What a term is worth in each row of some blocks, before its rarity; the blocks come with their living rows."""

    blocks: tuple[tuple[WordBlock, np.ndarray], ...]
    weights: tuple[np.ndarray, ...]  # one for each of `WordBlock.rows`
    rows: int  # alive


def terms_of(text: str) -> list[str]:
    """The stems of a text's words, in order and with repetitions."""
    stems = (stem_word(word) for word in re.findall(r"[^\W_]+", fold_case(text)) if len(word) <= LONGEST)
    return [stem for stem in stems if stem not in STOP_WORDS]


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
    return WordWeights(tuple(blocks), tuple(weights), rows)


def bm25(terms: np.ndarray, of: WordWeights) -> list[np.ndarray]:
    """The score of every row of every block; 0 for rows without any of the terms."""
    scores = [np.zeros(len(each.lengths), np.float32) for each, _ in of.blocks]
    places = [_places(each, terms) for each, _ in of.blocks]
    for at in range(len(terms)):
        rows = [each.rows[place[at]] for (each, _), place in zip(of.blocks, places, strict=True)]
        holders = sum(int(np.count_nonzero(alive[own])) for (_, alive), own in zip(of.blocks, rows, strict=True))
        rarity = np.float32(np.log(1 + (of.rows - holders + 0.5) / (holders + 0.5)))
        for score, own, weights, place in zip(scores, rows, of.weights, places, strict=True):
            score[own] += rarity * weights[place[at]]
    return scores


def _places(block: WordBlock, terms: np.ndarray) -> list[slice]:
    """Where in `rows` each of these terms is."""
    if not len(block.terms):
        return [slice(0)] * len(terms)
    at = np.minimum(np.searchsorted(block.terms, terms), len(block.terms) - 1)
    ends = np.where(block.terms[at] == terms, block.starts[at + 1], block.starts[at])
    return [slice(*place) for place in zip(block.starts[at].tolist(), ends.tolist(), strict=True)]


def _number(term: str) -> int:
    return crc32(term.encode("utf-8", "replace"))
