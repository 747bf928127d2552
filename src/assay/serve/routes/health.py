"""Whether the process lives, and whether it can do its work. Neither needs a sign-in."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from assay.serve.schemas.run_schemas import Health, Ready
from assay.serve.state import Here

router = APIRouter(tags=["health"])


@router.get("/health", response_model=Health)
async def health() -> Health:
    """The process lives."""
    return Health(status="ok")


@router.get("/ready", response_model=Ready, responses={503: {"model": Ready, "description": "Not ready, and why."}})
async def ready(server: Here) -> JSONResponse:
    """Whether questions can be taken; what is in the way is said."""
    if server.problems:  # somebody may have put it right meanwhile
        await server.load()
    problems = (*server.problems, *(("The server is closing.",) if server.live.closing else ()))
    told = Ready(ready=not problems, problems=problems)
    return JSONResponse(told.model_dump(), 200 if told.ready else 503)
