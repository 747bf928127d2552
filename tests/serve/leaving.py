"""A model that takes as long as it is told to, and a client that hangs up meanwhile."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from doubles import ChatServer, Script, role_of
from serving import Served, until


@contextmanager
def held(script: Script) -> Iterator[tuple[ChatServer, threading.Event]]:
    """A model that answers when it is let go."""
    go = threading.Event()

    async def answer(request: Any) -> Any:
        if role_of(request)[0]:
            await asyncio.to_thread(go.wait, 20)
        return script.answer(request)

    with ChatServer(answer) as model:
        try:
            yield model, go
        finally:
            go.set()


def hangs_up(
    at: Served, path: str, body: Any, when: Callable[[], bool], headers: Mapping[str, str] | None = None
) -> None:
    """Send a request, wait until something is so, and be gone."""
    place = urlsplit(at.url)
    sent = json.dumps(body).encode()
    head = {
        "Host": place.netloc,
        "Content-Type": "application/json",
        "Content-Length": str(len(sent)),
        **(headers or {}),
    }
    lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in head.items()), "", ""]
    with socket.create_connection((place.hostname or "", place.port or 0)) as wire:
        wire.sendall("\r\n".join(lines).encode() + sent)
        until(when)
