"""HTTP routes for runs: start, follow, choose, resume, cancel, read back; a new run from a step of an earlier one, and the
difference of two runs."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from collections.abc import Sequence
from enum import StrEnum
from functools import cache
from typing import Annotated, Any

from fastapi import APIRouter, Header, HTTPException, Query, Response
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from pydantic import Field, StringConstraints

from assay.answer import citations, render
from assay.answer.claim_details import shown_details
from assay.core.codec import to_json
from assay.core.errors import UserError
from assay.core.events import FeedbackKind
from assay.core.events.describe import Family
from assay.core.run import Run
from assay.core.types import Usage
from assay.governance.difference import Change, difference
from assay.serve import run_views, schemas, stream
from assay.serve.run_views import RecheckView, RunSummary, RunView
from assay.serve.state import CurrentPerson, CurrentServer, CurrentWorkspace, Server
from assay.serve.stream import stored_frames
from assay.workspace.facade import Workspace
from assay.workspace.stored import WITHHELD_ANSWER, Record
from assay.workspace.types import MAX_QUESTION, FeedbackItem

runs_router = APIRouter(prefix="/api", tags=["runs"], responses=schemas.error_responses(413, 502))


class AskAndWaitRequest(schemas.AskRequest):
    stream: schemas.StrictFlag = False


class ChoiceRequest(schemas.RequestModel):
    choice: Annotated[str, StringConstraints(max_length=1000)] = ""
    words: Annotated[str, StringConstraints(max_length=MAX_QUESTION)] = ""


class RunStartedResponse(schemas.ResponseModel):
    run: str
    thread: str
    events: str  # the URL of the event stream


class RunListResponse(schemas.ResponseModel):
    runs: tuple[RunSummary, ...]
    next: str


class EventView(schemas.ResponseModel):
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


class TraceResponse(schemas.ResponseModel):
    """A run's whole record: the events, and the chain of digests that shows that none was changed."""

    run: str
    events: tuple[EventView, ...]
    chain: tuple[dict[str, Any], ...]
    faults: tuple[str, ...]  # faults of the chain; empty if it is intact
    usage: Usage
    seconds: float


class ReplayResponse(schemas.ResponseModel):
    """The run done again from its record, without a model: `same` if it comes to the same answer."""

    run: str
    same: bool
    differences: tuple[str, ...]


class FeedbackRequest(schemas.RequestModel):
    kind: FeedbackKind
    claim: Annotated[int, Field(ge=0, le=10_000, strict=True)] | None = (
        None  # its position in the answer; None: all of it
    )
    words: Annotated[str, StringConstraints(max_length=2000)] = ""


class FeedbackView(schemas.ResponseModel):
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


class FeedbackListResponse(schemas.ResponseModel):
    feedback: tuple[FeedbackView, ...]


class SuggestedQuestion(schemas.ResponseModel):
    """A question that the documents answer, and the document it is drawn from."""

    question: str
    document: schemas.Id
    title: str


class SuggestionsResponse(schemas.ResponseModel):
    questions: tuple[SuggestedQuestion, ...]


class EventListResponse(schemas.ResponseModel):
    events: tuple[EventView, ...]


class RunKind(StrEnum):
    question = "question"
    synthesis = "synthesis"


class AnswerFormat(StrEnum):
    text = "text"
    markdown = "markdown"
    html = "html"
    json = "json"
    bibtex = "bibtex"


MEDIA_TYPES = {
    AnswerFormat.text: "text/plain",
    AnswerFormat.markdown: "text/markdown",
    AnswerFormat.html: "text/html",
    AnswerFormat.json: "application/json",
    AnswerFormat.bibtex: "application/x-bibtex",
}


HIDDEN_FIELDS = ("n", "link")  # fields of a record: its number among all users' records would reveal their activity


class EventFormat(StrEnum):
    sse = "sse"
    json = "json"


@runs_router.post("/runs", status_code=201)
async def begin_run(
    request: schemas.AskRequest, workspace: CurrentWorkspace, server: CurrentServer
) -> RunStartedResponse:
    """Ask. The run goes on whoever leaves, and after a restart; it is followed where `events` says."""
    run = await _start_run(server, workspace, request)
    return run_started(run.id, run.asked.thread)


@runs_router.post(
    "/ask", response_model=RunView, responses={200: {"content": stream.SSE, "description": "The run, or its events."}}
)
async def ask(request: AskAndWaitRequest, workspace: CurrentWorkspace, server: CurrentServer) -> Any:
    """Ask and wait: for the run, once it has ended or waits for a choice, or (`stream`) for its events as they come."""
    run = await _start_run(server, workspace, request)
    if request.stream:
        return server.follower.response(workspace, run.id)
    await server.follower.wait_until_ended(workspace, run.id)
    return await asyncio.to_thread(one_run, run.id, workspace, server)


async def _start_run(server: Server, workspace: Workspace, request: schemas.AskRequest) -> Run:
    how = schemas.ask_options(request)
    talks = bool(request.thread or request.talk)
    steps = (
        workspace.threads.chat(request.question, request.thread, how, request.instead_of)
        if talks
        else workspace.ask(request.question, how)
    )
    with server.reserve_run(workspace.principal):
        return await server.live.begin(workspace, steps)


def run_started(run: str, thread: str = "") -> RunStartedResponse:
    return RunStartedResponse(run=run, thread=thread, events=f"/api/runs/{run}/events")


@runs_router.get("/runs")
def list_runs(
    workspace: CurrentWorkspace,
    server: CurrentServer,
    after: str = "",
    limit: schemas.PageSize = 50,
    kind: RunKind | None = None,
) -> RunListResponse:
    """A page of what was asked, newest first; only questions, or only syntheses, where that is said."""
    return page_of_runs(workspace, server, after, limit, None if kind is None else kind is RunKind.synthesis)


def page_of_runs(
    workspace: Workspace, server: Server, after: str, limit: int, syntheses: bool | None = None
) -> RunListResponse:
    found, more = workspace.questions.page(workspace.principal.id, workspace.scope(), after, limit, syntheses)
    listed = {each.run for each in workspace.underway.listing()}
    summaries = (run_views.run_summary(each, each.id in listed or server.runs.under_way(each.id)) for each in found)
    return RunListResponse(runs=tuple(summaries), next=more)


@runs_router.get("/runs/{run}")
def one_run(run: schemas.PathId, workspace: CurrentWorkspace, server: CurrentServer) -> RunView:
    """A run as it stands."""
    # Checked before reading: a run that has ended by then is recorded.
    under_way = server.runs.under_way_anywhere(workspace, run)
    return run_views.run_view(workspace, workspace.questions.run(run), under_way)


@runs_router.get(
    "/runs/{run}/events",
    response_model=EventListResponse,
    responses={200: {"content": stream.SSE, "description": "Server-sent events, or all there are so far as JSON."}},
)
def run_events(
    run: schemas.PathId,
    workspace: CurrentWorkspace,
    server: CurrentServer,
    format: EventFormat = EventFormat.sse,
    after: Annotated[int, Query(ge=-1, le=2**31)] = -1,
    last_event_id: Annotated[str | None, Header()] = None,
) -> Any:
    """Everything that happens in a run, each event once: from the first on, or from after the one that `Last-Event-ID` or
    `after` names. The stream ends with `event: end` and the run's state, or with `event: parked` when the server closes."""
    # Raises if there is no such run, while a status code can still be sent.
    workspace.questions.progress(run, workspace.principal.id, workspace.scope())
    seen = after if last_event_id is None or not re.fullmatch(r"\d{1,9}", last_event_id) else int(last_event_id)
    if format is EventFormat.json:
        return EventListResponse(events=_events(workspace, run, seen))
    return server.follower.response(workspace, run, seen)


def _events(workspace: Workspace, run: str, after: int = -1) -> tuple[EventView, ...]:
    found: list[EventView] = []
    while frames := stored_frames(workspace, run, after):
        found += [EventView.model_validate_json(frame.body) for frame in frames]
        after = frames[-1].seq
    return tuple(found)


def chain_entry(record: Record) -> dict[str, Any]:
    """A record in the chain of its run."""
    return {name: value for name, value in to_json(record).items() if name not in HIDDEN_FIELDS}


@runs_router.get("/runs/{run}/trace")
def run_trace(
    run: schemas.PathId, workspace: CurrentWorkspace, response: Response, download: bool = False
) -> TraceResponse:
    """The whole record of a run, and whether it is whole; `download` has a browser keep it as a file."""
    chain = workspace.questions.chain(run, workspace.principal.id)
    events = _events(workspace, run)
    if download:
        response.headers["Content-Disposition"] = f'attachment; filename="assay-{re.sub("[^a-z0-9]", "", run)}.json"'
    return trace_of(workspace, run, events, chain)


def trace_of(workspace: Workspace, run: str, events: tuple[EventView, ...], chain: Sequence[Record]) -> TraceResponse:
    return TraceResponse(
        run=run,
        events=events,
        chain=tuple(map(chain_entry, chain)),
        faults=tuple(workspace.questions.faults(run)),
        usage=workspace.questions.spent(run),
        seconds=workspace.questions.active_seconds(run),
    )


@runs_router.get(
    "/runs/{run}/answer",
    response_class=Response,
    responses={
        200: {
            "description": "The answer in the format asked for.",
            "content": {kind: {} for kind in MEDIA_TYPES.values()},
        }
    },
)
def run_answer(run: schemas.PathId, workspace: CurrentWorkspace, format: AnswerFormat = AnswerFormat.text) -> Response:
    """A delivered answer as a text, a page, data, or a list of what it cites."""
    found = workspace.questions.run(run)
    if found.withheld:
        raise UserError(WITHHELD_ANSWER)
    if found.answer is None:
        raise UserError(f"Run {run} has no answer yet.")
    cited = citations.of_answer(found.answer, found.evidence, workspace.documents.get)
    details = shown_details(found.answer, found.evidence, workspace.documents.get)
    stands = workspace.rechecks.of_run(found)
    line = stands.line if stands else ""
    match format:
        case AnswerFormat.markdown:
            text = render.as_markdown(found.answer, cited, details, standing=line)
            return PlainTextResponse(text, media_type=MEDIA_TYPES[format])
        case AnswerFormat.html:
            return HTMLResponse(
                render.as_html(found.answer, cited, details, standing=line),
                headers={"Content-Security-Policy": _answer_policy()},
            )
        case AnswerFormat.bibtex:
            return PlainTextResponse(render.as_bibtex(cited), media_type=MEDIA_TYPES[format])
        case AnswerFormat.json:
            return JSONResponse({"run": run, **render.as_json(found.answer, cited), "recheck": to_json(stands)})
        case _:
            return PlainTextResponse(render.as_text(found.answer, cited, standing=line))


@cache
def _answer_policy() -> str:
    """The Content-Security-Policy of an answer's page: it may use its own style sheet and nothing else."""
    digest = base64.b64encode(hashlib.sha256(render.stylesheet().encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; "
        "sandbox"
    )


@runs_router.get("/runs/{run}/follow-ups")
def follow_ups(run: schemas.PathId, workspace: CurrentWorkspace) -> SuggestionsResponse:
    """Questions that could follow: about the documents that the answer cites, on what it does not cite. No model is asked."""
    return SuggestionsResponse.made_from(questions=workspace.questions.suggest_follow_ups(workspace.questions.run(run)))


@runs_router.post("/runs/{run}/feedback", status_code=201)
def give_feedback(run: schemas.PathId, given: FeedbackRequest, workspace: CurrentWorkspace) -> FeedbackView:
    """Say what you make of an answer of yours, or of one statement in it. It is recorded."""
    workspace.questions.give_feedback(workspace.questions.run(run), given.kind, given.claim, given.words)
    return _feedback_view(workspace.questions.feedback(limit=1)[0])


@runs_router.get("/feedback")
def list_feedback(
    workspace: CurrentWorkspace,
    who: CurrentPerson,
    everyone: Annotated[bool, Query(description="Of everybody, for administrators.")] = False,
    limit: schemas.PageSize = 50,
) -> FeedbackListResponse:
    """What you said of answers, newest first; for administrators, what everybody did. Words about documents that you may not
    read are withheld."""
    if everyone and not who.admin:
        raise HTTPException(404, "Not Found")
    return FeedbackListResponse(
        feedback=tuple(map(_feedback_view, workspace.questions.feedback(everyone=everyone, limit=limit)))
    )


def _feedback_view(item: FeedbackItem) -> FeedbackView:
    return FeedbackView.made_from(item, item.entry, item.entry.given)


@runs_router.post("/runs/{run}/choice", status_code=202)
async def choose(
    run: schemas.PathId, given: ChoiceRequest, workspace: CurrentWorkspace, server: CurrentServer
) -> RunStartedResponse:
    """Answer what a run asks at a checkpoint; it goes on from there."""
    with server.reserve_run(workspace.principal):
        await server.live.resume(workspace, run, given.choice, given.words)
    return run_started(run, (await asyncio.to_thread(server.follower.summary, workspace, run)).thread)


@runs_router.post("/runs/{run}/resume", status_code=202)
async def resume_run(run: schemas.PathId, workspace: CurrentWorkspace, server: CurrentServer) -> RunStartedResponse:
    """Carry on a run that has failed, was stopped or was cut off."""
    return await choose(run, ChoiceRequest(), workspace, server)


@runs_router.post("/runs/{run}/cancel")
async def cancel_run(run: schemas.PathId, workspace: CurrentWorkspace, server: CurrentServer) -> RunSummary:
    """Stop a run now. What it did is kept, and it can be carried on."""
    await server.live.cancel(workspace, run)
    return await asyncio.to_thread(server.follower.summary, workspace, run)


@runs_router.post("/runs/{run}/replay")
async def replay_run(run: schemas.PathId, workspace: CurrentWorkspace, server: CurrentServer) -> ReplayResponse:
    """Go through a delivered run again from its record alone, and compare every step. No model is asked."""
    with server.reserve_run(workspace.principal):
        found = await asyncio.to_thread(workspace.questions.run, run)
        again = await server.background.run(workspace.questions.replay(found))
    return ReplayResponse(run=run, same=again.same and not again.differences, differences=again.differences)


reruns_router = APIRouter(prefix="/api/runs", tags=["runs"], responses=schemas.error_responses(502))

Model = Annotated[str, StringConstraints(strip_whitespace=True, max_length=200)]


class RerunRequest(schemas.RequestModel):
    """Which record's step is done again, as the trace numbers them; and the model to go on with: empty for the one that is
    set, `none` for none."""

    begin: Annotated[int, Field(alias="from", ge=0, le=2**31, strict=True)]
    model: Model = ""


class DifferencePartView(schemas.ResponseModel):
    name: str  # question, route, plan, searches, evidence, claims, answer, cost
    same: bool
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    changed: tuple[Change, ...]


class DifferenceResponse(schemas.ResponseModel):
    """What differs between two runs. What they took is told, and does not count as a difference."""

    a: str
    b: str
    same: bool
    parts: tuple[DifferencePartView, ...]


@reruns_router.post("/{run}/rerun", status_code=201)
async def rerun(
    run: schemas.PathId, wanted: RerunRequest, workspace: CurrentWorkspace, server: CurrentServer
) -> RunStartedResponse:
    """Begin a new run with what was recorded before this step; it goes on from there, like any run."""
    model = workspace.models.check_name(wanted.model)
    origin = await asyncio.to_thread(workspace.questions.run, run)
    workspace.questions.check_branch(origin, wanted.begin)
    with server.reserve_run(workspace.principal):
        new = await server.live.begin(workspace, workspace.questions.branch(origin, wanted.begin, model))
    return run_started(new.id)


@reruns_router.post("/{run}/ask-again", status_code=201)
async def ask_again(run: schemas.PathId, workspace: CurrentWorkspace, server: CurrentServer) -> RunStartedResponse:
    """Ask the question of a run again, or make its synthesis again, of the documents of now. The two can be compared."""
    origin = await asyncio.to_thread(workspace.questions.run, run)
    with server.reserve_run(workspace.principal):
        new = await server.live.begin(workspace, workspace.rechecks.ask_again(origin))
    return run_started(new.id)


class StaleAnswersResponse(schemas.ResponseModel):
    """Answers that rest on words that changed, newest first, then those that are withheld."""

    answers: tuple[RecheckView, ...]


@runs_router.get("/recheck")
def list_stale(workspace: CurrentWorkspace, limit: schemas.PageSize = 50) -> StaleAnswersResponse:
    """Your answers and syntheses that rest on words that changed since, checked by code. No model is asked."""
    return StaleAnswersResponse(answers=tuple(map(RecheckView.made_from, workspace.rechecks.stale(most=limit))))


@reruns_router.get("/{a}/diff/{b}")
def diff(a: schemas.PathId, b: schemas.PathId, workspace: CurrentWorkspace) -> DifferenceResponse:
    """What differs between two runs of yours: question, route, plan, searches, evidence, claims, answer, cost."""
    one, other = map(workspace.questions.run_for_asker, (a, b))
    found = {each.quote.doc_id for run in (one, other) for each in run.evidence}
    compared = difference(one, other, workspace.documents.titles_of_any(found))
    return DifferenceResponse.made_from(compared, a=a, b=b)
