"""One way to speak JSON with an endpoint: asked again while that can help, ended at the deadline, never a traceback.

Chat, embeddings and rerank stand on it. What is secret, the key and a password in the address, is in no error and no repr.
"""

from __future__ import annotations

import asyncio
import json
import math
import zlib
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit, urlunsplit

from assay.core.errors import Late, ModelError, UserError
from assay.core.settings import masked

if TYPE_CHECKING:
    import ssl

    import httpx

RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
TOO_LARGE = 413
EXCERPT = 200
LARGEST = 5_000_000  # bytes of a reply; nobody writes that much in answer to a prompt
SHORTEST_PAUSE, LONGEST_PAUSE = 0.5, 20.0
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
class Trouble:
    """Why no reply came, in words; `absent` where not even a connection could be made."""

    words: str
    absent: bool = False


@dataclass(frozen=True, slots=True)
class Named:
    """What errors call an endpoint, and the settings in which a person would put it right."""

    kind: str
    url: str
    key: str
    model: str


@dataclass(eq=False)
class Wire:
    """The connections to one endpoint, a pool for each event loop that asks.

    address: where to post; a name and password in it are sent as such, and shown nowhere
    largest: bytes; a reply that is longer is an error, and is not read to its end
    knocks: how often an address is tried at which nobody opens; 0 for as often as there is time
    sign: headers that vouch for what is sent, made anew at each try
    """

    address: str = field(repr=False)
    named: Named
    api_key: str = field(default="", repr=False)
    proxy: str = field(default="", repr=False)
    ca_bundle: str = ""
    largest: int = LARGEST
    knocks: int = 0
    sleep: Callable[[float], Awaitable[None]] = field(default=asyncio.sleep, repr=False)
    sign: Callable[[bytes], Mapping[str, str]] = field(default=lambda _: {}, repr=False)
    _clients: dict[asyncio.AbstractEventLoop, httpx.AsyncClient] = field(default_factory=dict, init=False, repr=False)

    async def post(
        self, body: Mapping[str, Any], seconds: float, hopeless: Callable[[Response], bool] = lambda _: False
    ) -> Response:
        """A reply that is not worth another try, or an error, within `seconds`. Waits as long as the endpoint asks.

        hopeless: says of a reply with a passing status (500, 429) that it would be the same again
        """
        content = json.dumps(body, ensure_ascii=False, default=_plain).encode("utf-8", "replace")
        return await self._asked("POST", self.address, content, seconds, hopeless)

    async def get(self, address: str, seconds: float) -> Response:
        return await self._asked("GET", address, b"", seconds, lambda _: False)

    async def close(self) -> None:
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client:
            await client.aclose()

    def refused(self, response: Response) -> ModelError:
        """The error for a status that is none of the good ones."""
        return self.error(self._refusal(response.status), response.text)

    def error(self, words: str, said: str = "") -> ModelError:
        said = " ".join(self._hidden(said)[: EXCERPT * 50].split())
        return ModelError(
            f"The {self.named.kind} endpoint {place(self.address)} {words}.{f' It said: {said[:EXCERPT]}' if said else ''}"
        )

    async def _asked(
        self, method: str, address: str, content: bytes, seconds: float, hopeless: Callable[[Response], bool]
    ) -> Response:
        clock = asyncio.get_running_loop().time
        end = clock() + seconds
        tries = absent = 0
        trouble, said = "", ""
        try:
            async with asyncio.timeout_at(end):
                while True:
                    tries += 1
                    wish = None
                    response = await self._once(method, address, content)
                    if isinstance(response, Response):
                        if response.status not in RETRIED or hopeless(response):
                            return response
                        trouble, said = self._refusal(response.status), response.text
                        wish = retry_after(response.headers, datetime.now(UTC))
                    else:
                        trouble, said = response.words, ""
                        absent += response.absent
                        if absent == self.knocks > 0:
                            raise self.error(f"{trouble}; gave up after {tries} tries")
                    pause = pause_before(tries, wish)
                    if clock() + pause >= end:
                        raise self.error(f"{trouble}; gave up after {tries} tries in {seconds:.3g} s", said)
                    await self.sleep(pause)
        except TimeoutError:
            before = f"; before that it {trouble}" if trouble else ""
            raise Late(str(self.error(f"did not answer in {max(seconds, 0):.3g} s{before}", said))) from None

    async def _once(self, method: str, address: str, content: bytes) -> Response | Trouble:
        """One request: the reply, or what kept it from coming."""
        import httpx

        waiting = httpx.Timeout(None, connect=CONNECTING)  # the deadline is the caller's, over everything
        try:
            bare, headers = self._request(address)
            headers |= self.sign(content)
            async with self._client().stream(method, bare, content=content, headers=headers, timeout=waiting) as reply:
                return Response(reply.status_code, dict(reply.headers), await self._read(reply))
        except (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError, UnicodeEncodeError) as error:
            names = f"`{self.named.url}` and `{self.named.key}`"
            wrong = f"{type(error).__name__} at {place(self.address)}"
            raise UserError(f"No request can be made of {names} ({wrong}).") from None
        except httpx.HTTPError as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise self.error("shows a certificate that is not trusted here: check `ca_bundle`") from None
            absent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            return Trouble(f"could not be reached ({type(error).__name__})", absent)
        except zlib.error:
            return Trouble("sent what cannot be unpacked")

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
                return f"wants a key ({status}): set `{self.named.key}`"
            case 401 | 403:
                return f"refused the key ({status}): check `{self.named.key}`"
            case 404:
                return (
                    f"does not know the address or the model (404): check `{self.named.url}` and `{self.named.model}`"
                )
            case 429:
                return "is asked too often (429)"
            case _ if 300 <= status < 400:
                return f"points to another address ({status}), which is not followed: check `{self.named.url}`"
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


def place(address: str) -> str:
    """The address as people may see it: without password and query."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return masked(address)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment=""))


def pause_before(tries: int, wish: float | None) -> float:
    """Seconds to wait after so many tries, or as many as the endpoint wishes. "At once" is no invitation to hammer."""
    return min(SHORTEST_PAUSE * 2 ** min(tries - 1, 10), LONGEST_PAUSE) if wish is None else max(wish, SHORTEST_PAUSE)


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that the endpoint asks to be left alone, never fewer than none; None where it does not say."""
    exact = _number(headers.get("retry-after-ms", ""))
    if exact is not None:
        return max(exact / 1000, 0.0)
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
