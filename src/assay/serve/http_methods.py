"""HTTP behaviour common to all paths: HEAD wherever there is GET, the allowed methods of a path, and invalid Range
headers ignored."""

from __future__ import annotations

import re
from collections.abc import Iterable

from starlette.requests import ClientDisconnect
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
RANGE = re.compile(rb"bytes=(\d{1,15})-(\d{0,15})|bytes=-\d{1,15}")  # one range; for several the whole is sent


class HttpMethodsMiddleware:
    """ASGI middleware, inside the guard."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "headers": [each for each in scope["headers"] if each[0] != b"range" or _sound(each[1])]}
        if scope["type"] == "http" and scope["method"] == "HEAD":
            await self._head({**scope, "method": "GET"}, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _head(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The response of GET without the body. A streamed body is cancelled at its first chunk, since it may be
        endless."""
        ended = False

        async def headers_only(message: Message) -> None:
            nonlocal ended
            if message["type"] != "http.response.body":
                await send(message)
                return
            if not ended:
                ended = True
                await send({"type": "http.response.body", "body": b""})
            if message.get("more_body"):
                raise OSError("a HEAD request wants nothing more")  # tells the response that nobody reads on

        try:
            await self.app(scope, receive, headers_only)
        except (OSError, ClientDisconnect):
            if not ended:
                raise


def _sound(value: bytes) -> bool:
    found = RANGE.fullmatch(value)
    return found is not None and not (found[1] and found[2] and int(found[1]) > int(found[2]))


def allowed_methods(routes: Iterable[BaseRoute], scope: Scope) -> list[str]:
    """The methods of a path over all routes: the first matching route knows only its own."""
    routes = list(routes)
    found = [
        method
        for method in METHODS
        if any(route.matches({**scope, "method": method})[0] is Match.FULL for route in routes)
    ]
    return ["HEAD", *found] if "GET" in found else found
