"""The ways in which endpoints fail, and the response of each to a given request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from enum import Enum
from typing import Any

from assay.core.types import Usage
from assay.models.llm import Reply, ToolCall
from doubles.chat_server import completion, error, events
from doubles.fill import fill
from doubles.fill_policies import cooperative_policy, cooperative_reply
from doubles.local_server import HttpExchange
from doubles.protocol import (
    ConnectionAction,
    HttpReply,
    ModelOutput,
    Request,
    ScriptedCall,
    ScriptedCalls,
    reply_of,
    tools_of,
)

HUGE = 5_000_000
PARALLEL = 200
DRIP_SECONDS = 0.2
RESET_SECONDS = 0.01  # between half a reply and the reset, so that the client receives the half
NO_SUCH_TOOL = "launch_the_rocket"
PROSE = (
    "Certainly! I have thought about this with care, and on the whole I would say that it depends on the circumstances."
)


class EndpointFault(Enum):
    """What can go wrong. The value says what a client sees."""

    # the connection
    refuse = "the connection is reset before the request is read"
    hang_up = "the connection is closed without a reply"
    hang = "no reply, ever"
    hang_midway = "the headers of a reply, then nothing"
    drip = "a reply, a byte at a time"
    reset_mid_body = "half a reply of known length, then a reset"
    reset_mid_stream = "half a reply in chunks, then a reset"
    # rate limits
    limited = "429 without Retry-After"
    limited_zero = "429, Retry-After: 0"
    limited_one = "429, Retry-After: 1"
    limited_fraction = "429, Retry-After: 0.25"
    limited_negative = "429, Retry-After: -1"
    limited_day = "429, Retry-After: 86400"
    limited_past = "429, Retry-After: a date that has passed"
    limited_future = "429, Retry-After: a date an hour ahead"
    limited_nonsense = "429, Retry-After: soon"
    # refused
    status_500 = "500"
    status_502 = "502 with HTML"
    status_503 = "503"
    status_529 = "529, as an overloaded provider says it"
    unauthorised = "401"
    echoed_key = "401 with the API key in the message"
    too_long = "400, the context length is exceeded"
    # no reply in the response
    html = "HTML with status 200"
    not_utf8 = "a reply that is not UTF-8"
    empty_choices = "a reply without choices"
    null_message = "a choice without a message"
    # a reply of the wrong form
    prose = "plain prose, whatever was asked for"
    wrong_types = "JSON in which every value has the wrong type"
    extra_fields = "JSON with fields nobody asked for"
    cut_off = "finish reason `length`, in the middle of a word"
    arguments_truncated = "arguments that break off"
    arguments_list = "arguments that are a list"
    arguments_number = "arguments that are a number"
    arguments_duplicated = "arguments with every key twice, and not the same words"
    arguments_nan = "arguments with NaN in them"
    arguments_huge = "arguments of five megabytes"
    unknown_tool = "a call of a tool that does not exist"
    parallel_calls = "two hundred calls at once"
    # impossible usage
    usage_missing = "no usage"
    usage_negative = "negative usage"
    usage_huge = "usage of 10^15 tokens"

    def __str__(self) -> str:
        return self.name

    @property
    def harmless(self) -> bool:
        """Whether the reply itself is still valid."""
        return self.name.startswith("usage_")


def faulty_reply(fault: EndpointFault, request: Request, model: str = "scripted") -> ModelOutput:
    """The response of a faulty endpoint to this request. For a fault that leaves the reply valid, see `with_wrong_usage`."""
    if fault in _STATUS:
        return _STATUS[fault]()
    if fault in _CONNECTION:
        play, whole = _CONNECTION[fault], _whole(valid_reply(request), request, model)
        return ConnectionAction(lambda exchange: play(exchange, whole))
    if fault in _EMPTY:
        return _without_message(fault, request, model)
    if fault in (EndpointFault.unknown_tool, EndpointFault.parallel_calls):
        return _wrong_calls(fault, request)
    return _broken_reply(fault, request)


def with_wrong_usage(fault: EndpointFault, reply: Reply, request: Request, model: str = "scripted") -> ModelOutput:
    """A valid reply with missing or impossible token usage."""
    if fault is EndpointFault.usage_missing:
        bare = {**request, "stream_options": None}
        return _ok(_whole(reply, bare, model, usage=None), request)
    tokens = -7 if fault is EndpointFault.usage_negative else 10**15
    return replace(reply, usage=Usage(1, tokens, tokens))


def valid_reply(request: Request) -> Reply:
    """A valid reply, to be broken in one place only."""
    good = cooperative_reply(request)
    assert not isinstance(good, (HttpReply, ConnectionAction))
    return reply_of(good, request)


# --- at the connection ----------------------------------------------------------------------------------------------------


def _whole(reply: Reply, request: Request, model: str, **changed: Any) -> bytes:
    """The body of a response with the reply; a property changed to None is left out."""
    if request.get("stream"):
        return b"".join(events(reply, dict(request), model))
    body = completion(reply, model) | changed
    return json.dumps({name: value for name, value in body.items() if value is not None}).encode()


def _ok(body: bytes, request: Request) -> HttpReply:
    return HttpReply(200, body, "text/event-stream" if request.get("stream") else "application/json")


def _media_type(exchange: HttpExchange) -> str:
    return "text/event-stream" if json.loads(exchange.body).get("stream") else "application/json"


async def _refuse(exchange: HttpExchange, whole: bytes) -> None:
    await exchange.reset()


async def _hang_up(exchange: HttpExchange, whole: bytes) -> None:
    await exchange.close()


async def _hang(exchange: HttpExchange, whole: bytes) -> None:
    await exchange.wait_closed()


async def _hang_midway(exchange: HttpExchange, whole: bytes) -> None:
    await exchange.start(_media_type(exchange), len(whole))
    await exchange.wait_closed()


async def _drip(exchange: HttpExchange, whole: bytes) -> None:
    await exchange.start(_media_type(exchange), len(whole))
    closed = asyncio.ensure_future(exchange.wait_closed())
    try:
        for at in range(len(whole)):
            await exchange.write(whole[at : at + 1], last=at + 1 == len(whole))
            if (await asyncio.wait({closed}, timeout=DRIP_SECONDS))[0]:
                return
    finally:
        closed.cancel()


async def _reset_mid_body(exchange: HttpExchange, whole: bytes) -> None:
    await _reset_halfway(exchange, whole, len(whole))


async def _reset_mid_stream(exchange: HttpExchange, whole: bytes) -> None:
    await _reset_halfway(exchange, whole, None)


async def _reset_halfway(exchange: HttpExchange, whole: bytes, length: int | None) -> None:
    await exchange.start(_media_type(exchange), length)
    await exchange.write(whole[: len(whole) // 2])
    await asyncio.sleep(RESET_SECONDS)
    await exchange.reset()


async def _echo_key(exchange: HttpExchange, whole: bytes) -> None:
    key = exchange.request.headers.get("authorization", "").removeprefix("Bearer ")
    words = error(f"Incorrect API key provided: {key}. Check your key.", "invalid_request_error", "invalid_api_key")
    await exchange.reply(401, json.dumps(words).encode())


async def _not_utf8(exchange: HttpExchange, whole: bytes) -> None:
    at = max(whole.find(place) + len(place) for place in (b'"content": "', b'"arguments": "') if place in whole)
    await exchange.reply(200, whole[:at] + b"\xc3\x28\xff\xfe" + whole[at:], _media_type(exchange))


_CONNECTION: Mapping[EndpointFault, Callable[[HttpExchange, bytes], Awaitable[None]]] = {
    EndpointFault.refuse: _refuse,
    EndpointFault.hang_up: _hang_up,
    EndpointFault.hang: _hang,
    EndpointFault.hang_midway: _hang_midway,
    EndpointFault.drip: _drip,
    EndpointFault.reset_mid_body: _reset_mid_body,
    EndpointFault.reset_mid_stream: _reset_mid_stream,
    EndpointFault.echoed_key: _echo_key,
    EndpointFault.not_utf8: _not_utf8,
}


# --- an HTTP response without a reply ------------------------------------------------------------------------------------


def _limited(after: str | None) -> HttpReply:
    headers = {} if after is None else {"retry-after": after}
    return HttpReply(
        429, error("Rate limit reached, try again later.", "requests", "rate_limit_exceeded"), headers=headers
    )


def _an_hour_ahead() -> str:
    return format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)


def _failed(status: int, kind: str = "server_error") -> HttpReply:
    return HttpReply(status, error("The server had an error while processing your request.", kind))


_PAGE = "<!doctype html><html><head><title>{0}</title></head><body><h1>{0}</h1></body></html>"
_WINDOW = "This model's maximum context length is 4096 tokens. However, your messages resulted in 9001 tokens."

_STATUS: Mapping[EndpointFault, Callable[[], HttpReply]] = {
    EndpointFault.limited: lambda: _limited(None),
    EndpointFault.limited_zero: lambda: _limited("0"),
    EndpointFault.limited_one: lambda: _limited("1"),
    EndpointFault.limited_fraction: lambda: _limited("0.25"),
    EndpointFault.limited_negative: lambda: _limited("-1"),
    EndpointFault.limited_day: lambda: _limited("86400"),
    EndpointFault.limited_past: lambda: _limited("Wed, 21 Oct 2015 07:28:00 GMT"),
    EndpointFault.limited_future: lambda: _limited(_an_hour_ahead()),
    EndpointFault.limited_nonsense: lambda: _limited("soon"),
    EndpointFault.status_500: lambda: _failed(500),
    EndpointFault.status_502: lambda: HttpReply(502, _PAGE.format("502 Bad Gateway"), "text/html"),
    EndpointFault.status_503: lambda: _failed(503),
    EndpointFault.status_529: lambda: _failed(529, "overloaded_error"),
    EndpointFault.unauthorised: lambda: HttpReply(
        401, error("Unauthorized", "invalid_request_error", "invalid_api_key")
    ),
    EndpointFault.too_long: lambda: HttpReply(400, error(_WINDOW, "invalid_request_error", "context_length_exceeded")),
    EndpointFault.html: lambda: HttpReply(200, _PAGE.format("Please sign in"), "text/html"),
}


# --- a reply of the wrong form --------------------------------------------------------------------------------------

_EMPTY = (EndpointFault.empty_choices, EndpointFault.null_message)


def _without_message(fault: EndpointFault, request: Request, model: str) -> HttpReply:
    whole = completion(Reply(""), model)
    place = "message"
    if request.get("stream"):
        whole, place = whole | {"object": "chat.completion.chunk"}, "delta"
    choices = [] if fault is EndpointFault.empty_choices else [{"index": 0, place: None, "finish_reason": "stop"}]
    body = json.dumps(whole | {"choices": choices}).encode()
    return _ok(b"data: %s\n\ndata: [DONE]\n\n" % body if request.get("stream") else body, request)


def _wrong_calls(fault: EndpointFault, request: Request) -> ModelOutput:
    tools = tools_of(request)
    if fault is EndpointFault.unknown_tool:
        odd = ScriptedCalls((ScriptedCall(NO_SUCH_TOOL, {"when": "now"}),))
    else:
        tool = next(iter(tools), "search")
        usual = fill(tools[tool], cooperative_policy(request)) if tools else {"query": "anything"}
        odd = ScriptedCalls(tuple(ScriptedCall(tool, _numbered(usual, n)) for n in range(PARALLEL)))
    # A request without tools still gets native calls.
    return odd if tools else reply_of(odd, {**request, "tools": ["none"]})


def _numbered(arguments: Mapping[str, Any], n: int) -> Mapping[str, Any]:
    """Arguments that differ from those of every other call."""
    return {name: f"{value} {n}" if isinstance(value, str) else value for name, value in arguments.items()}


def _broken_reply(fault: EndpointFault, request: Request) -> Reply:
    """A valid reply, broken in the one place that the fault concerns."""
    reply = valid_reply(request)
    finish = "length" if fault is EndpointFault.cut_off else reply.finish
    if fault is EndpointFault.prose:
        return replace(reply, text=PROSE, calls=(), finish="stop")
    if reply.calls:
        calls = tuple(ToolCall(call.id, call.name, _broken(call.arguments, fault)) for call in reply.calls)
        return replace(reply, calls=calls, finish=finish)
    return replace(reply, text=_broken_inside(reply.text, fault), finish=finish)


def _broken_inside(text: str, fault: EndpointFault) -> str:
    """The JSON of a reply, broken; if it has tool calls, broken in the arguments of the first."""
    try:
        value = json.loads(text)
        first = value["calls"][0]
        arguments = json.dumps(first["arguments"])
    except (ValueError, LookupError, TypeError):
        return _broken(text, fault)
    if not fault.name.startswith("arguments_"):
        return _broken(text, fault)
    before, _, after = json.dumps({**value, "calls": [{**first, "arguments": "@"}]}).partition('"@"')
    broken = _broken(arguments, fault)
    return before + broken + ("" if fault is EndpointFault.arguments_truncated else after)


def _broken(text: str, fault: EndpointFault) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    fields: dict[str, Any] = value if isinstance(value, dict) and value else {"text": text}
    first = next(iter(fields))
    match fault:
        case EndpointFault.cut_off | EndpointFault.arguments_truncated:
            return text[: max(1, len(text) * 2 // 3)]
        case EndpointFault.arguments_list:
            return json.dumps([fields])
        case EndpointFault.arguments_number:
            return "42"
        case EndpointFault.arguments_duplicated:
            return "{" + ", ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in _duplicated(fields)) + "}"
        case EndpointFault.arguments_nan:
            number = next((name for name, v in fields.items() if isinstance(v, (int, float))), first)
            return json.dumps({**fields, number: float("nan")})
        case EndpointFault.arguments_huge:
            words = next((name for name, v in fields.items() if isinstance(v, str)), first)
            return json.dumps({**fields, words: "very " * (HUGE // 5)})
        case EndpointFault.wrong_types:
            return json.dumps({name: _wrong_type(v) for name, v in fields.items()})
        case _:
            return json.dumps({**fields, "confidence": 0.97, "notes": {"author": "nobody asked"}})


def _duplicated(fields: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Every field twice, with different values, so that it matters which of the two is used."""
    return [*fields.items(), *((k, f"{v} (again)" if isinstance(v, str) else v) for k, v in fields.items())]


def _wrong_type(value: Any) -> Any:
    """A value of another type."""
    if isinstance(value, str):
        return [value]
    return {"value": value} if isinstance(value, list) else "perhaps"
