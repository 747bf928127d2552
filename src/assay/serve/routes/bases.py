"""Knowledge bases over HTTP: list, make, describe, delete; how ready they are; and files that are sent into one."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, HTTPException, Path, Request

from assay.core.access import Base, Scope
from assay.ingest.parsed import limits_from
from assay.ingest.readiness import language_warnings
from assay.models.factory import languages_of
from assay.serve.limits import room_for_an_upload
from assay.serve.routes.jobs import job_of
from assay.serve.schemas.document_schemas import BaseLine, ChangedBase, JobShape, NewBase, ReadinessShape
from assay.serve.schemas.run_schemas import Problem
from assay.serve.state import Here, Mine, Who
from assay.serve.uploading.ingest_job import fillable, unfilled
from assay.serve.uploading.uploads import received
from assay.serve.views.document_views import base_line, document_line
from assay.store import document_list, jobs
from assay.store.access import grants
from assay.store.access.grants import Taken
from assay.workspace.facade import DEFAULT_BASE, Workspace

router = APIRouter(
    prefix="/api/bases",
    tags=["knowledge bases"],
    responses={code: {"model": Problem} for code in (400, 401, 403, 404, 413, 422, 429, 503)},
)

BaseName = Annotated[str, Path(max_length=100, description="The name of a knowledge base.")]
SHOWN = 200  # files that could not be read and are named in a report
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


@router.get("", response_model=list[BaseLine])
def list_bases(mine: Mine) -> list[BaseLine]:
    """Every knowledge base that you may read, with how much there is in it."""
    scope = mine.scope()
    counted = document_list.counts(mine.store, scope)
    return [base_line(base, counted.get(base.id), mine.principal) for base in scope.bases]


@router.post("", response_model=BaseLine, status_code=201, responses={409: {"model": Problem}})
def make_base(new: NewBase, mine: Mine) -> BaseLine:
    """A new knowledge base: yours, or that of a group you are in."""
    try:
        base = grants.make(mine.store, new.name, mine.principal, new.description, new.group)
    except Taken as taken:
        raise HTTPException(409, str(taken)) from taken
    return base_line(base, None, mine.principal)


# A name may hold a slash. So these come before what would take them for a part of the name.


@router.get("/{name:path}/readiness", response_model=ReadinessShape)
def readiness_of(name: BaseName, mine: Mine) -> ReadinessShape:
    """What can be asked about, what cannot, and what to do about each."""
    base, scope = _named(mine, name)
    counted = document_list.counts(mine.store, scope).get(base.id, document_list.Counted())
    sums = document_list.sums(mine.store, base, scope)
    problems = document_list.page(mine.store, scope, ("unreadable",), limit=SHOWN).entries
    return ReadinessShape(
        base=base.name,
        readable=counted.ready,
        unreadable=counted.unreadable,
        pending=counted.pending,
        pages=sums.pages,
        characters=sums.characters,
        passages=sums.passages,
        languages=sums.languages,
        warnings=tuple(language_warnings(sums.languages, languages_of(mine.settings))),
        problems=tuple(document_line(entry, {base.id: base.name}) for entry in problems),
    )


@router.post(
    "/{name:path}/documents",
    response_model=JobShape,
    status_code=202,
    openapi_extra=FORM,
    responses={507: {"model": Problem, "description": "The disk is full."}},
)
async def send_files(name: BaseName, request: Request, mine: Mine, here: Here, who: Who) -> JobShape:
    """Send files. Once this is answered they are safe: they are read whoever leaves, and after a restart. A file with the
    same name as an earlier one takes its place."""
    base = await asyncio.to_thread(_into, mine, name)
    job = "j" + mine.store.new_id()
    with await asyncio.to_thread(room_for_an_upload, here, who):
        async with here.worker.arrival(job) as folder:
            files = await received(request, folder, limits_from(mine.settings).bytes)
            await asyncio.to_thread(jobs.begin, mine.store, job, mine.principal, base.name, files)
    await here.worker.wake()
    return await asyncio.to_thread(job_of, mine, job)


@router.get("/{name:path}", response_model=BaseLine)
def one_base(name: BaseName, mine: Mine) -> BaseLine:
    base, scope = _named(mine, name)
    return base_line(base, document_list.counts(mine.store, scope).get(base.id), mine.principal)


@router.patch("/{name:path}", response_model=BaseLine)
def describe_base(name: BaseName, changed: ChangedBase, mine: Mine) -> BaseLine:
    base = grants.describe(mine.store, fillable(mine, name), changed.description)
    return base_line(base, document_list.counts(mine.store, mine.scope([name])).get(base.id), mine.principal)


@router.delete("/{name:path}", status_code=204, response_model=None)
async def delete_base(name: BaseName, mine: Mine, here: Here) -> None:
    """The knowledge base with everything in it; what is being read into it is stopped."""
    base = await asyncio.to_thread(fillable, mine, name)
    await here.worker.cancel_all(base)
    await asyncio.to_thread(asyncio.run, _deleted(mine, base))  # not in the engine: taking vectors away is hard work
    await here.pages.forget()


async def _deleted(mine: Workspace, base: Base) -> None:
    await unfilled(mine, base)
    await mine.delete_base(base.name)


def _named(mine: Workspace, name: str) -> tuple[Base, Scope]:
    scope = mine.scope([name])
    return scope.bases[0], scope


def _into(mine: Workspace, name: str) -> Base:
    """Where files go: a base that is there and theirs. Only the usual one is made by sending something to it."""
    if name == DEFAULT_BASE:
        grants.base_named(mine.store, name, mine.principal)
    return fillable(mine, name)
