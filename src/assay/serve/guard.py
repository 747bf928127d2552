"""Middleware that every request passes before routing: authentication, origin checks, rate and size limits, security headers of
the response, the token of a server without sign-in, and methods and ranges as HTTP wants them. Streams are passed through
unbuffered."""

from __future__ import annotations

import hmac
import ipaddress
import logging
import math
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar
from urllib.parse import parse_qs, urlsplit

from anyio import CapacityLimiter, to_thread
from fastapi import HTTPException as FastAPIHTTPException
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, cookie_parser
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assay.core.access import Principal, looks_local
from assay.core.errors import AssayError
from assay.core.private_files import write_private
from assay.serve.limits import too_many_requests
from assay.serve.openai_chat import error_response, is_openai_path
from assay.serve.state import INTERNAL_ERROR, LOCAL_PERSON, Person, Server
from assay.workspace.stored import is_valid_group_name, is_valid_name

T = TypeVar("T")

log = logging.getLogger("assay.serve")

COOKIE = "assay_session"
RECHECK_SECONDS = 15.0  # seconds between two access checks of a stream's client
CONCURRENT_LOOKUPS = 8  # concurrent authentication lookups
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
OPEN = frozenset({"/", "/health", "/ready", "/openapi.json"})  # no sign-in needed; also /static/ and signing in
SIGNING_IN = frozenset(  # what one does before one is signed in
    (method, f"/api/session{path}")
    for method, path in (
        ("GET", ""),
        ("POST", ""),
        ("GET", "/provider"),
        ("POST", "/provider"),
        ("GET", "/provider/end"),
    )
)
PROBES = frozenset({"/health", "/ready"})  # requested by machines, under any host name
MEGABYTE = 1_000_000
MAX_BODY = MEGABYTE
MAX_UPLOAD = 2_000 * MEGABYTE
UPLOAD = re.compile(r"/api/bases/.+/documents")  # a name may contain a slash

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; frame-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
API_POLICY = "default-src 'none'; frame-ancestors 'none'"
SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
ERRORS = {
    400: "unusable",
    401: "sign-in",
    403: "forbidden",
    404: "missing",
    405: "method",
    409: "taken",
    413: "too-large",
    422: "invalid",
    429: "too-many",
    500: "broken",
    502: "model",
    503: "store",
    504: "provider",
    507: "full",
}


class RequestGuard:
    """ASGI middleware. Sets `request.state.person` for every request that reaches a route that needs one."""

    def __init__(self, app: ASGIApp, server: Server) -> None:
        self.app, self.server = app, server
        self._threads = CapacityLimiter(CONCURRENT_LOOKUPS)  # of its own: slow routes do not delay authentication

    @property
    def _token(self) -> str:
        """The token that requests need; empty where people sign in, or if the server was started without one."""
        return self.server.serving.token if self.server.serving.auth == "off" else ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})  # websockets are not supported
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        reply = GuardedReply(send, scope["path"], lambda: self._signed_in(scope, headers))
        try:
            check_origin(self.server, scope, headers)
            if self._token and (arrived := first_visit(self._token, scope)) is not None:
                await arrived(scope, receive, reply.send)
                return
            person = await self._person(scope, headers)
            if person is not None:
                scope.setdefault("state", {})["person"] = person
            upload = scope["method"] == "POST" and UPLOAD.fullmatch(scope["path"])
            body = LimitedBody(receive, MAX_UPLOAD if upload else MAX_BODY, headers)
            if person is None or self.server.serving.auth == "off":
                await self.app(scope, body.receive, reply.send)
                return
            reply.look_again()
            with self.server.limits.reserve_request(person.principal.id):
                await self.app(scope, body.receive, reply.send)
        except AccessRevoked:
            log.info("%s ended: the person may not watch any more", scope["path"])
        except Exception as error:
            if reply.started:
                raise  # too late for another response: close the connection, which marks it as incomplete
            await reply.problem(scope, receive, _as_http_error(scope, error))

    async def _person(self, scope: Scope, headers: Headers) -> Person | None:
        """The user of the request. None if no sign-in is needed."""
        serving, path = self.server.serving, scope["path"]
        if (path in OPEN and not (path == "/" and self._token)) or path.startswith("/static/"):
            return LOCAL_PERSON if serving.auth == "off" else None
        try:
            person = await self._signed_in(scope, headers)
        except HTTPException:
            self._count("address:" + client_address(self.server, scope, headers))
            raise
        self._count(
            "user:" + person.principal.id if person else "address:" + client_address(self.server, scope, headers)
        )
        return person

    def _count(self, who: str) -> None:
        wait = self.server.limits.requests.take(who, self.server.workspace.settings.serve_requests_per_minute)
        if wait:
            raise too_many_requests("Too many requests in a short time. Wait a moment.", wait)

    async def _signed_in(self, scope: Scope, headers: Headers) -> Person | None:
        match self.server.serving.auth:
            case "off":
                if self._token and not has_token(self._token, scope, headers):
                    raise sign_in(MISSING)
                return LOCAL_PERSON
            case "header":
                return await self._named_by_proxy(scope, headers)
            case _:
                return await self._by_key_or_session(scope, headers)

    async def _by_key_or_session(self, scope: Scope, headers: Headers) -> Person | None:
        if (scope["method"].replace("HEAD", "GET"), scope["path"]) in SIGNING_IN:
            return None
        kind, _, key = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and key:
            member = await self._look_up(self.server.workspace.people.member_with_key, key.strip())
            if member is None:
                raise sign_in("That API key opens nothing here. It may have been removed.")
            return Person(member.principal, member.admin)
        token = cookie_parser(headers.get("cookie", "")).get(COOKIE, "")
        session = await self._look_up(self.server.workspace.people.find_session, token) if token else None
        if session is None:
            raise sign_in("Sign in first.")
        if scope["method"] not in SAFE and not _same(headers.get("x-csrf-token", ""), session.csrf):
            raise HTTPException(403, "The header X-CSRF-Token is missing or wrong. Load the page again.")
        return Person(session.member.principal, session.member.admin, session.csrf)

    async def _look_up(self, find: Callable[[str], T | None], what: str) -> T | None:
        return await to_thread.run_sync(find, what, limiter=self._threads)

    async def _named_by_proxy(self, scope: Scope, headers: Headers) -> Person:
        serving = self.server.serving
        if not address_matches(peer_address(scope), serving.proxies):
            raise sign_in("Come through the proxy that signs people in.")
        names = headers.getlist(serving.user_header) if serving.user_header else []
        name = decode_header(names[0]).strip() if len(names) == 1 else ""
        if not is_valid_name(name):
            raise sign_in("The proxy has not said who you are.")
        member = await self._look_up(self.server.workspace.people.named, name)
        if member is None and looks_local(name):  # command-line user: never accepted from a header
            raise sign_in("That name is kept for the command line of the server.")
        groups = member.groups if member else ()
        if serving.groups_header:
            given = (
                decode_header(group).strip()
                for line in headers.getlist(serving.groups_header)
                for group in line.split(",")
            )
            groups = tuple(group for group in given if is_valid_group_name(group))
        return Person(Principal(name, frozenset(groups)), admin=bool(member and member.admin))


class AccessRevoked(Exception):
    """The client of a stream has lost access."""


class LimitedBody:
    """A size-limited request body: refused unread if its declared length is too large, else as soon as it exceeds
    the limit."""

    def __init__(self, receive: Receive, most: int, headers: Headers) -> None:
        self._receive, self._most, self._read = receive, most, 0
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or len(length) > 15 or int(length) > most:
            raise self._too_long()

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._read += len(message.get("body", b""))
            if self._read > self._most:
                raise self._too_long()
        return message

    def _too_long(self) -> HTTPException:
        # FastAPI's own class: it turns any other exception during reading into a plain 400.
        return FastAPIHTTPException(413, f"That is too much at once: {self._most // MEGABYTE} MB are taken.")


class GuardedReply:
    """The response: adds the security headers that restrict what a browser may do with it."""

    def __init__(self, send: Send, path: str, still_in: Callable[[], Awaitable[object]]) -> None:
        self._send, self._path, self.started = send, path, False
        self._still_in, self._next_look = still_in, math.inf

    def look_again(self) -> None:
        """Re-check access periodically: a stream may last for hours, and its client may lose access meanwhile."""
        self._next_look = time.monotonic() + RECHECK_SECONDS

    async def send(self, message: Message) -> None:
        if self.started and time.monotonic() >= self._next_look:
            try:
                await self._still_in()
            except HTTPException as refusal:
                await self._send({"type": "http.response.body", "body": b"", "more_body": False})
                raise AccessRevoked from refusal
            self.look_again()
        if message["type"] == "http.response.start":
            self.started = True
            headers = MutableHeaders(raw=list(message.get("headers", ())))
            page = self._path == "/" or self._path.startswith("/static/")
            for name, value in SECURITY_HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("Content-Security-Policy", PAGE_POLICY if page else API_POLICY)
            if not page:
                headers.setdefault("Cache-Control", "no-store")
            message = {**message, "headers": headers.raw}
        await self._send(message)

    async def problem(self, scope: Scope, receive: Receive, error: HTTPException) -> None:
        """Send an error in the uniform format, or in OpenAI's; instead of the page, for a person to read."""
        if scope["path"] == "/":
            await PlainTextResponse(f"{error.detail}\n", error.status_code, error.headers)(scope, receive, self.send)
            return
        await error_reply(scope["path"], error)(scope, receive, self.send)


def error_reply(path: str, error: HTTPException) -> Response:
    """An error in the uniform format, or in OpenAI's where its clients ask."""
    if is_openai_path(path):
        return error_response(error)
    body = {"error": ERRORS.get(error.status_code, "http"), "detail": str(error.detail)}
    return JSONResponse(body, error.status_code, error.headers)


def _as_http_error(scope: Scope, error: Exception) -> HTTPException:
    if isinstance(error, HTTPException):
        return error
    log.error("%s %s broke down", scope["method"], scope["path"], exc_info=error)
    if isinstance(error, AssayError):  # the store failed to identify the user
        return HTTPException(503, str(error), {"Retry-After": "1"})
    return HTTPException(500, INTERNAL_ERROR)


def sign_in(detail: str) -> HTTPException:
    return HTTPException(401, detail, {"WWW-Authenticate": 'Bearer realm="assay"'})


def check_origin(server: Server, scope: Scope, headers: Headers) -> None:
    """Reject requests from foreign pages: DNS rebinding against a server on this machine, and cross-site changes
    (CSRF)."""
    serving, hosts = server.serving, headers.getlist("host")
    host = hosts[0].strip().lower() if len(hosts) == 1 else ""
    off = serving.auth == "off"
    if (off or serving.hosts) and (off or scope["path"] not in PROBES) and not _goes_by(host, serving.hosts):
        raise HTTPException(
            403,
            f"This server does not go by the name {host[:100]!r}. Use one of its own, or start it with `--allow-host`.",
        )
    if scope["method"] in SAFE:
        return
    origin = headers.get("origin")
    foreign = origin is not None and not _of_this_host(origin, host, serving.hosts)
    if foreign or headers.get("sec-fetch-site", "none") not in {"none", "same-origin"}:
        raise HTTPException(403, "A page from another place cannot make changes here.")


def _goes_by(host: str, names: Sequence[str]) -> bool:
    name = _without_port(host)
    return name == "localhost" or _loopback(name) or name in {_without_port(each.lower()) for each in names}


def _without_port(host: str) -> str:
    return host[: host.find("]") + 1] if host.startswith("[") else host.partition(":")[0].removesuffix(".")


def _loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


def _of_this_host(origin: str, host: str, names: Sequence[str]) -> bool:
    """Whether the origin matches the host of the request, or behind a proxy another of the server's names."""
    try:
        place = urlsplit(origin.lower())
    except ValueError:  # incomplete IPv6 address in brackets
        return False
    if place.scheme not in {"http", "https"} or not place.netloc:
        return False
    usual = ":443" if place.scheme == "https" else ":80"
    own = place.netloc.removesuffix(usual)
    return own == host.removesuffix(":443").removesuffix(":80") or own in {name.lower() for name in names}


def peer_address(scope: Scope) -> str:
    """The peer address of the connection; headers are ignored."""
    return scope["client"][0] if scope.get("client") else ""


def address_matches(address: str, places: Sequence[str]) -> bool:
    """Whether an address equals one of these or lies in one of these networks."""
    try:
        own = ipaddress.ip_address(address)
        own = getattr(own, "ipv4_mapped", None) or own
        return any(own in ipaddress.ip_network(place, strict=False) for place in places)
    except ValueError:
        return address != "" and address in places


def _is_near(address: str) -> bool:
    """Whether an address is one of this machine or network, as that of a proxy in front is."""
    try:
        return ipaddress.ip_address(address).is_private
    except ValueError:
        return False


def client_address(server: Server, scope: Scope, headers: Headers) -> str:
    """The client address: the last address in front of our own proxies."""
    proxies, address = server.serving.proxies, peer_address(scope)
    forwarded = ",".join(headers.getlist("x-forwarded-for"))
    if forwarded and not address_matches(address, proxies) and _is_near(address):
        server.unnamed_proxy(address)
    for each in reversed(forwarded.split(",")):
        if not address_matches(address, proxies) or not each.strip():
            break
        address = each.strip()[:100]
    return address


def decode_header(value: str) -> str:
    """Decode a header value: headers arrive as Latin-1, names are UTF-8."""
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        return value


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(errors="replace"), wanted.encode())


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


FILE = ".serve.token"
SHORTEST = 32  # characters
MISSING = (
    "This needs the token. Open the address that `assay serve` printed, which ends with it; "
    "programs send it in the header `Authorization: Bearer TOKEN`."
)


def load_token(folder: Path) -> str:
    """The token of a workspace, made when it is first needed. One that others could have read is replaced."""
    file = folder / FILE
    if file.is_file() and not file.stat().st_mode & 0o077:
        kept = file.read_text(encoding="utf-8").strip()
        if len(kept) >= SHORTEST:
            return kept
    token = secrets.token_urlsafe(32)
    write_private(file, f"{token}\n".encode())
    return token


def has_token(token: str, scope: Scope, headers: Headers) -> bool:
    """Whether a request has the token, in a header or in the cookie of an earlier visit."""
    kind, _, bearer = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and _same(bearer.strip(), token):
        return True
    return _same(cookie_parser(headers.get("cookie", "")).get(_cookie(scope), ""), token)


def first_visit(token: str, scope: Scope) -> RedirectResponse | None:
    """The reply to a visit of the printed address: the token moves from the address into a cookie."""
    if scope["path"] != "/" or scope["method"] != "GET":
        return None
    given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
    if not _same(given, token):
        return None
    reply = RedirectResponse("/", 303)
    reply.set_cookie(_cookie(scope), token, path="/", httponly=True, samesite="lax")
    return reply


def _cookie(scope: Scope) -> str:
    """Browsers send a host's cookies to all of its ports, so that two servers need two names."""
    return f"assay_token_{scope['server'][1]}" if scope.get("server") else "assay_token"
