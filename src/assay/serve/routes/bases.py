"""HTTP routes for knowledge bases: list, create, describe, delete, readiness, and file uploads."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, HTTPException, Path, Query, Request
from pydantic import Field

from assay.core.access import Base, Scope
from assay.core.types import UPLOAD
from assay.ingest.parsed import file_limits
from assay.ingest.readiness import language_warnings
from assay.models.factory import embedder_languages
from assay.serve.routes.bases import job_of
from assay.serve.document_schemas import BaseReadinessResponse
from assay.serve.document_schemas import BaseView
from assay.serve.document_schemas import CreateBaseRequest
from assay.serve.document_schemas import JobView
from assay.serve.document_schemas import UpdateBaseRequest
from assay.serve.run_schemas import ErrorResponse
from assay.serve.run_schemas import error_responses
from assay.serve.state import CurrentPerson, CurrentServer, CurrentWorkspace
from assay.serve.upload_job import check_unlocked
from assay.serve.upload_job import writable_base
from assay.serve.upload_files import receive_files
from assay.serve.document_schemas import base_view
from assay.serve.document_schemas import document_summary
from assay.store import document_list
from assay.store.access import document_access, grants
from assay.store.access.grants import NameTaken
from assay.workspace.facade import DEFAULT_BASE, Workspace

router = APIRouter(
    prefix="/api/bases",
    tags=["knowledge bases"],
    responses=error_responses(413),
)

BaseName = Annotated[str, Path(max_length=100, description="The name of a knowledge base.")]
OnlyFor = Annotated[
    tuple[Annotated[str, Field(max_length=200)], ...],
    Query(max_length=100, description="Nobody else but the owner may read the files: `user:NAME` or `group:NAME`."),
]
SHOWN = 200  # unreadable files listed in a report
FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["files"],
                    "properties": {
                        "files": {
                            "type": "array",
                            "minItems": 1,
                            "items": {"type": "string", "format": "binary"},
                            "description": "Files. A file's name may hold the folders above it: `reports/a.pdf`.",
                        }
                    },
                }
            }
        },
    }
}


@router.get("", response_model=list[BaseView])
def list_bases(workspace: CurrentWorkspace) -> list[BaseView]:
    """Every knowledge base that you may read, with how much there is in it."""
    scope = workspace.scope()
    counted = document_list.counts(workspace.store, scope)
    return [base_view(base, counted.get(base.id), workspace.principal) for base in scope.bases]


@router.post("", response_model=BaseView, status_code=201, responses={409: {"model": ErrorResponse}})
def make_base(new: CreateBaseRequest, workspace: CurrentWorkspace) -> BaseView:
    """A new knowledge base: yours, or that of a group you are in."""
    try:
        base = grants.create_base(workspace.store, new.name, workspace.principal, new.description, new.group)
    except NameTaken as taken:
        raise HTTPException(409, str(taken)) from taken
    return base_view(base, None, workspace.principal)


# A name may contain a slash, so these routes come before those that would match the suffix as part of the name.


@router.get("/{name:path}/readiness", response_model=BaseReadinessResponse)
def readiness_of(name: BaseName, workspace: CurrentWorkspace) -> BaseReadinessResponse:
    """What can be asked about, what cannot, and what to do about each."""
    base, scope = _named(workspace, name)
    counted = document_list.counts(workspace.store, scope).get(base.id, document_list.Counted())
    sums = document_list.sums(workspace.store, base, scope)
    problems = document_list.page(workspace.store, scope, ("unreadable",), limit=SHOWN).entries
    outdated = workspace.outdated([base.id])
    return BaseReadinessResponse(
        base=base.name,
        readable=counted.ready,
        unreadable=counted.unreadable,
        pending=counted.pending,
        pages=sums.pages,
        characters=sums.characters,
        passages=sums.passages,
        languages=sums.languages,
        warnings=(
            *([outdated] if outdated else []),
            *language_warnings(sums.languages, embedder_languages(workspace.settings)),
        ),
        problems=tuple(document_summary(entry, {base.id: base.name}) for entry in problems),
    )


@router.post(
    "/{name:path}/documents",
    response_model=JobView,
    status_code=202,
    openapi_extra=FORM,
    responses={
        507: {"model": ErrorResponse, "description": "The disk is full, or all that you may keep here is used."}
    },
)
async def send_files(
    name: BaseName,
    request: Request,
    workspace: CurrentWorkspace,
    server: CurrentServer,
    who: CurrentPerson,
    only_for: OnlyFor = (),
) -> JobView:
    """Send files. Once this is answered they are safe: they are read whoever leaves, and after a restart. A file with the
    same name as an earlier one takes its place, and keeps its access list."""
    base = await asyncio.to_thread(target_base, workspace, name)
    for reader in only_for:
        grants.check_grantee(reader)
    job = "j" + workspace.store.new_id()
    with (
        await asyncio.to_thread(server.reserve_upload, who),
        await asyncio.to_thread(server.upload_room, base, who) as room,
    ):
        async with server.worker.arrival(job) as folder:
            files = await receive_files(request, folder, file_limits(workspace.settings).bytes, room.take)
            if only_for:
                uris = [UPLOAD + file.name for file in files]
                await asyncio.to_thread(
                    document_access.restrict, workspace.store, base, uris, only_for, workspace.principal.id
                )
            await server.worker.begin(job, workspace.principal, base.name, files)
    await server.worker.wake()
    return await asyncio.to_thread(job_of, workspace, job)


@router.get("/{name:path}", response_model=BaseView)
def one_base(name: BaseName, workspace: CurrentWorkspace) -> BaseView:
    base, scope = _named(workspace, name)
    return base_view(base, document_list.counts(workspace.store, scope).get(base.id), workspace.principal)


@router.patch("/{name:path}", response_model=BaseView)
def describe_base(name: BaseName, changed: UpdateBaseRequest, workspace: CurrentWorkspace) -> BaseView:
    base = grants.describe(workspace.store, writable_base(workspace, name), changed.description)
    return base_view(
        base, document_list.counts(workspace.store, workspace.scope([name])).get(base.id), workspace.principal
    )


@router.delete("/{name:path}", status_code=204, response_model=None)
async def delete_base(name: BaseName, workspace: CurrentWorkspace, server: CurrentServer) -> None:
    """The knowledge base with everything in it; what is being read into it is stopped."""
    base = await asyncio.to_thread(writable_base, workspace, name)
    await server.worker.cancel_all(base)
    await asyncio.to_thread(
        asyncio.run, _deleted(workspace, base)
    )  # not in the background loop: removing vectors is CPU-intensive
    await server.pages.forget()


async def _deleted(workspace: Workspace, base: Base) -> None:
    await check_unlocked(workspace, base)
    await workspace.delete_base(base.name)


def _named(workspace: Workspace, name: str) -> tuple[Base, Scope]:
    scope = workspace.scope([name])
    return scope.bases[0], scope


def target_base(workspace: Workspace, name: str) -> Base:
    """The target base of an upload: it must exist and be writable. Only the default base is created on demand."""
    if name == DEFAULT_BASE:
        grants.get_or_create_base(workspace.store, name, workspace.principal)
    return writable_base(workspace, name)
