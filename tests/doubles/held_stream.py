"""A model that answers as far as it is let go: up to certain words, or up to a role, and the rest on command."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

from assay.models.llm import Reply
from doubles.chat_server import events
from doubles.local_server import HttpExchange
from doubles.protocol import AnswerFunction, ConnectionAction, ModelOutput, call_answer, reply_of, role_of, text_of


class HeldStream:
    """Answers as `answer` does. The first streamed reply of `role` stops before the words `upto` until `release`; if it is
    `broken`, the connection is then reset."""

    def __init__(self, answer: AnswerFunction, upto: str, role: str = "write", *, broken: bool = False) -> None:
        self.answer = answer
        self.upto, self.role, self.broken = upto, role, broken
        self.reached, self.released = threading.Event(), threading.Event()

    async def __call__(self, request: dict[str, Any]) -> ModelOutput:
        output = await call_answer(self.answer, request)
        if role_of(request)[0] != self.role or not request.get("stream") or self.reached.is_set():
            return output
        reply = reply_of(output, request)
        return ConnectionAction(lambda exchange: self._play(exchange, reply, request))

    def release(self) -> None:
        self.released.set()

    async def _play(self, exchange: HttpExchange, reply: Reply, request: dict[str, Any]) -> None:
        await exchange.start("text/event-stream")
        left, held = reply.text.index(self.upto), False
        for event in events(reply, request, "scripted"):
            if left <= 0 and not held:
                held = True
                self.reached.set()
                while not self.released.is_set():  # noqa: ASYNC110  it is released from another thread
                    await asyncio.sleep(0.005)
                if self.broken:
                    await exchange.reset()
                    return
            await exchange.write(event)
            left -= len(event_text(event))
        await exchange.write(b"", last=True)


class HeldReply:
    """Answers as `answer` does. Replies of `role` to a request with these words wait for `released`."""

    def __init__(self, answer: AnswerFunction, role: str, words: str = "") -> None:
        self.answer, self.role, self.words = answer, role, words
        self.released = threading.Event()

    async def __call__(self, request: dict[str, Any]) -> ModelOutput:
        output = await call_answer(self.answer, request)
        if self.role in role_of(request) and self.words in text_of(request):
            while not self.released.is_set():  # noqa: ASYNC110  it is released from another thread
                await asyncio.sleep(0.005)
        return output


def event_text(event: bytes) -> str:
    """The words of one event of a stream."""
    data = event.removeprefix(b"data: ").strip()
    choices = json.loads(data).get("choices") if data.startswith(b"{") else None
    return (choices[0]["delta"].get("content") or "") if choices else ""
