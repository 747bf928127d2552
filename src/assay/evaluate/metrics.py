"""Ranking metrics, means and their intervals. Pure. nDCG uses linear gains, like trec_eval."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

SAMPLES, SEED = 1000, 7  # of the bootstrap
BLOCK = 1_000_000  # values drawn at once
Unit = TypeVar("Unit")
Interval = tuple[float, float]


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


def means(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Each metric over the rows that have it."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: mean([row[name] for row in rows if name in row]) for name in names}


def intervals(units: Sequence[Unit], figures: Callable[[Sequence[Unit]], Mapping[str, float]]) -> dict[str, Interval]:
    """The 95 % bootstrap interval of each figure: units are drawn with replacement, and the figures computed of those."""
    if not units:
        return {}
    generator = random.Random(SEED)
    drawn = [figures(generator.choices(units, k=len(units))) for _ in range(SAMPLES)]
    return {name: _middle(sorted(each[name] for each in drawn if name in each)) for name in figures(units)}


def mean_interval(values: Sequence[float]) -> Interval:
    """The 95 % bootstrap interval of a mean: what `intervals` does, for one figure and many values at once."""
    import numpy as np

    drawing, of = np.random.default_rng(SEED), np.asarray(values, float)
    block = max(1, BLOCK // len(of))
    sizes = [min(block, SAMPLES - done) for done in range(0, SAMPLES, block)]
    means = [of[drawing.integers(0, len(of), (size, len(of)))].mean(axis=1) for size in sizes]
    return _middle(np.sort(np.concatenate(means)).tolist())


def _middle(values: Sequence[float]) -> Interval:
    return values[int(0.025 * len(values))], values[max(0, int(0.975 * len(values)) - 1)]


def spread(cases: Sequence[Unit], limit: int) -> Sequence[Unit]:
    """So many of the cases, evenly spread over all."""
    return [cases[place * len(cases) // limit] for place in range(limit)] if 0 < limit < len(cases) else cases


def with_intervals(rows: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """The means of all metrics, and their intervals under `intervals`."""
    return {**means(rows), "intervals": intervals(rows, means), "n": len(rows)}
