"""Whoever asked sees how a run goes, and nothing of an answer that a reviewer has to look at first."""

from __future__ import annotations

import pytest

from assay.core.codec import dumps, to_json
from assay.core.events import (
    Asked,
    AwaitingReview,
    Call,
    Checked,
    Checkpoint,
    Compacted,
    Critiqued,
    Decided,
    Decision,
    Described,
    Drafted,
    Edit,
    Event,
    Failed,
    Found,
    Gathered,
    HistorySummarised,
    Judged,
    ModelReplied,
    Paused,
    Planned,
    Questioned,
    Rephrased,
    Reviewed,
    Revised,
    Route,
    Routed,
    StepAnswered,
    Stopped,
    StopReason,
    ToolRan,
    Withheld,
)
from assay.core.run import Run
from assay.core.synthesis import Portrait
from assay.core.types import Answer, Block, Claim, Evidence, Outcome, Passage, Plan, PlanStep, Quote, Shape
from assay.governance.reviewing import progress_line, redact_event, redact_run

SECRET = "the tower will be pulled down"
CLAIM = Claim(SECRET, ("e1",))
ANSWER = Answer("What of the tower?", (Block((CLAIM,)),), Outcome.answered)
ASKED = Asked("What of the tower?", "asker", "2026-01-01")
DRAFTED = Drafted((Block((CLAIM,)),), Shape.prose)
HELD = AwaitingReview(ANSWER, "s", ("it was asked for",))
OTHERS: tuple[Event, ...] = (
    Rephrased(SECRET, SECRET, "standalone@m"),
    HistorySummarised(6, "r0", SECRET, by="recap@m"),
    Planned(Plan((PlanStep("s1", SECRET, query=SECRET),)), by="plan@m"),
    Decided((Call("c1", "search", {"query": SECRET}),), SECRET),
    ToolRan("c1", (), SECRET),
    Judged(False, (SECRET,), SECRET, "judge@m"),
    StepAnswered("s1", SECRET, ("e1",)),
    Compacted(("c1",), SECRET),
    Stopped(StopReason.sufficient, SECRET),
    Routed(Route.research, SECRET, readings=(SECRET,), by="route@m"),
    Paused(Checkpoint.reading, "Which is meant?", (SECRET, "each")),
)
SYNTHESIS: tuple[Event, ...] = (
    Described(Portrait("d1", SECRET)),
    Questioned((SECRET,), "d1"),
)
DRAFT: tuple[Event, ...] = (
    *OTHERS,
    *SYNTHESIS,
    ModelReplied("route", "route", "m", "d", SECRET),
    ModelReplied("write", "write", "m", "d", SECRET),
    ModelReplied("judge", "critique", "m", "d", SECRET),
    DRAFTED,
    Checked(0, CLAIM),
    Revised(0, CLAIM),
    Critiqued(False, SECRET),
    Decided((Call("c1", "search", {"query": SECRET}),), SECRET, seeks=(0,)),
    Failed("Unverified", f"Nothing is delivered: “{SECRET}”"),
    HELD,
    Reviewed(Decision.edit, "s", "reviewer", SECRET, (Edit(0, SECRET),)),
)


@pytest.mark.parametrize("event", DRAFT, ids=lambda event: type(event).__name__)
def test_nothing_of_the_draft_is_in_what_whoever_asked_is_shown(event: Event):
    assert SECRET in dumps(to_json(event))
    assert SECRET not in dumps(to_json(redact_event(event)))


def test_how_it_goes_is_shown_all_the_same():
    for event in (ASKED, Failed("x", "y"), Routed(Route.lookup, "")):
        assert redact_event(event) == event
    passage = Passage("p1", "d1", SECRET, 0, len(SECRET))
    evidence = Evidence("e1", passage, Quote("d1", 0, 3, "the"), 8.0, "?", SECRET)
    found = ToolRan("c1", (Found(passage, 1, 1.0),))
    weighed = Gathered((evidence,), ("p2", "p3"))
    assert [redact_event(each).progress for each in (found, weighed)] == ["1 passage found", "3 passages weighed"]
    run = Run("r1", (ASKED, Decided((Call("c1", "search", {"query": SECRET}),), "first"), found, weighed))
    assert progress_line(run) == "Searched once, 3 passages weighed."


def test_every_kind_of_event_that_is_not_known_to_be_harmless_is_not_shown():
    """An event that is added later is withheld until somebody says that it may be shown."""
    shown = {"Asked", "Routed", "ModelReplied", "Stopped", "Paused", "Resumed", "AwaitingReview", "Reviewed"}
    shown |= {"Failed", "Narrowed", "Granted", "Withheld"}
    events = {type(event).__name__: event for event in (*OTHERS, *SYNTHESIS)}
    for kind, event in events.items():
        assert isinstance(redact_event(event), Withheld) is (kind not in shown), kind


def test_the_note_of_a_rejection_is_shown_and_why_an_answer_waits():
    rejected = Reviewed(Decision.reject, "s", "reviewer", "It is not for us to say.")
    assert redact_event(rejected) is rejected
    shown = redact_event(AwaitingReview(ANSWER, "s", ("it was asked for",)))
    assert isinstance(shown, AwaitingReview) and (shown.seal, shown.reasons) == ("s", ("it was asked for",))


def test_a_run_is_seen_without_its_draft_until_it_is_delivered():
    from assay.core.events import Answered

    held = Run("r1", (ASKED, DRAFTED, HELD))
    assert isinstance(redact_run(held, watched=False).events[1], Withheld)
    assert redact_run(held, watched=False).held is not None
    delivered = held.then(Answered(ANSWER, "s"))
    assert redact_run(delivered, watched=False) is delivered
    plain = Run("r1", (ASKED, DRAFTED))
    assert redact_run(plain, watched=False) is plain
    assert redact_run(plain, watched=True).draft is None  # it may yet have to wait
