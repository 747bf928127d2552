"""An HTTP server on 127.0.0.1 for tests, on uvicorn's HTTP/1.1 protocol. It can also break a connection deliberately."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import struct
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

THREAD_TIMEOUT = 60.0  # seconds for the thread to start or end; only reached if something is wrong
KEEP_ALIVE = 86_400  # seconds: no test waits for an idle connection to be closed


@dataclass(frozen=True, slots=True)
class HttpExchange:
    """One request with its complete body, and the connection for its response."""

    request: Request
    body: bytes
    send: Send
    transport: asyncio.Transport

    async def reply(
        self,
        status: int,
        body: bytes,
        media_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Sends a complete response."""
        response = Response(body, status, dict(headers or {}), media_type)
        await response(self.request.scope, self.request.receive, self.send)

    async def start(self, media_type: str, length: int | None = None) -> None:
        """Sends a status line of 200 and the headers. Without a length the body is chunked."""
        headers = [(b"content-type", media_type.encode())]
        if length is not None:
            headers.append((b"content-length", b"%d" % length))
        await self.send({"type": "http.response.start", "status": 200, "headers": headers})

    async def write(self, data: bytes, *, last: bool = False) -> None:
        """Sends a part of the body."""
        await self.send({"type": "http.response.body", "body": data, "more_body": not last})

    async def wait_closed(self) -> None:
        """Waits until the connection is closed."""
        while (await self.request.receive())["type"] != "http.disconnect":
            pass

    async def close(self) -> None:
        """Closes the connection cleanly, whether or not a response was sent."""
        self.transport.close()
        await self.wait_closed()

    async def reset(self) -> None:
        """Aborts the connection: the client sees a reset."""
        _reset(self.transport)
        await self.wait_closed()


Handler = Callable[[HttpExchange], Awaitable[None]]


class LocalServer:
    """Serves on a free port of 127.0.0.1: in a thread between `start` and `close` (`with`), or on the running event
    loop (`async with`). After closing, no connection, task or thread is left.

    refuse: called for every new connection; whether to reset it before anything is read
    """

    def __init__(self, handler: Handler, refuse: Callable[[], bool] = lambda: False) -> None:
        self._handler = handler
        self._refuse = refuse
        self._state = ServerState()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._server: asyncio.Server | None = None
        self.port = 0
        self.connections = 0  # total number opened

    def start(self) -> None:
        """Serves in a separate thread."""
        if self._thread:
            raise RuntimeError("the server is running already")
        ready = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._run(ready)), name="assay-test-server", daemon=True
        )
        self._thread.start()
        if not ready.wait(THREAD_TIMEOUT):
            raise RuntimeError("the server did not start")

    def close(self) -> None:
        """Ends the thread and every connection. Idempotent."""
        thread, self._thread = self._thread, None
        if not thread or not self._loop or not self._stop:
            return
        self._loop.call_soon_threadsafe(self._stop.set)
        thread.join(THREAD_TIMEOUT)
        if thread.is_alive():
            raise RuntimeError("the server cannot close: an answer is blocking its event loop")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        config = Config(
            self._app,
            http="h11",
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            timeout_keep_alive=KEEP_ALIVE,
        )
        self._server = await asyncio.get_running_loop().create_server(
            lambda: _Protocol(self, config, self._state), "127.0.0.1", 0, backlog=1024
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server:
            self._server.close()
        for connection in list(self._state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)  # lets the connections process their closing
        tasks = list(self._state.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, ready: threading.Event) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with self:
            ready.set()
            await self._stop.wait()

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        with contextlib.suppress(asyncio.CancelledError):  # the server is closed
            body = await request.body()
            await self._handler(HttpExchange(request, body, send, scope["state"]["transport"]))


class _Protocol(H11Protocol):
    """uvicorn's protocol, with the transport passed to the application, connections counted and no logging."""

    def __init__(self, owner: LocalServer, config: Config, state: ServerState) -> None:
        super().__init__(config, state, {})
        self._owner = owner
        self.access_log = False
        self.logger = _SILENT

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.app_state["transport"] = transport
        self._owner.connections += 1
        if self._owner._refuse():
            _reset(transport)


_SILENT = logging.Logger("doubles", logging.CRITICAL + 1)


def _reset(transport: asyncio.Transport) -> None:
    raw = transport.get_extra_info("socket")
    if raw is not None:
        with contextlib.suppress(OSError):
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
