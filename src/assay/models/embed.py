"""The seam to an embedder, and the endpoint that speaks `/v1/embeddings`. The bundled one is in `minilm.py`."""

from __future__ import annotations

import asyncio
import base64
import binascii
import math
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol
from urllib.parse import urlsplit, urlunsplit

import numpy as np

from assay.errors import ModelError, UserError

if TYPE_CHECKING:
    import httpx


class Embedder(Protocol):
    """Texts to unit vectors (float32). `name` changes whenever the same text would get another vector."""

    @property
    def name(self) -> str: ...

    @property
    def dim(self) -> int: ...

    @property
    def window(self) -> int:
        """How many tokens of a text are read; what comes after is ignored."""
        ...

    def tokens(self, text: str) -> int: ...

    async def passages(self, texts: Sequence[str]) -> np.ndarray: ...

    async def queries(self, texts: Sequence[str]) -> np.ndarray: ...


RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
TOO_LARGE = 413
BLANK = "."  # sent in place of a text without words, which many endpoints refuse
EXCERPT = 200


@dataclass(eq=False)
class EndpointEmbedder:
    """Any endpoint that speaks `/v1/embeddings`. The key is in no error and no repr.

    url: the address up to `/v1`; the full one, ending in `/embeddings`, does as well
    dimensions: asked of the endpoint where its model can shorten its vectors
    deadline: seconds that one batch may take, its retries and the waiting between them included
    """

    url: str
    model: str
    api_key: str = field(default="", repr=False)
    query_prefix: str = ""
    passage_prefix: str = ""
    proxy: str = field(default="", repr=False)
    ca_bundle: str = ""
    dimensions: int | None = None
    window: int = 512
    encoding: Literal["float", "base64"] = "float"
    batch_texts: int = 64
    batch_characters: int = 60_000
    at_once: int = 4
    deadline: float = 120.0
    sleep: Callable[[float], Awaitable[None]] = field(default=asyncio.sleep, repr=False)
    _seen_dim: int | None = field(default=None, init=False, repr=False)
    _open: tuple[asyncio.AbstractEventLoop, httpx.AsyncClient, asyncio.Semaphore] | None = field(
        default=None, init=False, repr=False
    )

    @property
    def name(self) -> str:
        # The address is left out: a model that moves to another port is still the same model.
        asked = f"/{self.dimensions}" if self.dimensions else ""
        return f"endpoint/{self.model}{asked}/{self.query_prefix!r}/{self.passage_prefix!r}"

    @property
    def dim(self) -> int:
        """Known from the first reply. Asked for before that, one short text is embedded, and this call waits for it."""
        if self._seen_dim is None:
            self._seen_dim = self.dimensions or _in_a_thread(lambda: asyncio.run(_probe(replace(self))))
        return self._seen_dim

    def tokens(self, text: str) -> int:
        """An estimate: the bundled model's word pieces. Nobody can ask an endpoint how it counts."""
        return self.count([text])[0]

    def count(self, texts: Sequence[str]) -> list[int]:
        from assay.models.minilm import MiniLM

        return MiniLM().count(texts)

    async def passages(self, texts: Sequence[str]) -> np.ndarray:
        return await self._embed([self.passage_prefix + text for text in texts])

    async def queries(self, texts: Sequence[str]) -> np.ndarray:
        return await self._embed([self.query_prefix + text for text in texts])

    async def close(self) -> None:
        if self._open and self._open[0] is asyncio.get_running_loop():
            await self._open[1].aclose()
        self._open = None

    async def _embed(self, texts: list[str]) -> np.ndarray:
        if not texts:
            return np.zeros((0, self.dim), np.float32)
        client, gate = self._connection()
        texts = [text if text.strip() else BLANK for text in texts]
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(self._batch(client, gate, texts[start:end]))
                    for start, end in batch_spans(
                        [len(text) for text in texts], self.batch_texts, self.batch_characters
                    )
                ]
        except* (ModelError, UserError) as failed:  # the first says enough; the others were stopped
            raise failed.exceptions[0] from None
        return np.concatenate([task.result() for task in tasks])

    async def _batch(self, client: httpx.AsyncClient, gate: asyncio.Semaphore, texts: list[str]) -> np.ndarray:
        async with gate:
            reply = await self._post(client, texts)
        if reply.status_code == TOO_LARGE and len(texts) > 1:
            half = len(texts) // 2
            return np.concatenate([await self._batch(client, gate, part) for part in (texts[:half], texts[half:])])
        if reply.status_code != 200:
            raise self._error(_refusal(reply.status_code), reply.text)
        try:
            vectors = read_vectors(reply.json(), len(texts))
        except ValueError as error:  # also JSON that is none
            raise self._error(f"did not answer as /v1/embeddings does: {error}", reply.text) from None
        if self._seen_dim is None:
            self._seen_dim = vectors.shape[1]
        if vectors.shape[1] != self._seen_dim:
            raise self._error(
                f"answered with vectors of {vectors.shape[1]} numbers, where {self._seen_dim} were expected"
            )
        return vectors

    async def _post(self, client: httpx.AsyncClient, texts: list[str]) -> httpx.Response:
        """A reply that is not worth another try. Waits as long as the endpoint asks, never past the deadline."""
        import httpx

        body: dict[str, Any] = {"model": self.model, "input": texts, "encoding_format": self.encoding}
        if self.dimensions:
            body["dimensions"] = self.dimensions
        headers = {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}
        clock = asyncio.get_running_loop().time
        end = clock() + self.deadline
        attempt = 0
        while True:
            pause = min(0.5 * 2**attempt, 20.0)
            try:
                reply = await client.post(self._address(), json=body, headers=headers, timeout=max(end - clock(), 0.1))
            except (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError, UnicodeEncodeError) as error:
                wrong = f"{type(error).__name__} at {self._place()}"
                raise UserError(f"No request can be made of `embedder` and `embedder_api_key` ({wrong}).") from None
            except httpx.HTTPError as error:
                reply, trouble = None, f"could not be reached ({type(error).__name__})"
            else:
                if reply.status_code not in RETRIED:
                    return reply
                trouble = _refusal(reply.status_code)
                asked = retry_after(reply.headers, datetime.now(UTC))
                pause = pause if asked is None else max(asked, 0.5)  # "at once" is no invitation to hammer
            if clock() + pause >= end:
                tried = f"; gave up after {attempt + 1} tries in {self.deadline:g} s"
                raise self._error(trouble + tried, reply.text if reply else "")
            attempt += 1
            await self.sleep(pause)

    def _connection(self) -> tuple[httpx.AsyncClient, asyncio.Semaphore]:
        # Connections belong to an event loop. A command line that runs one loop after another gets a client for each.
        import ssl

        import httpx

        loop = asyncio.get_running_loop()
        if self._open is None or self._open[0] is not loop:
            try:
                trusted = ssl.create_default_context(cafile=self.ca_bundle or None)
            except (OSError, ssl.SSLError):
                raise UserError(f"The certificates in {self.ca_bundle!r} cannot be read: set `ca_bundle`.") from None
            client = httpx.AsyncClient(verify=trusted, proxy=self.proxy or None)
            self._open = (loop, client, asyncio.Semaphore(self.at_once))
        return self._open[1], self._open[2]

    def _address(self) -> str:
        parts = urlsplit(self.url)
        path = parts.path.rstrip("/") or "/v1"
        return urlunsplit(parts._replace(path=path if path.endswith("/embeddings") else f"{path}/embeddings"))

    def _error(self, words: str, reply: str = "") -> ModelError:
        # Endpoints like to repeat the key that they refuse.
        said = " ".join(reply.split())
        if self.api_key:
            said = said.replace(self.api_key, "…")
        said = f" It said: {said[:EXCERPT]}" if said else ""
        return ModelError(f"The embedding endpoint {self._place()} {words}.{said}")

    def _place(self) -> str:
        parts = urlsplit(self._address())  # which may carry a password
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query=""))


def batch_spans(lengths: Sequence[int], most: int, characters: int) -> Iterator[tuple[int, int]]:
    """Consecutive spans of at most `most` texts and `characters` characters; a longer text goes alone."""
    start = held = 0
    for place, length in enumerate(lengths):
        if place > start and (place - start >= most or held + length > characters):
            yield start, place
            start, held = place, 0
        held += length
    if start < len(lengths):
        yield start, len(lengths)


def read_vectors(reply: object, expected: int) -> np.ndarray:
    """Unit vectors in the order asked for. ValueError says what is wrong with the reply."""
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


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that the endpoint asks to be left alone; None where it does not say."""
    value = headers.get("retry-after", "").strip()
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(value) - now).total_seconds()
        except (ValueError, TypeError):
            return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _refusal(status: int) -> str:
    match status:
        case 401 | 403:
            return f"refused the key ({status}): check `embedder_api_key`"
        case 404:
            return "does not know the address or the model (404): check `embedder` and `embedder_model`"
        case 429:
            return "is asked too often (429)"
        case _:
            return f"answered with status {status}"


async def _probe(embedder: EndpointEmbedder) -> int:
    try:
        return (await embedder.queries([BLANK])).shape[1]
    finally:
        await embedder.close()


def _in_a_thread(work: Callable[[], int]) -> int:
    """Run to the end in a thread of its own, because this one may have an event loop running."""
    outcome: list[int | BaseException] = []

    def attempt() -> None:
        try:
            outcome.append(work())
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]
