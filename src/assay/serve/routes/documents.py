"""HTTP routes for documents: paged listing, reading, download and removal."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, TypeVar
from urllib.parse import quote

from fastapi import APIRouter, Depends, HTTPException, Path, Query, Response
from fastapi.responses import FileResponse
from pydantic import BeforeValidator, Field, StringConstraints
from starlette.background import BackgroundTask

from assay.core.access import Base
from assay.core.errors import Missing, UserError
from assay.core.events import SearchFilters
from assay.core.formats import format_named
from assay.core.tables import row_spans
from assay.core.types import UPLOAD, Document, Hit, LeftOut
from assay.index.search_filter import Choice
from assay.ingest.parsed import PageBox, is_unread
from assay.ingest.pdf.ocr import OCR_LANGUAGES
from assay.serve import schemas
from assay.serve.background import asks
from assay.serve.run_views import FigureView, figure_views
from assay.serve.state import CurrentServer, CurrentWorkspace
from assay.serve.upload_worker import change_base
from assay.tables.parts import MOST_ROWS, Block, Span, TablePart, blocks_after, blocks_around, blocks_before, table_part
from assay.workspace.facade import Workspace
from assay.workspace.stored import REPLACED, SHOWN, Entry, Head


class DocumentSummary(schemas.ResponseModel):
    """A document, or a file that could not be read (`state` unreadable, and `why`)."""

    id: str
    base: str  # the base's name
    name: str
    uri: str
    title: str
    organisation: str = ""
    kind_of_document: str = ""  # annual report, minutes, invoice, …
    period: str = ""  # that it covers
    authors: tuple[str, ...]
    date: str | None
    kind: str  # the format
    language: str | None
    state: str  # ready, pending, unreadable; off: switched off
    why: str
    warnings: tuple[str, ...]
    bytes: int
    pages: int
    characters: int
    passages: int
    added: str
    tags: tuple[str, ...]
    held: str = ""  # to its owner: why it is restricted until they decide
    unread: bool = False  # it has pages that are pictures, and OCR has not read them


class DocumentListResponse(schemas.ResponseModel):
    """A page of a listing; `next` goes on from here, and is empty at the end."""

    documents: tuple[DocumentSummary, ...]
    total: int
    next: str


class DocumentTableView(schemas.ResponseModel):
    caption: str
    columns: tuple[str, ...]
    rows: int
    start: int


class DocumentView(DocumentSummary):
    abstract: str
    sections: tuple[dict[str, Any], ...]  # title, level, start
    page_starts: tuple[int, ...]  # the offset at which each page begins; empty without pages
    pictures: bool  # whether pages can be shown as images
    tables: tuple[DocumentTableView, ...]
    figures: tuple[FigureView, ...]


class DocumentState(StrEnum):
    ready = "ready"
    off = "off"
    pending = "pending"
    unreadable = "unreadable"


Tags = Annotated[tuple[schemas.Name, ...], Field(max_length=50)]


class UpdateDocumentRequest(schemas.RequestModel):
    """What to correct, switch or tag. An empty date takes it away; what is left out stays."""

    title: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)] | None = None
    date: Annotated[str, StringConstraints(pattern=r"^([0-9]{4}(-[0-9]{2}(-[0-9]{2})?)?)?$")] | None = None
    off: schemas.StrictFlag | None = None
    tags: Tags | None = None


class DocumentFilter(schemas.RequestModel):
    """The documents that a listing shows."""

    base: Annotated[str, Field(max_length=100)] = ""
    q: Annotated[str, Field(max_length=200)] = ""
    state: DocumentState | None = None
    tag: Annotated[str, Field(max_length=100)] = ""


class MarkDocumentsRequest(schemas.RequestModel):
    """What to switch or tag: documents by their ids, or all `that_fit` a listing. `tags` are all that they have then."""

    ids: Annotated[tuple[schemas.Id, ...], Field(max_length=20_000)] = ()
    that_fit: DocumentFilter | None = None
    off: schemas.StrictFlag | None = None
    tags: Tags | None = None
    add: Tags = ()
    remove: Tags = ()


class MarkedBefore(schemas.ResponseModel):
    """Documents that stood alike before."""

    ids: tuple[str, ...]
    off: bool
    tags: tuple[str, ...]


class MarkedResponse(schemas.ResponseModel):
    """How many have changed, how many could not (they are not yours, or could not be read), and how those stood before: marked
    so again, they are as they were."""

    changed: int
    left_out: int
    before: tuple[MarkedBefore, ...]


class TagCount(schemas.ResponseModel):
    tag: str
    documents: int


class TagsResponse(schemas.ResponseModel):
    tags: tuple[TagCount, ...]


class CitingRunView(schemas.ResponseModel):
    """An answer of yours that cites the document."""

    run: str
    thread: str
    question: str
    asked_on: str


class CitingRunsResponse(schemas.ResponseModel):
    runs: tuple[CitingRunView, ...]


class StretchResponse(schemas.ResponseModel):
    document: str
    start: int
    end: int
    characters: int


class TextResponse(StretchResponse):
    """A stretch of a document's text: `start` and `end` are offsets into the whole, which has `characters`."""

    text: str


class BlocksResponse(StretchResponse):
    """Text and tables in turn: a stretch of the document, which has `characters`."""

    blocks: tuple[Block, ...]


class BoxesResponse(schemas.ResponseModel):
    document: str
    boxes: tuple[PageBox, ...]


class RemovedResponse(schemas.ResponseModel):
    removed: tuple[str, ...]


class SearchRequest(schemas.SearchLimits):
    query: schemas.QuestionText
    k: Annotated[int, Field(ge=1, le=100), BeforeValidator(schemas.require_number)] = 10


class HitView(schemas.ResponseModel):
    rank: int
    document: str
    title: str
    base: str
    page: int | None
    heading: str
    start: int
    end: int
    text: str
    context: str = ""  # caption, units and header of the passage's table, as far as they are outside it


class SearchResponse(schemas.ResponseModel):
    query: str
    hits: tuple[HitView, ...]
    left_out: LeftOut | None = None  # by the limits; null without any


def document_summary(entry: Entry, bases: Mapping[str, str], held: Mapping[str, str] | None = None) -> DocumentSummary:
    """`bases` maps ids to names, `held` ids of documents to the reasons for which they are held."""
    return DocumentSummary.made_from(
        entry,
        base=bases.get(entry.base, ""),
        uri=entry.uri if entry.uri.startswith(UPLOAD) else entry.name,  # the location on this machine is not exposed
        title=entry.title or entry.name,
        state=entry.standing,
        held=(held or {}).get(entry.id, ""),
        unread=is_unread(entry.status, entry.warnings),
        **entry.identity,
    )


def hit_view(hit: Hit, bases: Mapping[str, str]) -> HitView:
    """`bases` maps ids to names."""
    name = bases.get(str(hit.fields.get("base", "")), "")
    return HitView.made_from(hit, hit.passage, document=hit.passage.doc_id, base=name)


def blocks_view(document: Document, blocks: Sequence[Block], at: int) -> BlocksResponse:
    """`at` is where the blocks would be if there are none."""
    return BlocksResponse(
        document=document.id,
        start=blocks[0].start if blocks else at,
        end=blocks[-1].end if blocks else at,
        characters=len(document.text),
        blocks=tuple(blocks),
    )


documents_router = APIRouter(prefix="/api/documents", tags=["documents"], responses=schemas.error_responses())

search_router = APIRouter(prefix="/api", tags=["search"], responses=schemas.error_responses(502))

T = TypeVar("T")


def _counted(description: str = "") -> Any:
    """A parameter that counts from 0: an offset, a row or a column."""
    return Query(ge=0, le=1_000_000_000, description=description or None)


Offset = Annotated[int, _counted()]
MAX_TEXT = 200_000  # characters per response
NO_SNIFFING = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "private, no-cache",
}


class DocumentChoicesResponse(schemas.ResponseModel):
    """What the documents that are searched can be chosen by, with how many have it."""

    folder: tuple[Choice, ...]
    tag: tuple[Choice, ...]
    organisation: tuple[Choice, ...]
    kind: tuple[Choice, ...]
    author: tuple[Choice, ...]
    year: tuple[Choice, ...]


Bases = Annotated[
    list[Annotated[str, StringConstraints(max_length=100)]],
    Query(max_length=200, description="Names of knowledge bases; none: all."),
]


def listed_limits(
    base: Bases = [],  # noqa: B006  never changed
    meta: Annotated[list[str], Query(max_length=20, description="`name:value`, as for a question.")] = [],  # noqa: B006
    since: schemas.Date | None = None,
    until: schemas.Date | None = None,
    undated: bool = False,
) -> SearchFilters:
    """Limits as a question has them, of a listing."""
    named = {name: value for name, _, value in (each.partition(":") for each in meta) if name.strip() and value.strip()}
    return schemas.search_filters(
        schemas.SearchLimits(bases=tuple(filter(None, base)), meta=named, since=since, until=until, undated=undated)
    )


@documents_router.get("")
def list_documents(
    workspace: CurrentWorkspace,
    limits: Annotated[SearchFilters, Depends(listed_limits)],
    q: Annotated[str, Query(max_length=200, description="Words in the title, the name, the authors or the tags.")] = "",
    state: DocumentState | None = None,
    tag: Annotated[str, Query(max_length=100, description="A tag that they have; case does not matter.")] = "",
    after: Annotated[str, Query(max_length=200, description="`next` of the page before.")] = "",
    limit: schemas.PageSize = 50,
) -> DocumentListResponse:
    """Documents, and files that could not be read; the newest first. With dates or metadata, those that are searched then."""
    scope = workspace.scope(limits.bases)
    only = workspace.documents.described_so(limits)
    page = workspace.documents.page(scope, (state,) if state else SHOWN, q, after, limit, tag, only)
    names = {each.id: each.name for each in scope.bases}
    held = workspace.people.held(page.entries)
    lines = tuple(document_summary(entry, names, held) for entry in page.entries)
    return DocumentListResponse(documents=lines, total=page.total, next=page.next)


@search_router.get("/document-choices")
def document_choices(workspace: CurrentWorkspace, base: Bases = []) -> DocumentChoicesResponse:  # noqa: B006
    """What the documents that are searched can be chosen by: folders, tags, organisations, kinds, authors, years."""
    return DocumentChoicesResponse(**workspace.documents.choices(tuple(filter(None, base))))


@search_router.get("/document-tags")
def tags_of_documents(workspace: CurrentWorkspace, base: Annotated[str, Query(max_length=100)] = "") -> TagsResponse:
    """The tags of the documents that you may read, and how many have each."""
    counted = workspace.documents.tags(workspace.scope([base] if base else []))
    return TagsResponse(tags=tuple(TagCount(tag=tag, documents=many) for tag, many in counted.items()))


@search_router.post("/document-marks", responses=schemas.error_responses(413))
def mark_documents(given: MarkDocumentsRequest, workspace: CurrentWorkspace) -> MarkedResponse:
    """Switch many documents off or on, or change their tags, at once. Each is recorded; those of others are left out."""
    fits = given.that_fit or DocumentFilter()
    if not (given.ids or given.that_fit):
        raise UserError("Name the documents by their `ids`, or say which listing they are in with `that_fit`.")
    scope, states = workspace.scope([fits.base] if fits.base else []), (fits.state,) if fits.state else SHOWN
    entries = workspace.documents.every(scope, states, fits.q, fits.tag, given.ids)
    changed, left_out = workspace.documents.mark_all(entries, given.off, given.tags, add=given.add, remove=given.remove)
    stood: dict[tuple[bool, tuple[str, ...]], list[str]] = {}
    for entry in changed:
        stood.setdefault((entry.off, entry.tags), []).append(entry.id)
    return MarkedResponse(
        changed=len(changed),
        left_out=left_out,
        before=tuple(MarkedBefore(ids=tuple(ids), off=off, tags=tags) for (off, tags), ids in stood.items()),
    )


@documents_router.get("/{document}")
def one_document(document: schemas.PathId, workspace: CurrentWorkspace) -> DocumentView:
    """Everything about a document but its text."""
    scope = workspace.scope()
    head = known(workspace.documents.head(document, scope), document)
    found = workspace.documents.get(document)
    return DocumentView.made_from(
        document_summary(head.entry, {base.id: base.name for base in scope.bases}, workspace.people.held([head.entry])),
        head,
        tables=tuple(
            DocumentTableView.made_from(each, rows=len(row_spans(each))) for each in (found.tables if found else ())
        ),
        figures=figure_views(found.figures, found) if found else (),
        sections=tuple({"title": each.title, "level": each.level, "start": each.start} for each in head.sections),
        page_starts=head.pages if head.entry.pages else (),
        pictures=format_named(head.entry.kind).page_images and workspace.context.blobs.has(head.entry.digest),
    )


@documents_router.patch("/{document}", responses={409: {"model": schemas.ErrorResponse}})
async def edit_document(
    document: schemas.PathId, changed: UpdateDocumentRequest, workspace: CurrentWorkspace, server: CurrentServer
) -> DocumentView:
    """Correct the title or the date that were found, switch the document off or on, or set its tags. For its owner;
    recorded. Another version of the file takes over the switch and the tags, not the corrections."""
    _, base = await asyncio.to_thread(to_change, workspace, document)
    if changed.title is not None or changed.date is not None:
        if await server.worker.fills(base):
            raise HTTPException(409, f"Files are being read into {base.name!r} now. Correct it when they are done.")
        await change_base(workspace, base, lambda: workspace.documents.edit(document, changed.title, changed.date))
    if changed.off is not None or changed.tags is not None:
        await asyncio.to_thread(workspace.documents.mark, document, changed.off, changed.tags)
    return await asyncio.to_thread(one_document, document, workspace)


@documents_router.get("/{document}/citations")
def citing_runs(document: schemas.PathId, workspace: CurrentWorkspace) -> CitingRunsResponse:
    """Your answers that cite the document, newest first."""
    known(workspace.documents.entry(document, workspace.scope()), document)
    return CitingRunsResponse(
        runs=tuple(
            CitingRunView.made_from(run.asked, run=run.id, asked_on=run.asked.today)
            for run in workspace.questions.citing(document)
        )
    )


@documents_router.delete("/{document}", responses={409: {"model": schemas.ErrorResponse}})
async def remove_document(
    document: schemas.PathId, workspace: CurrentWorkspace, server: CurrentServer
) -> RemovedResponse:
    """Remove a document: its words, its rows in the index and its original bytes."""
    entry, base = await asyncio.to_thread(to_change, workspace, document)
    if await server.worker.fills(base):
        raise HTTPException(
            409, f"Files are being read into {base.name!r} now. Remove it when they are done, or stop them."
        )
    removed = await change_base(workspace, base, lambda: workspace.documents.remove([entry.id], base.name))
    await server.pages.forget()
    return RemovedResponse(removed=tuple(each.id for each in removed))


def to_change(workspace: Workspace, document: str) -> tuple[Entry, Base]:
    """Look up by id only: a name could match several."""
    scope = workspace.scope()
    entry = workspace.documents.entry(document, scope)
    entry = known(None if entry and entry.state == REPLACED else entry, document)
    return entry, next(base for base in scope.bases if base.id == entry.base)


@documents_router.get("/{document}/text")
def text_of(
    document: schemas.PathId, workspace: CurrentWorkspace, start: Offset = 0, end: Offset | None = None
) -> TextResponse:
    """A stretch of the text, at most 200,000 characters; `end` says how far it goes."""
    last = min(start + MAX_TEXT, end if end is not None else start + MAX_TEXT)
    text, whole = known(workspace.documents.stretch(document, workspace.scope(), start, last), document)
    start = min(start, whole)
    return TextResponse(document=document, start=start, end=start + len(text), characters=whole, text=text)


QuoteStart = Annotated[int, _counted("Where the quotation begins whose cells are to be marked.")]
QuoteEnd = Annotated[int, _counted("Where it ends.")]


@documents_router.get("/{document}/blocks")
def blocks_of(
    document: schemas.PathId,
    workspace: CurrentWorkspace,
    at: Annotated[int | None, _counted("The blocks around this offset.")] = None,
    start: Annotated[int | None, _counted("The blocks from here on.")] = None,
    before: Annotated[int | None, _counted("The blocks that end here.")] = None,
    quote_start: QuoteStart = 0,
    quote_end: QuoteEnd = 0,
) -> BlocksResponse:
    """A chapter or two of a document, text and tables in turn; of a long table the first or the cited rows."""
    found = known(workspace.documents.get(document), document)
    quote = _quotation(quote_start, quote_end)
    if before is not None:
        end = min(before, len(found.text))
        return blocks_view(found, blocks_before(found, end, quote), end)
    if start is not None:
        start = min(start, len(found.text))
        return blocks_view(found, blocks_after(found, start, quote), start)
    return blocks_view(found, blocks_around(found, at or 0, quote), 0)


@documents_router.get("/{document}/tables/{n}", response_model=TablePart)
def rows_of(
    document: schemas.PathId,
    n: Annotated[int, Path(ge=1, le=1_000_000)],
    workspace: CurrentWorkspace,
    first: Annotated[int | None, _counted("The first row, counted from 0.")] = None,
    at: Annotated[int | None, _counted("The rows around this offset of the text.")] = None,
    rows: Annotated[
        int, Query(ge=1, le=MOST_ROWS, description="At most so many; fewer where there are many columns.")
    ] = MOST_ROWS,
    column: Annotated[int | None, _counted("The first column beside that of the labels, which is 0.")] = None,
    quote_start: QuoteStart = 0,
    quote_end: QuoteEnd = 0,
) -> TablePart | None:
    """Rows of a table of a document."""
    found = known(workspace.documents.get(document), document)
    if n > len(found.tables):
        raise Missing(f"Document {document!r} has no table {n}.")
    quote = _quotation(quote_start, quote_end)
    return table_part(found.tables[n - 1], found.text, quote, at=at, first=first, most=rows, column=column)


def _quotation(start: int, end: int) -> Span | None:
    return (start, end) if start < end else None


@documents_router.get(
    "/{document}/original",
    response_class=FileResponse,
    responses={
        200: {
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
            "description": "The bytes as they came in, to be saved. A browser is told not to show them.",
        }
    },
)
def original_of(document: schemas.PathId, workspace: CurrentWorkspace) -> FileResponse:
    entry = workspace.documents.entry(document, workspace.scope())
    blobs = workspace.context.blobs
    if entry is None or not entry.digest or not blobs.has(entry.digest):
        raise Missing(f"There are no original bytes of a document called {document!r}.")
    held = blobs.as_file(entry.digest)
    # Never displayed inline: an uploaded page must not run in this origin.
    shown = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(entry.name, safe='')}"}
    return FileResponse(
        held.__enter__(),
        media_type="application/octet-stream",
        headers=NO_SNIFFING | shown,
        background=BackgroundTask(held.__exit__, None, None, None),
    )


def known(found: T | None, document: str) -> T:
    """What was found of a document. It is missing for whoever may not read it, too."""
    if found is None:
        raise Missing(f"There is no document with the id {document!r}.")
    return found


MAX_SPAN = 20_000  # maximum characters of a span


PNG: dict[int | str, dict[str, Any]] = {
    200: {"content": {"image/png": {"schema": {"type": "string", "format": "binary"}}}, "description": "The picture."}
}
Nth = Annotated[int, Path(ge=1, le=100_000)]
Width = Annotated[int, Query(ge=200, le=2400, description="Pixels.")]


@documents_router.get("/{document}/pages/{n}", response_class=Response, responses=PNG)
async def page_of(
    document: schemas.PathId,
    n: Nth,
    workspace: CurrentWorkspace,
    server: CurrentServer,
    width: Width = 1100,
) -> Response:
    """A page of a PDF as a picture."""
    head, has_pages = await asyncio.to_thread(_head, workspace, document)
    if not has_pages:
        raise Missing(f"Document {document!r} has no pages that can be shown. Its text can.")
    picture = await server.pages.picture(head.entry.base, head.entry.digest, workspace.context.blobs, n, width)
    return Response(picture, media_type="image/png")  # not stored: it must not outlive the right to see it


@documents_router.get("/{document}/figures/{n}", response_class=Response, responses=PNG)
async def figure_of(
    document: schemas.PathId,
    n: Nth,
    workspace: CurrentWorkspace,
    server: CurrentServer,
    width: Width = 800,
) -> Response:
    """A figure of a PDF as a picture: the nth of the document, cut out of its page."""
    head, has_pages = await asyncio.to_thread(_head, workspace, document)
    found = await asyncio.to_thread(workspace.documents.get, document) if has_pages else None
    figure = found.figures[n - 1] if found and n <= len(found.figures) else None
    if figure is None or figure.box is None:
        raise Missing(f"Document {document!r} has no figure {n} that can be shown.")
    entry, blobs = head.entry, workspace.context.blobs
    picture = await server.pages.picture(entry.base, entry.digest, blobs, figure.page, width, figure.box)
    return Response(picture, media_type="image/png")  # not stored, as a page


@documents_router.get("/{document}/boxes")
async def boxes_of(
    document: schemas.PathId, workspace: CurrentWorkspace, server: CurrentServer, start: Offset, end: Offset
) -> BoxesResponse:
    """Where a stretch of the text stands on the pages of a PDF; nothing for documents without pages of their own."""
    head, has_pages = await asyncio.to_thread(_head, workspace, document)
    end = min(end, start + MAX_SPAN, head.entry.characters)
    if not has_pages or end <= start:
        return BoxesResponse(document=document, boxes=())
    if OCR_LANGUAGES in head.meta:
        found = await server.background.run(workspace.documents.boxes(document, start, end))
    else:
        words = (await asyncio.to_thread(text_of, document, workspace, start, end)).text
        found = await server.pages.boxes(
            head.entry.base, head.entry.digest, workspace.context.blobs, start, end, words, head.pages
        )
    return BoxesResponse(document=document, boxes=tuple(found))


def _head(workspace: Workspace, document: str) -> tuple[Head, bool]:
    """The document, if the user may read it, and whether its original is there and has pages."""
    head = known(workspace.documents.head(document, workspace.scope()), document)
    return head, format_named(head.entry.kind).page_images and workspace.context.blobs.has(head.entry.digest)


@search_router.post("/search")
async def search(wanted: SearchRequest, workspace: CurrentWorkspace, server: CurrentServer) -> SearchResponse:
    """Find passages by words and by meaning."""
    where = schemas.search_filters(wanted)
    asks.set(workspace.principal.id)
    hits = await server.background.run(workspace.search(wanted.query, wanted.k, where))
    names = {base.id: base.name for base in (await asyncio.to_thread(workspace.scope)).bases}
    left_out = await asyncio.to_thread(workspace.documents.left_out, where)
    return SearchResponse(query=wanted.query, hits=tuple(hit_view(hit, names) for hit in hits), left_out=left_out)
