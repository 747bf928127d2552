"""HTTP schemas for requests and responses about runs, and shared base types. The OpenAPI document is generated from
them."""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from assay.answer.extracts import Stretch
from assay.core.errors import UserError
from assay.core.events import Checkpoint, Eagerness, Failed, FeedbackKind, Mode, Paused, Route, SearchFilters, Stakes
from assay.core.events.describe import Family
from assay.core.types import Basis, Examined, LeftOut, Outcome, Searched, Shape, Usage, Verdict
from assay.index.search_filter import parse_document_types
from assay.language.dates import first_day, last_day
from assay.tables.parts import TablePart
from assay.workspace.types import AskOptions

MAX_QUESTION = 20_000  # characters; longer text belongs in a knowledge base


class RequestModel(BaseModel):
    """What a client sends: nothing that is not known is let through unsaid."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ResponseModel(BaseModel):
    """What a client is told."""

    model_config = ConfigDict(frozen=True, from_attributes=True, json_schema_serialization_defaults_required=True)

    @classmethod
    def made_from(cls, *sources: object, **given: Any) -> Self:
        """A response with these fields; each of the others is the attribute of that name of the first source that has it."""
        for name in cls.model_fields.keys() - given.keys():
            if (source := next((each for each in sources if hasattr(each, name)), None)) is not None:
                given[name] = getattr(source, name)
        return cls.model_validate(given)


def require_number(value: object) -> object:
    """Require a JSON number, as documented; other types are not coerced."""
    if isinstance(value, bool | str):
        raise ValueError("a number is wanted")
    return value


NOT_BLANK = r"\S"  # not only whitespace
QuestionText = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_QUESTION, pattern=NOT_BLANK)
]
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100, pattern=NOT_BLANK)]
Names = Annotated[tuple[Name, ...], Field(max_length=200)]  # each is looked up
Source = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1000, pattern=NOT_BLANK)]
Date = Annotated[str, StringConstraints(pattern=r"^[0-9]{4}(-[0-9]{2}(-[0-9]{2})?)?$")]
PageSize = Annotated[int, Field(ge=1, le=200)]
Id = Annotated[str, StringConstraints(max_length=100)]
StrictFlag = Annotated[bool, Field(strict=True)]  # true or false; numbers and strings are not coerced


class ErrorResponse(ResponseModel):
    """Every error has this form: what is wrong and what to do, in a line a person can read."""

    error: str
    detail: str


def error_responses(*codes: int) -> dict[int | str, dict[str, Any]]:
    """The error responses of a router, for the OpenAPI document."""
    return {code: {"model": ErrorResponse} for code in (400, 401, 403, 404, 422, 429, 503, *codes)}


# --- the user -------------------------------------------------------------------------------------------------------


class MeResponse(ResponseModel):
    """The person, and what they can choose from. `csrf` has to come back as the header X-CSRF-Token with every change that
    is made with a session's cookie; it is empty where none is needed."""

    name: str
    groups: tuple[str, ...]
    admin: bool
    auth: str  # off, keys (names and passwords, or API keys), header
    csrf: str
    model: str  # the model's name; empty: answers are quotations
    judge: str  # how well the model judges claims, as it was measured, in a sentence; empty: not measured
    leaves: tuple[str, ...]  # hosts that would receive text and have no consent yet
    modes: tuple[Mode, ...]
    checkpoints: tuple[Checkpoint, ...]
    event_kinds: tuple[str, ...]  # the event kinds of a run, used as event names in its stream
    version: str
    upload_megabytes: int  # the maximum file size
    folders: bool  # whether a folder of the server's computer can be added by its path


class LoginRequest(RequestModel):
    name: Name
    password: Annotated[str, StringConstraints(min_length=1, max_length=1000)]


# --- asking ---------------------------------------------------------------------------------------------------------


class SearchLimits(RequestModel):
    """What a search or a question is limited to."""

    bases: Names = ()
    sources: Annotated[tuple[Source, ...], Field(max_length=200)] = ()
    types: Names = ()
    since: Date | None = None
    until: Date | None = None
    undated: StrictFlag = False  # with `since` or `until`, also documents without a known date
    meta: Annotated[dict[Name, Name], Field(max_length=20)] = Field(default_factory=dict)  # author, tag, … → its value


class AskRequest(SearchLimits):
    """A question and how it is to be dealt with. `thread` goes on with a conversation, `talk` begins one."""

    question: QuestionText
    mode: Mode = Mode.balanced
    eagerness: Eagerness | None = None
    checkpoints: tuple[Checkpoint, ...] | None = None
    route: Literal[Route.lookup, Route.research, Route.one_shot] | None = None  # the direct route cannot be requested
    model: StrictFlag = True
    stakes: Stakes = Stakes.normal  # high: a person reviews the answer before delivery
    thread: Id = ""
    talk: StrictFlag = False


class AskAndWaitRequest(AskRequest):
    stream: StrictFlag = False


class ChoiceRequest(RequestModel):
    choice: Annotated[str, StringConstraints(max_length=1000)] = ""
    words: Annotated[str, StringConstraints(max_length=MAX_QUESTION)] = ""


class RunState(StrEnum):
    running = "running"  # active now
    waiting = "waiting"  # for the user's choice
    failed = "failed"
    cancelled = "cancelled"
    held = "held"  # the answer waits for review
    rejected = "rejected"  # by a reviewer: there will be no answer
    parked = "parked"  # interrupted with the server or a terminal; can be resumed
    delivered = "delivered"


class RunStartedResponse(ResponseModel):
    run: str
    thread: str
    events: str  # the URL of the event stream


class RunSummary(ResponseModel):
    id: str
    kind: str  # question, synthesis
    question: str
    started: str
    state: RunState
    outcome: Outcome | None
    mode: Mode
    thread: str


class RunListResponse(ResponseModel):
    runs: tuple[RunSummary, ...]
    next: str


class PendingReviewView(ResponseModel):
    """Why the answer waits for a reviewer, since when, and what was done for it; whoever asked sees it when it is
    approved."""

    progress: str  # in numbers alone
    reasons: tuple[str, ...]
    since: str


class ReviewNote(ResponseModel):
    """Which reviewer let the answer through, or rejected it, and what they said of it."""

    by: str
    note: str


class CitationView(ResponseModel):
    """Where a claim's words stand: the quotation is `text[start:end]` of the document."""

    number: int
    key: str
    document: str
    title: str
    authors: tuple[str, ...]
    date: str | None
    name: str
    page: int | None
    start: int
    end: int
    quote: str
    flagged: bool  # the passage looks like an instruction to a model
    table: TablePart | None = None


class OperandView(ResponseModel):
    """A figure or item of a working, and the line that it stands in; empty if the document cannot be read."""

    words: str
    line: str
    citation: int | None  # number of a citation


class WorkingView(ResponseModel):
    """What code computed: `(480 − 340) / 340 × 100 = 41.18`, and where each operand stands."""

    expression: str
    operands: tuple[OperandView, ...]


class CheckedClaim(ResponseModel):
    """What is told of every claim: what it rests on, and who gave the verdict."""

    basis: Basis
    by: str  # who gave the verdict: code, or the name of a model; empty: not checked
    dispute: str  # what another judgement says, where two differ
    working: WorkingView | None


class ClaimView(CheckedClaim):
    text: str
    quotation: bool  # the claim is only a quotation
    verdict: Verdict | None
    why: str
    citations: tuple[int, ...]  # numbers of citations
    edited: str | None  # the reviewer who rewrote it
    rests_on_flagged: bool  # all its evidence looks like an instruction to a model


class BlockView(ResponseModel):
    heading: str
    opinion: bool
    claims: tuple[ClaimView, ...]


class ExtractView(ResponseModel):
    """Words of a document in their place: text with its own lines, or rows of a table. `text[start:end]` of the document are
    the words that answer, or else all."""

    citations: tuple[int, ...]  # numbers of citations
    place: str  # `Title › Heading › Subject, page 3`
    words: tuple[Stretch, ...]
    table: TablePart | None
    start: int
    end: int


class ConflictView(ResponseModel):
    about: str
    left: int  # numbers of citations
    right: int


class AnswerView(ResponseModel):
    """An answer as a person reads it. `label` says what kind of answer it is, where that has to be said. One that no model
    wrote is its `extracts`, and `judged` is false; so is what came nearest. `remarks` are what no other field says."""

    question: str
    outcome: Outcome
    label: str
    shape: Shape
    said: str
    blocks: tuple[BlockView, ...]
    near: tuple[ClaimView, ...]
    extracts: tuple[ExtractView, ...]
    judged: bool
    citations: tuple[CitationView, ...]
    conflicts: tuple[ConflictView, ...]
    gaps: tuple[str, ...]
    searched: tuple[Searched, ...]
    stopped: str  # why the search ended, as text
    unread: tuple[str, ...]
    readings: tuple[str, ...]
    examined: Examined | None
    since: str | None
    until: str | None
    left_out: LeftOut | None
    remarks: tuple[str, ...]


class EvidenceView(ResponseModel):
    """A piece of the evidence library: what was found to bear on the question, with its score from 0 to 10."""

    key: str
    document: str
    title: str
    date: str | None
    name: str
    page: int | None
    heading: str
    score: float
    note: str
    question: str
    flagged: bool
    start: int
    end: int
    quote: str
    passage: str
    passage_start: int
    context: str = ""  # caption, units and header of the passage's table, as far as they are outside it
    cited: bool
    table: TablePart | None = None


class RunView(RunSummary):
    """A run as it stands. `asked` is the question as it was typed, `question` as it stands alone in its conversation."""

    asked: str
    understood: str  # what a turn of a conversation was understood as; empty: as it was asked
    bases: tuple[str, ...]
    models: tuple[str, ...]
    events: int
    rounds: int
    usage: Usage
    seconds: float  # active time
    waiting: Paused | None
    failure: Failed | None
    held: PendingReviewView | None
    rejected: ReviewNote | None
    reviewed: ReviewNote | None  # set if the answer was delivered after a review
    answer: AnswerView | None
    evidence: tuple[EvidenceView, ...]
    withheld: str = ""  # why a delivered answer is not shown


class EventView(ResponseModel):
    """One event of a run. `title`, `family` and `line` describe it in words; `event` is the event itself, see
    `docs/reference/events.md`; `documents` are the titles of the documents it names, by id; `pages` are the pages on which
    its quotations begin, by the keys of the evidence."""

    seq: int
    kind: str
    title: str
    family: Family
    at: str
    line: str
    event: dict[str, Any]
    documents: dict[str, str]
    pages: dict[str, int]


class TraceResponse(ResponseModel):
    """A run's whole record: the events, and the chain of digests that shows that none was changed."""

    run: str
    events: tuple[EventView, ...]
    chain: tuple[dict[str, Any], ...]
    faults: tuple[str, ...]  # faults of the chain; empty if it is intact
    usage: Usage
    seconds: float


class ReplayResponse(ResponseModel):
    """The run done again from its record, without a model: `same` if it comes to the same answer."""

    run: str
    same: bool
    differences: tuple[str, ...]


class ThreadSummary(ResponseModel):
    id: str
    title: str
    created: str
    updated: str
    turns: int


class ThreadListResponse(ResponseModel):
    threads: tuple[ThreadSummary, ...]
    next: str


class ThreadView(ThreadSummary):
    runs: tuple[RunView, ...]
    earlier: int  # turns before these


class ThreadReadersResponse(ResponseModel):
    """Who else may read a thread: `user:NAME`, `group:NAME`."""

    readers: tuple[str, ...]


class ShareThreadRequest(RequestModel):
    name: Name  # user:NAME or group:NAME
    may: StrictFlag


class SharedThreadSummary(ThreadSummary):
    owner: str


class SharedThreadsResponse(ResponseModel):
    threads: tuple[SharedThreadSummary, ...]


class SharedTurnView(ResponseModel):
    """A question that somebody else asked, and its answer as far as the reader may read the documents behind it."""

    question: str
    answer: AnswerView | None
    withheld: str  # why there is no answer


class SharedThreadView(SharedThreadSummary):
    shared_turns: tuple[SharedTurnView, ...]


class FeedbackRequest(RequestModel):
    kind: FeedbackKind
    claim: Annotated[int, Field(ge=0, le=10_000, strict=True)] | None = (
        None  # its position in the answer; None: all of it
    )
    words: Annotated[str, StringConstraints(max_length=2000)] = ""


class FeedbackView(ResponseModel):
    """What somebody said of an answer. Question and statement are there for one's own feedback alone."""

    run: str
    at: str
    by: str
    kind: FeedbackKind
    claim: int | None
    words: str
    question: str
    statement: str
    withheld: bool  # it was about a document that was erased, or that the reader may not read


class FeedbackListResponse(ResponseModel):
    feedback: tuple[FeedbackView, ...]


class SuggestedQuestion(ResponseModel):
    """A question that the documents answer, and the document it is drawn from."""

    question: str
    document: Id
    title: str


class SuggestionsResponse(ResponseModel):
    questions: tuple[SuggestedQuestion, ...]


class RenameThreadRequest(RequestModel):
    title: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200, pattern=NOT_BLANK)]


# --- health ---------------------------------------------------------------------------------------------------------


class HealthResponse(ResponseModel):
    status: str


class ReadyResponse(ResponseModel):
    ready: bool
    problems: tuple[str, ...]


def search_filters(limited: SearchLimits) -> SearchFilters:
    """The search filters. A year or month stands for its first or last day."""
    today = date.today().isoformat()
    first = first_day(limited.since, today) if limited.since else None
    last = last_day(limited.until, today) if limited.until else None
    if first and last and first > last:
        raise UserError(f"`since` ({first}) is later than `until` ({last}): no document can be dated so.")
    return SearchFilters(
        bases=limited.bases,
        sources=limited.sources,
        types=parse_document_types(limited.types),
        since=first,
        until=last,
        undated=limited.undated,
        meta=limited.meta,
    )


def ask_options(request: AskRequest) -> AskOptions:
    return AskOptions(
        mode=request.mode,
        where=search_filters(request),
        eagerness=request.eagerness,
        checkpoints=request.checkpoints,
        route=request.route,
        model=request.model,
        stakes=request.stakes,
    )
