"""JSON over HTTP with one endpoint: transient failures are retried until the deadline; other failures become ModelErrors.

Used for chat, embeddings, rerank and webhooks. Neither the key nor a password in the address is in any error or repr.
"""

from __future__ import annotations

import asyncio
import json
import math
import zlib
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, urlsplit, urlunsplit

from assay.core.errors import Late, ModelError, UserError
from assay.core.settings import masked

if TYPE_CHECKING:
    import ssl

    import httpx

T = TypeVar("T")

RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
TOO_LARGE = 413
EXCERPT = 200
SAID = " It said: "
LARGEST = 5_000_000  # bytes of a reply; no genuine reply is longer
CONNECTING = 10.0  # seconds; leaves time for a retry when an address drops packets
CODINGS = {"": False, "identity": False, "gzip": True, "x-gzip": True, "deflate": True}


@dataclass(frozen=True, slots=True)
class Response:
    """A complete HTTP response. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as text; invalid UTF-8 is replaced, not an error."""
        return self.body.decode("utf-8-sig", "replace")

    def json(self) -> Any:
        """The body as JSON. ValueError if it is not valid, for any reason."""
        try:
            return json.loads(self.text)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None


@dataclass(frozen=True, slots=True)
class ConnectionFailure:
    """Why there was no response; `absent` if no connection could be made."""

    problem: str
    absent: bool = False


@dataclass(frozen=True, slots=True)
class EndpointNames:
    """An endpoint's name in errors, and the names of the settings that configure it."""

    kind: str
    url: str
    key: str
    model: str


@dataclass(eq=False)
class EndpointClient:
    """The connections to one endpoint, one pool per event loop.

    address: where to post; a user name and password in it are sent as basic authentication and never shown
    largest: bytes; a longer reply is an error, and is not read to its end
    connect_attempts: attempts at an address that accepts no connection; 0 for no limit but the deadline
    sign: headers that sign the content, computed for each attempt
    """

    address: str = field(repr=False)
    names: EndpointNames
    api_key: str = field(default="", repr=False)
    proxy: str = field(default="", repr=False)
    ca_bundle: str = ""
    largest: int = LARGEST
    connect_attempts: int = 0
    sleep: Callable[[float], Awaitable[None]] = field(default=asyncio.sleep, repr=False)
    sign: Callable[[bytes], Mapping[str, str]] = field(default=lambda _: {}, repr=False)
    _clients: dict[asyncio.AbstractEventLoop, httpx.AsyncClient] = field(default_factory=dict, init=False, repr=False)

    async def post(self, body: Mapping[str, Any], seconds: float) -> Response:
        """The final response, or an error, within `seconds`. Honours the wait that the endpoint asks for."""
        return await self.exchange(lambda: body, seconds, lambda response: response)

    async def get(self, address: str, seconds: float) -> Response:
        return await self.exchange(lambda: None, seconds, lambda response: response, address=address)

    async def exchange(
        self,
        body: Callable[[], Mapping[str, Any] | None],
        seconds: float,
        read: Callable[[Response], T],
        *,
        is_final: Callable[[Response], bool] = lambda _: False,
        address: str = "",
        heard: Callable[[], Callable[[bytes], None]] | None = None,
    ) -> T:
        """The result of `read` on the response, within `seconds`. `read` may raise `TransientFailure` or `CorrectedRequest`.

        body: built for each attempt; None for a GET
        is_final: whether a response with a usually transient status (500, 429) would not change on a retry
        heard: made for each attempt; receives the pieces of a streamed response as they arrive
        """
        attempts = absent = 0
        problem, response_text = "", ""

        async def attempt(_: float) -> T:
            nonlocal attempts, absent, problem, response_text
            attempts += 1
            wait = None
            response = await self._send(address or self.address, body(), heard() if heard else None)
            if isinstance(response, ConnectionFailure):
                problem, response_text = response.problem, ""
                absent += response.absent
                if absent == self.connect_attempts > 0:
                    tries = f"; gave up after {attempts} tries" if attempts > 1 else ": is it running there?"
                    raise self.error(f"{problem}{tries}")
            elif response.status in RETRIED and not is_final(response):
                problem, response_text = self._refusal(response.status), response.text
                wait = retry_after(response.headers, datetime.now(UTC))
            else:
                return read(response)
            raise TransientFailure(
                self.error(f"{problem}; gave up after {attempts} tries in {seconds:.3g} s", response_text),
                wait,
                problem,
            )

        def late() -> str:
            before = f"; before that it {problem}" if problem else ""
            return str(self.error(f"did not answer in {max(seconds, 0):.3g} s{before}", response_text))

        return await with_retries(attempt, seconds, late=late, sleep=self.sleep, kind=self.names.kind)

    async def close(self) -> None:
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client:
            await client.aclose()

    def refused(self, response: Response) -> ModelError:
        """The error for a failure status."""
        return self.error(self._refusal(response.status), response.text)

    def error(self, words: str, response_text: str = "") -> ModelError:
        response_text = (
            " ".join(self._hidden(response_text)[: EXCERPT * 50].split()) if _is_error(response_text) else ""
        )
        quoted = f"{SAID}{response_text[:EXCERPT]}" if response_text else ""
        return ModelError(f"The {self.names.kind} endpoint {public_address(self.address)} {words}.{quoted}")

    async def _send(
        self, address: str, body: Mapping[str, Any] | None, heard: Callable[[bytes], None] | None
    ) -> Response | ConnectionFailure:
        """One request: the response, or why there was none."""
        import httpx

        waiting = httpx.Timeout(None, connect=CONNECTING)  # the caller's deadline covers everything else
        method = "GET" if body is None else "POST"
        content = (
            b"" if body is None else json.dumps(body, ensure_ascii=False, default=_plain).encode("utf-8", "replace")
        )
        try:
            bare, headers = self._request(address)
            headers |= self.sign(content)
            async with self._client().stream(method, bare, content=content, headers=headers, timeout=waiting) as reply:
                streams = heard if reply.status_code == 200 and is_stream(reply.headers) else None
                return Response(reply.status_code, dict(reply.headers), await self._read(reply, streams))
        except (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError, UnicodeEncodeError) as error:
            names = f"`{self.names.url}` and `{self.names.key}`"
            wrong = f"{type(error).__name__} at {public_address(self.address)}"
            raise UserError(f"No request can be made of {names} ({wrong}).") from None
        except httpx.HTTPError as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise self.error("shows a certificate that is not trusted here: check `ca_bundle`") from None
            absent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            return ConnectionFailure("could not be reached" + ("" if absent else f" ({type(error).__name__})"), absent)
        except zlib.error:
            return ConnectionFailure("sent what cannot be unpacked")

    async def _read(self, reply: httpx.Response, heard: Callable[[bytes], None] | None) -> bytes:
        # Decompressed here and not by httpx, which would expand a small reply without a memory limit.
        packed = CODINGS.get(reply.headers.get("content-encoding", "").strip().lower())
        if packed is None:
            raise self.error("answered in an encoding that nobody asked for")
        unpacking = zlib.decompressobj(47) if packed else None  # 47: gzip and zlib
        held = bytearray()
        async for piece in reply.aiter_raw():
            unpacked = unpacking.decompress(piece, self.largest + 1 - len(held)) if unpacking else piece
            held += unpacked
            if len(held) > self.largest:
                raise self.error(f"answered with more than {self.largest / 1e6:g} megabytes")
            if heard is not None:
                heard(unpacked)
        return bytes(held)

    def _request(self, address: str) -> tuple[str, dict[str, str]]:
        """The address without its password, and the headers. httpx would log the address unchanged."""
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "gzip"}
        import httpx

        try:
            urlsplit(address)
        except ValueError as error:  # httpx would try to resolve such a host
            raise httpx.InvalidURL(str(error)) from None
        login, bare = _login(address)
        if login:
            headers["Authorization"] = f"Basic {_basic(login)}"
        elif self.api_key:
            headers["Authorization"] = f"Bearer {self.api_key}"
        return bare, headers

    def _client(self) -> httpx.AsyncClient:
        # Connections belong to one event loop. A command line that runs several loops in turn gets a client for each.
        import httpx

        loop = asyncio.get_running_loop()
        if loop in self._clients:
            return self._clients[loop]
        for other in [other for other in self._clients if other.is_closed()]:
            self._clients.pop(other, None)
        trusted = self._trusted()
        try:
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
            client = httpx.AsyncClient(verify=trusted, proxy=self.proxy or None, limits=limits)
        except (ValueError, ImportError, httpx.InvalidURL):  # ImportError: a proxy scheme that needs another package
            shown = f"The proxy {masked(self.proxy)!r}" if self.proxy else "A proxy named in the environment"
            raise UserError(f"{shown} cannot be used: set `proxy` to an http(s) address.") from None
        self._clients[loop] = client
        return client

    def _trusted(self) -> ssl.SSLContext:
        """The trusted certificates. Loading them takes 40 ms, so unencrypted connections skip it."""
        import ssl
        from urllib.request import getproxies

        encrypted = self.address.lower().startswith("https:") or self.ca_bundle or self.proxy or getproxies()
        if not encrypted:
            return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            return ssl.create_default_context(cafile=self.ca_bundle or None)
        except (OSError, ssl.SSLError):
            raise UserError(f"The certificates in {self.ca_bundle!r} cannot be read: set `ca_bundle`.") from None

    def _refusal(self, status: int) -> str:
        match status:
            case 401 | 403 if not self.api_key:
                return f"wants a key ({status}): set `{self.names.key}`"
            case 401 | 403:
                return f"refused the key ({status}): check `{self.names.key}`"
            case 404:
                return (
                    f"does not know the address or the model (404): check `{self.names.url}` and `{self.names.model}`"
                )
            case 429:
                return "is asked too often (429)"
            case _ if 300 <= status < 400:
                return f"points to another address ({status}), which is not followed: check `{self.names.url}`"
            case _:
                return f"answered with status {status}"

    def _hidden(self, words: str) -> str:
        """An endpoint's text without secrets. Endpoints often quote the key that they reject."""
        login = _login(self.address)[0]
        password = login.partition(":")[2]
        for secret in (self.api_key, self.api_key.strip(), password, unquote(password), _basic(login) if login else ""):
            words = words.replace(secret, "…") if secret else words
        return words


def _is_error(text: str) -> bool:
    """Whether a reply is an error of an API of models. Nothing of any other is quoted: the address may be that of another
    service, whose pages are nobody's business here."""
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return False
    value = value[0] if isinstance(value, list) and value else value
    return isinstance(value, Mapping) and ("error" in value or "detail" in value or value.get("object") == "error")


def is_stream(headers: Mapping[str, str]) -> bool:
    """Whether a response is a stream of server-sent events."""
    return headers.get("content-type", "").strip().lower().startswith("text/event-stream")


def address_of(url: str, tail: str, root: str = "") -> str:
    """The address that ends in `tail`, whether `url` already has it or only the part before it.

    root: the path to use if the address has none
    """
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return url  # the request reports what is wrong with it
    path = parts.path.rstrip("/") or root
    return urlunsplit(parts._replace(path=path if path.endswith(tail) else path + tail))


def public_address(address: str) -> str:
    """The address without password and query, for display."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return masked(address)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment=""))


def _login(address: str) -> tuple[str, str]:
    """The user info before the `@` of an address, and the address without it."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return "", address
    login, _, host = parts.netloc.rpartition("@")
    return login, urlunsplit(parts._replace(netloc=host))


def _basic(login: str) -> str:
    name, _, password = login.partition(":")
    return b64encode(f"{unquote(name)}:{unquote(password)}".encode()).decode()


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


SHORTEST_PAUSE, LONGEST_PAUSE = 0.5, 20.0


class TransientFailure(Exception):
    """An attempt failed in a way that may pass.

    error: raised instead if there is no time for another attempt
    wait: seconds that the endpoint asks for; None for exponential backoff
    problem: what happened, without an address
    """

    def __init__(self, error: Exception, wait: float | None = None, problem: str = "") -> None:
        super().__init__(str(error))
        self.error = error
        self.wait = wait
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Retry:
    """A request that failed and is sent again: which try comes next, and of how many at most, if each fails at once."""

    kind: str  # of the endpoint
    problem: str
    attempt: int
    of: int

    @property
    def line(self) -> str:
        who = "The model" if self.kind == "chat" else f"The {self.kind} endpoint"
        why = f" ({self.problem.removeprefix('answered with ')})" if self.problem else ""
        return f"{who} does not answer{why}, try {self.attempt} of {self.of}."


class Retries:
    """The requests that are sent again now, for whoever watches. Nothing of it is recorded."""

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self._now: dict[object, Retry] = {}
        self._changed = changed

    @property
    def line(self) -> str:
        """What is said of them; empty if there are none."""
        worst = max(list(self._now.values()), key=lambda each: each.attempt, default=None)
        return worst.line if worst else ""

    def tell(self, request: object, retry: Retry | None) -> None:
        if retry is not None:
            self._now[request] = retry
        elif self._now.pop(request, None) is None:
            return
        self._changed()


watched: ContextVar[Retries] = ContextVar("watched", default=Retries())  # noqa: B039  of a run; the default is never read


class CorrectedRequest(Exception):
    """The request was refused for its form; the next attempt sends a corrected one, without a pause."""


async def with_retries(
    attempt: Callable[[float], Awaitable[T]],
    seconds: float,
    *,
    late: Callable[[], str],
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    kind: str = "chat",
) -> T:
    """The result or the error of the first `attempt` that is not a `TransientFailure`; always within `seconds`.

    attempt: receives the seconds that are left
    late: message of the error if the time runs out during an attempt
    kind: of the endpoint, for whoever watches
    """
    clock, retries, request = asyncio.get_running_loop().time, watched.get(), object()
    end = clock() + seconds
    failures = 0
    try:
        async with asyncio.timeout_at(end):
            while True:
                try:
                    return await attempt(end - clock())
                except CorrectedRequest:
                    continue
                except TransientFailure as failure:
                    failures += 1
                    pause = pause_before(failures, failure.wait)
                    if clock() + pause >= end:
                        raise failure.error from None
                    of = failures + tries_in(end - clock(), failures, failure.wait)
                    retries.tell(request, Retry(kind, failure.problem, failures + 1, of))
                await sleep(pause)
    except TimeoutError:
        raise Late(late()) from None
    finally:
        retries.tell(request, None)


def tries_in(seconds: float, failures: int, wait: float | None) -> int:
    """How many more attempts begin within these seconds, if each fails at once."""
    tries, spent = 0, 0.0
    while (spent := spent + pause_before(failures + tries, wait)) < seconds:
        tries += 1
    return tries


def pause_before(failures: int, wait: float | None) -> float:
    """Seconds to wait after this many failures, or as many as the endpoint asks for; never 0."""
    if wait is not None:
        return max(wait, SHORTEST_PAUSE)
    return min(SHORTEST_PAUSE * 2 ** min(failures - 1, 10), LONGEST_PAUSE)


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds to wait according to a response's headers, at least 0; None if they do not say."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return max(milliseconds / 1000, 0.0)
    value = headers.get("retry-after", "").strip()
    seconds = _number(value)
    if seconds is None:
        try:
            seconds = (parsedate_to_datetime(value) - now).total_seconds()
        except (ValueError, TypeError, OverflowError):
            return None
    return max(seconds, 0.0)


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
