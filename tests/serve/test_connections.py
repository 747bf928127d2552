"""Slow and idle clients: connections are limited, headers and bodies have deadlines, and replies that nobody reads end."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from typing import Any, cast

import pytest
import uvicorn
from leaving import held
from serving import QUESTION, Served, followed, script, until
from uvicorn.server import ServerState

from assay.core.settings import Settings
from assay.serve.connections import (
    LOWEST_RATE,
    Arrival,
    ConnectionLimits,
    LimitedConnection,
    OpenConnections,
    Phase,
    connection_limits,
    deadline,
)

Serve = Callable[..., AbstractContextManager[Served]]
STREAMS = 500 if os.environ.get("ASSAY_SOAK") else 200
LIMITS = ConnectionLimits(most=30, per_address=10, header_seconds=20, idle_seconds=60)


# --- the rules ------------------------------------------------------------------------------------------------------


def test_a_server_has_limits_unless_they_are_turned_off():
    usual = connection_limits(Settings(), ("10.0.0.5",))
    assert 0 < usual.per_address < usual.most and usual.header_seconds > 0 and usual.idle_seconds > 0
    assert usual.proxies == ("10.0.0.5",)


def test_headers_have_a_fixed_deadline_and_each_kilobyte_of_a_body_gives_a_second():
    assert deadline(Arrival(Phase.headers, 100.0, 5000), LIMITS) == 120.0
    assert deadline(Arrival(Phase.body, 100.0, 0), LIMITS) == 160.0
    assert deadline(Arrival(Phase.body, 100.0, 3000), LIMITS) == 160.0 + 3000 / LOWEST_RATE
    assert deadline(Arrival(Phase.nothing, 100.0), LIMITS) is None
    assert deadline(Arrival(Phase.headers, 100.0), ConnectionLimits()) is None


def test_connections_are_counted_by_address_and_in_all():
    counted = OpenConnections(ConnectionLimits(most=5, per_address=2, proxies=("10.0.0.0/8",)))
    assert [counted.enter("192.0.2.1") for _ in range(3)] == [True, True, False]
    assert [counted.enter("10.0.0.5") for _ in range(3)] == [True, True, True], "a proxy's are those of many"
    assert not counted.enter("192.0.2.9"), "there are five"
    counted.leave("192.0.2.1")
    assert counted.enter("192.0.2.1") and not counted.enter("192.0.2.1")


def test_one_ipv6_network_is_one_address():
    counted = OpenConnections(ConnectionLimits(per_address=2))
    assert [counted.enter(f"2001:db8::{n}") for n in range(3)] == [True, True, False]
    assert counted.enter("2001:db8:0:1::1")
    assert [counted.enter(each) for each in ("::ffff:192.0.2.1", "192.0.2.1", "192.0.2.1")] == [True, True, False]


# --- connections, on a clock of their own ---------------------------------------------------------------------------


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Reads the body, and answers with its length, or with as much as the path says."""
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    wanted = scope["path"].strip("/")
    body = b"x" * int(wanted) if wanted.isdigit() else str(size).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    for at in range(0, len(body), 100_000):
        await send({"type": "http.response.body", "body": body[at : at + 100_000], "more_body": True})
    await send({"type": "http.response.body", "body": b""})


@asynccontextmanager
async def listening(limits: ConnectionLimits = LIMITS) -> AsyncIterator[tuple[int, OpenConnections]]:
    config = uvicorn.Config(cast(Any, application), log_config=None, lifespan="off", ws="none")
    state, counted = ServerState(), OpenConnections(limits)

    def made() -> LimitedConnection:
        return LimitedConnection(counted, config=config, server_state=state, app_state={})

    server = await asyncio.get_running_loop().create_server(made, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], counted
    finally:
        server.close()
        for each in list(state.connections):
            each.transport.abort()  # pyright: ignore[reportAttributeAccessIssue]


async def empty(counted: OpenConnections) -> None:
    """Wait until no connection is left, for 1000 seconds at most."""
    for _ in range(200):
        if not counted.by_address:
            return
        await asyncio.sleep(5)


async def trickle(port: int, first: bytes, drop: bytes, every: float, most: float) -> tuple[float, bytes]:
    """Send a drop at these intervals until the server ends it: seconds taken, and the reply."""
    loop = asyncio.get_running_loop()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    began = loop.time()
    writer.write(first)
    ended = asyncio.ensure_future(reader.read())
    while not ended.done() and loop.time() - began < most:
        await asyncio.wait([ended], timeout=every)
        with suppress(ConnectionError):
            writer.write(drop)
    took = loop.time() - began
    writer.close()
    if not ended.done():
        ended.cancel()
        return took, b"still open"
    with suppress(ConnectionError):
        return took, ended.result()
    return took, b""


@pytest.mark.fake_clock
async def test_headers_that_never_end_are_not_waited_for():
    async with listening() as (port, counted):
        took, reply = await trickle(port, b"GET / HTTP/1.1\r\nHost: x\r\n", b"X-A: b\r\n", 5, 300)
        assert took <= LIMITS.header_seconds + 6 and reply.startswith(b"HTTP/1.1 408 ")
        took, _ = await trickle(port, b"", b"", 5, 300)
        assert took <= LIMITS.header_seconds + 6, "nor is a client that says nothing at all"
        assert not counted.by_address


@pytest.mark.fake_clock
async def test_headers_of_a_second_request_have_the_same_deadline():
    async with listening() as (port, _):
        first = b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n"
        took, reply = await trickle(port, first, b"X-A: b\r\n", 2, 300)
        assert took <= LIMITS.header_seconds + 3 and reply.startswith(b"HTTP/1.1 200 ") and b" 408 " in reply


@pytest.mark.fake_clock
@pytest.mark.parametrize("sized", [b"Content-Length: 100000", b"Transfer-Encoding: chunked"])
async def test_a_body_that_drips_is_not_waited_for(sized: bytes):
    drop = b"x" if b"Length" in sized else b"1\r\nx\r\n"
    async with listening() as (port, counted):
        head = b"POST / HTTP/1.1\r\nHost: x\r\n" + sized + b"\r\n\r\n"
        took, reply = await trickle(port, head, drop, 10, 2000)
        assert took <= LIMITS.idle_seconds + 11 and reply.startswith(b"HTTP/1.1 408 ")
        assert not counted.by_address


@pytest.mark.fake_clock
async def test_a_large_body_at_a_low_but_steady_rate_arrives():
    async with listening() as (port, _):
        head = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 600000\r\n\r\n"
        took, reply = await trickle(port, head, b"x" * 6000, 5, 2000)
        assert took > 5 * LIMITS.idle_seconds and reply.endswith(b"600000")


@pytest.mark.fake_clock
async def test_a_reply_that_nobody_reads_is_ended():
    async with listening() as (port, counted):
        loop = asyncio.get_running_loop()
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1000)
        writer.write(b"GET /50000000 HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readline()
        began = loop.time()
        await empty(counted)
        assert not counted.by_address and loop.time() - began <= LIMITS.idle_seconds + 11
        writer.close()


@pytest.mark.fake_clock
async def test_a_reply_that_is_read_slowly_arrives():
    async with listening() as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=100_000)
        writer.write(b"GET /20000000 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        size = 0
        while part := await reader.read(1_000_000):
            size += len(part)
            await asyncio.sleep(1)
        assert size > 20_000_000
        writer.close()


@pytest.mark.fake_clock
async def test_more_connections_than_allowed_are_refused_and_counted_down_when_they_end():
    async with listening(ConnectionLimits(most=3, per_address=3)) as (port, counted):
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert (await reader.read()).startswith(b"HTTP/1.1 503 ")
        writer.close()
        for _, each in held:
            each.close()
        await empty(counted)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
        writer.close()


# --- the server -----------------------------------------------------------------------------------------------------


def test_five_hundred_idle_connections_of_one_address_keep_nobody_else_out(serve: Serve):
    """Linux has all of 127.0.0.0/8, so that there can be two addresses."""
    with serve(serve_connections=150, serve_connections_per_address=100) as at:
        port = int(at.url.rpartition(":")[2])
        idle: list[socket.socket] = []
        try:
            for _ in range(500):
                made = socket.create_connection(("127.0.0.1", port), source_address=("127.0.0.2", 0))
                made.sendall(b"GET /api/runs/x/events HTTP/1.1\r\n")
                idle.append(made)
            until(lambda: len(at.process.server_state.connections) == 100)
            with at.client() as client:
                assert client.get("/health").json() == {"status": "ok"}
        finally:
            for each in idle:
                each.close()
        until(lambda: not at.process.server_state.connections)


@pytest.mark.long
def test_hundreds_of_streams_that_nobody_reads_hold_up_nothing(serve: Serve):
    with held(script()) as (model, go), serve(model, serve_connections_per_address=0) as at, at.client() as client:
        port = int(at.url.rpartition(":")[2])
        run = client.post("/api/runs", json={"question": QUESTION}).json()["run"]
        request = f"GET /api/runs/{run}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
        streams: list[socket.socket] = []
        try:
            for _ in range(STREAMS):
                made = socket.create_connection(("127.0.0.1", port), timeout=60)
                made.sendall(request)
                streams.append(made)
            assert all(each.recv(12) == b"HTTP/1.1 200" for each in streams)
            assert len(at.process.server_state.connections) >= STREAMS
            assert client.get("/api/me").status_code == 200 and client.get("/api/runs").status_code == 200
            go.set()
            assert followed(client, run)[-1].data == {"state": "delivered"}
        finally:
            for each in streams:
                each.close()
        until(lambda: len(at.process.server_state.connections) <= 1)
