"""The ways in which endpoints go wrong, and what each looks like in answer to a given request."""

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
from assay.testing.chat import completion, error, events
from assay.testing.fill import fill
from assay.testing.loopback import Exchange, chunk, head
from assay.testing.policies import agreeable, easy_going
from assay.testing.protocol import Action, Call, Calls, Http, Request, Said, reply_of, tools_of

HUGE = 5_000_000
PARALLEL = 200
DRIP_SECONDS = 0.2
NO_SUCH_TOOL = "launch_the_rocket"
PROSE = (
    "Certainly! I have thought about this with care, and on the whole I would say that it depends on the circumstances."
)


class Fault(Enum):
    """What may go wrong. The value says what is seen; `list(Fault)` are all there are."""

    # the connection
    refuse = "the connection is reset before the request is read"
    hang_up = "the connection is closed without a reply"
    hang = "no reply, ever"
    hang_midway = "the headers of a reply, then nothing"
    drip = "a reply, a byte at a time"
    reset_mid_body = "half a reply of known length, then a reset"
    reset_mid_stream = "half a reply in chunks, then a reset"
    # told to wait
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
    # a reply that is none
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
    # a bill that cannot be right
    usage_missing = "no usage"
    usage_negative = "negative usage"
    usage_huge = "usage of 10^15 tokens"

    def __str__(self) -> str:
        return self.name

    @property
    def harmless(self) -> bool:
        """Whether the reply itself is still good: a client can carry on as if nothing had been."""
        return self.name.startswith("usage_")


def misbehaviour(fault: Fault, request: Request, model: str = "scripted") -> Said:
    """What a fault looks like in answer to this request. One that leaves the reply good needs the reply: `misbilled`."""
    if fault in _STATUS:
        return _STATUS[fault]()
    if fault in _WIRE:
        play, whole = _WIRE[fault], _whole(decent(request), request, model)
        return Action(lambda exchange: play(exchange, whole))
    if fault in _EMPTY:
        return _without_message(fault, request, model)
    if fault in (Fault.unknown_tool, Fault.parallel_calls):
        return _odd_calls(fault, request)
    return _spoilt(fault, request)


def misbilled(fault: Fault, reply: Reply, request: Request, model: str = "scripted") -> Said:
    """A good reply with a bill that cannot be right."""
    if fault is Fault.usage_missing:
        bare = {**request, "stream_options": None}
        return _sent(_whole(reply, bare, model, usage=None), request)
    tokens = -7 if fault is Fault.usage_negative else 10**15
    return replace(reply, usage=Usage(1, tokens, tokens))


def decent(request: Request) -> Reply:
    """A reply that keeps to what was asked for, for want of a better one: so that only what is to be wrong is wrong."""
    good = agreeable(request)
    assert not isinstance(good, (Http, Action))
    return reply_of(good, request)


# --- on the wire ----------------------------------------------------------------------------------------------------


def _whole(reply: Reply, request: Request, model: str, **changed: Any) -> bytes:
    """The body of a response that carries the reply; a property changed to None is left out."""
    if request.get("stream"):
        return b"".join(events(reply, dict(request), model))
    body = completion(reply, model) | changed
    return json.dumps({name: value for name, value in body.items() if value is not None}).encode()


def _sent(body: bytes, request: Request) -> Http:
    return Http(200, body, "text/event-stream" if request.get("stream") else "application/json")


def _head(exchange: Exchange, length: int | None) -> bytes:
    streams = json.loads(exchange.body).get("stream")
    return head(200, "text/event-stream" if streams else "application/json", length)


async def _refuse(exchange: Exchange, whole: bytes) -> None:
    exchange.reset()


async def _hang_up(exchange: Exchange, whole: bytes) -> None:
    exchange.hang_up()


async def _hang(exchange: Exchange, whole: bytes) -> None:
    await exchange.gone()


async def _hang_midway(exchange: Exchange, whole: bytes) -> None:
    await exchange.send(_head(exchange, len(whole)))
    await exchange.gone()


async def _drip(exchange: Exchange, whole: bytes) -> None:
    await exchange.send(_head(exchange, len(whole)))
    gone = asyncio.ensure_future(exchange.gone())
    for byte in whole:
        await exchange.send(bytes([byte]))
        if (await asyncio.wait({gone}, timeout=DRIP_SECONDS))[0]:
            return
    gone.cancel()


async def _reset_mid_body(exchange: Exchange, whole: bytes) -> None:
    await exchange.send(_head(exchange, len(whole)) + whole[: len(whole) // 2])
    await asyncio.sleep(0.01)  # the client is to see the half that comes
    exchange.reset()


async def _reset_mid_stream(exchange: Exchange, whole: bytes) -> None:
    await exchange.send(_head(exchange, None) + chunk(whole[: len(whole) // 2]))
    await asyncio.sleep(0.01)
    exchange.reset()


async def _echo_key(exchange: Exchange, whole: bytes) -> None:
    key = exchange.headers.get("authorization", "").removeprefix("Bearer ")
    words = error(f"Incorrect API key provided: {key}. Check your key.", "invalid_request_error", "invalid_api_key")
    await exchange.reply(401, json.dumps(words).encode())


async def _not_utf8(exchange: Exchange, whole: bytes) -> None:
    at = max(whole.find(place) + len(place) for place in (b'"content": "', b'"arguments": "') if place in whole)
    broken = whole[:at] + b"\xc3\x28\xff\xfe" + whole[at:]
    await exchange.send(_head(exchange, len(broken)) + broken)


_WIRE: Mapping[Fault, Callable[[Exchange, bytes], Awaitable[None]]] = {
    Fault.refuse: _refuse,
    Fault.hang_up: _hang_up,
    Fault.hang: _hang,
    Fault.hang_midway: _hang_midway,
    Fault.drip: _drip,
    Fault.reset_mid_body: _reset_mid_body,
    Fault.reset_mid_stream: _reset_mid_stream,
    Fault.echoed_key: _echo_key,
    Fault.not_utf8: _not_utf8,
}


# --- a response, and not a reply ------------------------------------------------------------------------------------


def _limited(after: str | None) -> Http:
    headers = {} if after is None else {"retry-after": after}
    return Http(429, error("Rate limit reached, try again later.", "requests", "rate_limit_exceeded"), headers=headers)


def _an_hour_ahead() -> str:
    return format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)


def _failed(status: int, kind: str = "server_error") -> Http:
    return Http(status, error("The server had an error while processing your request.", kind))


_PAGE = "<!doctype html><html><head><title>{0}</title></head><body><h1>{0}</h1></body></html>"
_WINDOW = "This model's maximum context length is 4096 tokens. However, your messages resulted in 9001 tokens."

_STATUS: Mapping[Fault, Callable[[], Http]] = {
    Fault.limited: lambda: _limited(None),
    Fault.limited_zero: lambda: _limited("0"),
    Fault.limited_one: lambda: _limited("1"),
    Fault.limited_fraction: lambda: _limited("0.25"),
    Fault.limited_negative: lambda: _limited("-1"),
    Fault.limited_day: lambda: _limited("86400"),
    Fault.limited_past: lambda: _limited("Wed, 21 Oct 2015 07:28:00 GMT"),
    Fault.limited_future: lambda: _limited(_an_hour_ahead()),
    Fault.limited_nonsense: lambda: _limited("soon"),
    Fault.status_500: lambda: _failed(500),
    Fault.status_502: lambda: Http(502, _PAGE.format("502 Bad Gateway"), "text/html"),
    Fault.status_503: lambda: _failed(503),
    Fault.status_529: lambda: _failed(529, "overloaded_error"),
    Fault.unauthorised: lambda: Http(401, error("Unauthorized", "invalid_request_error", "invalid_api_key")),
    Fault.too_long: lambda: Http(400, error(_WINDOW, "invalid_request_error", "context_length_exceeded")),
    Fault.html: lambda: Http(200, _PAGE.format("Please sign in"), "text/html"),
}


# --- a reply of the wrong form --------------------------------------------------------------------------------------

_EMPTY = (Fault.empty_choices, Fault.null_message)


def _without_message(fault: Fault, request: Request, model: str) -> Http:
    whole = completion(Reply(""), model)
    place = "message"
    if request.get("stream"):
        whole, place = whole | {"object": "chat.completion.chunk"}, "delta"
    choices = [] if fault is Fault.empty_choices else [{"index": 0, place: None, "finish_reason": "stop"}]
    body = json.dumps(whole | {"choices": choices}).encode()
    return _sent(b"data: %s\n\ndata: [DONE]\n\n" % body if request.get("stream") else body, request)


def _odd_calls(fault: Fault, request: Request) -> Said:
    tools = tools_of(request)
    if fault is Fault.unknown_tool:
        odd = Calls((Call(NO_SUCH_TOOL, {"when": "now"}),))
    else:
        tool = next(iter(tools), "search")
        usual = fill(tools[tool], easy_going(request)) if tools else {"query": "anything"}
        odd = Calls(tuple(Call(tool, _numbered(usual, n)) for n in range(PARALLEL)))
    # A request that offers no tools, in any form, gets native calls all the same: a surprise is a fault too.
    return odd if tools else reply_of(odd, {**request, "tools": ["none"]})


def _numbered(arguments: Mapping[str, Any], n: int) -> Mapping[str, Any]:
    """No two calls are alike."""
    return {name: f"{value} {n}" if isinstance(value, str) else value for name, value in arguments.items()}


def _spoilt(fault: Fault, request: Request) -> Reply:
    """A decent reply, spoilt in the one place that the fault is about."""
    reply = decent(request)
    finish = "length" if fault is Fault.cut_off else reply.finish
    if fault is Fault.prose:
        return replace(reply, text=PROSE, calls=(), finish="stop")
    if reply.calls:
        calls = tuple(ToolCall(call.id, call.name, _broken(call.arguments, fault)) for call in reply.calls)
        return replace(reply, calls=calls, finish=finish)
    return replace(reply, text=_broken_inside(reply.text, fault), finish=finish)


def _broken_inside(text: str, fault: Fault) -> str:
    """The JSON of a reply, broken; where it carries tool calls, broken in the arguments of the first."""
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
    return before + broken + ("" if fault is Fault.arguments_truncated else after)


def _broken(text: str, fault: Fault) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    fields: dict[str, Any] = value if isinstance(value, dict) and value else {"text": text}
    first = next(iter(fields))
    match fault:
        case Fault.cut_off | Fault.arguments_truncated:
            return text[: max(1, len(text) * 2 // 3)]
        case Fault.arguments_list:
            return json.dumps([fields])
        case Fault.arguments_number:
            return "42"
        case Fault.arguments_duplicated:
            return "{" + ", ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in _twice(fields)) + "}"
        case Fault.arguments_nan:
            number = next((name for name, v in fields.items() if isinstance(v, (int, float))), first)
            return json.dumps({**fields, number: float("nan")})
        case Fault.arguments_huge:
            words = next((name for name, v in fields.items() if isinstance(v, str)), first)
            return json.dumps({**fields, words: "very " * (HUGE // 5)})
        case Fault.wrong_types:
            return json.dumps({name: _wrong(v) for name, v in fields.items()})
        case _:
            return json.dumps({**fields, "confidence": 0.97, "notes": {"author": "nobody asked"}})


def _twice(fields: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Every field, and every field again: with other words, so that it matters which of the two is taken."""
    return [*fields.items(), *((k, f"{v} (again)" if isinstance(v, str) else v) for k, v in fields.items())]


def _wrong(value: Any) -> Any:
    """A value of another type."""
    if isinstance(value, str):
        return [value]
    return {"value": value} if isinstance(value, list) else "perhaps"
