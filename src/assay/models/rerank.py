"""The seam to a reranker, and what fills it: a second, closer look at the first few hits of a fused list.

None is needed: the default ranking has no reranker, and docs/decisions/0003-ranking.md says why. Models load when first used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np

from assay.types import Hit


class Reranker(Protocol):
    async def rerank(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        """The same hits, best first. Those looked at come first and carry the score `rerank`; the rest keep their order."""
        ...


@dataclass(frozen=True, slots=True)
class LateInteraction:
    """ColBERT-style MaxSim over the bundled model: every word of the query looks for its nearest word in the passage.

    The model was not trained for it, so the words only correct the fused score; they do not replace it.

    weight: how many of its own spreads the fused score may be moved by one spread of MaxSim
    """

    depth: int = 30
    weight: float = 0.3
    precision: str | None = None
    cache: Path | None = None

    async def rerank(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        return await asyncio.to_thread(self.reranked, query, hits)

    def reranked(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        from assay.models.minilm_tokens import token_vectors

        near = hits[: self.depth]
        if len(near) < 2:
            return reordered(hits, [hit.scores.get("fused", 0.0) for hit in near])
        words, *passages = token_vectors([query, *map(reading, near)], self.precision, self.cache)
        likeness = np.array([max_sim(words, passage) for passage in passages])
        if any("fused" not in hit.scores for hit in near):
            return reordered(hits, likeness)
        return reordered(hits, corrected(np.array([hit.scores["fused"] for hit in near]), likeness, self.weight))


@dataclass(frozen=True, slots=True)
class CrossEncoder:
    """A cross-encoder from a local folder: model.onnx (or onnx/model.onnx) and tokenizer.json, run by openvino."""

    folder: Path
    depth: int = 50
    precision: str | None = None
    cache: Path | None = None

    async def rerank(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        return await asyncio.to_thread(self.reranked, query, hits)

    def reranked(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        from assay.models.cross_encoder import pair_scores

        near = hits[: self.depth]
        scores = pair_scores(self.folder, query, [reading(hit) for hit in near], self.precision, self.cache)
        return reordered(hits, scores)


def reading(hit: Hit) -> str:
    """What a reranker reads: whose passage it is, and its words."""
    return f"{hit.title}\n{hit.passage.text}" if hit.title else hit.passage.text


def max_sim(query: np.ndarray, passage: np.ndarray) -> float:
    """The mean, over the query's tokens, of the likeness to the nearest token of the passage; rows are unit vectors."""
    return float((query @ passage.T).max(axis=1).mean()) if len(query) and len(passage) else 0.0


def corrected(scores: np.ndarray, second: np.ndarray, weight: float) -> np.ndarray:
    """Scores moved by a second opinion that is measured on another scale: spread for spread."""
    spread = float(second.std())
    return scores + weight * float(scores.std()) * (second - second.mean()) / spread if spread > 1e-9 else scores


def reordered(hits: Sequence[Hit], scores: Sequence[float] | np.ndarray) -> list[Hit]:
    """The first len(scores) hits by score, then the others as they were. Equal scores keep their order."""
    order = sorted(range(len(scores)), key=lambda place: -scores[place])
    first = [replace(hits[place], scores={**hits[place].scores, "rerank": float(scores[place])}) for place in order]
    return [*first, *hits[len(scores) :]]
