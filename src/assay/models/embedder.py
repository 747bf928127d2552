"""The embedder protocol, and the client of endpoints that speak `/v1/embeddings`. `local/bundled.py` has the bundled ones."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Literal, Protocol

import numpy as np

from assay.core.errors import ModelError, UserError
from assay.models.http import TOO_LARGE, EndpointClient, EndpointNames, address_of


class Embedder(Protocol):
    """Texts to unit vectors (float32). `name` changes whenever the same text would get a different vector."""

    @property
    def name(self) -> str: ...

    @property
    def dim(self) -> int: ...

    @property
    def window(self) -> int:
        """How many tokens of a text are embedded; the rest is ignored."""
        ...

    def tokens(self, text: str) -> int: ...

    async def passages(self, texts: Sequence[str]) -> np.ndarray: ...

    async def queries(self, texts: Sequence[str]) -> np.ndarray: ...


BLANK = "."  # sent in place of an empty text, which many endpoints refuse
LARGEST = 64_000_000  # bytes of a reply: a batch of the longest vectors in use, as decimal text
NAMES = EndpointNames("embedding", url="embedder", key="embedder_api_key", model="embedder_model")


@dataclass(eq=False)
class EndpointEmbedder:
    """Any endpoint that speaks `/v1/embeddings`. The key never appears in errors or in the repr.

    url: the base address up to `/v1`, or the full one that ends in `/embeddings`
    deadline: seconds for one batch, including retries and waits
    """

    url: str = field(repr=False)
    model: str
    api_key: str = field(default="", repr=False)
    query_prefix: str = ""
    passage_prefix: str = ""
    proxy: str = field(default="", repr=False)
    ca_bundle: str = ""
    window: int = 512
    encoding: Literal["float", "base64"] = "float"
    batch_texts: int = 64
    batch_characters: int = 60_000
    at_once: int = 4
    deadline: float = 120.0
    sleep: Callable[[float], Awaitable[None]] = field(default=asyncio.sleep, repr=False)
    _seen_dim: int | None = field(default=None, init=False, repr=False)
    _semaphore: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore] | None = field(default=None, init=False, repr=False)
    _client: EndpointClient = field(init=False, repr=False)

    def __post_init__(self) -> None:
        address = address_of(self.url, "/embeddings", root="/v1")
        self._client = EndpointClient(
            address, NAMES, self.api_key, self.proxy, self.ca_bundle, largest=LARGEST, sleep=self.sleep
        )

    def __reduce__(self) -> tuple[Callable[..., EndpointEmbedder], tuple[()]]:
        """Another process gets what it was made with, and makes its own connections."""
        given = {each.name: getattr(self, each.name) for each in fields(self) if each.init}
        return partial(type(self), **given), ()

    @property
    def name(self) -> str:
        # The address is not part of the name: a model that moves to another port is the same model.
        return f"endpoint/{self.model}/{self.query_prefix!r}/{self.passage_prefix!r}"

    @property
    def dim(self) -> int:
        """Known from the first reply. Before that, this call embeds one short text and waits for it."""
        if self._seen_dim is None:
            with ThreadPoolExecutor(1) as thread:  # this one may have a running event loop
                self._seen_dim = thread.submit(asyncio.run, _probe(replace(self))).result()
        return self._seen_dim

    def tokens(self, text: str) -> int:
        """An estimate by the bundled model's tokenizer: endpoints do not say how they count."""
        return self.count([text])[0]

    def count(self, texts: Sequence[str]) -> list[int]:
        from assay.models.local.bundled import BundledEmbedder

        return BundledEmbedder().count(texts)

    async def passages(self, texts: Sequence[str]) -> np.ndarray:
        return await self._embed([self.passage_prefix + text for text in texts])

    async def queries(self, texts: Sequence[str]) -> np.ndarray:
        return await self._embed([self.query_prefix + text for text in texts])

    async def close(self) -> None:
        await self._client.close()

    async def _embed(self, texts: list[str]) -> np.ndarray:
        if not texts:
            return np.zeros((0, self.dim), np.float32)
        semaphore = self._loop_semaphore()
        texts = [text if text.strip() else BLANK for text in texts]
        try:
            async with asyncio.TaskGroup() as group:
                spans = batch_spans([len(text) for text in texts], self.batch_texts, self.batch_characters)
                tasks = [group.create_task(self._batch(semaphore, texts[start:end])) for start, end in spans]
        except* (ModelError, UserError) as failed:  # the first error suffices; the other batches were cancelled
            raise failed.exceptions[0] from None
        return np.concatenate([task.result() for task in tasks])

    async def _batch(self, semaphore: asyncio.Semaphore, texts: list[str]) -> np.ndarray:
        body = {"model": self.model, "input": texts, "encoding_format": self.encoding}
        async with semaphore:
            reply = await self._client.post(body, self.deadline)
        if reply.status == TOO_LARGE and len(texts) > 1:
            half = len(texts) // 2
            return np.concatenate([await self._batch(semaphore, part) for part in (texts[:half], texts[half:])])
        if reply.status != 200:
            raise self._client.refused(reply)
        try:
            vectors = parse_vectors(reply.json(), len(texts))
        except ValueError as error:  # includes invalid JSON
            raise self._client.error(f"did not answer as /v1/embeddings does: {error}", reply.text) from None
        if self._seen_dim is None:
            self._seen_dim = vectors.shape[1]
        if vectors.shape[1] != self._seen_dim:
            raise self._client.error(
                f"answered with vectors of {vectors.shape[1]} numbers, where {self._seen_dim} were expected"
            )
        return vectors

    def _loop_semaphore(self) -> asyncio.Semaphore:
        # A semaphore belongs to one event loop. A command line that runs several loops in turn gets one for each.
        loop = asyncio.get_running_loop()
        if self._semaphore is None or self._semaphore[0] is not loop:
            self._semaphore = (loop, asyncio.Semaphore(self.at_once))
        return self._semaphore[1]


def batch_spans(lengths: Sequence[int], most: int, characters: int) -> Iterator[tuple[int, int]]:
    """Consecutive spans of at most `most` texts and `characters` characters; a longer text gets a span of its own."""
    start = held = 0
    for place, length in enumerate(lengths):
        if place > start and (place - start >= most or held + length > characters):
            yield start, place
            start, held = place, 0
        held += length
    if start < len(lengths):
        yield start, len(lengths)


def parse_vectors(reply: object, expected: int) -> np.ndarray:
    """Unit vectors in request order. ValueError says what is wrong with the reply."""
    data = reply.get("data") if isinstance(reply, Mapping) else None
    if not isinstance(data, list) or not all(isinstance(item, Mapping) for item in data):
        raise ValueError("there is no list called `data`")
    if len(data) != expected:
        raise ValueError(f"{len(data)} vectors came back for {expected} texts")
    places = [item.get("index") for item in data]
    if any(place is not None for place in places):
        if sorted(place for place in places if isinstance(place, int)) != list(range(expected)):
            raise ValueError("`index` does not number the vectors")
        data = sorted(data, key=lambda item: item["index"])
    rows = [_vector(item.get("embedding")) for item in data]
    if len({row.size for row in rows}) != 1 or rows[0].size == 0:
        raise ValueError("the vectors are not all of one length")
    vectors = np.stack(rows)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(norms).all() or not norms.all():
        raise ValueError("a vector is zero, or holds a number that is none (NaN or infinite)")
    return vectors / norms


def _vector(value: object) -> np.ndarray:
    try:
        if isinstance(value, str):
            return np.frombuffer(base64.b64decode(value, validate=True), "<f4").astype(np.float32)
        if isinstance(value, list):
            row = np.array(value, np.float32)
            if row.ndim == 1:
                return row
    except (ValueError, TypeError, binascii.Error):
        pass
    raise ValueError("an `embedding` is neither a list of numbers nor base64 of them")


async def _probe(embedder: EndpointEmbedder) -> int:
    try:
        return (await embedder.queries([BLANK])).shape[1]
    finally:
        await embedder.close()
