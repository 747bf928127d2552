"""A small HTTP/1.1 server on the loopback, in a thread of its own. The chat server and the fault server stand on it.

It speaks just enough of the protocol for any client, and hands out the wire itself where a reply is to be broken on purpose.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import Self

LONGEST_HEAD = 1 << 16
LONGEST_BODY = 1 << 26
SECONDS_TO_CLOSE = 10.0

CloseAtOnce = Callable[[], bool]


@dataclass(slots=True)
class Exchange:
    """One request, and the wire its reply goes out on. Header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    last: bool = False  # whether the connection ends after this exchange

    async def send(self, data: bytes) -> None:
        """These bytes, as they are."""
        self.writer.write(data)
        if len(data) > LONGEST_HEAD:
            await self.writer.drain()

    async def reply(self, status: int, body: bytes, kind: str = "application/json", **headers: str) -> None:
        """A complete and correct HTTP response. Headers are named with `_` for `-`."""
        await self.send(head(status, kind, len(body), **headers) + body)

    async def gone(self) -> None:
        """Waits until the client hangs up."""
        self.last = True
        with contextlib.suppress(ConnectionError):
            while await self.reader.read(LONGEST_HEAD):
                pass

    def hang_up(self) -> None:
        """Closes the connection in good order, with or without a reply."""
        self.last = True
        self.writer.close()

    def reset(self) -> None:
        """Cuts the connection the hard way: the client sees a reset, not an end."""
        self.last = True
        _reset(self.writer)


def head(status: int, kind: str, length: int | None, **headers: str) -> bytes:
    """Status line and headers. Without a length the body must follow in chunks."""
    phrase = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "Unknown"
    size = "transfer-encoding: chunked" if length is None else f"content-length: {length}"
    lines = [f"HTTP/1.1 {status} {phrase}", f"content-type: {kind}", size]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def chunk(data: bytes) -> bytes:
    """One piece of a body without a length; an empty one ends it."""
    return b"%x\r\n%s\r\n" % (len(data), data)


class Loopback:
    """Serves on 127.0.0.1, on a port the system chooses, from `start` to `close`. After `close` nothing of it is left:
    no connection, no task, no thread. `shut` is asked at every new connection whether to reset it unread."""

    def __init__(self, serve: Callable[[Exchange], Awaitable[None]], shut: CloseAtOnce | None = None) -> None:
        self._serve = serve
        self._shut = shut
        self._open: set[asyncio.StreamWriter] = set()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self.port = 0
        self.connections = 0  # how many were ever opened

    def start(self) -> None:
        if self._thread:
            raise RuntimeError("the server is running already")
        ready = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._run(ready)), name="assay-loopback", daemon=True
        )
        self._thread.start()
        if not ready.wait(SECONDS_TO_CLOSE):
            raise RuntimeError("the server did not start")

    def close(self) -> None:
        """Ends every connection, whatever it is doing. Closing twice is no mistake."""
        thread, self._thread = self._thread, None
        if not thread or not self._loop or not self._stop:
            return
        self._loop.call_soon_threadsafe(self._stop.set)
        thread.join(SECONDS_TO_CLOSE)
        if thread.is_alive():
            raise RuntimeError("the server cannot close: an answer is holding its thread")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    async def _run(self, ready: threading.Event) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, limit=LONGEST_HEAD, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await self._stop.wait()
        server.close()
        for writer in self._open:
            writer.transport.abort()
        mine = asyncio.current_task()
        rest = [task for task in asyncio.all_tasks() if task is not mine]
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        if self._shut and self._shut():
            return _reset(writer)
        self._open.add(writer)
        # A client that hangs up, and a server that closes, end a connection; neither is worth a word on the terminal.
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while exchange := await _read(reader, writer):
                    await self._serve(exchange)
                    if exchange.last:
                        break
        finally:
            self._open.discard(writer)
            writer.close()
        return None


async def _read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Exchange | None:
    """The next request of a connection; None where there is none, or none that can be read."""
    try:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    except asyncio.LimitOverrunError:
        writer.write(head(431, "text/plain", 0))
        return None
    method, path, *_ = [*lines[0].split(" "), "", ""]
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:-2])}
    length = headers.get("content-length", "0")
    if "transfer-encoding" in headers or not length.isdigit() or int(length) > LONGEST_BODY:
        writer.write(head(411 if "transfer-encoding" in headers else 413, "text/plain", 0))
        return None
    body = await reader.readexactly(int(length)) if length != "0" else b""
    last = headers.get("connection", "").lower() == "close"
    return Exchange(method, path, headers, body, reader, writer, last)


def _reset(writer: asyncio.StreamWriter) -> None:
    raw = writer.get_extra_info("socket")
    if raw is not None:
        with contextlib.suppress(OSError):
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
