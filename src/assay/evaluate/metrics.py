"""Ranking metrics. Pure. nDCG uses linear gains, like trec_eval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence


def ndcg(ranking: Sequence[str], grades: Mapping[str, int], k: int = 10) -> float:
    gained = sum(max(0, grades.get(each, 0)) / math.log2(place + 2) for place, each in enumerate(ranking[:k]))
    best = sorted((grade for grade in grades.values() if grade > 0), reverse=True)[:k]
    ideal = sum(grade / math.log2(place + 2) for place, grade in enumerate(best))
    return gained / ideal if ideal else 0.0


def recall(ranking: Sequence[str], grades: Mapping[str, int], k: int) -> float:
    relevant = {each for each, grade in grades.items() if grade > 0}
    return len(relevant & set(ranking[:k])) / len(relevant) if relevant else 0.0


def all_found(ranking: Sequence[str], grades: Mapping[str, int], k: int) -> float:
    """1 when every relevant document is among the first k: a question that needs two is not half answered by one."""
    return float(recall(ranking, grades, k) == 1.0)


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
