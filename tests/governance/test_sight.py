"""Whoever asked sees how a run goes, and nothing of an answer that a reviewer has to look at first."""

from __future__ import annotations

import pytest

from assay.core.codec import dumps, to_json
from assay.core.events import (
    Asked,
    AwaitingReview,
    Call,
    Checked,
    Critiqued,
    Decided,
    Decision,
    Drafted,
    Edit,
    Event,
    Failed,
    Gathered,
    ModelReplied,
    Reviewed,
    Revised,
    Route,
    Routed,
    Withheld,
)
from assay.core.run import Run
from assay.core.types import Answer, Block, Claim, Outcome, Shape
from assay.governance.review.visibility import redact_event, redact_run

SECRET = "the tower will be pulled down"
CLAIM = Claim(SECRET, ("e1",))
ANSWER = Answer("What of the tower?", (Block((CLAIM,)),), Outcome.answered)
ASKED = Asked("What of the tower?", "asker", "2026-01-01")
DRAFT: tuple[Event, ...] = (
    ModelReplied("write", "write", "m", "d", SECRET),
    ModelReplied("judge", "critique", "m", "d", SECRET),
    Drafted((Block((CLAIM,)),), Shape.prose),
    Checked(0, CLAIM),
    Revised(0, CLAIM),
    Critiqued(False, SECRET),
    Decided((Call("c1", "search", {"query": SECRET}),), SECRET, seeks=(0,)),
    Failed("Unverified", f"Nothing is delivered: “{SECRET}”"),
    AwaitingReview(ANSWER, "s", ("it was asked for",)),
    Reviewed(Decision.edit, "s", "reviewer", SECRET, (Edit(0, SECRET),)),
)


@pytest.mark.parametrize("event", DRAFT, ids=lambda event: type(event).__name__)
def test_nothing_of_the_draft_is_in_what_whoever_asked_is_shown(event: Event):
    assert SECRET in dumps(to_json(event))
    assert SECRET not in dumps(to_json(redact_event(event)))


def test_how_it_goes_is_shown_all_the_same():
    for event in (ASKED, Routed(Route.lookup, "one look"), Gathered(()), Decided((), "nothing left"), Failed("x", "y")):
        assert redact_event(event) is event


def test_the_note_of_a_rejection_is_shown_and_why_an_answer_waits():
    rejected = Reviewed(Decision.reject, "s", "reviewer", "It is not for us to say.")
    assert redact_event(rejected) is rejected
    shown = redact_event(AwaitingReview(ANSWER, "s", ("it was asked for",)))
    assert isinstance(shown, AwaitingReview) and (shown.seal, shown.reasons) == ("s", ("it was asked for",))


def test_a_run_is_seen_without_its_draft_until_it_is_delivered():
    from assay.core.events import Answered

    held = Run("r1", (ASKED, DRAFT[2], DRAFT[8]))
    assert isinstance(redact_run(held, watched=False).events[1], Withheld)
    assert redact_run(held, watched=False).held is not None
    delivered = held.then(Answered(ANSWER, "s"))
    assert redact_run(delivered, watched=False) is delivered
    plain = Run("r1", (ASKED, DRAFT[2]))
    assert redact_run(plain, watched=False) is plain
    assert redact_run(plain, watched=True).draft is None  # it may yet have to wait
