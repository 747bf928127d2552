"""Limits on connections: how many there may be, how long a request may take to arrive, and how long a reply may stay unread.

A client that sends or reads too slowly holds a connection, and memory, for as long as it likes. So headers have a deadline,
bodies a lowest rate, and replies that nobody reads are ended. See `serve_header_seconds` and `serve_idle_seconds`.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from assay.core.settings import Settings
from assay.serve.guard import address_matches

LOWEST_RATE = 1000.0  # bytes a second: each byte of a body that has arrived extends its deadline by this much time
CLOSE = b"Connection: close\r\nContent-Length: 0\r\n\r\n"
TOO_MANY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\n" + CLOSE
TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\n" + CLOSE


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """0 for no limit."""

    most: int = 0
    per_address: int = 0
    header_seconds: float = 0
    idle_seconds: float = 0
    proxies: tuple[str, ...] = ()  # their connections are those of many people: only the limit for all applies


def connection_limits(settings: Settings, proxies: Sequence[str] = ()) -> ConnectionLimits:
    return ConnectionLimits(
        settings.serve_connections,
        settings.serve_connections_per_address,
        settings.serve_header_seconds,
        settings.serve_idle_seconds,
        tuple(proxies),
    )


@dataclass
class OpenConnections:
    """How many connections there are, in all and by address. Used on the server's event loop only."""

    limits: ConnectionLimits
    by_address: Counter[str] = field(default_factory=Counter)

    def enter(self, address: str) -> bool:
        """Count a connection; False if there are too many."""
        network, limits = _network(address), self.limits
        if limits.most and self.by_address.total() >= limits.most:
            return False
        proxied = address_matches(address, limits.proxies)
        if limits.per_address and not proxied and self.by_address[network] >= limits.per_address:
            return False
        self.by_address[network] += 1
        return True

    def leave(self, address: str) -> None:
        network = _network(address)
        self.by_address[network] -= 1
        if self.by_address[network] <= 0:
            del self.by_address[network]


def _network(address: str) -> str:
    """What counts as one address: of IPv6 the network of 64 bits, which is one customer's."""
    try:
        own = ipaddress.ip_address(address)
    except ValueError:
        return address
    own = getattr(own, "ipv4_mapped", None) or own
    return str(own) if own.version == 4 else str(ipaddress.ip_network((own, 64), strict=False))


class Phase(Enum):
    """What a connection waits for."""

    headers = "the headers of a request"
    body = "the body of a request"
    nothing = "the server, or the next request"  # the keep-alive timeout is uvicorn's


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request on its way: what is awaited, since when, and how many bytes have arrived since."""

    phase: Phase = Phase.nothing
    since: float = 0.0
    received: int = 0


def deadline(arrival: Arrival, limits: ConnectionLimits) -> float | None:
    """When the awaited part must have arrived; None if there is no limit."""
    if arrival.phase is Phase.headers and limits.header_seconds:
        return arrival.since + limits.header_seconds
    if arrival.phase is Phase.body and limits.idle_seconds:
        return arrival.since + limits.idle_seconds + arrival.received / LOWEST_RATE
    return None


class LimitedConnection(H11Protocol):
    """uvicorn's protocol, with deadlines."""

    def __init__(self, open_connections: OpenConnections, **options: Any) -> None:
        super().__init__(**options)
        self._open, self._limits = open_connections, open_connections.limits
        self._address: str | None = None  # set while the connection is counted
        self._arrival = Arrival()
        self._arrival_timer: asyncio.TimerHandle | None = None
        self._unread_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        if not self._open.enter(address):
            self._refuse(TOO_MANY)
            return
        self._address = address
        self._await(Phase.headers)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        super().data_received(data)
        self._look(len(data))

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._address is not None:
            self._open.leave(self._address)
            self._address = None
        _cancel(self._arrival_timer)
        _cancel(self._unread_timer)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        _cancel(self._unread_timer)
        if self._limits.idle_seconds:
            self._unread_timer = self.loop.call_later(self._limits.idle_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        _cancel(self._unread_timer)

    def _look(self, received: int = 0) -> None:
        """Note what is awaited now."""
        phase = _awaited(self.conn, begun=received > 0 or bool(self.conn.trailing_data[0]))
        if phase is not self._arrival.phase:
            self._await(phase)
        else:
            old = self._arrival
            self._arrival = Arrival(phase, old.since, old.received + received)

    def _await(self, phase: Phase) -> None:
        _cancel(self._arrival_timer)
        self._arrival = Arrival(phase, self.loop.time())
        self._set_timer()

    def _set_timer(self) -> None:
        when = deadline(self._arrival, self._limits)
        self._arrival_timer = self.loop.call_at(when, self._timed_out) if when is not None else None

    def _timed_out(self) -> None:
        if self.flow.read_paused:  # the server is busy: what has not arrived is not the client's fault
            self._arrival = Arrival(self._arrival.phase, self.loop.time())
        when = deadline(self._arrival, self._limits)
        if when is not None and self.loop.time() < when:
            self._set_timer()
        elif not self.transport.is_closing():
            replying = self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete
            self._refuse(b"" if replying else TOO_SLOW)

    def _refuse(self, reply: bytes) -> None:
        if reply:
            self.transport.write(reply)
        self.transport.close()


def _awaited(conn: h11.Connection, *, begun: bool) -> Phase:
    if conn.their_state is h11.SEND_BODY:
        return Phase.body
    return Phase.headers if conn.their_state is h11.IDLE and begun else Phase.nothing


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


def limited_protocol(limits: ConnectionLimits) -> Callable[..., LimitedConnection]:
    """The protocol of a server with these limits, which its connections share."""
    shared = OpenConnections(limits)
    return lambda **options: LimitedConnection(shared, **options)
