"""A chat endpoint in a thread: real HTTP on the loopback, with a function in the place of the model.

with ChatServer(lambda request: "Good morning.") as server:
    httpx.post(f"{server.url}/chat/completions", json={"messages": [...]})
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator
from types import TracebackType
from typing import Any, Self

from assay.models.llm import Reply
from assay.testing.loopback import CloseAtOnce, Exchange, Loopback, chunk, head
from assay.testing.protocol import Action, Answer, Http, reply_of, role_of, said

NOT_ANSWERED = 418  # a status that no client takes for an invitation to try again, or to try otherwise
PIECE = 24  # how many characters a streamed piece has

Json = dict[str, Any]


class ChatServer:
    """Speaks `/v1/chat/completions`, whole or streamed, and `/v1/models`.

    `answer` sees the parsed body of each request and returns what the model says: a `str` as it is, a `dict` as JSON,
    `Calls` as tool calls, a `Reply` in full; or `Http` and `Action`, which misbehave. It runs on the server's own event
    loop: one that takes its time must be `async`. One that raises is kept in `problems`, and the client gets status 418.

    `lacks` names what this endpoint cannot do: `tools`, `schema`, `json` (refused with status 400) and `models` (404).
    `window` is stated as the context length. All that was asked is kept: `requests` (the bodies), `headers` (beside
    them), `counts` by role, `most_at_once`. Works as a context manager, plain or async.
    """

    def __init__(
        self,
        answer: Answer,
        *,
        model: str = "scripted",
        window: int | None = None,
        lacks: Collection[str] = (),
        shut: CloseAtOnce | None = None,
    ) -> None:
        self.answer = answer
        self.model = model
        self.window = window
        self.lacks = frozenset(lacks)
        self.requests: list[Json] = []
        self.headers: list[dict[str, str]] = []
        self.counts: Counter[str] = Counter()
        self.problems: list[Exception] = []
        self.most_at_once = 0
        self._at_once = 0
        self._loopback = Loopback(self._serve, shut)

    @property
    def url(self) -> str:
        """What a client takes for its base URL."""
        return f"http://127.0.0.1:{self._loopback.port}/v1"

    @property
    def connections(self) -> int:
        """How many connections were ever opened."""
        return self._loopback.connections

    def start(self) -> None:
        self._loopback.start()

    def close(self) -> None:
        self._loopback.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, kind: Any, error: Any, at: Any) -> None:
        self.close()  # a few milliseconds: not worth a thread that would stay behind

    async def _serve(self, exchange: Exchange) -> None:
        path = exchange.path.partition("?")[0]
        if exchange.method == "GET" and path == "/v1/models" and "models" not in self.lacks:
            await exchange.reply(200, _json(self._models()))
        elif exchange.method == "POST" and path == "/v1/chat/completions":
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            try:
                await self._complete(exchange)
            finally:
                self._at_once -= 1
        else:
            await exchange.reply(404, _json(error(f"there is nothing at {exchange.method} {path}", "not_found")))

    async def _complete(self, exchange: Exchange) -> None:
        try:
            request = json.loads(exchange.body)
            role = role_of(request)[0]
        except (ValueError, AttributeError, KeyError, TypeError):
            await exchange.reply(400, _json(error("the body is no chat request", "invalid_request_error")))
            return
        self.requests.append(request)
        self.headers.append(dict(exchange.headers))
        self.counts[role] += 1
        if refused := self._refused(request):
            await exchange.reply(400, _json(error(f"{refused} is not supported here", "invalid_request_error")))
            return
        try:
            saying = await said(self.answer, request)
            reply = saying if isinstance(saying, (Http, Action)) else reply_of(saying, request)
        except Exception as problem:
            self.problems.append(problem)
            await exchange.reply(NOT_ANSWERED, _json(error(f"no answer: {problem!r}", "no_answer")))
            return
        if isinstance(reply, Action):
            await reply.play(exchange)
        elif isinstance(reply, Http):
            await exchange.reply(reply.status, reply.data, reply.kind, **reply.headers)
        elif request.get("stream"):
            await exchange.send(head(200, "text/event-stream", None))
            for event in events(reply, request, self.model):
                await exchange.send(chunk(event))
            await exchange.send(chunk(b""))
        else:
            await exchange.reply(200, _json(completion(reply, self.model)))

    def _refused(self, request: Json) -> str:
        form = (request.get("response_format") or {}).get("type", "")
        asked = {"tools": bool(request.get("tools")), "schema": form == "json_schema", "json": form == "json_object"}
        return next((name for name, wanted in asked.items() if wanted and name in self.lacks), "")

    def _models(self) -> Json:
        model: Json = {"id": self.model, "object": "model", "created": 0, "owned_by": "assay"}
        return {"object": "list", "data": [model | ({"max_model_len": self.window} if self.window else {})]}


def error(message: str, kind: str, code: str | None = None) -> Json:
    """An error body as OpenAI writes it."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def completion(reply: Reply, model: str) -> Json:
    """A reply as `/v1/chat/completions` gives it whole."""
    message: Json = {"role": "assistant", "content": reply.text or (None if reply.calls else "")}
    if reply.calls:
        message["tool_calls"] = _tool_calls(reply)
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reply.finish}
    return _envelope("chat.completion", reply, model) | {"choices": [choice], "usage": usage(reply)}


def events(reply: Reply, request: Json, model: str) -> Iterator[bytes]:
    """A reply as it is streamed: server-sent events, the last of them `[DONE]`."""
    envelope = _envelope("chat.completion.chunk", reply, model)

    def event(delta: Json, finish: str | None = None) -> bytes:
        return _sse(envelope | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    yield event({"role": "assistant", "content": ""})
    for piece in _pieces(reply.text):
        yield event({"content": piece})
    for n, call in enumerate(_tool_calls(reply)):
        function = call["function"]
        yield event({"tool_calls": [call | {"index": n, "function": function | {"arguments": ""}}]})
        for piece in _pieces(function["arguments"]):
            yield event({"tool_calls": [{"index": n, "function": {"arguments": piece}}]})
    yield event({}, reply.finish)
    if (request.get("stream_options") or {}).get("include_usage"):
        yield _sse(envelope | {"choices": [], "usage": usage(reply)})
    yield b"data: [DONE]\n\n"


def usage(reply: Reply) -> Json:
    spent = reply.usage
    total = spent.tokens_in + spent.tokens_out
    return {"prompt_tokens": spent.tokens_in, "completion_tokens": spent.tokens_out, "total_tokens": total}


def _tool_calls(reply: Reply) -> list[Json]:
    return [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in reply.calls
    ]


def _envelope(kind: str, reply: Reply, model: str) -> Json:
    return {"id": "chatcmpl-scripted", "object": kind, "created": 0, "model": reply.model or model}


def _pieces(text: str) -> Iterator[str]:
    size = max(PIECE, len(text) // 1000)  # five megabytes need not be two hundred thousand events
    return (text[at : at + size] for at in range(0, len(text), size))


def _sse(data: Json) -> bytes:
    return b"data: %s\n\n" % _json(data)


def _json(data: Json) -> bytes:
    return json.dumps(data).encode()
