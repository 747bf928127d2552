"""Compression of long JSON."""

from __future__ import annotations

import gzip

from anyio import to_thread
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SHORTEST = 1_000  # bytes; what is shorter is not worth it
FOREIGN = frozenset({"cross-site", "same-site"})


class CompressedJson:
    """ASGI middleware. Compresses JSON that comes in one piece, so never a stream. Not for a page from elsewhere: the length of
    what it cannot read must not tell whether words that it chose are in it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope) if scope["type"] == "http" and scope["method"] == "GET" else Headers()
        if "gzip" not in headers.get("accept-encoding", "") or headers.get("sec-fetch-site") in FOREIGN:
            await self.app(scope, receive, send)
            return
        held: Message | None = None  # the start of a reply that may be compressed, until its length is known

        async def compressing(message: Message) -> None:
            nonlocal held
            if message["type"] == "http.response.start" and _is_json(message):
                held = message
                return
            if held is not None:
                start, held = held, None
                body = message.get("body", b"")
                if not message.get("more_body") and len(body) >= SHORTEST:
                    body = await to_thread.run_sync(gzip.compress, body, 5)
                    changed = MutableHeaders(raw=list(start["headers"]))
                    changed["Content-Encoding"], changed["Content-Length"] = "gzip", str(len(body))
                    changed.add_vary_header("Accept-Encoding")
                    start, message = {**start, "headers": changed.raw}, {**message, "body": body}
                await send(start)
            await send(message)

        await self.app(scope, receive, compressing)


def _is_json(start: Message) -> bool:
    headers = Headers(raw=start["headers"])
    whole = start["status"] == 200 and "content-encoding" not in headers and "etag" not in headers
    return whole and headers.get("content-type", "").partition(";")[0] == "application/json"
