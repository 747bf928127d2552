"""A server on the loopback that says exactly the bytes it is told to, at the speed it is told to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from assay.core.events import ModelReplied

Saying = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Seen:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def says(body: object, status: int = 200, **headers: str) -> bytes:
    """A whole reply. A text or bytes goes out as it stands, anything else as JSON."""
    content = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} So", f"Content-Length: {len(content)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + content


def chats(content: object = "Hello.", **more: object) -> bytes:
    """A chat reply like those of well-behaved endpoints, but for what is given."""
    message = {"role": "assistant", "content": content, **more}
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    return says({"model": "m-1", "choices": [{"finish_reason": "stop", "message": message}], "usage": usage})


class Loopback:
    """Requests as they came, and how to answer the next; `answer` is given the request and its number, from 1."""

    def __init__(self) -> None:
        self.answer: Callable[[Seen, int], Saying] = lambda seen, number: chats()
        self.seen: list[Seen] = []
        self.connections = 0
        self.sent = 0
        self.url = ""
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        self.connections += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                headers = {
                    name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:-2])
                }
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                method, path, _ = head[0].split(" ")
                self.seen.append(Seen(method, path, headers, body))
                said = self.answer(self.seen[-1], len(self.seen))
                if isinstance(said, bytes):
                    writer.write(said)
                    await writer.drain()
                else:
                    await said(writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


async def hangs(writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)


async def drips(writer: asyncio.StreamWriter) -> None:
    """A good reply, a byte at a time, that would take minutes."""
    for byte in chats():
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0.1)


async def resets(writer: asyncio.StreamWriter) -> None:
    """Half a reply, and the line goes dead."""
    writer.write(chats()[:-10])
    await writer.drain()
    writer.transport.abort()
    raise ConnectionResetError


def never_ends(loopback: Loopback) -> Callable[[asyncio.StreamWriter], Awaitable[None]]:
    async def send(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
            await writer.drain()
            loopback.sent += 0x10000

    return send


class Naps:
    """A clock's worth of sleep, noted and not slept."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)


@dataclass
class Kept:
    """The replies that were recorded."""

    replies: list[ModelReplied] = field(default_factory=list)

    def recorded_reply(self, request: str) -> ModelReplied | None:
        return next((each for each in self.replies if each.request == request), None)
