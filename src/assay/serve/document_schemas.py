"""HTTP schemas for documents: knowledge bases, documents, upload jobs, searches and syntheses. Those for runs are in
`run_schemas.py`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StringConstraints

from assay.core.events import Stakes
from assay.core.synthesis import Approach, Pipeline
from assay.serve.run_schemas import (
    Id,
    LeftOutView,
    Name,
    Names,
    QuestionText,
    RequestModel,
    ResponseModel,
    SearchLimits,
    StrictFlag,
    TableView,
    require_number,
)

# --- knowledge bases and documents ----------------------------------------------------------------------------------


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


class DocumentSummary(ResponseModel):
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


class DocumentListResponse(ResponseModel):
    """A page of a listing; `next` goes on from here, and is empty at the end."""

    documents: tuple[DocumentSummary, ...]
    total: int
    next: str


class DocumentView(DocumentSummary):
    abstract: str
    sections: tuple[dict[str, Any], ...]  # title, level, start
    page_starts: tuple[int, ...]  # the offset at which each page begins; empty without pages
    pictures: bool  # whether pages can be shown as images
    tables: tuple[DocumentTableView, ...]


class DocumentTableView(ResponseModel):
    caption: str
    columns: tuple[str, ...]
    rows: int
    start: int


class UpdateDocumentRequest(RequestModel):
    """What to correct, switch or tag. An empty date takes it away; what is left out stays."""

    title: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)] | None = None
    date: Annotated[str, StringConstraints(pattern=r"^([0-9]{4}(-[0-9]{2}(-[0-9]{2})?)?)?$")] | None = None
    off: StrictFlag | None = None
    tags: Annotated[tuple[Name, ...], Field(max_length=50)] | None = None


class CitingRunView(ResponseModel):
    """An answer of yours that cites the document."""

    run: str
    thread: str
    question: str
    asked_on: str


class CitingRunsResponse(ResponseModel):
    runs: tuple[CitingRunView, ...]


class TextResponse(ResponseModel):
    """A stretch of a document's text: `start` and `end` are offsets into the whole, which has `characters`."""

    document: str
    start: int
    end: int
    characters: int
    text: str


class ReadingBlock(ResponseModel):
    """`text[start:end]` of the document, as text, or as a part of the table with this number."""

    start: int
    end: int
    text: str
    number: int  # of the table, counted from 1; 0: text
    table: TableView | None


class BlocksResponse(ResponseModel):
    """Text and tables in turn: a stretch of the document, which has `characters`."""

    document: str
    start: int
    end: int
    characters: int
    blocks: tuple[ReadingBlock, ...]


class BoxView(ResponseModel):
    """A stretch of one line on a page; edges are fractions of the page as shown, from its top left corner."""

    page: int
    x0: float
    y0: float
    x1: float
    y1: float


class BoxesResponse(ResponseModel):
    document: str
    boxes: tuple[BoxView, ...]


class FileReportView(ResponseModel):
    """How a file ended: added, replaced, unchanged, moved, duplicate, finished, or failed; empty while it waits."""

    name: str
    bytes: int
    outcome: str
    status: str
    why: str
    title: str
    pages: int
    passages: int


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


class RemovedResponse(ResponseModel):
    removed: tuple[str, ...]


# --- searching ------------------------------------------------------------------------------------------------------


class SearchRequest(SearchLimits):
    query: QuestionText
    k: Annotated[int, Field(ge=1, le=100), BeforeValidator(require_number)] = 10


class HitView(ResponseModel):
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


class SearchResponse(ResponseModel):
    query: str
    hits: tuple[HitView, ...]
    left_out: LeftOutView | None = None  # by the limits; null without any


# --- synthesis ------------------------------------------------------------------------------------------------------


class CreateSynthesisRequest(RequestModel):
    """Which documents, by id, or every one of these bases; and what is to be made of them."""

    documents: Annotated[tuple[Id, ...], Field(max_length=2000)] = ()
    bases: Names = ()
    pipeline: Pipeline = Pipeline.synthesis
    focus: Annotated[str, StringConstraints(max_length=2000)] = ""
    questions: Annotated[int, Field(ge=1, le=20), BeforeValidator(require_number)] = 3
    audiences: Annotated[tuple[Name, ...], Field(max_length=8)] = ()
    approach: Approach = Approach.search
    model: StrictFlag = True
    stakes: Stakes = Stakes.normal  # high: a person reviews the account before delivery


class RangeView(ResponseModel):
    """Four of five should come to something between `low` and `high`."""

    low: float
    likely: float
    high: float


class RangesView(ResponseModel):
    calls: RangeView
    tokens: RangeView
    money: RangeView | None  # USD; None if the price is unknown
    seconds: RangeView


class SynthesisForecastResponse(ResponseModel):
    """What a synthesis will take, as far as that can be told before it begins."""

    documents: int
    questions: int
    calls: int
    tokens: int
    money: float | None  # USD; None if the price is unknown
    seconds: float
    large: bool
    lines: tuple[str, ...]  # the same as text
    ranges: RangesView | None  # low, likely, high
    from_runs: int  # earlier runs that the ranges are based on
