"""Selects the insights to compare: those that answer the same question, and those closest in meaning. Pure.

The partners per insight and per document are capped, so the number of pairs grows linearly with the documents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assay.core.account import Pair, PairReason

if TYPE_CHECKING:
    import numpy as np

OF_INSIGHT = 3  # pairs per insight
OF_DOCUMENTS = 3  # pairs per two documents
PARTNERS = 6  # documents that a document is compared with
NEAREST = 2  # insights of other questions that an insight is compared with
FLOOR = 0.35  # cosine below which two insights are unrelated
ROWS = 256  # rows of the similarity matrix in memory at a time


@dataclass(frozen=True, slots=True)
class ComparableInsight:
    """An insight as input of the pair selection. One that rests on an `odd` passage (it looks like an instruction)
    is paired only if its document would otherwise have no pair, so that it displaces no other."""

    id: str
    question: str
    document: int  # position in the brief
    words: str
    odd: bool = False


def count_possible(items: Sequence[ComparableInsight]) -> int:
    """The number of pairs of insights of different documents."""
    own = Counter(item.document for item in items)
    return (len(items) ** 2 - sum(count**2 for count in own.values())) // 2


def choose_pairs(items: Sequence[ComparableInsight], vectors: np.ndarray) -> tuple[Pair, ...]:
    """The pairs to compare, ordered by document, the earlier one on the left. `vectors` are unit rows, one per item."""
    kept = _PairSelection(items)
    plain = [place for place, item in enumerate(items) if not item.odd]
    by_question: dict[str, list[int]] = {}
    for place in plain:
        by_question.setdefault(items[place].question, []).append(place)
    proposed = [
        each for group in by_question.values() for each in _nearest(items, vectors, group, group, OF_INSIGHT, -1.0)
    ]
    for near, left, right in sorted(set(proposed), key=_order):
        kept.add(left, right, near, PairReason.same)
    for near, left, right in sorted(set(_nearest(items, vectors, plain, plain, NEAREST, FLOOR)), key=_order):
        kept.add(left, right, near, PairReason.near)
    _pair_remaining_documents(kept, vectors, plain)
    ordered = sorted(kept.pairs, key=lambda pair: (items[pair[0]].document, items[pair[1]].document, pair))
    return tuple(Pair(items[a].id, items[b].id, *kept.pairs[a, b]) for a, b in ordered)


def describe_choice(pairs: Sequence[Pair], count_possible: int, documents: int) -> str:
    """How the pairs were selected, as text."""
    if not pairs:
        return "Nothing was compared: fewer than two documents have an insight."
    counts = Counter(pair.why for pair in pairs)
    parts = [
        f"{counts[PairReason.same]:,} that answer the same question",
        f"{counts[PairReason.near]:,} that are near each other in meaning",
    ]
    if counts[PairReason.last]:
        parts.append(f"{counts[PairReason.last]:,} so that no document is left out")
    return (
        f"Of {count_possible:,} possible pairs of insights from {documents:,} documents, {len(pairs):,} were compared: "
        f"{', '.join(parts[:-1])} and {parts[-1]}. An insight is in at most {OF_INSIGHT} pairs, two documents share at most "
        f"{OF_DOCUMENTS}, and a document is compared with at most {PARTNERS} others, unless it would be left out."
    )


Near = tuple[float, int, int]  # similarity, insight of the earlier document, insight of the later document


def _order(each: Near) -> tuple[float, int, int]:
    return (-each[0], each[1], each[2])


@dataclass
class _PairSelection:
    """The pairs selected so far, and how often each insight, document and pair of documents occurs in them."""

    items: Sequence[ComparableInsight]
    pairs: dict[tuple[int, int], tuple[PairReason, float]] = field(default_factory=dict)
    used: Counter[int] = field(default_factory=Counter)
    couples: Counter[tuple[int, int]] = field(default_factory=Counter)
    partners: Counter[int] = field(default_factory=Counter)
    seen_texts: set[tuple[int, int, str, str]] = field(default_factory=set)

    def add(self, left: int, right: int, near: float, why: PairReason, *, always: bool = False) -> None:
        one, other = self.items[left], self.items[right]
        couple = one.document, other.document
        if (left, right) in self.pairs or not (always or self._free(left, right)):
            return
        if (key := (*couple, one.words, other.words)) in self.seen_texts:
            return  # the same two quotations already form a pair for another question
        self.pairs[left, right] = why, near
        self.seen_texts.add(key)
        self.used.update((left, right))
        self.couples[couple] += 1
        if self.couples[couple] == 1:
            self.partners.update(couple)

    def _free(self, left: int, right: int) -> bool:
        couple = self.items[left].document, self.items[right].document
        known = self.couples[couple]
        return (
            max(self.used[left], self.used[right]) < OF_INSIGHT
            and known < OF_DOCUMENTS
            and (known > 0 or max(self.partners[place] for place in couple) < PARTNERS)
        )


def _nearest(
    items: Sequence[ComparableInsight],
    vectors: np.ndarray,
    rows: Sequence[int],
    among: Sequence[int],
    count: int,
    floor: float,
) -> Iterator[Near]:
    """For each of `rows`, the most similar items of `among` in other documents. Computed in blocks to limit memory."""
    import numpy as np

    columns = np.asarray(among, dtype=int)
    documents = np.asarray([items[place].document for place in among])
    for at in range(0, len(rows), ROWS):
        block = np.asarray(rows[at : at + ROWS], dtype=int)
        table = np.round(vectors[block] @ vectors[columns].T, 4)
        own = np.asarray([items[place].document for place in block])
        table[own[:, None] == documents[None, :]] = -2.0
        best = np.argsort(-table, axis=1, kind="stable")[:, :count]
        for line, places in enumerate(best):
            for place in places:
                if (near := round(float(table[line, place]), 4)) > max(floor, -1.5):
                    left, right = int(block[line]), int(columns[place])
                    turned = items[left].document > items[right].document
                    yield (near, right, left) if turned else (near, left, right)


def _pair_remaining_documents(kept: _PairSelection, vectors: np.ndarray, plain: Sequence[int]) -> None:
    """Pair each document that has an insight but no pair with its most similar one, preferably with a plain insight."""
    items = kept.items
    everyone = range(len(items))
    owned: dict[int, list[int]] = {}
    for place, item in enumerate(items):
        owned.setdefault(item.document, []).append(place)
    for document, own in sorted(owned.items()):
        if kept.partners[document] or len(owned) == 1:
            continue
        others = plain if any(items[place].document != document for place in plain) else everyone
        near, left, right = min(_nearest(items, vectors, own, others, 1, -1.5), key=_order)
        kept.add(left, right, near, PairReason.last, always=True)
