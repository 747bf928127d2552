"""Documents over HTTP: looked through a page at a time, read, downloaded, removed."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, HTTPException, Path, Query
from fastapi.responses import FileResponse

from assay.core.access import Base
from assay.core.errors import Missing
from assay.core.formats import format_named
from assay.ingest.pipeline import original_path
from assay.serve.schemas.document_schemas import Documents, DocumentWhole, Removed, Text
from assay.serve.schemas.run_schemas import Problem, Some
from assay.serve.state import Here, Mine
from assay.serve.uploading.ingest_job import unfilled
from assay.serve.views.document_views import document_line
from assay.store import document_list
from assay.store.document_list import SHOWN
from assay.store.documents import REPLACED, Entry
from assay.workspace.facade import ORIGINALS, Workspace

router = APIRouter(
    prefix="/api/documents",
    tags=["documents"],
    responses={code: {"model": Problem} for code in (400, 401, 403, 404, 422, 429, 503)},
)

DocumentId = Annotated[str, Path(max_length=100)]
Offset = Annotated[int, Query(ge=0, le=1_000_000_000)]
LONGEST = 200_000  # characters of a reply
NO_SNIFFING = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "private, no-cache",
}


class State(StrEnum):
    ready = "ready"
    pending = "pending"
    unreadable = "unreadable"


@router.get("", response_model=Documents)
def list_documents(
    mine: Mine,
    base: Annotated[str, Query(max_length=100, description="The name of a knowledge base; empty: all.")] = "",
    q: Annotated[str, Query(max_length=200, description="Words in the title, the name or among the authors.")] = "",
    state: State | None = None,
    after: Annotated[str, Query(max_length=200, description="`next` of the page before.")] = "",
    limit: Some = 50,
) -> Documents:
    """Documents, and files that could not be read; the newest first."""
    scope = mine.scope([base] if base else [])
    page = document_list.page(mine.store, scope, (state,) if state else SHOWN, q, after, limit)
    names = {each.id: each.name for each in scope.bases}
    lines = tuple(document_line(entry, names) for entry in page.entries)
    return Documents(documents=lines, total=page.total, next=page.next)


@router.get("/{document}", response_model=DocumentWhole)
def one_document(document: DocumentId, mine: Mine) -> DocumentWhole:
    """Everything about a document but its text."""
    scope = mine.scope()
    head = document_list.head(mine.store, document, scope)
    if head is None:
        raise missing(document)
    line = document_line(head.entry, {base.id: base.name for base in scope.bases})
    return DocumentWhole(
        **line.model_dump(),
        abstract=head.abstract,
        sections=tuple({"title": each.title, "level": each.level, "start": each.start} for each in head.sections),
        page_starts=head.pages if head.entry.pages else (),
        pictures=format_named(head.entry.kind).page_images
        and original_path(mine.path / ORIGINALS, head.entry.digest).is_file(),
    )


@router.delete("/{document}", response_model=Removed, responses={409: {"model": Problem}})
async def remove_document(document: DocumentId, mine: Mine, here: Here) -> Removed:
    """Remove a document: its words, its rows in the index and its original bytes."""
    entry, base = await asyncio.to_thread(_to_remove, mine, document)
    if here.worker.fills(base):
        raise HTTPException(
            409, f"Files are being read into {base.name!r} now. Remove it when they are done, or stop them."
        )
    # Not in the engine: to take a book's vectors away it is split again, and nobody should wait for that.
    removed = await asyncio.to_thread(asyncio.run, _removed(mine, entry, base))
    await here.pages.forget()
    return Removed(removed=tuple(each.id for each in removed))


async def _removed(mine: Workspace, entry: Entry, base: Base) -> list[Entry]:
    await unfilled(mine, base)
    return await mine.remove([entry.id], base.name)


def _to_remove(mine: Workspace, document: str) -> tuple[Entry, Base]:
    """By its id alone: a name could fit several."""
    scope = mine.scope()
    entry = document_list.entry(mine.store, document, scope)
    if entry is None or entry.state == REPLACED:
        raise missing(document)
    return entry, next(base for base in scope.bases if base.id == entry.base)


@router.get("/{document}/text", response_model=Text)
def text_of(document: DocumentId, mine: Mine, start: Offset = 0, end: Offset | None = None) -> Text:
    """A stretch of the text, at most 200,000 characters; `end` says how far it goes."""
    last = min(start + LONGEST, end if end is not None else start + LONGEST)
    found = document_list.stretch(mine.store, document, mine.scope(), start, last)
    if found is None:
        raise missing(document)
    text, whole = found
    start = min(start, whole)
    return Text(document=document, start=start, end=start + len(text), characters=whole, text=text)


@router.get(
    "/{document}/original",
    response_class=FileResponse,
    responses={
        200: {
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
            "description": "The bytes as they came in, to be saved. A browser is told not to show them.",
        }
    },
)
def original_of(document: DocumentId, mine: Mine) -> FileResponse:
    entry = document_list.entry(mine.store, document, mine.scope())
    place = original_path(mine.path / ORIGINALS, entry.digest) if entry and entry.digest else None
    if entry is None or place is None or not place.is_file():
        raise Missing(f"There are no original bytes of a document called {document!r}.")
    # Never shown, whatever it is: a page that somebody has sent must not run where this one does.
    shown = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(entry.name, safe='')}"}
    return FileResponse(place, media_type="application/octet-stream", headers=NO_SNIFFING | shown)


def missing(document: str) -> Missing:
    return Missing(f"There is no document with the id {document!r}.")
