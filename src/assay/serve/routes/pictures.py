"""Pages of PDFs over HTTP: as pictures, and where words stand on them."""

from __future__ import annotations

import asyncio
from pathlib import Path as Place
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Response

from assay.core.errors import Missing
from assay.core.formats import format_named
from assay.ingest.pdf.ocr import MARK
from assay.ingest.pipeline import original_path
from assay.serve.routes.documents import DocumentId, Offset, missing
from assay.serve.schemas.document_schemas import Boxes, BoxShape
from assay.serve.schemas.run_schemas import Problem
from assay.serve.state import Here, Mine
from assay.store import document_list
from assay.store.document_list import Head
from assay.workspace.facade import ORIGINALS, Workspace

router = APIRouter(
    prefix="/api/documents",
    tags=["documents"],
    responses={code: {"model": Problem} for code in (400, 401, 403, 404, 422, 429, 503)},
)

LONGEST = 20_000  # characters of a span that is looked for
CACHED = "private, max-age=600"


@router.get(
    "/{document}/pages/{n}",
    response_class=Response,
    responses={
        200: {"content": {"image/png": {"schema": {"type": "string", "format": "binary"}}}, "description": "The page."},
        304: {"description": "The same as before."},
    },
)
async def page_of(
    document: DocumentId,
    n: Annotated[int, Path(ge=1, le=100_000)],
    mine: Mine,
    here: Here,
    width: Annotated[int, Query(ge=200, le=2400, description="Pixels.")] = 1100,
    if_none_match: Annotated[str | None, Header(max_length=1000)] = None,
) -> Response:
    """A page of a PDF as a picture."""
    head, original = await asyncio.to_thread(_original, mine, document)
    if original is None:
        raise Missing(f"Document {document!r} has no pages that can be shown. Its text can.")
    tag = f'"{head.entry.digest[:32]}-{n}-{width}"'
    headers = {"ETag": tag, "Cache-Control": CACHED}
    if if_none_match and tag in if_none_match:
        return Response(status_code=304, headers=headers)
    picture = await here.pages.picture(head.entry.digest, original, n, width)
    return Response(picture, media_type="image/png", headers=headers)


@router.get("/{document}/boxes", response_model=Boxes)
async def boxes_of(document: DocumentId, mine: Mine, here: Here, start: Offset, end: Offset) -> Boxes:
    """Where a stretch of the text stands on the pages of a PDF; nothing for documents without pages of their own."""
    head, original = await asyncio.to_thread(_original, mine, document)
    end = min(end, start + LONGEST, head.entry.characters)
    if original is None or end <= start:
        return Boxes(document=document, boxes=())
    if MARK in head.meta:
        found = await here.engine.do(mine.boxes(document, start, end))
    else:
        words = await asyncio.to_thread(_words, mine, document, start, end)
        found = await here.pages.boxes(head.entry.digest, original, start, end, words, head.pages)
    return Boxes(
        document=document,
        boxes=tuple(BoxShape(page=box.page, x0=box.x0, y0=box.y0, x1=box.x1, y1=box.y1) for box in found),
    )


def _words(mine: Workspace, document: str, start: int, end: int) -> str:
    return (document_list.stretch(mine.store, document, mine.scope(), start, end) or ("", 0))[0]


def _original(mine: Workspace, document: str) -> tuple[Head, Place | None]:
    """The document, if this person may read it, and its bytes, if they are pages."""
    head = document_list.head(mine.store, document, mine.scope())
    if head is None:
        raise missing(document)
    place = (
        original_path(mine.path / ORIGINALS, head.entry.digest) if format_named(head.entry.kind).page_images else None
    )
    return head, place if place and place.is_file() else None
