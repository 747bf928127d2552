"""A small OpenID provider of the tests, which checks what it is sent as a strict one does, and says what it is told to: also
what an honest one never says."""

from __future__ import annotations

import json
import time
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, unquote_plus, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "assay desk", "a secret: of ours"
Claims = dict[str, Any]


@dataclass
class StrictProvider:
    """`claims` are said of whoever signs in, `sign` makes the id token of them, `about` and `userinfo` are said beside it."""

    url: str = ""
    claims: Claims = field(default_factory=lambda: {"sub": "s-1", "preferred_username": "iris"})
    userinfo: Claims = field(default_factory=dict)
    about: Claims = field(default_factory=dict)
    key: Any = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "one"}))
    sign: Callable[[StrictProvider, Claims], str] = lambda own, claims: own.signed(claims)
    broken: int = 0  # the status of every reply, if one
    asked: list[str] = field(default_factory=list)
    _codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def signed(self, claims: Claims, key: Any = None, **header: str) -> str:
        return jwt.encode({"alg": "RS256", "kid": "one"} | header, claims, key or self.key)

    def agrees(self, address: str) -> dict[str, str]:
        """Somebody has signed in at this address of the provider: what the browser brings back."""
        asked = {name: each[0] for name, each in parse_qs(urlsplit(address).query).items()}
        assert asked["response_type"] == "code" and asked["code_challenge_method"] == "S256", asked
        assert asked["client_id"] == CLIENT and "openid" in asked["scope"].split() and asked["nonce"], asked
        code = f"code {len(self._codes)}"
        self._codes[code] = asked
        return {"code": code, "state": asked["state"]}

    def reply(self, method: str, path: str, body: str, headers: Any) -> tuple[int, Claims]:
        self.asked.append(path)
        match path:
            case _ if self.broken:
                return self.broken, {"error": "broken"}
            case "/.well-known/openid-configuration":
                named = {"authorization": "/authorize", "token": "/token", "userinfo": "/userinfo"}
                ends = {f"{name}_endpoint": self.url + place for name, place in named.items()}
                return 200, {"issuer": self.url, "jwks_uri": f"{self.url}/keys"} | ends | self.about
            case "/keys":
                return 200, {"keys": [self.key.as_dict(private=False)]}
            case "/userinfo" if headers["Authorization"] == "Bearer let me":
                return 200, self.userinfo
            case "/token" if method == "POST":
                return self._token({name: each[0] for name, each in parse_qs(body).items()}, headers["Authorization"])
            case _:
                return 404, {"error": "missing"}

    def _token(self, given: dict[str, str], login: str | None) -> tuple[int, Claims]:
        name, _, secret = b64decode((login or "Basic ").partition(" ")[2]).decode().partition(":")
        if (unquote_plus(name), unquote_plus(secret)) != (CLIENT, SECRET):
            return 401, {"error": "invalid_client"}
        asked = self._codes.pop(given["code"], None)  # once
        proof = urlsafe_b64encode(sha256(given["code_verifier"].encode()).digest()).decode().rstrip("=")
        if not asked or proof != asked["code_challenge"] or given["redirect_uri"] != asked["redirect_uri"]:
            return 400, {"error": "invalid_grant"}
        now = int(time.time())
        usual = {"iss": self.url, "aud": CLIENT, "exp": now + 300, "iat": now, "nonce": asked["nonce"]}
        token = self.sign(self, usual | self.claims)
        return 200, {"access_token": "let me", "token_type": "Bearer", "id_token": token}


@contextmanager
def strict_provider() -> Iterator[StrictProvider]:
    own = StrictProvider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"] or 0)).decode()
            status, said = own.reply(self.command, urlsplit(self.path).path, body, self.headers)
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", said["to"])
            self.end_headers()
            self.wfile.write(json.dumps(said).encode())

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    own.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield own
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
