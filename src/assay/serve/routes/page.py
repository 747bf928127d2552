"""The page: files of this package and nothing else. A browser asks each time whether its copy is still right."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

WEB = Path(__file__).parents[1] / "web"
FRESH = "no-cache"  # kept by the browser, and asked about each time: after an upgrade nobody sees an old page


class Files(StaticFiles):
    """Files with an ETag, which a browser asks about before it uses its copy."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        if scope["method"] != "GET":
            raise HTTPException(405, headers={"Allow": "HEAD, GET"})
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = FRESH
        return response


def mount(app: FastAPI) -> None:
    """The page under / and its parts under /static."""

    @app.get("/", include_in_schema=False)
    async def index() -> FileResponse:
        return FileResponse(WEB / "index.html", media_type="text/html", headers={"Cache-Control": FRESH})

    app.mount("/static", Files(directory=WEB, check_dir=False), name="static")
