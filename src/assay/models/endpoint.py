"""A language model behind any endpoint that speaks `/v1/chat/completions`: OpenAI's, vLLM, llama.cpp, Ollama and the rest.

Replies are untrusted: any part may be missing, of the wrong type, or far too long. Every server words its errors differently;
the patterns here are those of the common ones.
"""

from __future__ import annotations

import asyncio
import base64
import json
import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

from assay.core.errors import ModelError, TooLong
from assay.core.types import Usage
from assay.models import http
from assay.models.cost import estimate_tokens, prompt_tokens
from assay.models.http import EndpointClient, EndpointNames, Response
from assay.models.llm import Heard, Prompt, Reply, ToolCall

NAMES = EndpointNames("chat", url="llm_base_url", key="llm_api_key", model="llm_model")
TAIL = "/chat/completions"
PARAMETER_REFUSED = frozenset({400, 422, 501})
CONNECT_ATTEMPTS = 5  # over 7.5 s; a user is waiting, and a wrong address stays wrong
LISTING = 3.0  # seconds for the list of models, which tells a wrong address, key or name at once
LOCAL_SERVERS = {"Ollama": 11434, "LM Studio": 1234, "llama.cpp": 8080, "vLLM": 8000}  # usual ports on this machine
NAMED = 8  # models that an error names
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
    largest: int = http.LARGEST
    sleep: Callable[[float], Awaitable[None]] = field(default=asyncio.sleep, repr=False)
    connect_attempts: int = CONNECT_ATTEMPTS
    _client: EndpointClient = field(init=False, repr=False)
    _adaptations: frozenset[Adaptation] = field(default=frozenset(), init=False, repr=False)

    def __post_init__(self) -> None:
        address = http.address_of(self.url, TAIL, root="/v1")
        self._client = EndpointClient(
            address, NAMES, self.api_key, self.proxy, self.ca_bundle, self.largest, self.connect_attempts, self.sleep
        )

    @property
    def name(self) -> str:
        return self.model

    async def complete(self, prompt: Prompt, seconds: float) -> Reply:
        return await self._reply(prompt, seconds)

    async def stream(self, prompt: Prompt, seconds: float, heard: Heard) -> Reply:
        """As `complete`. From an endpoint that does not stream, nothing is heard."""
        return await self._reply(prompt, seconds, heard)

    async def _reply(self, prompt: Prompt, seconds: float, heard: Heard | None = None) -> Reply:
        clock = asyncio.get_running_loop().time
        began = clock()
        sent: frozenset[Adaptation] = frozenset()
        malformed = 0

        def body() -> dict[str, Any]:
            nonlocal sent
            sent = self._adaptations
            return request_body(prompt, self.model, sent, stream=heard is not None)

        def read(response: Response) -> Reply:
            nonlocal malformed
            if response.status != 200:
                if self._adapts(response, sent):
                    raise http.CorrectedRequest
                raise self._error(response)
            try:
                whole = read_stream(response) if http.is_stream(response.headers) else response.json()
                return read_reply(whole, prompt, self.model, clock() - began)
            except ValueError as error:  # includes invalid JSON
                malformed += 1
                failure = self._error(response, f"did not answer as /v1/chat/completions does: {error}")
                if isinstance(failure, TooLong) or malformed > MALFORMED_REPLIES:
                    raise failure from None
                raise http.TransientFailure(failure) from None

        def is_final(response: Response) -> bool:
            return response.status in http.RETRIED and is_permanent(response.status, parse_refusal(response.text))

        def listener() -> Callable[[bytes], None]:
            streamed = StreamedReply()

            def hear(piece: bytes) -> None:
                if streamed.feed(piece) and heard is not None:
                    heard(without_thoughts(streamed.text))

            return hear

        return await self._client.exchange(body, seconds, read, is_final=is_final, heard=listener if heard else None)

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
            found = (bounded(settings.get("n_ctx")) if isinstance(settings, Mapping) else None) or found
        elif entry.get("owned_by") == "library":  # Ollama, which truncates longer prompts silently
            loaded = entry_of({"data": (await fetch(f"{root}/api/ps")).get("models")}, self.model)
            found = window_of(loaded) if loaded else found
        return found or bounded(_meta(entry).get("n_ctx_train"))

    async def listed(self, seconds: float = LISTING) -> tuple[str, ...]:
        """The names of the models at the endpoint; empty if it lists none. Raises ModelError if nothing answers there or the
        key is refused."""
        once = replace(self, connect_attempts=1)._client
        parts = urlsplit(once.address)
        try:
            response = await once.get(
                urlunsplit(parts._replace(path=f"{parts.path.removesuffix(TAIL)}/models")), seconds
            )
        finally:
            await once.close()
        if response.status in (401, 403):
            raise once.error("refuses the key" if self.api_key else "wants a key")
        try:
            value = response.json() if response.status == 200 else None
        except ValueError:
            value = None
        entries = value.get("data") if isinstance(value, Mapping) else None
        names = (each.get("id") for each in (entries if isinstance(entries, list) else ()) if isinstance(each, Mapping))
        return tuple(name for name in names if isinstance(name, str) and name)

    async def check(self) -> tuple[str, ...]:
        """The names of the models there. Raises ModelError, within seconds, if nothing answers at the address, the key is
        refused, or it has no such model."""
        names = await self.listed()
        known = {self.model, f"{self.model}:latest"}.intersection(names)
        if len(names) > 1 and not known:
            more = ", …" if len(names) > NAMED else ""
            raise self._client.error(f"has no model {self.model!r}; there are {', '.join(names[:NAMED])}{more}")
        return names

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
        if response.status == http.TOO_LARGE or (response.status in (200, 400, 422, 500) and is_too_long(refusal)):
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


@dataclass(frozen=True, slots=True)
class ServerHere:
    """A model server on this machine, with the names of its models."""

    program: str
    address: str
    models: tuple[str, ...]


async def servers_here() -> list[ServerHere]:
    """The model servers at their usual ports of this machine. They are asked for their models, and sent nothing."""

    async def look(program: str, port: int) -> ServerHere:
        address = f"http://127.0.0.1:{port}/v1"
        try:
            return ServerHere(program, address, await ChatEndpoint(address, "").listed(1.0))
        except ModelError:
            return ServerHere(program, address, ())

    found = await asyncio.gather(*(look(program, port) for program, port in LOCAL_SERVERS.items()))
    return [each for each in found if each.models]


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
    found = [bounded(place.get(name)) for place in places if isinstance(place, Mapping) for name in WINDOWS]
    return next((window for window in found if window), None)


def _meta(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    return meta if isinstance(meta := entry.get("meta"), Mapping) else {}


READ = 4000  # characters of an error that are examined
LARGEST_WINDOW = 100_000_000

Adaptation = Literal["max_completion_tokens", "no temperature", "no stream_options", "no stream"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """An endpoint's error: its message, and its code and type if it has them."""

    message: str
    codes: frozenset[str] = frozenset()
    window: int | None = None  # where a field states it


# How servers state the window in their errors. The group is the window.
_NUMBER = r"(\d[\d,_]{0,14})"
_WINDOWS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"maximum (?:context|prompt|model|sequence) ?length (?:is|of) (?:only )?{_NUMBER}",  # OpenAI, vLLM, SGLang, xAI
        rf"context (?:length|window|size) (?:is|of) (?:only )?{_NUMBER}",  # vLLM, LM Studio
        rf"available context size \({_NUMBER}",  # llama.cpp
        rf"context length \({_NUMBER}",  # SGLang
        rf"too long: ?{_NUMBER} ?tokens ?> ?{_NUMBER}",  # Anthropic: the last group counts
        rf"exceeds? (?:the )?context (?:limit|window|length)[^>]{{0,60}}> ?{_NUMBER}",  # Anthropic
        rf"max_new_tokens`? must be <= ?{_NUMBER}",  # text-generation-inference
        rf"must have less than {_NUMBER} tokens",  # text-generation-inference
        rf"with {_NUMBER} maximum context length",  # Mistral
        rf"maximum number of tokens(?: allowed)? \({_NUMBER}",  # Google
        rf"configured limit of {_NUMBER} tokens",  # OpenAI
        rf"in the prompt cannot exceed {_NUMBER}",  # Cohere
    )
)
_TOO_LONG = re.compile(
    r"exceeds? the (?:available )?context (?:size|window|length)|exceeds? (?:the )?(?:maximum|max) context length"
    r"|exceeded max context length|prompt (?:is )?too long|input is too long|context length exceeded"
    r"|context[ _]window[ _]exceeded|longer than the (?:maximum model length|model's context length)"
    r"|reduce the length of the (?:messages|prompt|input)|too many (?:input )?tokens"
    r"|exceeds? the maximum number of tokens|input tokens exceed|context overflow",
    re.IGNORECASE,
)
_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error", "context_window_exceeded"})

_UNKNOWN = re.compile(
    r"not supported?|unsupported|does(?:n't| not) support|not allowed|deprecated|unrecognized|unrecognised|unknown"
    r"|unexpected|extra inputs|extra fields|only the default|not permitted",
    re.IGNORECASE,
)
_NEVER = re.compile(r"requires? --?\w|not implemented|unsupported|not supported|does not support", re.IGNORECASE)
_UNPAID = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})


def parse_refusal(text: str) -> Refusal:
    """The error in a reply's body; the whole body if it is not JSON."""
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError):
        return Refusal(text[:READ])
    if isinstance(data, list) and data:
        data = data[0]
    if not isinstance(data, Mapping):
        return Refusal(text[:READ])
    inner = data.get("error")
    error: Mapping[str, Any] = inner if isinstance(inner, Mapping) else data
    message = next(
        (value for value in (error.get("message"), inner, data.get("detail")) if isinstance(value, str) and value), text
    )
    codes = [error.get(name) for name in ("code", "type", "param", "error_type")]
    return Refusal(
        message[:READ], frozenset(each for each in codes if isinstance(each, str)), bounded(error.get("n_ctx"))
    )


def is_too_long(refusal: Refusal) -> bool:
    return bool(refusal.codes & _CODES or _TOO_LONG.search(refusal.message) or _windows_in(refusal.message))


def stated_window(refusal: Refusal) -> int | None:
    """The context window in tokens, if the error states it."""
    return refusal.window or next(iter(_windows_in(refusal.message)), None)


def adaptation_for(refusal: Refusal) -> Adaptation | None:
    """What to omit or rename in later requests, if that caused the refusal."""
    if is_too_long(refusal) or not (
        _UNKNOWN.search(refusal.message) or any("unsupported" in code for code in refusal.codes)
    ):
        return None
    if "max_completion_tokens" in refusal.message or "max_tokens" in refusal.codes:
        return "max_completion_tokens"
    for name in ("temperature", "stream_options", "stream"):
        if any(name in words.lower() for words in (*refusal.codes, refusal.message)):
            return _LEFT_OUT[name]
    return None


def is_permanent(status: int, refusal: Refusal) -> bool:
    """Whether a usually transient status would not change on a retry."""
    if status == 429:
        return bool(refusal.codes & _UNPAID)
    return status == 500 and (is_too_long(refusal) or bool(_NEVER.search(refusal.message)))


def _windows_in(words: str) -> list[int]:
    found = [match.groups()[-1] for pattern in _WINDOWS if (match := pattern.search(words))]
    return [window for each in found if (window := bounded(int(re.sub(r"[,_]", "", each))))]


def bounded(value: object) -> int | None:
    """A number of tokens that may be a window."""
    return value if type(value) is int and 0 < value <= LARGEST_WINDOW else None


_LEFT_OUT: Mapping[str, Adaptation] = {
    "temperature": "no temperature",
    "stream_options": "no stream_options",
    "stream": "no stream",
}
MOST_CALLS = 64
MOST_TOKENS = 1_000_000_000  # larger counts are not believed
LONGEST_NAME = 200
THOUGHTS = (("<think>", "</think>"), ("<thinking>", "</thinking>"))


def request_body(
    prompt: Prompt, model: str, adaptations: frozenset[Adaptation] = frozenset(), *, stream: bool = False
) -> dict[str, Any]:
    """The request body. `adaptations` is what this endpoint has refused before."""
    stream = stream and "no stream" not in adaptations
    limit = "max_completion_tokens" if "max_completion_tokens" in adaptations else "max_tokens"
    body: dict[str, Any] = {
        "model": model,
        "messages": _messages(prompt),
        limit: prompt.max_tokens,
        "stream": stream,
    }
    if stream and "no stream_options" not in adaptations:
        body["stream_options"] = {"include_usage": True}
    if "no temperature" not in adaptations:
        body["temperature"] = prompt.temperature
    if prompt.form == "schema" and prompt.schema is not None:
        named = {"name": "reply", "schema": prompt.schema, "strict": is_closed(prompt.schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": named}
    elif prompt.form != "text":
        body["response_format"] = {"type": "json_object"}
    if prompt.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.about, "parameters": tool.parameters},
            }
            for tool in prompt.tools
        ]
    return body


def _messages(prompt: Prompt) -> list[dict[str, Any]]:
    """The messages; pictures are parts of the first one of the user."""
    messages: list[dict[str, Any]] = [{"role": message.role, "content": message.text} for message in prompt.messages]
    if prompt.pictures:
        first = next(message for message in messages if message["role"] == "user")
        parts = [{"type": "text", "text": first["content"]}]
        for each in prompt.pictures:
            address = f"data:image/png;base64,{base64.b64encode(each.png).decode()}"
            parts += [
                {"type": "text", "text": each.before},
                {"type": "image_url", "image_url": {"url": address}},
                {"type": "text", "text": each.after},
            ]
        first["content"] = parts
    return messages


def is_closed(schema: object) -> bool:
    """Whether every object in a schema lists all its fields and requires them, which `strict` demands."""
    if isinstance(schema, Mapping):
        if schema.get("type") == "object" or "properties" in schema:
            fields = schema.get("properties", {})
            if schema.get("additionalProperties") is not False or set(schema.get("required", ())) != set(fields):
                return False
        return all(is_closed(each) for each in schema.values())
    if isinstance(schema, Sequence) and not isinstance(schema, str):
        return all(is_closed(each) for each in schema)
    return True


@dataclass(slots=True)
class StreamedReply:
    """A reply as far as its server-sent events have arrived. What is no such event is passed over."""

    text: str = ""
    finish: str = ""
    begun: bool = False  # a delta has come, though it may be empty
    ended: bool = False
    error: str = ""
    envelope: dict[str, Any] = field(default_factory=dict)  # `model` and `usage`, as far as they were sent
    _rest: bytes = b""

    def feed(self, piece: bytes) -> bool:
        """Take a piece up. Whether the text has grown."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        before = len(self.text)
        for line in lines:
            if line.startswith(b"data:"):
                self._take(line[5:].strip().decode("utf-8", "replace"))
        return len(self.text) > before

    def _take(self, data: str) -> None:
        if data == "[DONE]":
            self.ended = True
            return
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            return
        if not isinstance(event, Mapping):
            return
        self.envelope |= {name: event[name] for name in ("model", "usage") if event.get(name)}
        if event.get("error"):
            self.error = parse_refusal(data).message
        choices = event.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if isinstance(choice, Mapping):
            delta = choice.get("delta")
            if isinstance(delta, Mapping):
                self.begun = True
                self.text += _text(delta.get("content"))
            self.finish = finish if isinstance(finish := choice.get("finish_reason"), str) else self.finish


def read_stream(response: Response) -> dict[str, Any]:
    """A streamed reply as the JSON that the endpoint would have sent whole. ValueError if it broke off."""
    streamed = StreamedReply()
    streamed.feed(response.body + b"\n")
    if streamed.error:
        raise ValueError(f"it broke off: {streamed.error}")
    if not streamed.ended and not streamed.finish:
        raise ValueError("it broke off")
    if not streamed.begun:
        raise ValueError("there are no `choices` with a `delta`")
    choice = {"message": {"content": streamed.text}, "finish_reason": streamed.finish or "stop"}
    return streamed.envelope | {"choices": [choice]}


def read_reply(data: object, prompt: Prompt, model: str, seconds: float = 0.0) -> Reply:
    """A reply from an endpoint's JSON. ValueError says what is wrong with it."""
    if not isinstance(data, Mapping):
        raise ValueError("it is no JSON object")
    choices = data.get("choices")
    if not isinstance(choices, list) or not choices:
        raise ValueError("there are no `choices`")
    choice = choices[0]
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(message, Mapping):
        raise ValueError("the first choice has no `message`")
    text = _text(message.get("content")) or _text(message.get("refusal"))
    calls = _calls(message)
    finish, usage = choice.get("finish_reason"), data.get("usage")
    counts: Mapping[str, object] = usage if isinstance(usage, Mapping) else {}
    return Reply(
        text=without_thoughts(text),
        calls=calls,
        finish=clean(finish)[:LONGEST_NAME]
        if isinstance(finish, str) and finish
        else "tool_calls"
        if calls
        else "stop",
        usage=usage_or_estimate(
            counts.get("prompt_tokens"), counts.get("completion_tokens"), prompt, text, calls, seconds
        ),
        model=clean(name)[:LONGEST_NAME] if isinstance(name := data.get("model"), str) and name else model,
    )


def without_thoughts(text: str) -> str:
    """The reply without the reasoning before it. The template may have opened the tag, so a closing tag alone counts too."""
    start = text.lstrip()
    for opens, closes in THOUGHTS:
        if start.startswith(opens):
            return start.partition(closes)[2].lstrip()  # never closed: there is no answer yet
        if closes in start and opens not in start.partition(closes)[0] and not start.startswith(("{", "[")):
            return start.partition(closes)[2].lstrip()
    return text


def usage_or_estimate(
    reported_in: object, reported_out: object, prompt: Prompt, text: str, calls: Sequence[ToolCall], seconds: float
) -> Usage:
    """The reported usage; missing or implausible counts are estimated."""
    written = text + "".join(f" {call.name} {call.arguments}" for call in calls)
    tokens_in = _count(reported_in) or prompt_tokens(prompt)
    return Usage(1, tokens_in, _count(reported_out) or estimate_tokens(written), seconds=seconds)


def as_arguments(value: object) -> str:
    """A call's arguments as JSON, in whichever form the endpoint sent them."""
    if isinstance(value, str):
        return clean(value)
    return "{}" if value is None else clean(_dumped(value))


def _count(value: object) -> int:
    """A token count; 0 if it is not one. No prompt has 0 tokens, so 0 means unknown too."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        return 0
    return int(min(value, MOST_TOKENS))


def _calls(message: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    listed = message.get("tool_calls")
    if isinstance(listed, Mapping):
        listed = [listed]
    if not listed and isinstance(message.get("function_call"), Mapping):  # the older form, from before tools
        listed = [{"function": message["function_call"]}]
    if not isinstance(listed, list):
        return ()
    found = [each for each in listed if isinstance(each, Mapping) and isinstance(each.get("function"), Mapping)]
    return tuple(_call(place, each) for place, each in enumerate(found[:MOST_CALLS], 1))


def _call(place: int, call: Mapping[str, Any]) -> ToolCall:
    asked, own = call["function"], call.get("id")
    name = asked.get("name")
    return ToolCall(
        id=clean(own)[:LONGEST_NAME] if isinstance(own, str) and own else f"call_{place}",
        name=clean(name)[:LONGEST_NAME] if isinstance(name, str) else "",
        arguments=as_arguments(asked.get("arguments")),
    )


def _text(content: object) -> str:
    """The text of a message: a string, a list of parts of which some are text, or a value in place of a string."""
    if content is None:
        return ""
    if isinstance(content, str):
        return clean(content)
    if isinstance(content, list):
        return "".join(_part(part) for part in content)
    return clean(_dumped(content))


def _part(part: object) -> str:
    if isinstance(part, str):
        return clean(part)
    if isinstance(part, Mapping) and part.get("type", "text") in ("text", "output_text"):
        return clean(text) if isinstance(text := part.get("text"), str) else ""
    return ""  # reasoning or an image


def _dumped(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return ""


def clean(words: str) -> str:
    """Removes lone surrogates: they are legal in JSON, but cannot be stored or shown."""
    return words.encode("utf-8", "replace").decode()
