"""What goes over the wire about reviews: answers that wait for a person, what there is to see of them, and decisions."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from assay.core.events import Decision
from assay.core.types import Verdict
from assay.serve.schemas.run_schemas import AnswerShape, EvidenceShape, Given, Told
from assay.workspace.review import LONGEST

Said = Annotated[str, StringConstraints(max_length=LONGEST)]


class Which(StrEnum):
    waiting = "waiting"
    decided = "decided"


class ReviewLine(Told):
    """An answer that waits, or waited, for a reviewer. `why_not` says why the person who looks cannot decide on it."""

    run: str
    question: str
    who: str  # asked
    reasons: tuple[str, ...]
    state: str  # waiting, approved, edited, rejected, delivered, superseded
    created: str
    decided: str
    by: str
    note: str
    four_eyes: bool
    may_decide: bool
    why_not: str


class Reviews(Told):
    reviews: tuple[ReviewLine, ...]
    next: str


class DraftClaim(Told):
    """A claim of the draft by its place. `cites` are keys of the evidence; one whose verdict is not `supported` is not told."""

    place: int
    text: str
    verdict: Verdict | None
    why: str
    cites: tuple[str, ...]
    edited: str | None  # who wrote it anew in review
    rests_on_flagged: bool  # on nothing but passages that read like an instruction to a model
    editable: bool


class EditShape(Told):
    place: int
    text: str


class Decided(Told):
    decision: Decision
    by: str
    note: str
    seal: str
    edits: tuple[EditShape, ...]


class ReviewWhole(ReviewLine):
    """All that is needed to decide. `seal` stands for exactly this answer, and has to come back with the decision. With four
    eyes there is no `answer` for whoever asked."""

    seal: str
    answer: AnswerShape | None
    claims: tuple[DraftClaim, ...]
    evidence: tuple[EvidenceShape, ...]
    history: tuple[Decided, ...]


class EditGiven(Given):
    """A claim as it is to read; without words it is dropped."""

    place: Annotated[int, Field(ge=0, le=10_000, strict=True)]
    text: Said = ""


class DecisionGiven(Given):
    decision: Decision
    seal: Annotated[str, StringConstraints(min_length=1, max_length=100)]
    note: Said = ""
    edits: Annotated[tuple[EditGiven, ...], Field(max_length=200)] = ()
