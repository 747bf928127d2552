"""A chat endpoint for tests: real HTTP on 127.0.0.1, with a function in the place of the model.

with ChatServer(lambda request: "Good morning.") as server:
    httpx.post(f"{server.url}/chat/completions", json={"messages": [...]})
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import Any

from assay.models.llm import Reply
from doubles.local_server import HttpExchange, LocalServer
from doubles.protocol import AnswerFunction, ConnectionAction, HttpReply, call_answer, reply_of, role_of
from doubles.trial_replies import trial_rulings

NOT_ANSWERED = 418  # a status that clients do not retry
PIECE = 24  # characters in a streamed piece

Json = dict[str, Any]


class ChatServer(LocalServer):
    """Serves `/v1/chat/completions`, whole or streamed, and `/v1/models`.

    `answer` gets the parsed body of each request and returns the model's reply: a `str` unchanged, a `dict` as JSON,
    `ScriptedCalls` as tool calls, a `Reply` in full; or an `HttpReply` or a `ConnectionAction`, to misbehave. It runs
    on the server's event loop, so it must be `async` if it waits. Exceptions it raises are kept in `problems`; the
    client gets status 418.

    `lacks` names what this endpoint does not support: `tools`, `schema`, `json` (rejected with status 400) and `models`
    (404). The trial of a judge is no request of a run: it is answered here, not by `answer`, and not recorded; rightly, or,
    by an endpoint that lacks tools or is no good judge, by calling every claim supported. With `trial=False` it goes to
    `answer` as well.
    `window` is reported as the context length. Every request is recorded: `requests` (the bodies), `headers` (in
    the same order), `counts` by role, `peak_concurrency`. `with` runs the server in a thread, `async with` on the
    running event loop.
    """

    def __init__(
        self,
        answer: AnswerFunction,
        *,
        model: str = "scripted",
        window: int | None = None,
        lacks: Collection[str] = (),
        trial: bool = True,
        good_judge: bool | None = None,
        refuse: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(self._serve, refuse)
        self.answer = answer
        self.model = model
        self.window = window
        self.lacks = frozenset(lacks)
        self.trial = trial
        self.good_judge = "tools" not in self.lacks if good_judge is None else good_judge
        self.requests: list[Json] = []
        self.headers: list[dict[str, str]] = []
        self.counts: Counter[str] = Counter()
        self.problems: list[Exception] = []
        self.peak_concurrency = 0
        self._concurrency = 0

    @property
    def url(self) -> str:
        """The base URL for a client."""
        return f"http://127.0.0.1:{self.port}/v1"

    async def _serve(self, exchange: HttpExchange) -> None:
        method, path = exchange.request.method, exchange.request.url.path
        if (method, path) == ("GET", "/v1/models") and "models" not in self.lacks:
            await exchange.reply(200, _json(self._models()))
        elif (method, path) == ("POST", "/v1/chat/completions"):
            self._concurrency += 1
            self.peak_concurrency = max(self.peak_concurrency, self._concurrency)
            try:
                await self._complete(exchange)
            finally:
                self._concurrency -= 1
        else:
            await exchange.reply(404, _json(error(f"there is nothing at {method} {path}", "not_found")))

    async def _complete(self, exchange: HttpExchange) -> None:
        try:
            request = json.loads(exchange.body)
            role = role_of(request)[0]
        except (ValueError, AttributeError, KeyError, TypeError):
            await exchange.reply(400, _json(error("the body is no chat request", "invalid_request_error")))
            return
        rulings = trial_rulings(request, capable=self.good_judge) if self.trial else None
        if rulings is None:
            self.requests.append(request)
            self.headers.append(dict(exchange.request.headers))
            self.counts[role] += 1
        if refused := self._refused(request):
            await exchange.reply(400, _json(error(f"{refused} is not supported here", "invalid_request_error")))
            return
        try:
            output = rulings or await call_answer(self.answer, request)
            reply = output if isinstance(output, (HttpReply, ConnectionAction)) else reply_of(output, request)
        except Exception as problem:
            self.problems.append(problem)
            await exchange.reply(NOT_ANSWERED, _json(error(f"no answer: {problem!r}", "no_answer")))
            return
        if isinstance(reply, ConnectionAction):
            await reply.play(exchange)
        elif isinstance(reply, HttpReply):
            await exchange.reply(reply.status, reply.data, reply.media_type, reply.headers)
        elif request.get("stream"):
            await exchange.start("text/event-stream")
            for event in events(reply, request, self.model):
                await exchange.write(event)
            await exchange.write(b"", last=True)
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
    """An error body in the form that OpenAI uses."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def completion(reply: Reply, model: str) -> Json:
    """A reply as the body of a non-streamed `/v1/chat/completions` response."""
    message: Json = {"role": "assistant", "content": reply.text or (None if reply.calls else "")}
    if reply.calls:
        message["tool_calls"] = _tool_calls(reply)
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reply.finish}
    return _envelope("chat.completion", reply, model) | {"choices": [choice], "usage": usage(reply)}


def events(reply: Reply, request: Json, model: str) -> Iterator[bytes]:
    """A reply as a stream of server-sent events that ends with `[DONE]`."""
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
    size = max(PIECE, len(text) // 1000)  # a reply of megabytes is sent in at most a thousand events
    return (text[at : at + size] for at in range(0, len(text), size))


def _sse(data: Json) -> bytes:
    return b"data: %s\n\n" % _json(data)


def _json(data: Json) -> bytes:
    return json.dumps(data).encode()
