"""Fuses channels into one ranking: pure functions on hits, no engine and no model. Called by `retrieve.py`.

docs/decisions/0003-ranking.md has the effect of each part, and what was tried and left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from assay.core.types import Hit
from assay.index.protocol import HitList, hit_list, pick

NO_PRIORS: Mapping[str, float] = {}


@dataclass(frozen=True, slots=True)
class Ranking:
    """How channels become one list. The defaults were measured, and each lies on a plateau: small changes have no effect.

    lexical: the weight of the lexical score; the rest is the dense score's
    feedback: how far the query vector moves towards its best hits; 0 for none
    feedback_hits: how many hits to use, each from another document
    feedback_spread: a hit that scores this much less than the best counts 1/e as much
    cohesion: no feedback if the best hits are less similar than the first number, full feedback from the second on
    """

    lexical: float = 0.25
    feedback: float = 0.8
    feedback_hits: int = 5
    feedback_spread: float = 0.05
    cohesion: tuple[float, float] = (0.9, 1.3)


@dataclass(frozen=True, slots=True)
class Pool:
    """Every hit of every channel once, ordered by passage id, with its score in each channel."""

    hits: HitList
    vectors: np.ndarray  # one unit row per hit
    cosine: np.ndarray  # known for all hits, because they carry their vectors
    meaning: np.ndarray  # the same, with the sentences of the query counted
    lexical: np.ndarray  # 0 if the lexical channel did not find it
    worded: np.ndarray  # which hits the lexical channel found


def fuse(
    channels: Mapping[str, Sequence[Hit]],
    query_vector: np.ndarray,
    ranking: Ranking,
    priors: Mapping[str, float] = NO_PRIORS,
    sentences: Sequence[np.ndarray] = (),
) -> Sequence[Hit]:
    """One list, best first, each passage once; ties break on passage id. Adds the score channel `fused`.

    priors: added to the scores of a document's passages, by document, in units of the spread of the scores
    sentences: the vectors of the sentences of a query that has several
    """
    pool = pooled(channels, query_vector, sentences)
    if not pool.hits:
        return []
    scores = with_priors(pool, blend(pool, ranking.lexical), priors)
    moved = refined(pool, scores, query_vector, ranking)
    scores = scores + (1 - ranking.lexical) * (pool.vectors @ moved - pool.cosine)
    order = np.argsort(-scores, kind="stable").tolist()  # the pool is ordered by id, so ties break on id
    best, fused = pool.hits.take(order), scores[order].tolist()
    return HitList(best.ids, best.doc_ids, best.vectors, fused, lambda at: _scored(pool, order[at], fused[at]))


def pooled(
    channels: Mapping[str, Sequence[Hit]], query_vector: np.ndarray, sentences: Sequence[np.ndarray] = ()
) -> Pool:
    """The hits of all channels as a pool.

    A query of several sentences has one that asks and others that instruct or define. A passage is as close as it is to
    the whole and to the nearest sentence, on average.
    """
    lists = {name: hit_list(channels.get(name, ()), name) for name in ("dense", "lexical")}
    by_id = {id: (hits, at) for hits in lists.values() for at, id in enumerate(hits.ids)}
    hits = pick([by_id[id] for id in sorted(by_id)])
    place = {id: at for at, id in enumerate(hits.ids)}
    own = [place[id] for id in lists["lexical"].ids]
    lexical, worded = np.zeros(len(hits), np.float32), np.zeros(len(hits), bool)
    lexical[own], worded[own] = lists["lexical"].scores, True
    vectors = np.stack(list(hits.vectors)) if hits else np.zeros((0, query_vector.size), np.float32)
    cosine = vectors @ query_vector
    nearest = (vectors @ np.stack(sentences).T).max(axis=1) if len(sentences) else cosine
    return Pool(hits, vectors, cosine, (cosine + nearest) / 2, lexical, worded)


def blend(pool: Pool, share: float) -> np.ndarray:
    """Lexical scores relative to the query's best lexical score, blended with unscaled cosines.

    Cosine is not normalised: the absolute similarity of the nearest passage says how far the dense channel can be trusted.
    A passage that the lexical channel did not find scores 0 there, not the lowest score found.
    """
    best = float(pool.lexical.max(initial=0.0))
    words = pool.lexical / best if best > 0 else pool.lexical
    return share * words + (1 - share) * pool.meaning


def with_priors(pool: Pool, scores: np.ndarray, priors: Mapping[str, float]) -> np.ndarray:
    """Scores with those of whole documents added. The unit is the distance from the best score to the median, since
    embedders differ in how far apart their cosines lie."""
    if not priors:
        return scores
    unit = float(scores.max() - np.median(scores))
    return scores + unit * np.array([priors.get(doc_id, 0.0) for doc_id in pool.hits.doc_ids])


def refined(pool: Pool, scores: np.ndarray, query_vector: np.ndarray, ranking: Ranking) -> np.ndarray:
    """The query vector moved towards its best hits (Rocchio), weighted by their cohesion; a unit vector.

    Hits on one subject confirm each other, and their centroid describes it better than the query. Hits with nothing in
    common but the query (the two ends of a multi-hop question) have no useful centroid.
    """
    best = _first_of_each_document(pool, scores, ranking.feedback_hits)
    strength = ranking.feedback * _cohesion(pool, best, ranking.cohesion)
    if strength <= 0:
        return query_vector
    weights = np.exp((scores[best] - scores[best[0]]) / ranking.feedback_spread)
    return _unit(query_vector + strength * _unit(weights @ pool.vectors[best]))


def diverse(hits: Sequence[Hit], k: int, amount: float) -> list[Hit]:
    """The k hits that maximal marginal relevance picks, in its order.

    amount: 0 keeps the order; towards 1, similarity to hits already picked counts more against a hit
    """
    if amount <= 0 or len(hits) <= 1:
        return list(hits[:k])
    vectors = np.stack([hit.vector for hit in hits])
    worth = (1 - amount) * _relevance(hits)
    alike = np.zeros(len(hits))  # similarity to the nearest hit already picked
    left = np.ones(len(hits), bool)
    picked: list[int] = []
    while len(picked) < min(k, len(hits)):
        place = int(np.argmax(np.where(left, worth - amount * alike, -np.inf)))  # of equals, the first: the better
        picked.append(place)
        left[place] = False
        alike = np.maximum(alike, vectors @ vectors[place])
    return [hits[place] for place in picked]


def capped(hits: Sequence[Hit], most: int, named: Collection[str] = ()) -> Sequence[Hit]:
    """In the same order, at most `most` hits per document; 0 is no limit, and there is none for `named` documents."""
    if not most:
        return hits
    counts: dict[str, int] = {}
    kept: list[int] = []
    listed = hit_list(hits)
    for at, doc_id in enumerate(listed.doc_ids):
        counts[doc_id] = counts.get(doc_id, 0) + 1
        if doc_id in named or counts[doc_id] <= most:
            kept.append(at)
    return listed.take(kept)


COPY = 0.8  # share of common pieces from which two texts are near copies
PIECE = 5  # characters, so that it works for languages without spaces too
SKETCH = 1 << 14  # bits
CROWDED = 100  # hits; who asks for more asks for all that match


class _Worded:
    """The words of a hit. The sketch has a bit for each piece of them; several pieces may share one."""

    def __init__(self, text: str) -> None:
        self.text = " ".join(text.casefold().split()).ljust(PIECE)
        windows = sliding_window_view(np.frombuffer(self.text.encode("utf-32-le", "replace"), np.uint32), PIECE)
        pieces = np.unique(windows @ (np.uint32(0x9E3779B1) ** np.arange(PIECE, dtype=np.uint32)))
        bits = np.zeros(SKETCH, bool)
        bits[pieces % SKETCH] = True
        self.count = len(pieces)
        self.sketch = int.from_bytes(np.packbits(bits).tobytes())

    @cached_property
    def pieces(self) -> frozenset[str]:
        return frozenset(self.text[at : at + PIECE] for at in range(len(self.text) - PIECE + 1))


def uncrowded(hits: Iterable[Hit], k: int) -> list[Hit]:
    """The first k hits, of which near copies of one text take at most half: many small files that say the same must not push
    everything else out. If nothing else is there, the copies follow."""
    if k > CROWDED:
        return list(islice(hits, k))
    kept: list[Hit] = []
    later: list[Hit] = []
    groups: list[list[_Worded]] = []
    for hit in hits:
        words = _Worded(hit.passage.text)
        group = next((each for each in groups if _alike(each[0], words)), None)
        if group is None:
            groups.append(group := [])
        group.append(words)
        (kept if len(group) <= max(1, k // 2) else later).append(hit)
        if len(kept) == k:  # hits after this one are not read
            break
    return (kept + later)[:k]


def _alike(one: _Worded, other: _Worded) -> bool:
    # Each bit that differs is a piece that differs. Most texts differ in so many that their pieces need not be compared.
    if (one.sketch ^ other.sketch).bit_count() > 1 + (one.count + other.count) * (1 - COPY) / (1 + COPY):
        return False
    return len(one.pieces & other.pieces) >= COPY * len(one.pieces | other.pieces)


def spread(hits: Sequence[Hit], named: Collection[str]) -> Sequence[Hit]:
    """Among the passages of `named` documents, further ones of a page come after the first ones of other pages; passages
    of other documents keep their places."""
    if not named:
        return hits
    hits = list(hits)
    seen: set[tuple[str, int]] = set()
    first: list[Hit] = []
    later: list[Hit] = []
    for hit in hits:
        page = (hit.passage.doc_id, hit.passage.page or 0)
        if page[0] in named:
            (later if page in seen and page[1] > 0 else first).append(hit)
            seen.add(page)
    own = iter(first + later)
    return [next(own) if hit.passage.doc_id in named else hit for hit in hits]


def _scored(pool: Pool, place: int, score: float) -> Hit:
    hit = pool.hits[place]
    scores = {**hit.scores, "dense": float(pool.cosine[place]), "fused": score}
    if pool.worded[place]:
        scores["lexical"] = float(pool.lexical[place])
    return replace(hit, scores=scores)


def _first_of_each_document(pool: Pool, scores: np.ndarray, most: int) -> list[int]:
    # Passages of one document overlap, so several of them are not independent evidence.
    places: dict[str, int] = {}
    order: list[int] = np.argsort(-scores, kind="stable").tolist()
    for place in order:
        if len(places) >= most:
            break
        places.setdefault(pool.hits.doc_ids[place], place)
    return list(places.values())


def _cohesion(pool: Pool, places: Sequence[int], bounds: tuple[float, float]) -> float:
    """0 to 1: how similar these hits are to each other, relative to their similarity to the query."""
    if len(places) < 2:
        return 0.0
    near = pool.vectors[places]
    alike = near @ near.T
    between = (alike.sum() - np.trace(alike)) / (len(places) * (len(places) - 1))
    to_query = float(pool.cosine[places].mean())
    low, high = bounds
    return float(np.clip((between / to_query - low) / (high - low), 0.0, 1.0)) if to_query > 0 else 0.0


def _relevance(hits: Sequence[Hit]) -> np.ndarray:
    """1 for the best hit, 0 for the last; by the score that the hits were last ordered by, else by rank."""
    places = np.linspace(1.0, 0.0, len(hits))
    for channel in ("rerank", "fused"):
        if all(channel in hit.scores for hit in hits):
            scores = np.array([hit.scores[channel] for hit in hits])
            best, last = scores[0], scores[-1]
            if np.all(np.diff(scores) <= 0):
                return (scores - last) / (best - last) if best > last else np.ones(len(hits))
            return places
    return places


def _unit(vector: np.ndarray) -> np.ndarray:
    return vector / max(float(np.linalg.norm(vector)), 1e-12)
