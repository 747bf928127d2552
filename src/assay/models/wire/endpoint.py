"""A language model behind any endpoint that speaks `/v1/chat/completions`: OpenAI's, vLLM, llama.cpp, Ollama and the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from assay.core.errors import ModelError, TooLong
from assay.models.llm import Prompt, Reply
from assay.models.wire.chat import read_reply, request_body
from assay.models.wire.http import LARGEST, RETRIED, TOO_LARGE, Named, Response, Wire, address_of, pause_before
from assay.models.wire.refusals import (
    LARGEST_WINDOW,
    Lesson,
    error_said,
    is_hopeless,
    is_too_long,
    lesson_of,
    window_said,
)

NAMED = Named("chat", url="llm_base_url", key="llm_api_key", model="llm_model")
TAIL = "/chat/completions"
TEACHING = frozenset({400, 422})  # statuses with which a parameter is refused
KNOCKS = 5  # in 7.5 s; somebody sits waiting, and a wrong address stays wrong
ODD_REPLIES = 2  # how often a reply that makes no sense is asked for again; each may have cost money
WINDOWS = ("max_model_len", "context_length", "context_window", "max_context_length", "max_input_tokens", "n_ctx")


@dataclass(eq=False)
class ChatEndpoint:
    """One model at one endpoint. The key is in no error, no repr and no log.

    url: the address up to `/v1`; the full one, ending in `/chat/completions`, does as well
    """

    url: str = field(repr=False)
    model: str
    api_key: str = field(default="", repr=False)
    proxy: str = field(default="", repr=False)
    ca_bundle: str = ""
    largest: int = LARGEST
    sleep: Callable[[float], Awaitable[None]] = field(default=asyncio.sleep, repr=False)
    _wire: Wire = field(init=False, repr=False)
    _learnt: frozenset[Lesson] = field(default=frozenset(), init=False, repr=False)

    def __post_init__(self) -> None:
        address = address_of(self.url, TAIL, root="/v1")
        self._wire = Wire(address, NAMED, self.api_key, self.proxy, self.ca_bundle, self.largest, KNOCKS, self.sleep)

    @property
    def name(self) -> str:
        return self.model

    async def complete(self, prompt: Prompt, seconds: float) -> Reply:
        clock = asyncio.get_running_loop().time
        began = clock()
        end = began + seconds
        odd = 0
        while True:
            sent = self._learnt
            response = await self._wire.post(request_body(prompt, self.model, sent), end - clock(), _hopeless)
            if response.status != 200:
                if not self._learns(response, sent):
                    raise self._refused(response)
                continue
            try:
                return read_reply(response.json(), prompt, self.model, clock() - began)
            except ValueError as error:  # also JSON that is none
                odd += 1
                pause = pause_before(odd, None)
                if is_too_long(error_said(response.text)) or odd > ODD_REPLIES or clock() + pause >= end:
                    raise self._refused(response, f"did not answer as /v1/chat/completions does: {error}") from None
                await self.sleep(pause)

    async def window(self, seconds: float) -> int | None:
        """How many tokens prompt and reply may have together, where the server says so."""
        clock = asyncio.get_running_loop().time
        end = clock() + seconds
        parts = urlsplit(self._wire.address)
        base = parts.path.removesuffix(TAIL)
        root = base.removesuffix("/v1")

        async def told(path: str) -> Mapping[str, Any]:
            return await self._told(urlunsplit(parts._replace(path=path)), end - clock())

        listed = await told(f"{base}/models")
        entry = entry_of(listed, self.model)
        if entry is None:
            return None
        found = window_of(entry)
        if entry.get("owned_by") == "llamacpp":  # the model's window may be shared between slots: /props tells a slot's
            settings = (await told(f"{root}/props")).get("default_generation_settings")
            slot = _window(settings.get("n_ctx")) if isinstance(settings, Mapping) else None
            found = slot or found
        elif entry.get("owned_by") == "library":  # Ollama, which cuts longer prompts without a word
            loaded = entry_of({"data": (await told(f"{root}/api/ps")).get("models")}, self.model)
            found = window_of(loaded) if loaded else found
        return found or _window(_meta(entry).get("n_ctx_train"))

    async def close(self) -> None:
        await self._wire.close()

    def _learns(self, response: Response, sent: frozenset[Lesson]) -> bool:
        """Whether the refusal taught what the request did not know yet; then it is worth another try."""
        lesson = lesson_of(error_said(response.text)) if response.status in TEACHING else None
        if lesson is None or lesson in sent:
            return False
        self._learnt = frozenset([*self._learnt, lesson])
        return True

    def _refused(self, response: Response, words: str = "") -> ModelError:
        said = error_said(response.text)
        error = self._wire.error(words, response.text) if words else self._wire.refused(response)
        if response.status == TOO_LARGE or (response.status in (200, 400, 422, 500) and is_too_long(said)):
            return TooLong(str(error), window_said(said))
        return error

    async def _told(self, address: str, seconds: float) -> Mapping[str, Any]:
        """What a server says of itself; nothing where it does not."""
        try:
            response = await self._wire.get(address, seconds)
            told = response.json() if response.status == 200 else None
        except (ModelError, ValueError):
            return {}
        return told if isinstance(told, Mapping) else {}


def entry_of(listed: Mapping[str, Any], model: str) -> Mapping[str, Any] | None:
    """A model's entry in a server's list; the only one where there is one, for a server of one model takes any name."""
    entries = listed.get("data")
    if not isinstance(entries, list):
        return None
    entries = [entry for entry in entries if isinstance(entry, Mapping)]
    for entry in entries:
        if model in (entry.get("id"), entry.get("name"), entry.get("model")):
            return entry
    return entries[0] if len(entries) == 1 else None


def window_of(entry: Mapping[str, Any]) -> int | None:
    """The window in a model's entry, under the names that servers give it."""
    places = (entry, _meta(entry), entry.get("top_provider"))
    found = [_window(place.get(name)) for place in places if isinstance(place, Mapping) for name in WINDOWS]
    return next((window for window in found if window), None)


def _meta(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    return meta if isinstance(meta := entry.get("meta"), Mapping) else {}


def _window(value: object) -> int | None:
    return value if type(value) is int and 0 < value <= LARGEST_WINDOW else None


def _hopeless(response: Response) -> bool:
    return response.status in RETRIED and is_hopeless(response.status, error_said(response.text))
