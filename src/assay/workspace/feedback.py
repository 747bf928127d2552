"""What people say of answers: given by the person who asked, listed for them, and for an administrator."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from assay.answer.render import claim_text
from assay.core.errors import UserError
from assay.core.events import FeedbackGiven, FeedbackKind
from assay.core.run import Run
from assay.core.settings import hider
from assay.store.runs import feedback
from assay.store.runs.feedback import FeedbackEntry
from assay.store.runs.visibility import WITHHELD_ANSWER
from assay.workspace.context import WorkspaceContext


@dataclass(frozen=True, slots=True)
class FeedbackItem:
    """Feedback with the question and the statement that it is about, where the reader may see them."""

    entry: FeedbackEntry
    question: str = ""
    statement: str = ""


def give(
    context: WorkspaceContext, run: Run, kind: FeedbackKind, claim: int | None = None, words: str = ""
) -> FeedbackGiven:
    """Record what the person who asked makes of a delivered answer, or of one claim of it."""
    if run.withheld:
        raise UserError(WITHHELD_ANSWER)
    if run.answer is None:
        raise UserError(f"Run {run.id} has no answer yet: there is nothing to say about it.")
    if claim is not None and not 0 <= claim < len(_claims(run)):
        raise UserError(f"The answer of run {run.id} has no statement {claim + 1}.")
    made = FeedbackGiven(run.id, kind, context.principal.id, claim, hider(context.settings)(words.strip()))
    feedback.give(context.store, made)
    return made


def listing(context: WorkspaceContext, *, everyone: bool = False, limit: int = 200) -> list[FeedbackItem]:
    """Feedback, newest first: one's own with what it is about; of everyone without it."""
    who = context.principal.id
    found = feedback.listing(context.store, context.scope(), "" if everyone else who, limit)
    return [_item(context, each) if each.given.by == who else FeedbackItem(each) for each in found]


def _item(context: WorkspaceContext, entry: FeedbackEntry) -> FeedbackItem:
    with suppress(UserError):  # the run was erased meanwhile
        run = context.run(entry.given.run)
        claims = _claims(run)
        place = entry.given.claim
        return FeedbackItem(entry, run.question, claims[place] if place is not None and place < len(claims) else "")
    return FeedbackItem(entry)


def _claims(run: Run) -> list[str]:
    return [claim_text(claim) for block in run.answer.blocks for claim in block.claims] if run.answer else []
