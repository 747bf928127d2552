"""JSON over HTTP with one endpoint: retried while that can help, ended at the deadline; failures are plain errors.

Chat, embeddings, rerank and the webhook use it. Neither the key nor a password in the address is in any error or repr.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, urlsplit, urlunsplit

from assay.core.errors import ModelError, UserError
from assay.core.settings import masked
from assay.models.wire.retry import TransientFailure, retry_after, with_retries

if TYPE_CHECKING:
    import ssl

    import httpx

T = TypeVar("T")

RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
TOO_LARGE = 413
EXCERPT = 200
LARGEST = 5_000_000  # bytes of a reply; nobody writes that much in answer to a prompt
CONNECTING = 10.0  # seconds; an address that swallows packets leaves time for another try
CODINGS = {"": False, "identity": False, "gzip": True, "x-gzip": True, "deflate": True}


@dataclass(frozen=True, slots=True)
class Response:
    """What came back, read to its end. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body's words; a byte that is no UTF-8 becomes a mark, not an error."""
        return self.body.decode("utf-8-sig", "replace")

    def json(self) -> Any:
        """The body's value. ValueError where it has none, whatever the reason."""
        try:
            return json.loads(self.text)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None


@dataclass(frozen=True, slots=True)
class ConnectionFailure:
    """Why no reply came; `absent` where not even a connection could be made."""

    problem: str
    absent: bool = False


@dataclass(frozen=True, slots=True)
class EndpointNames:
    """What errors call an endpoint, and the names of the settings that configure it."""

    kind: str
    url: str
    key: str
    model: str


@dataclass(eq=False)
class EndpointClient:
    """The connections to one endpoint, one pool for each event loop.

    address: where to post; a user name and password in it are sent as basic authentication and never shown
    largest: bytes; a longer reply is an error, and is not read to its end
    connect_attempts: how often an address is tried that accepts no connection; 0 for as often as there is time
    sign: headers that sign the content, made anew for each attempt
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
        """A reply that is not worth another try, or an error, within `seconds`. Waits as long as the endpoint asks."""
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
    ) -> T:
        """What `read` makes of the reply, within `seconds`. It may raise `TransientFailure` or `CorrectedRequest`.

        body: made anew for each attempt; None for a GET
        is_final: whether a reply with a status that often passes (500, 429) would be the same again
        """
        attempts = absent = 0
        problem, said = "", ""

        async def attempt(_: float) -> T:
            nonlocal attempts, absent, problem, said
            attempts += 1
            wait = None
            response = await self._send(address or self.address, body())
            if isinstance(response, ConnectionFailure):
                problem, said = response.problem, ""
                absent += response.absent
                if absent == self.connect_attempts > 0:
                    raise self.error(f"{problem}; gave up after {attempts} tries")
            elif response.status in RETRIED and not is_final(response):
                problem, said = self._refusal(response.status), response.text
                wait = retry_after(response.headers, datetime.now(UTC))
            else:
                return read(response)
            raise TransientFailure(
                self.error(f"{problem}; gave up after {attempts} tries in {seconds:.3g} s", said), wait
            )

        def late() -> str:
            before = f"; before that it {problem}" if problem else ""
            return str(self.error(f"did not answer in {max(seconds, 0):.3g} s{before}", said))

        return await with_retries(attempt, seconds, late=late, sleep=self.sleep)

    async def close(self) -> None:
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client:
            await client.aclose()

    def refused(self, response: Response) -> ModelError:
        """The error for a status that means failure."""
        return self.error(self._refusal(response.status), response.text)

    def error(self, words: str, said: str = "") -> ModelError:
        said = " ".join(self._hidden(said)[: EXCERPT * 50].split())
        quoted = f" It said: {said[:EXCERPT]}" if said else ""
        return ModelError(f"The {self.names.kind} endpoint {public_address(self.address)} {words}.{quoted}")

    async def _send(self, address: str, body: Mapping[str, Any] | None) -> Response | ConnectionFailure:
        """One request: the reply, or what kept it from coming."""
        import httpx

        waiting = httpx.Timeout(None, connect=CONNECTING)  # the deadline is the caller's, over everything
        method = "GET" if body is None else "POST"
        content = (
            b"" if body is None else json.dumps(body, ensure_ascii=False, default=_plain).encode("utf-8", "replace")
        )
        try:
            bare, headers = self._request(address)
            headers |= self.sign(content)
            async with self._client().stream(method, bare, content=content, headers=headers, timeout=waiting) as reply:
                return Response(reply.status_code, dict(reply.headers), await self._read(reply))
        except (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError, UnicodeEncodeError) as error:
            names = f"`{self.names.url}` and `{self.names.key}`"
            wrong = f"{type(error).__name__} at {public_address(self.address)}"
            raise UserError(f"No request can be made of {names} ({wrong}).") from None
        except httpx.HTTPError as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise self.error("shows a certificate that is not trusted here: check `ca_bundle`") from None
            absent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            return ConnectionFailure(f"could not be reached ({type(error).__name__})", absent)
        except zlib.error:
            return ConnectionFailure("sent what cannot be unpacked")

    async def _read(self, reply: httpx.Response) -> bytes:
        # Unpacked here and not by httpx, which would unpack a small reply into all the memory there is.
        packed = CODINGS.get(reply.headers.get("content-encoding", "").strip().lower())
        if packed is None:
            raise self.error("answered in an encoding that nobody asked for")
        unpacking = zlib.decompressobj(47) if packed else None  # 47: gzip and zlib alike
        held = bytearray()
        async for piece in reply.aiter_raw():
            held += unpacking.decompress(piece, self.largest + 1 - len(held)) if unpacking else piece
            if len(held) > self.largest:
                raise self.error(f"answered with more than {self.largest / 1e6:g} megabytes")
        return bytes(held)

    def _request(self, address: str) -> tuple[str, dict[str, str]]:
        """The address without its password, and the headers. httpx would log an address as it stands."""
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "gzip"}
        import httpx

        try:
            urlsplit(address)
        except ValueError as error:  # httpx would go and look for such a host
            raise httpx.InvalidURL(str(error)) from None
        login, bare = _login(address)
        if login:
            headers["Authorization"] = f"Basic {_basic(login)}"
        elif self.api_key:
            headers["Authorization"] = f"Bearer {self.api_key}"
        return bare, headers

    def _client(self) -> httpx.AsyncClient:
        # Connections belong to an event loop. A command line that runs one loop after another gets a client for each.
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
        except (ValueError, ImportError, httpx.InvalidURL):  # ImportError: a kind of proxy that needs another package
            shown = f"The proxy {masked(self.proxy)!r}" if self.proxy else "A proxy named in the environment"
            raise UserError(f"{shown} cannot be used: set `proxy` to an http(s) address.") from None
        self._clients[loop] = client
        return client

    def _trusted(self) -> ssl.SSLContext:
        """The certificates to trust. Reading them takes 40 ms, and an unencrypted line has no use for them: it gets none."""
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
        """Words of an endpoint without what is secret. Endpoints like to repeat the key that they refuse."""
        login = _login(self.address)[0]
        password = login.partition(":")[2]
        for secret in (self.api_key, self.api_key.strip(), password, unquote(password), _basic(login) if login else ""):
            words = words.replace(secret, "…") if secret else words
        return words


def address_of(url: str, tail: str, root: str = "") -> str:
    """The address that ends in `tail`, whether the one given names it or only what stands before it.

    root: the path of an address that has none
    """
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return url  # the request says what is wrong with it
    path = parts.path.rstrip("/") or root
    return urlunsplit(parts._replace(path=path if path.endswith(tail) else path + tail))


def public_address(address: str) -> str:
    """The address as people may see it: without password and query."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return masked(address)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment=""))


def _login(address: str) -> tuple[str, str]:
    """What stands before the `@` of an address, and the address without it."""
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
