"""The application: routes, uniform errors, startup and shutdown, and the OpenAPI document with the ways of signing in that this
server accepts. Only what is listed here is served."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from assay import __version__
from assay.core.errors import AssayError, Missing, ModelError, StoreError, UserError
from assay.serve import housekeeping, openai_chat
from assay.serve import mcp_tools as mcp
from assay.serve.compressed import CompressedJson
from assay.serve.guard import (
    COOKIE,
    OPEN,
    SAFE,
    SIGNING_IN,
    HttpMethodsMiddleware,
    RequestGuard,
    allowed_methods,
    error_reply,
)
from assay.serve.housekeeping import work
from assay.serve.metrics import MetricsMiddleware, ServerMetrics
from assay.serve.routes import (
    bases,
    documents,
    people,
    reports,
    review,
    runs,
    setup,
    sign_in,
    synthesis,
    system,
    threads,
    watches,
)
from assay.serve.state import INTERNAL_ERROR, ServeOptions, Server

log = logging.getLogger("assay.serve")

STATUSES = {Missing: 404, UserError: 400, ModelError: 502, StoreError: 503}  # the first that an error is
ROUTERS = (
    system.router,
    people.auth_router,
    sign_in.router,
    setup.setup_router,
    setup.settings_router,
    setup.start_router,
    people.people_router,
    people.access_router,  # before the bases: a base's name may contain a slash
    bases.bases_router,
    watches.watches_router,
    documents.documents_router,
    documents.search_router,
    bases.jobs_router,
    runs.runs_router,
    runs.reruns_router,
    reports.reports_router,
    reports.evaluations_router,
    reports.audit_router,
    review.review_router,
    review.waiting_router,
    synthesis.forecast_router,
    threads.threads_router,
    threads.shared_router,
    synthesis.synthesis_router,
    openai_chat.chat_router,
)


def make_app(server: Server) -> FastAPI:
    """Build the whole service over one workspace."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await server.start()
        async with housekeeping.sealing(server):  # outermost: records written during shutdown are sealed too
            async with mcp.running(app):
                started = asyncio.create_task(work(server))
                notifier = asyncio.create_task(server.background.run(housekeeping.notify_reviewers(server.workspace)))
                yield
                started.cancel()
                notifier.cancel()
            await server.stop()

    app = FastAPI(
        title="Assay",
        version=__version__,
        description="Answers questions from your own documents and shows its evidence.",
        lifespan=lifespan,
        openapi_url=None,  # served below
        docs_url=None,  # those pages load assets from other hosts; the document itself is at /openapi.json
        redoc_url=None,
        redirect_slashes=False,  # the redirect target would be taken from the client's request
    )
    app.state.server = server
    for router in ROUTERS:
        app.router.routes.extend(router.routes)  # `include_router` would build every route again for each application
    mcp.mount(app, server)

    @app.get("/openapi.json", include_in_schema=False)
    def document() -> JSONResponse:
        """Made when it is first asked for, in a thread: it takes a moment, which nobody else has to wait for."""
        return JSONResponse(openapi_document(app, server.serving))

    system.mount_page(app)
    app.add_exception_handler(AssayError, _assay_error)  # pyright: ignore[reportArgumentType]
    app.add_exception_handler(RequestValidationError, _invalid)  # pyright: ignore[reportArgumentType]
    app.add_exception_handler(HTTPException, _http_error)  # pyright: ignore[reportArgumentType]
    app.add_exception_handler(Exception, _broke_down)
    app.add_middleware(CompressedJson)
    app.add_middleware(HttpMethodsMiddleware)
    app.add_middleware(RequestGuard, server=server)
    if server.workspace.settings.metrics:
        server.metrics = ServerMetrics(server.workspace)
        app.add_middleware(MetricsMiddleware, metrics=server.metrics)  # outermost: rejected requests are counted too
    return app


async def _assay_error(request: Request, error: AssayError) -> Response:
    status = next((status for kind, status in STATUSES.items() if isinstance(error, kind)), 500)
    if status == 503:
        log.error("%s", error)
    headers = {"Retry-After": "1"} if status == 503 else None
    return error_reply(request.url.path, HTTPException(status, str(error), headers))


async def _invalid(request: Request, error: RequestValidationError) -> Response:
    first = error.errors()[0]
    place = ".".join(str(each) for each in first["loc"] if each != "body")
    words = f"{place}: {first['msg']}" if place else str(first["msg"])
    if first["type"] == "json_invalid":
        words = f"The body is not JSON: {first['ctx']['error']}."
    return error_reply(request.url.path, HTTPException(422, words))


async def _http_error(request: Request, error: HTTPException) -> Response:
    """Errors of the router: no such path, or not with this method."""
    headers = dict(error.headers or {})
    if error.status_code == 405 and (methods := allowed_methods(request.app.routes, request.scope)):
        headers["Allow"] = ", ".join(methods)
    return error_reply(request.url.path, HTTPException(error.status_code, error.detail, headers))


async def _broke_down(request: Request, error: Exception) -> Response:
    log.error("a request broke down", exc_info=error)
    return error_reply(request.url.path, HTTPException(500, INTERNAL_ERROR))


BEARER = {"type": "http", "scheme": "bearer"}
KEY = BEARER | {"description": "An API key of a person: `assay key add`, or `POST /api/keys`."}
TOKEN = BEARER | {"description": "The token at the end of the address that `assay serve` prints."}
SESSION = {"type": "apiKey", "in": "cookie", "name": COOKIE, "description": "The cookie that `POST /api/session` sets."}
CSRF = {
    "type": "apiKey",
    "in": "header",
    "name": "X-CSRF-Token",
    "description": "With the cookie, a change also needs the `csrf` that `POST /api/session` and `GET /api/me` return.",
}


def openapi_document(app: FastAPI, serving: ServeOptions) -> dict[str, Any]:
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


def required_security(schemes: tuple[str, ...], method: str, path: str) -> list[dict[str, list[str]]]:
    """The alternatives that one operation accepts; empty for what is open to everybody."""
    if path in OPEN or ((method, path) in SIGNING_IN and "session" in schemes):
        return []
    if "session" not in schemes:
        return [{scheme: []} for scheme in schemes]
    by_cookie = {"session": []} if method in SAFE else {"session": [], "csrf": []}
    return [{"key": []}, by_cookie]
