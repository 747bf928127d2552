"""The views of a run that grows event by event are those of its events."""

from __future__ import annotations

from functools import cached_property
from typing import get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from assay.core.events import (
    OTHER_WORDS,
    SEARCH_MORE,
    Answered,
    Asked,
    AwaitingReview,
    Call,
    Checked,
    Checkpoint,
    Claimed,
    Compacted,
    Critiqued,
    Decided,
    Decision,
    Drafted,
    Edit,
    Event,
    Failed,
    Found,
    Gathered,
    HistorySummarised,
    Judged,
    ModelReplied,
    Narrowed,
    PassagesChosen,
    Paused,
    Planned,
    Rephrased,
    Resumed,
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
from assay.core.run import _CHANGED_BY, Run
from assay.core.types import (
    Answer,
    Block,
    Claim,
    Evidence,
    Outcome,
    Passage,
    Plan,
    PlanStep,
    Quote,
    Shape,
    Usage,
    Verdict,
)

VIEWS = [name for name, each in vars(Run).items() if isinstance(each, cached_property)]


def passage(number: int) -> Passage:
    return Passage(f"p{number}", f"d{number % 2}", f"Valve {number} was closed.", 0, 19)


def found(*numbers: int) -> tuple[Found, ...]:
    return tuple(Found(passage(number), rank, 1 / (1 + rank)) for rank, number in enumerate(numbers))


def evidence(number: int, score: float) -> Evidence:
    where = passage(number)
    return Evidence(f"k{number}", where, Quote(where.doc_id, 0, 19, where.text), score, "When?")


def claim(words: str, verdict: Verdict = Verdict.supported) -> Claim:
    return Claim(words, ("k1",), verdict=verdict, why="because")


def call(number: int) -> Call:
    return Call(f"c{number}", "search", {"query": f"valves {number}"})


ANSWER = Answer("When?", (Block((claim("One."),)),), Outcome.answered)
EVENTS: list[Event] = [
    HistorySummarised(1, "r0", "They spoke of valves."),
    Rephrased("When were the valves closed?"),
    Routed(Route.research, "", since="2026-01-01", every=True, readings=("a", "b")),
    Routed(Route.lookup, ""),
    ModelReplied("judge", "judge", "m", "x", "{}", usage=Usage(1, 2, 3)),
    ModelReplied("judge", "judge", "m", "y", "{}", usage=Usage(1, 2, 3)),
    Planned(Plan((PlanStep("s1", "When?"),))),
    Decided((call(1), call(2)), ""),
    Decided((call(3),), "", hops=True),
    Decided((), "nothing is left"),
    Decided((), "", seeks=(0,)),
    Decided((call(4),), "", recalls=True),
    ToolRan("c1", found(1, 2, 3)),
    ToolRan("c2", (), documents=("d1",), left=2),
    ToolRan("c3", found(3, 4), whole=("d0",)),
    PassagesChosen("q1", found(5), 1, "late"),
    Gathered((evidence(1, 8), evidence(3, 9)), skipped=("p2",)),
    Gathered((evidence(1, 3),), dropped=("p4",)),
    Judged(False, ("more",)),
    Judged(True),
    StepAnswered("s1", "May", ("k1",)),
    Compacted(("c1",), "One was closed."),
    Stopped(StopReason.rounds),
    Claimed(0, claim("One.")),
    Claimed(1, claim("Other.")),
    Drafted((Block((claim("One."), claim("Two."))),), Shape.prose),
    Checked(0, claim("One.")),
    Checked(1, claim("Two.", Verdict.unsupported)),
    Revised(1, claim("Half.")),
    Revised(0),
    Critiqued(False, "who signed"),
    Critiqued(True),
    Critiqued(False, final=True),
    Paused(Checkpoint.reading, "Which?", ("a", "b")),
    Resumed("a"),
    Resumed(sorted(SEARCH_MORE)[0]),
    Resumed(OTHER_WORDS, "other words"),
    AwaitingReview(ANSWER, "seal", ("it matters",)),
    Reviewed(Decision.approve, "seal", "ada"),
    Reviewed(Decision.reject, "seal", "ada"),
    Reviewed(Decision.edit, "seal", "ada", edits=(Edit(0, "Uno."), Edit(1))),
    Answered(ANSWER),
    Failed("ModelError", "gone"),
    Withheld("Answered", "erased"),
    Narrowed(1),
]


@settings(max_examples=25)
@given(st.lists(st.sampled_from(EVENTS), max_size=14))
def test_views_kept_from_shorter_runs_are_those_of_the_events(events: list[Event]):
    run = Run("r1", (Asked("When?", "ada", "2026-01-02"),))
    for event in events:
        kept = {name: getattr(run, name) for name in VIEWS}
        run = run.then(event)
        whole = Run(run.id, run.events)
        assert {name: getattr(run, name) for name in VIEWS} == {name: getattr(whole, name) for name in VIEWS}, kept


def test_every_kind_of_event_that_a_view_names_is_tried():
    tried = {type(event) for event in EVENTS}
    assert tried <= set(get_args(Event))
    assert {kind for kinds in _CHANGED_BY.values() for kind in kinds} <= tried


def test_a_view_that_no_event_changes_is_not_computed_again():
    run = Run("r1", (Asked("When?", "ada", "2026-01-02"), ToolRan("c1", found(1, 2))))
    before = run.found
    assert run.then(Judged(True)).found is before
    assert run.then(ToolRan("c2", found(3))).found is not before
