"""HTTP routes for knowledge bases: list, create, describe, delete, readiness; and for uploads: followed and cancelled by their
owner, resumed after a restart."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import Field, StringConstraints

from assay.core.access import Base, Scope
from assay.core.types import UPLOAD
from assay.ingest.parsed import file_limits
from assay.ingest.pdf.ocr import MISSING, find_engine
from assay.ingest.readiness import language_warnings
from assay.models.factory import embedder_languages
from assay.serve.routes.documents import DocumentSummary, document_summary, documents_router, to_change
from assay.serve.schemas import BaseName, ErrorResponse, Id, Name, PathId, RequestModel, ResponseModel, error_responses
from assay.serve.state import CurrentServer, CurrentWorkspace, Server
from assay.serve.stream import HEADERS, HEARTBEAT, RETRY_MILLISECONDS, SSE, sse
from assay.serve.upload_files import Admit, copy_again, receive_files
from assay.serve.upload_worker import change_base, writable_base
from assay.workspace.facade import DEFAULT_BASE, Workspace
from assay.workspace.stored import (
    Counted,
    Job,
    JobFile,
    NameTaken,
    check_grantee,
)


class CreateBaseRequest(RequestModel):
    name: Name
    description: Annotated[str, StringConstraints(max_length=2000)] = ""
    group: Id = ""  # the group whose members may write to it; empty: only the user


class UpdateBaseRequest(RequestModel):
    description: Annotated[str, StringConstraints(max_length=2000)]


class BaseView(ResponseModel):
    """A knowledge base at a glance."""

    id: str  # routes take it in place of the name
    name: str
    description: str
    owner: str
    yours: bool  # whether the user may add and remove documents
    documents: int  # searchable documents
    unreadable: int
    pending: int
    off: int  # switched off: kept, but not searched
    passages: int


class FileReportView(ResponseModel):
    """How a file ended: added, replaced, unchanged, moved, duplicate, finished, or failed; empty while it waits, or
    while it is read (`status` is then `reading`)."""

    name: str
    bytes: int
    outcome: str
    status: str = ""
    why: str = ""
    title: str = ""
    pages: int = 0
    passages: int = 0


class JobState(StrEnum):
    waiting = "waiting"
    running = "running"
    done = "done"
    failed = "failed"
    cancelled = "cancelled"


class JobView(ResponseModel):
    """Work that goes on when the client leaves and after a restart: files that are being read."""

    id: str
    kind: str  # ingest
    base: str
    state: JobState
    files: int
    done: int
    passages: int
    seconds: float
    left: float | None  # estimated seconds, if known
    error: str
    created: str
    reports: tuple[FileReportView, ...]  # finished and waiting files; the first 200


class BaseReadinessResponse(ResponseModel):
    base: str
    readable: int
    unreadable: int
    pending: int
    pages: int
    characters: int
    passages: int
    languages: dict[str, int]
    warnings: tuple[str, ...]
    problems: tuple[DocumentSummary, ...]  # unreadable files with the reason; the first 200


FEW = 3  # finished files needed for an estimate of the remaining time


def base_view(workspace: Workspace, base: Base, counts: Mapping[str, Counted]) -> BaseView:
    held = counts.get(base.id, Counted())
    return BaseView.made_from(base, held, yours=workspace.principal.owns(base), documents=held.ready)


def job_view(job: Job, files: Sequence[JobFile]) -> JobView:
    reports = tuple(
        FileReportView.model_validate({**each.report, "name": each.name, "bytes": each.bytes, "outcome": each.outcome})
        for each in files
    )
    return JobView.made_from(job, kind="ingest", left=_left(job), reports=reports)


def _left(job: Job) -> float | None:
    """The estimated remaining seconds, from the average time per finished file; None after too few files."""
    if not job.going:
        return 0.0
    return round(job.seconds / job.done * (job.files - job.done), 1) if job.done >= FEW and job.seconds else None


bases_router = APIRouter(prefix="/api/bases", tags=["knowledge bases"], responses=error_responses(413))

OnlyFor = Annotated[
    tuple[Annotated[str, Field(max_length=200)], ...],
    Query(max_length=100, description="Nobody else but the owner may read the files: `user:NAME` or `group:NAME`."),
]
SHOWN = 200  # unreadable files listed in a report
FILES = {
    "type": "array",
    "minItems": 1,
    "items": {"type": "string", "format": "binary"},
    "description": "Files. A file's name may hold the folders above it: `reports/a.pdf`.",
}
FORM = {"schema": {"type": "object", "required": ["files"], "properties": {"files": FILES}}}


@bases_router.get("")
def list_bases(workspace: CurrentWorkspace) -> list[BaseView]:
    """Every knowledge base that you may read, with how much there is in it."""
    scope = workspace.scope()
    counts = workspace.documents.counts(scope)
    return [base_view(workspace, base, counts) for base in scope.bases]


@bases_router.post("", status_code=201, responses={409: {"model": ErrorResponse}})
def make_base(new: CreateBaseRequest, workspace: CurrentWorkspace) -> BaseView:
    """A new knowledge base: yours, or that of a group you are in."""
    try:
        base = workspace.documents.create_base(new.name, workspace.principal, new.description, new.group)
    except NameTaken as taken:
        raise HTTPException(409, str(taken)) from taken
    return base_view(workspace, base, {})


# A name may contain a slash, so these routes come before those that would match the suffix as part of the name.


@bases_router.get("/{name:path}/readiness")
def readiness_of(name: BaseName, workspace: CurrentWorkspace) -> BaseReadinessResponse:
    """What can be asked about, what cannot, and what to do about each."""
    base, scope = _named(workspace, name)
    counted = workspace.documents.counts(scope).get(base.id, Counted())
    sums = workspace.documents.sums(base, scope)
    problems = workspace.documents.page(scope, ("unreadable",), limit=SHOWN).entries
    outdated = workspace.documents.outdated([base.id])
    return BaseReadinessResponse.made_from(
        sums,
        counted,
        base=base.name,
        readable=counted.ready,
        warnings=(
            *([outdated] if outdated else []),
            *language_warnings(sums.languages, embedder_languages(workspace.settings)),
        ),
        problems=tuple(document_summary(entry, {base.id: base.name}) for entry in problems),
    )


@bases_router.post(
    "/{name:path}/documents",
    status_code=202,
    openapi_extra={"requestBody": {"required": True, "content": {"multipart/form-data": FORM}}},
    responses={
        507: {"model": ErrorResponse, "description": "The disk is full, or all that you may keep here is used."}
    },
)
async def send_files(
    name: BaseName,
    request: Request,
    workspace: CurrentWorkspace,
    server: CurrentServer,
    only_for: OnlyFor = (),
) -> JobView:
    """Send files. Once this is answered they are safe: they are read whoever leaves, and after a restart. A file with the
    same name as an earlier one takes its place, and keeps its access list."""
    base = await asyncio.to_thread(target_base, workspace, name)
    for reader in only_for:
        check_grantee(reader)

    async def arrive(folder: Path, most: int, admit: Admit) -> list[JobFile]:
        files = await receive_files(request, folder, most, admit)
        if only_for:
            uris, by = [UPLOAD + file.name for file in files], workspace.principal.id
            await asyncio.to_thread(workspace.documents.restrict, base, uris, only_for, by)
        return files

    return await begin_job(server, workspace, base, arrive)


async def begin_job(
    server: Server,
    workspace: Workspace,
    base: Base,
    arrive: Callable[[Path, int, Admit], Awaitable[list[JobFile]]],
) -> JobView:
    """Take the files of an upload as they arrive, within what the person may still keep, and begin to read them."""
    job, most = "j" + workspace.store.new_id(), file_limits(workspace.settings).bytes
    with (
        await asyncio.to_thread(server.reserve_upload, workspace.principal),
        await asyncio.to_thread(server.upload_room, base, workspace.principal) as room,
    ):
        async with server.worker.arrival(job) as folder:
            files = await arrive(folder, most, room.take)
            await server.worker.begin(job, workspace.principal, base.name, files)
    await server.worker.wake()
    return await asyncio.to_thread(job_of, workspace, job)


@documents_router.post("/{document}/ocr", responses=error_responses(409))
async def read_with_ocr(document: PathId, workspace: CurrentWorkspace, server: CurrentServer) -> JobView:
    """Read the pages of a document that are pictures with OCR, whatever the setting `ocr` says. For its owner; a job."""
    entry, base = await asyncio.to_thread(to_change, workspace, document)
    await asyncio.to_thread(writable_base, workspace, base.name)
    if not find_engine(workspace.settings.ocr_languages):
        raise HTTPException(409, MISSING)

    def copied(folder: Path, admit: Admit) -> list[JobFile]:
        with workspace.context.blobs.as_file(entry.digest) as original:
            return copy_again(original, entry, folder, admit)

    if not await asyncio.to_thread(workspace.context.blobs.has, entry.digest):
        raise HTTPException(409, "The file is not stored any more. Add it again.")
    await asyncio.to_thread(workspace.documents.expect_again, entry)
    return await begin_job(server, workspace, base, lambda folder, _, admit: asyncio.to_thread(copied, folder, admit))


@bases_router.get("/{name:path}")
def one_base(name: BaseName, workspace: CurrentWorkspace) -> BaseView:
    base, scope = _named(workspace, name)
    return base_view(workspace, base, workspace.documents.counts(scope))


@bases_router.patch("/{name:path}")
def describe_base(name: BaseName, changed: UpdateBaseRequest, workspace: CurrentWorkspace) -> BaseView:
    base = workspace.documents.describe_base(writable_base(workspace, name), changed.description)
    return base_view(workspace, base, workspace.documents.counts(workspace.scope([name])))


@bases_router.delete("/{name:path}", status_code=204)
async def delete_base(name: BaseName, workspace: CurrentWorkspace, server: CurrentServer) -> None:
    """The knowledge base with everything in it; what is being read into it is stopped."""
    base = await asyncio.to_thread(writable_base, workspace, name)
    await server.watcher.end_all(server.workspace, base)
    await server.worker.cancel_all(base)
    await change_base(workspace, base, lambda: workspace.records.erase_base(base.name))
    await server.pages.forget()


def _named(workspace: Workspace, name: str) -> tuple[Base, Scope]:
    scope = workspace.scope([name])
    return scope.bases[0], scope


def target_base(workspace: Workspace, name: str) -> Base:
    """The target base of an upload: it must exist and be writable. Only the default base is created on demand."""
    if name == DEFAULT_BASE:
        workspace.documents.get_or_create_base(name, workspace.principal)
    return writable_base(workspace, name)


jobs_router = APIRouter(prefix="/api/jobs", tags=["jobs"], responses=error_responses())

REPORTS = 200  # files of a job in a response
LISTED = 20  # jobs in the list


def job_of(workspace: Workspace, job: str) -> JobView:
    """The current state of a job of this user."""
    return job_view(workspace.jobs.get(job, workspace.principal.id), workspace.jobs.files(job, REPORTS))


@jobs_router.get("")
def list_jobs(workspace: CurrentWorkspace) -> list[JobView]:
    """Your latest jobs, the newest first."""
    found = workspace.jobs.listing(workspace.principal.id, LISTED)
    return [job_view(job, workspace.jobs.files(job.id, REPORTS)) for job in found]


@jobs_router.get("/{job}")
def one_job(job: PathId, workspace: CurrentWorkspace) -> JobView:
    return job_of(workspace, job)


@jobs_router.get(
    "/{job}/events",
    response_class=StreamingResponse,
    responses={
        200: {"content": SSE, "description": "`event: job` with the job as data, until it ends; then `event: end`."}
    },
)
async def follow_job(job: PathId, workspace: CurrentWorkspace, server: CurrentServer) -> StreamingResponse:
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
            files = await asyncio.to_thread(workspace.jobs.files, job, REPORTS)
            yield sse("job", job_view(now, files).model_dump_json())
            last = now
    if last is not None and not last.going:
        yield sse("end", json.dumps({"state": last.state}))
    else:
        yield sse("parked", "{}")


@jobs_router.post("/{job}/cancel")
async def cancel_job(job: PathId, workspace: CurrentWorkspace, server: CurrentServer) -> JobView:
    """Stop reading. What has been read stays, the other files are left out."""
    found = await asyncio.to_thread(workspace.jobs.get, job, workspace.principal.id)
    await server.worker.cancel(found)
    return await asyncio.to_thread(job_of, workspace, job)
