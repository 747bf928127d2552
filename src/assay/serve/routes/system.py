"""HTTP routes for health checks, metrics and the web page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Response
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from assay.core.errors import Missing
from assay.serve.schemas import ResponseModel, error_responses
from assay.serve.state import CurrentPerson, CurrentServer


class HealthResponse(ResponseModel):
    status: str


class ReadyResponse(ResponseModel):
    ready: bool
    problems: tuple[str, ...]


router = APIRouter()

WEB = Path(__file__).parents[1] / "web"
REVALIDATE = "no-cache"  # the browser revalidates its copy each time, so that an upgrade is visible at once
NOT_READY: dict[int | str, dict[str, Any]] = {503: {"model": ReadyResponse, "description": "Not ready, and why."}}


@router.get("/health", response_model=HealthResponse, tags=["health"])
async def health() -> HealthResponse:
    """The process is running. Needs no sign-in."""
    return HealthResponse(status="ok")


@router.get("/ready", response_model=ReadyResponse, responses=NOT_READY, tags=["health"])
async def ready(server: CurrentServer) -> JSONResponse:
    """Whether questions can be answered; if not, the problems. Needs no sign-in."""
    if server.problems:  # the problem may have been fixed meanwhile
        await server.load()
    await server.look_around()
    problems = (*server.problems, *server.unreachable, *(("The server is closing.",) if server.runs.closing else ()))
    response = ReadyResponse(ready=not problems, problems=problems)
    return JSONResponse(response.model_dump(), 200 if response.ready else 503)


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}} | error_responses(),
    tags=["metrics"],
)
def metrics(server: CurrentServer, who: CurrentPerson) -> Response:
    """Metrics for Prometheus. For administrators, and only where the setting `metrics` is on."""
    if server.metrics is None or not who.admin:
        raise Missing("There is nothing here under this name.")
    from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

    server.metrics.update()
    return Response(generate_latest(server.metrics.registry), media_type=CONTENT_TYPE_LATEST)


class PageFiles(StaticFiles):
    """Static files with an ETag that a browser revalidates before it uses its copy."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        if scope["method"] != "GET":
            raise HTTPException(405, headers={"Allow": "HEAD, GET"})
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = REVALIDATE
        return response


def mount_page(app: FastAPI) -> None:
    """Serve the page under / and its files under /static."""

    @app.get("/", include_in_schema=False)
    async def index() -> FileResponse:
        return FileResponse(WEB / "index.html", media_type="text/html", headers={"Cache-Control": REVALIDATE})

    app.mount("/static", PageFiles(directory=WEB, check_dir=False), name="static")
