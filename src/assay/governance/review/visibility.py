"""Redacts a run that must be reviewed: the person who asked may see everything but the draft. Pure."""

from __future__ import annotations

from dataclasses import replace

from assay.core.events import (
    AwaitingReview,
    Checked,
    Critiqued,
    Decided,
    Decision,
    Drafted,
    Event,
    Failed,
    InsightsDrawn,
    ModelReplied,
    Related,
    Reviewed,
    Revised,
    SpineWritten,
    Translated,
    Withheld,
)
from assay.core.run import Run
from assay.core.types import Answer, Outcome

DRAFT = "A reviewer looks at it before you do."
UNVERIFIED = "Unverified"  # such a failure quotes unsupported claims
WRITING = frozenset({"write", "check", "critique", "relate"})  # roles or prompts whose replies contain the draft
DRAFTING = (Drafted, Checked, Revised, Critiqued, InsightsDrawn, Related, SpineWritten, Translated)


def redact_event(event: Event) -> Event:
    """The event without any text of the draft, as the person who asked may see it before delivery."""
    match event:
        case ModelReplied(role=role, prompt=prompt) if role in WRITING or prompt in WRITING:
            return Withheld(type(event).__name__, DRAFT)
        case Decided(seeks=seeks) if seeks:
            return Withheld(type(event).__name__, DRAFT)  # its query contains the words of a claim
        case AwaitingReview(answer=answer):
            return replace(event, answer=Answer(answer.question, (), Outcome.abstained))
        case Reviewed(decision=decision):
            return event if decision is Decision.reject else replace(event, note="", edits=())
        case Failed(error=error) if error == UNVERIFIED:
            return replace(event, detail="Nothing is delivered, since not everything in it holds.")
        case _:
            return Withheld(type(event).__name__, DRAFT) if isinstance(event, DRAFTING) else event


def redact_run(run: Run, *, watched: bool) -> Run:
    """A run as the person who asked may see it. `watched` is whether its answer may still have to be reviewed."""
    if run.delivered or not (watched or run.gated):
        return run
    return Run(run.id, tuple(map(redact_event, run.events)))
