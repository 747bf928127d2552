"""The OpenAPI document: FastAPI's own, with the ways of signing in that this server accepts."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from assay.serve.guard import COOKIE, OPEN, SAFE
from assay.serve.state import ServeOptions

KEY = {
    "type": "http",
    "scheme": "bearer",
    "description": "An API key of a person: `assay key add`, or `POST /api/keys`.",
}
TOKEN = {
    "type": "http",
    "scheme": "bearer",
    "description": "The token at the end of the address that `assay serve` prints.",
}
SESSION = {
    "type": "apiKey",
    "in": "cookie",
    "name": COOKIE,
    "description": "The cookie that `POST /api/session` sets.",
}
CSRF = {
    "type": "apiKey",
    "in": "header",
    "name": "X-CSRF-Token",
    "description": "With the cookie, a change also needs the `csrf` that `POST /api/session` and `GET /api/me` return.",
}

Security = list[dict[str, list[str]]]


def api_document(app: FastAPI, serving: ServeOptions) -> dict[str, Any]:
    """The document of this server. It is made once; then the same is returned."""
    document = app.openapi()
    schemes = security_schemes(serving)
    if not schemes or "securitySchemes" in document["components"]:
        return document
    document["components"]["securitySchemes"] = schemes
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            operation["security"] = required_security(tuple(schemes), method.upper(), path)
    return document


def security_schemes(serving: ServeOptions) -> dict[str, dict[str, str]]:
    """How a client says who it is. Empty where everybody who reaches the port is served."""
    match serving.auth:
        case "off":
            return {"token": TOKEN} if serving.token else {}
        case "header":
            about = "Set by the proxy that signs people in; accepted from its address alone."
            return {"proxy": {"type": "apiKey", "in": "header", "name": serving.user_header, "description": about}}
        case _:
            return {"key": KEY, "session": SESSION, "csrf": CSRF}


def required_security(schemes: tuple[str, ...], method: str, path: str) -> Security:
    """The alternatives that one operation accepts; empty for what is open to everybody."""
    if path in OPEN or ((method, path) == ("POST", "/api/session") and "session" in schemes):
        return []
    if "session" not in schemes:
        return [{scheme: []} for scheme in schemes]
    by_cookie = {"session": []} if method in SAFE else {"session": [], "csrf": []}
    return [{"key": []}, by_cookie]
