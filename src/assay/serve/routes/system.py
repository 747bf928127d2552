"""HTTP routes for health checks, metrics and the web page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from anyio import to_thread
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import JSONResponse
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from assay.core.errors import Missing
from assay.serve.page_bundle import INDEX, Page, PageFile
from assay.serve.schemas import ResponseModel, error_responses
from assay.serve.state import CurrentPerson, CurrentServer


class HealthResponse(ResponseModel):
    status: str


class ReadyResponse(ResponseModel):
    ready: bool
    problems: tuple[str, ...]


router = APIRouter()

WEB = Path(__file__).parents[1] / "web"
FOR_EVER = "public, max-age=31536000, immutable"  # another content has another name
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
    """What the page is made of: together and compressed under names made from the content, which a browser keeps; and each file
    by its own name, with an ETag that the browser asks about before it uses its copy."""

    page = Page(WEB)

    async def get_response(self, path: str, scope: Scope) -> Response:
        if scope["method"] != "GET":
            raise HTTPException(405, headers={"Allow": "HEAD, GET"})
        if path != INDEX and (file := (await to_thread.run_sync(self.page.files)).get(path)):
            return await to_thread.run_sync(self.reply, file, FOR_EVER, Headers(scope=scope))
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = REVALIDATE
        return response

    def index(self, request: Request) -> Response:
        return self.reply(self.page.files()[INDEX], REVALIDATE, request.headers)

    def reply(self, file: PageFile, keep: str, asked: Headers) -> Response:
        headers = {"Cache-Control": keep, "ETag": f'W/"{file.digest}"', "Vary": "Accept-Encoding"}
        if headers["ETag"] in asked.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        headers["Content-Type"] = file.type
        if "gzip" not in asked.get("accept-encoding", ""):
            return Response(file.content, headers=headers)
        return Response(self.page.zipped(file), headers=headers | {"Content-Encoding": "gzip"})


def mount_page(app: FastAPI) -> None:
    """Serve the page under / and its files under /static."""
    files = PageFiles(directory=WEB, check_dir=False)

    @app.get("/", include_in_schema=False)
    def index(request: Request) -> Response:
        return files.index(request)

    app.mount("/static", files, name="static")
