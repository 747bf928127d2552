"""Splits many documents into groups that are planned together, by the meaning of their points. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


def groups(vectors: np.ndarray, most: int) -> list[tuple[int, ...]]:
    """Split rows into groups of similar size, at most `most` each: repeatedly halved along the direction of greatest
    variance, at the widest gap near the middle. Deterministic."""
    import numpy as np

    def halved(rows: list[int]) -> list[tuple[int, ...]]:
        if len(rows) <= most or len(rows) < 4:
            return [tuple(sorted(rows))]
        own = vectors[rows].astype(np.float64)
        _, _, axes = np.linalg.svd(own - own.mean(axis=0), full_matrices=False)
        along = np.round((own - own.mean(axis=0)) @ axes[0], 6)  # smaller differences are noise
        along = along if along[0] <= 0 else -along
        order = sorted(range(len(rows)), key=lambda place: (along[place], rows[place]))
        near = range(max(1, -(-3 * len(rows) // 10)), 7 * len(rows) // 10 + 1)
        cut = max(near, key=lambda at: (along[order[at]] - along[order[at - 1]], -abs(2 * at - len(rows))))
        first, second = ([rows[place] for place in half] for half in (order[:cut], order[cut:]))
        return halved(first) + halved(second)

    return halved(list(range(len(vectors))))
