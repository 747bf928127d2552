"""A language model behind any endpoint that speaks `/v1/chat/completions`: OpenAI's, vLLM, llama.cpp, Ollama and the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from assay.core.errors import ModelError, TooLong
from assay.models.llm import Prompt, Reply
from assay.models.endpoint import read_reply
from assay.models.endpoint import request_body
from assay.models.http import LARGEST
from assay.models.http import RETRIED
from assay.models.http import TOO_LARGE
from assay.models.http import EndpointClient
from assay.models.http import EndpointNames
from assay.models.http import Response
from assay.models.http import address_of
from assay.models.endpoint import LARGEST_WINDOW
from assay.models.endpoint import Adaptation
from assay.models.endpoint import adaptation_for
from assay.models.endpoint import is_permanent
from assay.models.endpoint import is_too_long
from assay.models.endpoint import parse_refusal
from assay.models.endpoint import stated_window
from assay.models.http import CorrectedRequest
from assay.models.http import TransientFailure

NAMES = EndpointNames("chat", url="llm_base_url", key="llm_api_key", model="llm_model")
TAIL = "/chat/completions"
PARAMETER_REFUSED = frozenset({400, 422})
CONNECT_ATTEMPTS = 5  # over 7.5 s; a user is waiting, and a wrong address stays wrong
MALFORMED_REPLIES = 2  # how often a request is repeated after a malformed reply; each may have cost money
WINDOWS = ("max_model_len", "context_length", "context_window", "max_context_length", "max_input_tokens", "n_ctx")


@dataclass(eq=False)
class ChatEndpoint:
    """One model at one endpoint. The key never appears in errors, reprs or logs.

    url: the base address up to `/v1`, or the full one that ends in `/chat/completions`
    """

    url: str = field(repr=False)
    model: str
    api_key: str = field(default="", repr=False)
    proxy: str = field(default="", repr=False)
    ca_bundle: str = ""
    largest: int = LARGEST
    sleep: Callable[[float], Awaitable[None]] = field(default=asyncio.sleep, repr=False)
    _client: EndpointClient = field(init=False, repr=False)
    _adaptations: frozenset[Adaptation] = field(default=frozenset(), init=False, repr=False)

    def __post_init__(self) -> None:
        address = address_of(self.url, TAIL, root="/v1")
        self._client = EndpointClient(
            address, NAMES, self.api_key, self.proxy, self.ca_bundle, self.largest, CONNECT_ATTEMPTS, self.sleep
        )

    @property
    def name(self) -> str:
        return self.model

    async def complete(self, prompt: Prompt, seconds: float) -> Reply:
        clock = asyncio.get_running_loop().time
        began = clock()
        sent: frozenset[Adaptation] = frozenset()
        malformed = 0

        def body() -> dict[str, Any]:
            nonlocal sent
            sent = self._adaptations
            return request_body(prompt, self.model, sent)

        def read(response: Response) -> Reply:
            nonlocal malformed
            if response.status != 200:
                if self._adapts(response, sent):
                    raise CorrectedRequest
                raise self._error(response)
            try:
                return read_reply(response.json(), prompt, self.model, clock() - began)
            except ValueError as error:  # includes invalid JSON
                malformed += 1
                failure = self._error(response, f"did not answer as /v1/chat/completions does: {error}")
                if isinstance(failure, TooLong) or malformed > MALFORMED_REPLIES:
                    raise failure from None
                raise TransientFailure(failure) from None

        return await self._client.exchange(body, seconds, read, is_final=_is_final)

    async def window(self, seconds: float) -> int | None:
        """The context window in tokens, prompt and reply together, if the server states it."""
        clock = asyncio.get_running_loop().time
        end = clock() + seconds
        parts = urlsplit(self._client.address)
        base = parts.path.removesuffix(TAIL)
        root = base.removesuffix("/v1")

        async def fetch(path: str) -> Mapping[str, Any]:
            return await self._fetch(urlunsplit(parts._replace(path=path)), end - clock())

        listed = await fetch(f"{base}/models")
        entry = entry_of(listed, self.model)
        if entry is None:
            return None
        found = window_of(entry)
        if entry.get("owned_by") == "llamacpp":  # slots may share the model's window; /props has that of one slot
            settings = (await fetch(f"{root}/props")).get("default_generation_settings")
            found = (_window(settings.get("n_ctx")) if isinstance(settings, Mapping) else None) or found
        elif entry.get("owned_by") == "library":  # Ollama, which truncates longer prompts silently
            loaded = entry_of({"data": (await fetch(f"{root}/api/ps")).get("models")}, self.model)
            found = window_of(loaded) if loaded else found
        return found or _window(_meta(entry).get("n_ctx_train"))

    async def close(self) -> None:
        await self._client.close()

    def _adapts(self, response: Response, sent: frozenset[Adaptation]) -> bool:
        """Whether the refusal calls for an adaptation that the request did not have; it is then sent again."""
        refusal = parse_refusal(response.text)
        adaptation = adaptation_for(refusal) if response.status in PARAMETER_REFUSED else None
        if adaptation is None or adaptation in sent:
            return False
        self._adaptations = frozenset([*self._adaptations, adaptation])
        return True

    def _error(self, response: Response, words: str = "") -> ModelError:
        refusal = parse_refusal(response.text)
        error = self._client.error(words, response.text) if words else self._client.refused(response)
        if response.status == TOO_LARGE or (response.status in (200, 400, 422, 500) and is_too_long(refusal)):
            return TooLong(str(error), stated_window(refusal))
        return error

    async def _fetch(self, address: str, seconds: float) -> Mapping[str, Any]:
        """A JSON object from the server; empty if there is none."""
        try:
            response = await self._client.get(address, seconds)
            value = response.json() if response.status == 200 else None
        except (ModelError, ValueError):
            return {}
        return value if isinstance(value, Mapping) else {}


def entry_of(listed: Mapping[str, Any], model: str) -> Mapping[str, Any] | None:
    """A model's entry in a server's list. A sole entry always matches: a server with one model accepts any name."""
    entries = listed.get("data")
    if not isinstance(entries, list):
        return None
    entries = [entry for entry in entries if isinstance(entry, Mapping)]
    for entry in entries:
        if model in (entry.get("id"), entry.get("name"), entry.get("model")):
            return entry
    return entries[0] if len(entries) == 1 else None


def window_of(entry: Mapping[str, Any]) -> int | None:
    """The window in a model's entry, under the field names of the common servers."""
    places = (entry, _meta(entry), entry.get("top_provider"))
    found = [_window(place.get(name)) for place in places if isinstance(place, Mapping) for name in WINDOWS]
    return next((window for window in found if window), None)


def _meta(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    return meta if isinstance(meta := entry.get("meta"), Mapping) else {}


def _window(value: object) -> int | None:
    return value if type(value) is int and 0 < value <= LARGEST_WINDOW else None


def _is_final(response: Response) -> bool:
    return response.status in RETRIED and is_permanent(response.status, parse_refusal(response.text))
