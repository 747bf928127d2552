"""HTTP routes for reviews: the queue, an answer with its evidence and trace, and the decision, after which the run
continues automatically."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path, Query

from assay.answer import claim_details, render
from assay.core.access import Principal
from assay.core.events import Decision, Edit
from assay.serve.frames import build_frame
from assay.serve.routes.runs import chain_entry
from assay.serve.routes.review import DecisionRequest
from assay.serve.routes.review import DecisionView
from assay.serve.routes.review import DraftClaimView
from assay.serve.routes.review import EditView
from assay.serve.routes.review import ReviewFilter
from assay.serve.routes.review import ReviewListResponse
from assay.serve.routes.review import ReviewSummary
from assay.serve.routes.review import ReviewView
from assay.serve.run_schemas import EventView
from assay.serve.run_schemas import PageSize
from assay.serve.run_schemas import TraceResponse
from assay.serve.run_schemas import error_responses
from assay.serve.state import CurrentPerson, CurrentServer, CurrentWorkspace, Person, Server
from assay.serve import run_views
from assay.store.runs import budgets, records, underway
from assay.workspace.facade import Workspace
from assay.workspace.types import DraftedClaim, ReviewItem, ReviewSheet

if TYPE_CHECKING:
    from assay.workspace.facade import ReviewService

router = APIRouter(
    prefix="/api/reviews",
    tags=["reviews"],
    responses=error_responses(413),
)

RunId = Annotated[str, Path(max_length=100)]


def reviews_of(server: Server, workspace: Workspace, who: Person) -> ReviewService:
    """The review service for this user. The asker is resolved with their current groups."""

    def present(run: str, asker: str) -> Principal:
        known = underway.asker(server.workspace.store, run) or Principal(asker)
        return server.present(known) or Principal("")  # a removed user may read nothing

    return workspace.reviews(admin=who.admin, principal_of=present)


@router.get("", response_model=ReviewListResponse)
def reviews(
    workspace: CurrentWorkspace,
    who: CurrentPerson,
    server: CurrentServer,
    state: ReviewFilter = ReviewFilter.waiting,
    after: Annotated[str, Query(max_length=100)] = "",
    limit: PageSize = 50,
) -> ReviewListResponse:
    """Answers that wait for you as a reviewer, the longest first; or those that were decided on, the newest first."""
    service = reviews_of(server, workspace, who)
    lines, more = service.queue(waiting=state is ReviewFilter.waiting, after=after, limit=limit)
    return ReviewListResponse(reviews=tuple(map(_line, lines)), next=more)


@router.get("/{run}", response_model=ReviewView)
def review(run: RunId, workspace: CurrentWorkspace, who: CurrentPerson, server: CurrentServer) -> ReviewView:
    """An answer that waits, or waited, with its claims, their verdicts, and the evidence that you may read."""
    return _whole(workspace, reviews_of(server, workspace, who).sheet(run))


@router.get("/{run}/trace", response_model=TraceResponse)
def trace(run: RunId, workspace: CurrentWorkspace, who: CurrentPerson, server: CurrentServer) -> TraceResponse:
    """The record of a run under review, as far as you may see it."""
    found = reviews_of(server, workspace, who).trace(run)
    titles: dict[str, str] = {}
    frames = [build_frame(workspace, record.seq, record.at, event, titles) for record, event in found]
    return TraceResponse(
        run=run,
        events=tuple(EventView.model_validate_json(frame.body) for frame in frames),
        chain=tuple(chain_entry(record) for record, _ in found),
        faults=tuple(records.faults(workspace.store, run)),
        usage=run_views.usage_view(budgets.spent_by_run(workspace.store, run)),
        seconds=records.active_seconds(workspace.store, run),
    )


@router.post("/{run}/decision", response_model=ReviewView)
async def decide(
    run: RunId, given: DecisionRequest, workspace: CurrentWorkspace, who: CurrentPerson, server: CurrentServer
) -> ReviewView:
    """Approve, edit or reject the answer with this seal. What is approved is delivered, and what is edited is checked and waits
    again, without anybody doing more."""
    return await server.engine.run(_decided(server, workspace, who, run, given))


async def _decided(server: Server, workspace: Workspace, who: Person, run: str, given: DecisionRequest) -> ReviewView:
    service = reviews_of(server, workspace, who)
    edits = [Edit(each.place, each.text) for each in given.edits]
    made = service.decide(run, given.decision, given.seal, given.note, edits)
    detail = _whole(workspace, service.sheet(run))
    if made.decision is Decision.reject:
        underway.end(workspace.store, run)
    else:
        asker = detail.who
        await server.live.go_on(server.for_principal(service.principal_of(run, asker)), run)
    return detail


def _line(line: ReviewItem) -> ReviewSummary:
    return ReviewSummary(**_summary_fields(line))


def _summary_fields(line: ReviewItem) -> dict[str, Any]:
    of = line.review
    return {
        "run": of.run,
        "question": line.question,
        "who": of.who,
        "reasons": of.reasons,
        "state": of.state.value,
        "created": of.created,
        "decided": of.decided,
        "by": of.by,
        "note": of.note,
        "four_eyes": of.four_eyes,
        "may_decide": line.may_decide,
        "why_not": line.why_not,
    }


def _whole(workspace: Workspace, sheet: ReviewSheet) -> ReviewView:
    fields = _summary_fields(sheet.line)
    judges = {each.claim.words: each.by for each in sheet.claims}
    cited = render.citations(sheet.answer, sheet.evidence, workspace.document)
    return ReviewView(
        **fields,
        seal=sheet.seal,
        answer=run_views.answer_view(sheet.answer, sheet.evidence, workspace.document, judges) if sheet.open else None,
        claims=tuple(_claim(each, sheet, workspace.document, cited) for each in sheet.claims),
        evidence=run_views.evidence_view(sheet.evidence, sheet.answer.cited_keys, workspace.document),
        history=tuple(
            DecisionView(
                decision=each.decision,
                by=each.by,
                note=each.note,
                seal=each.seal,
                edits=tuple(EditView(place=edit.place, text=edit.text) for edit in each.edits),
            )
            for each in sheet.history
        ),
    )


def _claim(
    drafted: DraftedClaim, sheet: ReviewSheet, document: run_views.Library, cited: render.Cited
) -> DraftClaimView:
    claim = drafted.claim
    working = claim_details.show_working(claim, sheet.evidence, document)
    return DraftClaimView(
        basis=drafted.basis,
        by=drafted.by,
        dispute=claim_details.dispute(claim),
        working=run_views.working_view(working, claim, cited),
        citations=tuple(each.number for each in render.cited_by(claim, cited)) if drafted.delivered else (),
        place=drafted.place,
        text=claim.words,
        verdict=claim.verdict,
        why=claim.why,
        cites=claim.cites,
        edited=claim.edited,
        rests_on_flagged=drafted.flagged,
        editable=drafted.editable,
    )
