"""The token of a server without sign-in: whoever can reach the port, as every user of this machine can, needs it too.

It is part of the address that `assay serve` prints. The first visit puts it into a cookie; programs send it as a bearer token.
"""

from __future__ import annotations

import hmac
import secrets
from pathlib import Path
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse
from starlette.types import Scope

from assay.core.private_files import write_private

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


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(errors="replace"), wanted.encode())
