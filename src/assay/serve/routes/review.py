"""Reviews: the queue, an answer beside its evidence and its trace, and the decision, after which the run goes on by itself."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query

from assay.core.access import Principal
from assay.core.events import Decision, Edit
from assay.serve.live import framed
from assay.serve.routes.runs import chained
from assay.serve.schemas.review_schemas import (
    Decided,
    DecisionGiven,
    DraftClaim,
    EditShape,
    ReviewLine,
    Reviews,
    ReviewWhole,
    Which,
)
from assay.serve.schemas.run_schemas import EventShape, Problem, Some, Trace
from assay.serve.state import Here, Mine, Person, Server, Who
from assay.serve.views import run_views
from assay.store.runs import budgets, records, underway
from assay.workspace import review as reviewing
from assay.workspace.facade import Workspace
from assay.workspace.review import Line, ReviewContext, Sheet, Written

router = APIRouter(
    prefix="/api/reviews",
    tags=["reviews"],
    responses={code: {"model": Problem} for code in (400, 401, 403, 404, 413, 422, 429, 503)},
)

RunId = Annotated[str, Path(max_length=100)]


def bench_of(server: Server, mine: Workspace, who: Person) -> ReviewContext:
    """Where this person reviews. Who asked is known by the groups that they are in now."""

    def present(run: str, asker: str) -> Principal:
        known = underway.asker(server.workspace.store, run) or Principal(asker)
        return server.present(known) or Principal("")  # who was removed may read nothing

    return ReviewContext(mine, who.admin, present)


@router.get("", response_model=Reviews)
def reviews(
    mine: Mine,
    who: Who,
    here: Here,
    state: Which = Which.waiting,
    after: Annotated[str, Query(max_length=100)] = "",
    limit: Some = 50,
) -> Reviews:
    """Answers that wait for you as a reviewer, the longest first; or those that were decided on, the newest first."""
    bench = bench_of(here, mine, who)
    lines, more = reviewing.queue(bench, waiting=state is Which.waiting, after=after, limit=limit)
    return Reviews(reviews=tuple(map(_line, lines)), next=more)


@router.get("/{run}", response_model=ReviewWhole)
def review(run: RunId, mine: Mine, who: Who, here: Here) -> ReviewWhole:
    """An answer that waits, or waited, with its claims, their verdicts, and the evidence that you may read."""
    return _whole(mine, reviewing.shown(bench_of(here, mine, who), run))


@router.get("/{run}/trace", response_model=Trace)
def trace(run: RunId, mine: Mine, who: Who, here: Here) -> Trace:
    """The record of a run under review, as far as you may see it."""
    found = reviewing.trace(bench_of(here, mine, who), run)
    titles: dict[str, str] = {}
    frames = [framed(mine, record.seq, record.at, event, titles) for record, event in found]
    return Trace(
        run=run,
        events=tuple(EventShape.model_validate_json(frame.body) for frame in frames),
        chain=tuple(chained(record) for record, _ in found),
        faults=tuple(records.faults(mine.store, run)),
        usage=run_views.usage(budgets.spent_by_run(mine.store, run)),
        seconds=records.active_seconds(mine.store, run),
    )


@router.post("/{run}/decision", response_model=ReviewWhole)
async def decide(run: RunId, given: DecisionGiven, mine: Mine, who: Who, here: Here) -> ReviewWhole:
    """Approve, edit or reject the answer with this seal. What is approved is delivered, and what is edited is checked and waits
    again, without anybody doing more."""
    return await here.engine.do(_decided(here, mine, who, run, given))


async def _decided(server: Server, mine: Workspace, who: Person, run: str, given: DecisionGiven) -> ReviewWhole:
    bench = bench_of(server, mine, who)
    edits = [Edit(each.place, each.text) for each in given.edits]
    made = reviewing.decide(bench, run, given.decision, given.seal, given.note, edits)
    told = _whole(mine, reviewing.shown(bench, run))
    if made.decision is Decision.reject:
        underway.end(mine.store, run)
    else:
        asker = told.who
        await server.live.go_on(server.seen_by(bench.present(run, asker)), run)
    return told


def _line(line: Line) -> ReviewLine:
    return ReviewLine(**_told(line))


def _told(line: Line) -> dict[str, Any]:
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


def _whole(mine: Workspace, sheet: Sheet) -> ReviewWhole:
    told = _told(sheet.line)
    return ReviewWhole(
        **told,
        seal=sheet.seal,
        answer=run_views.answer(sheet.answer, sheet.evidence, mine.document) if sheet.open else None,
        claims=tuple(map(_claim, sheet.claims)),
        evidence=run_views.evidence(sheet.evidence, sheet.answer.cited_keys, mine.document),
        history=tuple(
            Decided(
                decision=each.decision,
                by=each.by,
                note=each.note,
                seal=each.seal,
                edits=tuple(EditShape(place=edit.place, text=edit.text) for edit in each.edits),
            )
            for each in sheet.history
        ),
    )


def _claim(written: Written) -> DraftClaim:
    claim = written.claim
    return DraftClaim(
        place=written.place,
        text=claim.words,
        verdict=claim.verdict,
        why=claim.why,
        cites=claim.cites,
        edited=claim.edited,
        rests_on_flagged=written.flagged,
        editable=written.editable,
    )
