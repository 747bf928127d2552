"""HTTP schemas for documents: knowledge bases, documents, upload jobs, searches and syntheses, and how they are made. Those for
runs are in `run_schemas.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from assay.core.access import Base, Principal
from assay.core.events import Stakes
from assay.core.synthesis import Approach, Pipeline
from assay.core.types import UPLOAD, Document, Hit, LeftOut
from assay.ingest.parsed import PageBox
from assay.serve.run_schemas import (
    Id,
    Name,
    Names,
    QuestionText,
    RequestModel,
    ResponseModel,
    SearchLimits,
    StrictFlag,
    require_number,
)
from assay.tables.parts import Block
from assay.workspace.stored import Counted, Entry, Job, JobFile

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


class BlocksResponse(ResponseModel):
    """Text and tables in turn: a stretch of the document, which has `characters`."""

    document: str
    start: int
    end: int
    characters: int
    blocks: tuple[Block, ...]


class BoxesResponse(ResponseModel):
    document: str
    boxes: tuple[PageBox, ...]


class FileReportView(ResponseModel):
    """How a file ended: added, replaced, unchanged, moved, duplicate, finished, or failed; empty while it waits."""

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
    left_out: LeftOut | None = None  # by the limits; null without any


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


Rounded = Annotated[float, AfterValidator(lambda value: round(value, 6))]


class RangeView(ResponseModel):
    """Four of five should come to something between `low` and `high`."""

    low: Rounded
    likely: Rounded
    high: Rounded


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


FEW = 3  # finished files needed for an estimate of the remaining time


def base_view(base: Base, counted: Counted | None, principal: Principal) -> BaseView:
    held = counted or Counted()
    return BaseView.made_from(base, held, yours=principal.owns(base), documents=held.ready)


def document_summary(entry: Entry, bases: Mapping[str, str]) -> DocumentSummary:
    """`bases` maps ids to names."""
    return DocumentSummary.made_from(
        entry,
        base=bases.get(entry.base, ""),
        uri=entry.uri if entry.uri.startswith(UPLOAD) else entry.name,  # the location on this machine is not exposed
        title=entry.title or entry.name,
        state=entry.standing,
        **entry.identity,
    )


def hit_view(hit: Hit, bases: Mapping[str, str]) -> HitView:
    """`bases` maps ids to names."""
    name = bases.get(str(hit.fields.get("base", "")), "")
    return HitView.made_from(hit, hit.passage, document=hit.passage.doc_id, base=name)


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


def blocks_view(document: Document, blocks: Sequence[Block], at: int) -> BlocksResponse:
    """`at` is where the blocks would be if there are none."""
    return BlocksResponse(
        document=document.id,
        start=blocks[0].start if blocks else at,
        end=blocks[-1].end if blocks else at,
        characters=len(document.text),
        blocks=tuple(blocks),
    )
