"""HTTP routes for upload jobs: followed and cancelled by their owner, resumed after a restart."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Path
from fastapi.responses import StreamingResponse

from assay.serve.document_schemas import JobView
from assay.serve.run_schemas import error_responses
from assay.serve.state import CurrentServer, CurrentWorkspace, Server
from assay.serve.stream import HEADERS, HEARTBEAT, RETRY_MILLISECONDS, SSE, sse
from assay.serve.document_schemas import job_view
from assay.store import jobs
from assay.store.jobs import Job
from assay.workspace.facade import Workspace

router = APIRouter(
    prefix="/api/jobs",
    tags=["jobs"],
    responses=error_responses(),
)

JobId = Annotated[str, Path(max_length=100)]
REPORTS = 200  # files of a job in a response
LISTED = 20  # jobs in the list


def job_of(workspace: Workspace, job: str) -> JobView:
    """The current state of a job of this user."""
    return job_view(jobs.get(workspace.store, job, workspace.principal.id), jobs.files(workspace.store, job, REPORTS))


@router.get("", response_model=list[JobView])
def list_jobs(workspace: CurrentWorkspace) -> list[JobView]:
    """Your latest jobs, the newest first."""
    found = jobs.listing(workspace.store, workspace.principal.id, LISTED)
    return [job_view(job, jobs.files(workspace.store, job.id, REPORTS)) for job in found]


@router.get("/{job}", response_model=JobView)
def one_job(job: JobId, workspace: CurrentWorkspace) -> JobView:
    return job_of(workspace, job)


@router.get(
    "/{job}/events",
    response_class=StreamingResponse,
    responses={
        200: {"content": SSE, "description": "`event: job` with the job as data, until it ends; then `event: end`."}
    },
)
async def follow_job(job: JobId, workspace: CurrentWorkspace, server: CurrentServer) -> StreamingResponse:
    """The job whenever something has changed, as server-sent events, until it ends."""
    await asyncio.to_thread(job_of, workspace, job)  # raises if there is none, before anything is sent
    return StreamingResponse(_events(server, workspace, job), media_type="text/event-stream", headers=HEADERS)


async def _events(server: Server, workspace: Workspace, job: str) -> AsyncIterator[str]:
    last: Job | None = None
    yield f"retry: {RETRY_MILLISECONDS}\n\n"
    async for now in server.worker.follow(job, workspace.principal.id):
        if now is None:
            yield HEARTBEAT
        else:
            files = await asyncio.to_thread(jobs.files, workspace.store, job, REPORTS)
            yield sse("job", job_view(now, files).model_dump_json())
            last = now
    if last is not None and not last.going:
        yield sse("end", json.dumps({"state": last.state}))
    else:
        yield sse("parked", "{}")


@router.post("/{job}/cancel", response_model=JobView)
async def cancel_job(job: JobId, workspace: CurrentWorkspace, server: CurrentServer) -> JobView:
    """Stop reading. What has been read stays, the other files are left out."""
    found = await asyncio.to_thread(jobs.get, workspace.store, job, workspace.principal.id)
    await server.worker.cancel(found)
    return await asyncio.to_thread(job_of, workspace, job)
