"""Channels → one ranking: pure functions on hits, no engine and no model. `retrieve.py` calls them between two searches.

What each part is worth, and what was tried and left out, is in docs/decisions/0003-ranking.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from assay.core.types import Hit

RANK_OFFSET = 60  # of reciprocal-rank fusion: how little the very first places stand out


@dataclass(frozen=True, slots=True)
class Ranking:
    """How channels become one list. The defaults were measured, and each lies on a plateau: small changes change nothing.

    by: `scores` weighs words and meaning as they are; `minmax` stretches both first; `ranks` looks at places only
    lexical: the share of the words; the rest is meaning
    feedback: how far the query moves towards its own best hits; 0 leaves it where it is (only with `scores`)
    feedback_hits: how many of them, each from another document
    feedback_spread: a hit that scores this much less than the best counts 1/e as much
    cohesion: no feedback when the best hits are less alike than the first number, all of it from the second on
    """

    by: Literal["scores", "minmax", "ranks"] = "scores"
    lexical: float = 0.25
    feedback: float = 0.8
    feedback_hits: int = 5
    feedback_spread: float = 0.05
    cohesion: tuple[float, float] = (0.7, 1.1)


@dataclass(frozen=True, slots=True)
class Pool:
    """Every hit of every channel once, ordered by passage id, with what each channel says about it."""

    hits: tuple[Hit, ...]
    vectors: np.ndarray  # one unit row a hit
    cosine: np.ndarray  # known for all: hits carry their vectors
    lexical: np.ndarray  # 0 where the words did not find it
    found: Mapping[str, np.ndarray]  # which hits each channel found


def fuse(channels: Mapping[str, Sequence[Hit]], query_vector: np.ndarray, ranking: Ranking) -> list[Hit]:
    """One list, best first, each passage once; ties break on passage id. Score channel `fused` is added."""
    pool = pooled(channels, query_vector)
    if not pool.hits:
        return []
    match ranking.by:
        case "scores":
            scores = blend(pool, ranking.lexical)
            moved = refined(pool, scores, query_vector, ranking)
            scores = scores + (1 - ranking.lexical) * (pool.vectors @ moved - pool.cosine)
        case "minmax":
            words = stretched(pool.lexical, pool.found["lexical"])
            meaning = stretched(pool.cosine, pool.found["dense"])
            scores = ranking.lexical * words + (1 - ranking.lexical) * meaning
        case "ranks":
            scores = reciprocal(pool.lexical, pool.found["lexical"]) + reciprocal(pool.cosine, pool.found["dense"])
    order = np.argsort(-scores, kind="stable")  # the pool is ordered by id, so ties are
    return [_scored(pool, int(place), float(scores[place])) for place in order]


def pooled(channels: Mapping[str, Sequence[Hit]], query_vector: np.ndarray) -> Pool:
    """The channels' hits side by side."""
    by_id = {hit.passage.id: hit for hits in channels.values() for hit in hits}
    hits = tuple(by_id[id] for id in sorted(by_id))
    place = {hit.passage.id: at for at, hit in enumerate(hits)}
    found = {name: np.zeros(len(hits), bool) for name in ("dense", "lexical")}
    for name in found:
        found[name][[place[hit.passage.id] for hit in channels.get(name, ())]] = True
    lexical = np.zeros(len(hits), np.float32)
    for hit in channels.get("lexical", ()):
        lexical[place[hit.passage.id]] = hit.scores["lexical"]
    vectors = np.stack([hit.vector for hit in hits]) if hits else np.zeros((0, query_vector.size), np.float32)
    return Pool(hits, vectors, vectors @ query_vector, lexical, found)


def blend(pool: Pool, share: float) -> np.ndarray:
    """Words against the best that words did for this query; meaning as it is.

    Cosine is not stretched: how near the nearest passage is says how far meaning is to be trusted, and stretching
    throws that away. A passage that the words did not find scores nothing for them, not the least that was found.
    """
    best = float(pool.lexical.max(initial=0.0))
    words = pool.lexical / best if best > 0 else pool.lexical
    return share * words + (1 - share) * pool.cosine


def refined(pool: Pool, scores: np.ndarray, query_vector: np.ndarray, ranking: Ranking) -> np.ndarray:
    """The query moved towards its best hits (Rocchio), as far as these belong together; a unit vector.

    Hits on one subject confirm each other, and their middle says it better than the query. Hits that have nothing in
    common but the query (the two ends of a multi-hop question) have no middle worth going to.
    """
    best = _first_of_each_document(pool, scores, ranking.feedback_hits)
    strength = ranking.feedback * _cohesion(pool, best, ranking.cohesion)
    if strength <= 0:
        return query_vector
    weights = np.exp((scores[best] - scores[best[0]]) / ranking.feedback_spread)
    return _unit(query_vector + strength * _unit(weights @ pool.vectors[best]))


def stretched(scores: np.ndarray, found: np.ndarray) -> np.ndarray:
    """From 0 for the last that was found to 1 for the first; 0 for what was not found."""
    if not found.any():
        return np.zeros_like(scores)
    low, high = scores[found].min(), scores[found].max()
    return np.where(found, (scores - low) / (high - low) if high > low else 1.0, 0.0)


def reciprocal(scores: np.ndarray, found: np.ndarray) -> np.ndarray:
    """1 / (60 + place) for what was found, 0 for the rest."""
    places = np.empty(len(scores))
    places[np.argsort(-np.where(found, scores, -np.inf), kind="stable")] = np.arange(1, len(scores) + 1)
    return np.where(found, 1.0 / (RANK_OFFSET + places), 0.0)


def diverse(hits: Sequence[Hit], k: int, amount: float) -> list[Hit]:
    """The k hits that maximal marginal relevance picks, in its order.

    amount: 0 keeps the order; towards 1 a hit that resembles one already picked counts ever less
    """
    if amount <= 0 or len(hits) <= 1:
        return list(hits[:k])
    vectors = np.stack([hit.vector for hit in hits])
    worth = (1 - amount) * _relevance(hits)
    alike = np.zeros(len(hits))  # to the nearest already picked
    left = np.ones(len(hits), bool)
    picked: list[int] = []
    while len(picked) < min(k, len(hits)):
        place = int(np.argmax(np.where(left, worth - amount * alike, -np.inf)))  # the first of equals: the better one
        picked.append(place)
        left[place] = False
        alike = np.maximum(alike, vectors @ vectors[place])
    return [hits[place] for place in picked]


def capped(hits: Sequence[Hit], most: int) -> list[Hit]:
    """In the same order, at most so many of one document; 0 is no cap."""
    counts: dict[str, int] = {}
    kept: list[Hit] = []
    for hit in hits:
        counts[hit.passage.doc_id] = counts.get(hit.passage.doc_id, 0) + 1
        if not most or counts[hit.passage.doc_id] <= most:
            kept.append(hit)
    return kept


def _scored(pool: Pool, place: int, score: float) -> Hit:
    hit = pool.hits[place]
    scores = {**hit.scores, "dense": float(pool.cosine[place]), "fused": score}
    if pool.found["lexical"][place]:
        scores["lexical"] = float(pool.lexical[place])
    return replace(hit, scores=scores)


def _first_of_each_document(pool: Pool, scores: np.ndarray, most: int) -> list[int]:
    # Passages of one document overlap: five of them are one opinion, not five.
    places: dict[str, int] = {}
    for place in np.argsort(-scores, kind="stable"):
        if len(places) >= most:
            break
        places.setdefault(pool.hits[place].passage.doc_id, int(place))
    return list(places.values())


def _cohesion(pool: Pool, places: Sequence[int], bounds: tuple[float, float]) -> float:
    """0 to 1: how alike these hits are, measured by how alike they are to the query."""
    if len(places) < 2:
        return 0.0
    near = pool.vectors[places]
    alike = near @ near.T
    between = (alike.sum() - np.trace(alike)) / (len(places) * (len(places) - 1))
    to_query = float(pool.cosine[places].mean())
    low, high = bounds
    return float(np.clip((between / to_query - low) / (high - low), 0.0, 1.0)) if to_query > 0 else 0.0


def _relevance(hits: Sequence[Hit]) -> np.ndarray:
    """1 for the best, 0 for the last; by the score that the hits were last ordered by, else by place."""
    places = np.linspace(1.0, 0.0, len(hits))
    for channel in ("rerank", "fused"):
        if all(channel in hit.scores for hit in hits):
            scores = np.array([hit.scores[channel] for hit in hits])
            return stretched(scores, np.ones(len(hits), bool)) if np.all(np.diff(scores) <= 0) else places
    return places


def _unit(vector: np.ndarray) -> np.ndarray:
    return vector / max(float(np.linalg.norm(vector)), 1e-12)
