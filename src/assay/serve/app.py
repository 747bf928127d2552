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
from assay.serve import mcp_server as mcp
from assay.serve.guard import COOKIE, ERRORS, OPEN, SAFE, HttpMethodsMiddleware, RequestGuard, allowed_methods
from assay.serve.housekeeping import work
from assay.serve.metrics import MetricsMiddleware, ServerMetrics
from assay.serve.openai_chat import error_response, is_openai_path
from assay.serve.routes import bases, documents, people, reports, review, runs, setup, synthesis, system, threads
from assay.serve.state import INTERNAL_ERROR, ServeOptions, Server

log = logging.getLogger("assay.serve")

ROUTERS = (
    system.router,
    people.auth_router,
    setup.setup_router,
    setup.settings_router,
    setup.start_router,
    people.people_router,
    people.access_router,  # before the bases: a base's name may contain a slash
    bases.bases_router,
    documents.documents_router,
    documents.search_router,
    bases.jobs_router,
    runs.runs_router,
    runs.reruns_router,
    reports.reports_router,
    reports.evaluations_router,
    reports.audit_router,
    review.review_router,
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
    app.add_middleware(HttpMethodsMiddleware)
    app.add_middleware(RequestGuard, server=server)
    if server.workspace.settings.metrics:
        server.metrics = ServerMetrics(server.workspace)
        app.add_middleware(MetricsMiddleware, metrics=server.metrics)  # outermost: rejected requests are counted too
    return app


def problem(status: int, error: str, detail: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": error, "detail": detail}, status, headers)


async def _assay_error(_: Request, error: AssayError) -> JSONResponse:
    match error:
        case Missing():
            return problem(404, "missing", str(error))
        case UserError():
            return problem(400, "unusable", str(error))
        case ModelError():
            return problem(502, "model", str(error))
        case StoreError():
            log.error("%s", error)
            return problem(503, "store", str(error), {"Retry-After": "1"})
        case _:
            return problem(500, "broken", str(error))


async def _invalid(_: Request, error: RequestValidationError) -> JSONResponse:
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return problem(422, "invalid", f"The body is not JSON: {first['ctx']['error']}.")
    place = ".".join(str(each) for each in first["loc"] if each != "body")
    return problem(422, "invalid", f"{place}: {first['msg']}" if place else str(first["msg"]))


async def _http_error(request: Request, error: HTTPException) -> Response:
    """Errors of the router: no such path, or not with this method."""
    headers = dict(error.headers or {})
    if error.status_code == 405 and (methods := allowed_methods(request.app.routes, request.scope)):
        headers["Allow"] = ", ".join(methods)
    if is_openai_path(request.url.path):
        return error_response(HTTPException(error.status_code, error.detail, headers))
    return problem(error.status_code, ERRORS.get(error.status_code, "http"), str(error.detail), headers)


async def _broke_down(_: Request, error: Exception) -> JSONResponse:
    log.error("a request broke down", exc_info=error)
    return problem(500, "broken", INTERNAL_ERROR)


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
SESSION = {"type": "apiKey", "in": "cookie", "name": COOKIE, "description": "The cookie that `POST /api/session` sets."}
CSRF = {
    "type": "apiKey",
    "in": "header",
    "name": "X-CSRF-Token",
    "description": "With the cookie, a change also needs the `csrf` that `POST /api/session` and `GET /api/me` return.",
}

Security = list[dict[str, list[str]]]


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


def required_security(schemes: tuple[str, ...], method: str, path: str) -> Security:
    """The alternatives that one operation accepts; empty for what is open to everybody."""
    if path in OPEN or ((method, path) == ("POST", "/api/session") and "session" in schemes):
        return []
    if "session" not in schemes:
        return [{scheme: []} for scheme in schemes]
    by_cookie = {"session": []} if method in SAFE else {"session": [], "csrf": []}
    return [{"key": []}, by_cookie]
