"""HTTP routes for access: viewing, granting and revoking by owners, and erasing documents with a report. Everyone
else gets the same error as for a missing object."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, HTTPException, Path, Response

from assay.core.access import Base
from assay.serve.routes.documents import DocumentId
from assay.serve.routes.people import AccessView
from assay.serve.routes.people import AnswerOfferRequest
from assay.serve.routes.people import BackupView
from assay.serve.routes.people import ChangeAccessRequest
from assay.serve.routes.people import ErasedResponse
from assay.serve.routes.people import OfferView
from assay.serve.run_schemas import ErrorResponse
from assay.serve.run_schemas import error_responses
from assay.serve.state import CurrentServer, CurrentWorkspace
from assay.serve.upload_job import check_unlocked
from assay.store.documents import Entry
from assay.workspace.facade import Workspace
from assay.workspace.types import Access, ErasureReport

T = TypeVar("T")

router = APIRouter(
    prefix="/api",
    tags=["access"],
    responses=error_responses(413),
)

BaseId = Annotated[str, Path(max_length=100, description="The id of a knowledge base.")]
BaseName = Annotated[str, Path(max_length=100, description="The name of a knowledge base.")]


def shape(access: Access) -> AccessView:
    return AccessView(
        what=access.what,
        id=access.id,
        owner=access.owner,
        own=access.own,
        readers=access.readers,
        mine=access.mine,
    )


@router.get("/bases/{name:path}/access", response_model=AccessView)
def base_access(name: BaseName, workspace: CurrentWorkspace) -> AccessView:
    """Who may read a knowledge base; for its owner."""
    return shape(workspace.base_access(name))


@router.post("/bases/{name:path}/access", response_model=AccessView)
async def change_base_access(name: BaseName, changed: ChangeAccessRequest, workspace: CurrentWorkspace) -> AccessView:
    """Let a person or a group read a knowledge base, or not any more. It holds from their next request on."""
    return shape(await asyncio.to_thread(_run, workspace.share_base(name, changed.name, changed.may)))


@router.get("/offers", response_model=list[OfferView])
def list_offers(workspace: CurrentWorkspace) -> list[OfferView]:
    """Knowledge bases that others share with you, and that you have not accepted: nothing of them is searched."""
    return [
        OfferView(
            id=offer.base.id,
            name=offer.base.name,
            description=offer.base.description,
            owner=offer.base.owner,
            declined=offer.declined,
        )
        for offer in workspace.offers()
    ]


@router.post("/offers/{base}", status_code=204)
def answer_offer(base: BaseId, answer: AnswerOfferRequest, workspace: CurrentWorkspace) -> Response:
    """Accept a shared knowledge base; or decline it, or leave it."""
    workspace.answer_offer(base, answer.accept)
    return Response(status_code=204)


@router.get("/documents/{document}/access", response_model=AccessView)
def document_access(document: DocumentId, workspace: CurrentWorkspace) -> AccessView:
    """Who may read a document; for its owner."""
    return shape(workspace.document_access(document))


@router.post("/documents/{document}/access", response_model=AccessView)
async def change_document_access(
    document: DocumentId, changed: ChangeAccessRequest, workspace: CurrentWorkspace
) -> AccessView:
    """The same for one document, which has a list of its own from then on."""
    return shape(await asyncio.to_thread(_run, workspace.share_document(document, changed.name, changed.may)))


@router.delete("/documents/{document}/access", response_model=AccessView)
async def reset_document_access(document: DocumentId, workspace: CurrentWorkspace) -> AccessView:
    """Whoever may read its knowledge base may read the document again, and nobody else."""
    return shape(await asyncio.to_thread(_run, workspace.reset_document_access(document)))


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Run in a thread with its own loop: writing to the index must not block requests."""
    return asyncio.run(work)


@router.post("/documents/{document}/erase", response_model=ErasedResponse, responses={409: {"model": ErrorResponse}})
async def erase_document(document: DocumentId, workspace: CurrentWorkspace, server: CurrentServer) -> ErasedResponse:
    """Erase a document with everything that was made of it, and say what went: also from the records of all runs that spoke
    of it, whoever asked."""
    base, entry = await asyncio.to_thread(workspace.owned_document, document)
    if await server.worker.fills(base):
        raise HTTPException(
            409, f"Files are being read into {base.name!r} now. Erase it when they are done, or stop them."
        )
    gone = await asyncio.to_thread(_run, _erased(workspace, entry, base))
    await server.pages.forget()
    backups = tuple(BackupView(path=each.path, at=each.at) for each in gone.backups)
    return ErasedResponse(records=gone.records, backups=backups)


async def _erased(workspace: Workspace, entry: Entry, base: Base) -> ErasureReport:
    await check_unlocked(workspace, base)
    return await workspace.erase([entry], workspace.scope([base.name]))
