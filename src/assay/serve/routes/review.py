"""HTTP routes for reviews: the queue, an answer with its evidence and trace, and the decision, after which the run
continues automatically."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import Field, StringConstraints

from assay.answer import citations, claim_details
from assay.core.access import Principal
from assay.core.events import Decision, Edit, Reviewed
from assay.serve import run_views
from assay.serve.routes.runs import EventView, TraceResponse, page_of_runs, trace_of
from assay.serve.run_views import AnswerView, CheckedClaim, EvidenceView, RunState
from assay.serve.schemas import PageSize, PathId, RequestModel, ResponseModel, error_responses
from assay.serve.state import CurrentPerson, CurrentServer, CurrentWorkspace
from assay.serve.stream import build_frame
from assay.workspace.facade import Workspace
from assay.workspace.types import MAX_REVIEW_TEXT, DraftedClaim, ReviewSheet

if TYPE_CHECKING:
    from assay.workspace.facade import Reviews

ReviewText = Annotated[str, StringConstraints(max_length=MAX_REVIEW_TEXT)]


class ReviewFilter(StrEnum):
    waiting = "waiting"
    decided = "decided"


class ReviewSummary(ResponseModel):
    """An answer that waits, or waited, for a reviewer. `why_not` says why the person who looks cannot decide on it."""

    run: str
    question: str
    who: str  # the asker
    reasons: tuple[str, ...]
    state: str  # waiting, approved, edited, rejected, delivered, superseded
    created: str
    decided: str
    by: str
    note: str
    four_eyes: bool
    may_decide: bool
    why_not: str


class ReviewListResponse(ResponseModel):
    reviews: tuple[ReviewSummary, ...]
    next: str


class WaitingResponse(ResponseModel):
    """How many reviews you may decide, how many of your last runs ask you something, and of your answers rest on words that
    changed. Each is counted up to 100."""

    reviews: int
    runs: int
    answers: int


class DraftClaimView(CheckedClaim):
    """A claim of the draft by its place. `cites` are keys of the evidence, `citations` numbers of the answer's citations; a
    claim whose verdict is not `supported` is not told."""

    place: int
    cites: tuple[str, ...]
    editable: bool


class ReviewView(ReviewSummary):
    """All that is needed to decide. `seal` stands for exactly this answer, and has to come back with the decision. With four
    eyes there is no `answer` for whoever asked."""

    seal: str
    answer: AnswerView | None
    claims: tuple[DraftClaimView, ...]
    evidence: tuple[EvidenceView, ...]
    history: tuple[Reviewed, ...]


class EditRequest(RequestModel):
    """A claim as it is to read; without words it is dropped."""

    place: Annotated[int, Field(ge=0, le=10_000, strict=True)]
    text: ReviewText = ""


class DecisionRequest(RequestModel):
    decision: Decision
    seal: Annotated[str, StringConstraints(min_length=1, max_length=100)]
    note: ReviewText = ""
    edits: Annotated[tuple[EditRequest, ...], Field(max_length=200)] = ()


review_router = APIRouter(prefix="/api/reviews", tags=["reviews"], responses=error_responses(413))
waiting_router = APIRouter(prefix="/api", tags=["reviews"], responses=error_responses())
COUNTED = 100  # of each thing that waits


async def reviews_of(server: CurrentServer, workspace: CurrentWorkspace, who: CurrentPerson) -> Reviews:
    """The review service for this user. The asker is resolved with their current groups."""

    def present(run: str, asker: str) -> Principal:
        known = server.workspace.underway.asker(run) or Principal(asker)
        return server.present(known) or Principal("")  # a removed user may read nothing

    return workspace.reviews.acting(admin=who.admin, principal_of=present)


CurrentReviews = Annotated["Reviews", Depends(reviews_of)]


@review_router.get("")
def reviews(
    service: CurrentReviews,
    state: ReviewFilter = ReviewFilter.waiting,
    after: Annotated[str, Query(max_length=100)] = "",
    limit: PageSize = 50,
) -> ReviewListResponse:
    """Answers that wait for you as a reviewer, the longest first; or those that were decided on, the newest first."""
    lines, more = service.queue(waiting=state is ReviewFilter.waiting, after=after, limit=limit)
    return ReviewListResponse(reviews=tuple(ReviewSummary.made_from(each, each.review) for each in lines), next=more)


@waiting_router.get("/waiting")
def waiting(service: CurrentReviews, workspace: CurrentWorkspace, server: CurrentServer) -> WaitingResponse:
    """What waits for you."""
    reviews, _ = service.queue(limit=COUNTED)
    runs = page_of_runs(workspace, server, "", COUNTED).runs
    return WaitingResponse(
        reviews=sum(each.may_decide for each in reviews),
        runs=sum(each.state is RunState.waiting for each in runs),
        answers=len(workspace.rechecks.stale(most=COUNTED)),
    )


@review_router.get("/{run}")
def review(run: PathId, workspace: CurrentWorkspace, service: CurrentReviews) -> ReviewView:
    """An answer that waits, or waited, with its claims, their verdicts, and the evidence that you may read."""
    return _whole(workspace, service.sheet(run))


@review_router.get("/{run}/trace")
def trace(run: PathId, workspace: CurrentWorkspace, service: CurrentReviews) -> TraceResponse:
    """The record of a run under review, as far as you may see it."""
    found = service.trace(run)
    titles: dict[str, str] = {}
    frames = [build_frame(workspace, record.seq, record.at, event, titles) for record, event in found]
    events = tuple(EventView.model_validate_json(frame.body) for frame in frames)
    return trace_of(workspace, run, events, [record for record, _ in found])


@review_router.post("/{run}/decision")
async def decide(
    run: PathId, given: DecisionRequest, workspace: CurrentWorkspace, service: CurrentReviews, server: CurrentServer
) -> ReviewView:
    """Approve, edit or reject the answer with this seal. What is approved is delivered, and what is edited is checked and waits
    again, without anybody doing more."""
    edits = [Edit(each.place, each.text) for each in given.edits]

    async def decided() -> ReviewView:
        service.decide(run, given.decision, given.seal, given.note, edits)
        detail = _whole(workspace, service.sheet(run))
        if given.decision is Decision.reject:
            workspace.underway.end(run)
        else:
            await server.live.go_on(server.workspace.for_principal(service.asker(run, detail.who)), run)
        return detail

    return await server.background.run(decided())


def _whole(workspace: Workspace, sheet: ReviewSheet) -> ReviewView:
    judges = {each.claim.words: each.by for each in sheet.claims}
    cited = citations.of_answer(sheet.answer, sheet.evidence, workspace.documents.get)
    return ReviewView.made_from(
        sheet.line,
        sheet.line.review,
        answer=run_views.answer_view(sheet.answer, sheet.evidence, workspace.documents.get, judges)
        if sheet.open
        else None,
        claims=tuple(_claim(each, sheet, workspace.documents.get, cited) for each in sheet.claims),
        evidence=run_views.evidence_view(sheet.evidence, sheet.answer.cited_keys, workspace.documents.get),
        history=sheet.history,
    )


def _claim(
    drafted: DraftedClaim, sheet: ReviewSheet, document: run_views.Library, cited: citations.Cited
) -> DraftClaimView:
    claim = drafted.claim
    working = claim_details.show_working(claim, sheet.evidence, document)
    return DraftClaimView.made_from(
        drafted,
        claim,
        dispute=claim_details.dispute(claim),
        working=run_views.working_view(working, claim, cited),
        citations=tuple(each.number for each in citations.cited_by(claim, cited)) if drafted.delivered else (),
        text=claim.words,
        rests_on_flagged=drafted.flagged,
    )
