"""The reranker protocol and its implementations: they re-score the first hits of a fused list.

The default ranking has no reranker; docs/decisions/0003-ranking.md says why. Models are loaded on first use.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from assay.core.types import Hit
from assay.models.embedder import Embedder
from assay.models.http import TOO_LARGE, EndpointClient, EndpointNames, address_of
from assay.models.llm import AnswerModel

if TYPE_CHECKING:
    from assay.models.local.bundled import BundledEmbedder

NAMES = EndpointNames("rerank", url="reranker", key="reranker_api_key", model="reranker_model")


class Reranker(Protocol):
    async def rerank(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        """The same hits, best first. Reranked hits come first and have the score `rerank`; the rest keep their order."""
        ...


@dataclass(frozen=True, slots=True)
class LateInteraction:
    """ColBERT-style MaxSim over the bundled model: each query token is matched with its nearest passage token.

    The model was not trained for it, so MaxSim only adjusts the fused score; it does not replace it.

    weight: how many standard deviations of the fused score one standard deviation of MaxSim may move it by
    """

    embedder: BundledEmbedder
    depth: int = 30
    weight: float = 0.3

    async def rerank(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        return await asyncio.to_thread(self.reranked, query, hits)

    def reranked(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        near = hits[: self.depth]
        if len(near) < 2:
            return order_by_score(hits, [hit.scores.get("fused", 0.0) for hit in near])
        words, *passages = self.embedder.token_vectors([query, *map(reading, near)])
        likeness = np.array([max_sim(words, passage) for passage in passages])
        return order_by_score(hits, adjusted(near, likeness, self.weight))


def late_interaction(embedder: Embedder) -> LateInteraction:
    """Over the tokens of this embedder if it is a bundled one, else of the bundled one."""
    from assay.models.local.bundled import BundledEmbedder

    return LateInteraction(embedder if isinstance(embedder, BundledEmbedder) else BundledEmbedder())


@dataclass(frozen=True, slots=True)
class AnswerReranker:
    """The answer model reads the question with each of the first hits; its log-odds adjust the fused score.

    weight: how many standard deviations of the fused score one standard deviation of the log-odds may move it by
    """

    model: AnswerModel
    depth: int = 24
    weight: float = 0.4

    async def rerank(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        near = hits[: self.depth]
        readings = await self.model.read(query, [reading(hit) for hit in near])
        odds = np.array([log_odds(one.answers) for one in readings])
        return order_by_score(hits, adjusted(near, odds, self.weight))


def log_odds(probability: float, least: float = 1e-6) -> float:
    bounded = min(max(probability, least), 1 - least)
    return math.log(bounded / (1 - bounded))


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
        from assay.models.local.onnx_folder import pair_scores

        near = hits[: self.depth]
        scores = pair_scores(self.folder, query, [reading(hit) for hit in near], self.precision, self.cache)
        return order_by_score(hits, scores)


@dataclass(frozen=True, slots=True)
class EndpointReranker:
    """Any endpoint that speaks `/rerank`, as Cohere, Jina, vLLM and text-embeddings-inference do. The key is in no error.

    url: the address with or without a final `/rerank`
    model: empty for a server with one model, which then gets the fields of text-embeddings-inference (`texts`)
    deadline: seconds for one request, including retries and waits
    """

    url: str = field(repr=False)
    model: str = ""
    api_key: str = field(default="", repr=False)
    depth: int = 100
    proxy: str = field(default="", repr=False)
    ca_bundle: str = ""
    deadline: float = 60.0
    sleep: Callable[[float], Awaitable[None]] = field(default=asyncio.sleep, repr=False)

    async def rerank(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        near = hits[: self.depth]
        if not near:
            return list(hits)
        address = address_of(self.url, "/rerank")
        client = EndpointClient(address, NAMES, self.api_key, self.proxy, self.ca_bundle, sleep=self.sleep)
        try:
            return order_by_score(hits, await self._scores(client, query, [reading(hit) for hit in near]))
        finally:
            await client.close()

    async def _scores(self, client: EndpointClient, query: str, texts: list[str]) -> list[float]:
        asked = {"model": self.model, "documents": texts, "top_n": len(texts)} if self.model else {"texts": texts}
        reply = await client.post({"query": query, **asked}, self.deadline)
        if reply.status == TOO_LARGE and len(texts) > 1:  # pairs are scored independently, so halves can be merged
            half = len(texts) // 2
            return [score for part in (texts[:half], texts[half:]) for score in await self._scores(client, query, part)]
        if reply.status != 200:
            raise client.refused(reply)
        try:
            return parse_scores(reply.json(), len(texts))
        except ValueError as error:  # includes invalid JSON
            raise client.error(f"did not answer as /rerank does: {error}", reply.text) from None


def parse_scores(reply: object, expected: int) -> list[float]:
    """One score per text, in request order. ValueError says what is wrong with the reply."""
    listed = reply if isinstance(reply, list) else None
    if isinstance(reply, Mapping):
        listed = next((reply[key] for key in ("results", "data") if isinstance(reply.get(key), list)), None)
    if listed is None:
        raise ValueError("there is no list of results")
    scores: dict[int, float] = {}
    for item in listed:
        place, score = _score(item)
        if not 0 <= place < expected:
            raise ValueError(f"there is no text number {place}")
        scores[place] = score
    if len(scores) != expected:
        raise ValueError(f"{len(scores)} scores came back for {expected} texts")
    return [scores[place] for place in range(expected)]


def _score(item: Any) -> tuple[int, float]:
    if not isinstance(item, Mapping) or type(item.get("index")) is not int:
        raise ValueError("a result has no `index`")
    score = item.get("relevance_score", item.get("score"))
    if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
        raise ValueError("a result has no `relevance_score`")
    return item["index"], float(score)


def reading(hit: Hit) -> str:
    """The text given to a reranker: the document's title, the context of a table, and the passage's text."""
    return "\n".join(filter(None, (hit.title, hit.passage.context, hit.passage.text)))


def max_sim(query: np.ndarray, passage: np.ndarray) -> float:
    """The mean, over the query's tokens, of the cosine to the nearest token of the passage; rows are unit vectors."""
    return float((query @ passage.T).max(axis=1).mean()) if len(query) and len(passage) else 0.0


def adjusted(hits: Sequence[Hit], second: np.ndarray, weight: float) -> np.ndarray:
    """Fused scores adjusted by a second score on another scale; both are normalised by their standard deviation. The second
    alone where there is nothing to adjust."""
    if len(hits) < 2 or any("fused" not in hit.scores for hit in hits):
        return second
    scores, spread = np.array([hit.scores["fused"] for hit in hits]), float(second.std())
    return scores + weight * float(scores.std()) * (second - second.mean()) / spread if spread > 1e-9 else scores


def order_by_score(hits: Sequence[Hit], scores: Sequence[float] | np.ndarray) -> list[Hit]:
    """The first len(scores) hits by score, then the others unchanged. Equal scores keep their order."""
    order = sorted(range(len(scores)), key=lambda place: -scores[place])
    first = [replace(hits[place], scores={**hits[place].scores, "rerank": float(scores[place])}) for place in order]
    return [*first, *hits[len(scores) :]]
