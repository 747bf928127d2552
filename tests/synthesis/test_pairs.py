"""Which insights are compared: few, of different documents, and no document left out."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np

from assay.core.account import PairReason
from assay.synthesis.relating import pairs
from assay.synthesis.relating.pairs import OF_DOCUMENTS, OF_INSIGHT, PARTNERS, ComparableInsight


def library(documents: int, each: int = 8) -> tuple[list[ComparableInsight], np.ndarray]:
    """Insights in a space where every one has some that are near, three documents to a question."""
    random = np.random.default_rng(7)
    items = [
        ComparableInsight(f"{doc} {n}", f"q{(doc + n * documents) // 3}", doc, f"words {doc} {n}")
        for doc in range(documents)
        for n in range(each)
    ]
    centres = random.standard_normal((documents, 32))
    rows = centres[random.integers(0, documents, len(items))] + 0.5 * random.standard_normal((len(items), 32))
    return items, rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_pairs_and_requests_grow_with_the_documents_and_not_with_their_square():
    counts: list[int] = []
    for size in (10, 20, 40, 80):
        items, vectors = library(size)
        found = pairs.choose_pairs(items, vectors)
        by_id = {item.id: item for item in items}
        couples = Counter((by_id[pair.left].document, by_id[pair.right].document) for pair in found)
        used = Counter(id for pair in found for id in (pair.left, pair.right))
        partners = Counter(doc for couple in couples for doc in couple)
        assert all(left < right for left, right in couples)
        assert max(couples.values()) <= OF_DOCUMENTS and max(partners.values()) <= PARTNERS + 1
        assert max(used.values()) <= OF_INSIGHT + 1 and len(partners) == size
        counts.append(len(couples))
    assert all(later <= 2.2 * earlier for earlier, later in pairwise(counts))
    assert counts[-1] <= 80 * PARTNERS // 2 + 80


def test_a_document_that_is_near_to_nothing_has_a_pair_all_the_same():
    items = [
        ComparableInsight("1", "q1", 0, "one"),
        ComparableInsight("2", "q1", 1, "two"),
        ComparableInsight("3", "q2", 2, "three"),
    ]
    found = pairs.choose_pairs(items, np.eye(3))
    assert [(pair.left, pair.right, pair.why) for pair in found] == [
        ("1", "2", PairReason.same),
        ("1", "3", PairReason.last),
    ]


def test_the_same_two_quotations_are_compared_once_whatever_they_answer():
    items = [ComparableInsight(f"q{q}-{doc}", f"q{q}", doc, f"words of {doc}") for q in (1, 2) for doc in (0, 1)]
    assert len(pairs.choose_pairs(items, np.ones((4, 1)))) == 1
