"""HTTP schemas for reviews: waiting answers, their details, and decisions."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from assay.core.events import Decision
from assay.core.types import Verdict
from assay.serve.run_schemas import AnswerView
from assay.serve.run_schemas import CheckedClaim
from assay.serve.run_schemas import EvidenceView
from assay.serve.run_schemas import RequestModel
from assay.serve.run_schemas import ResponseModel
from assay.workspace.types import MAX_REVIEW_TEXT

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


class DraftClaimView(CheckedClaim):
    """A claim of the draft by its place. `cites` are keys of the evidence, `citations` numbers of the answer's citations; a
    claim whose verdict is not `supported` is not told."""

    place: int
    text: str
    verdict: Verdict | None
    why: str
    cites: tuple[str, ...]
    citations: tuple[int, ...]
    edited: str | None  # the reviewer who rewrote it
    rests_on_flagged: bool  # all its evidence looks like an instruction to a model
    editable: bool


class EditView(ResponseModel):
    place: int
    text: str


class DecisionView(ResponseModel):
    decision: Decision
    by: str
    note: str
    seal: str
    edits: tuple[EditView, ...]


class ReviewView(ReviewSummary):
    """All that is needed to decide. `seal` stands for exactly this answer, and has to come back with the decision. With four
    eyes there is no `answer` for whoever asked."""

    seal: str
    answer: AnswerView | None
    claims: tuple[DraftClaimView, ...]
    evidence: tuple[EvidenceView, ...]
    history: tuple[DecisionView, ...]


class EditRequest(RequestModel):
    """A claim as it is to read; without words it is dropped."""

    place: Annotated[int, Field(ge=0, le=10_000, strict=True)]
    text: ReviewText = ""


class DecisionRequest(RequestModel):
    decision: Decision
    seal: Annotated[str, StringConstraints(min_length=1, max_length=100)]
    note: ReviewText = ""
    edits: Annotated[tuple[EditRequest, ...], Field(max_length=200)] = ()
