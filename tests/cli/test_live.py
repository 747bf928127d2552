"""The view of a run is a pure function of it; so is the line of each event. No terminal is needed."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

import pytest
from rich.console import Console

from assay.agent.toolbox import RULE_TOOLS
from assay.answer.compose import Statement
from assay.cli.run_view import ROWS, commands, question, rows_for, view
from assay.core.events import (
    KINDS,
    AccountChange,
    AccountChanged,
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
    DocumentEdited,
    DocumentMarked,
    Drafted,
    Edit,
    Erased,
    Event,
    Failed,
    FeedbackGiven,
    FeedbackKind,
    Found,
    Gathered,
    Granted,
    HistorySummarised,
    Judged,
    ModelReplied,
    Narrowed,
    Paused,
    Planned,
    Rephrased,
    Resumed,
    Reviewed,
    Revised,
    RoleModel,
    Route,
    Routed,
    SettingChanged,
    StepAnswered,
    Stopped,
    StopReason,
    ToolRan,
    Withheld,
)
from assay.core.events import synthesis as stages
from assay.core.events.describe import LONGEST, live_line, record_line
from assay.core.run import Run
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

TITLES = {"d1": "The lamp room"}
ROLE_MODELS = (RoleModel("route", "small"),)


def passage(n: int = 1) -> Passage:
    return Passage(f"p{n}", "d1", f"Words number {n}.", 0, 15, page=3)


def evidence(n: int = 1, score: float = 8.0) -> Evidence:
    return Evidence(f"k{n}", passage(n), Quote("d1", 0, 15, f"Words number {n}."), score, "?")


def found(*numbers: int) -> tuple[Found, ...]:
    return tuple(Found(passage(n), n, 1.0) for n in numbers)


HOLDS = Claim("It is orpiment.", ("k1",), Verdict.supported)
FAILS = Claim("It is gold.", ("k1",), Verdict.unsupported, "the quotation says otherwise")
EVENTS: tuple[Event, ...] = (
    Asked("Where is the paint ground?", "me", "2025-06-01", seats=ROLE_MODELS),
    ModelReplied("route", "route", "small", "r1", "{}", usage=Usage(1, 1_200, 300, 0.0123, 2.5)),
    HistorySummarised(6, "r0", "The person asked about paint.", by="recap@small"),
    Rephrased("Where is the paint ground?", "it stands alone"),
    Routed(Route.research, "two steps", by="route@small"),
    Planned(Plan((PlanStep("s1", "What paint?"), PlanStep("s2", "Where is {s1} ground?", ("s1",)))), by="plan@small"),
    Decided((Call("c1", "search", {"query": "paint"}), Call("c2", "get_document", {"document": "x"})), "as planned"),
    ToolRan("c1", found(1, 2, 3), left=4),
    ToolRan("c2", (), error="There is no document called 'x'."),
    Decided((Call("c3", "follow", {"name": "Dunmere"}), Call("c4", "follow", {"name": "Carrow"})), "names", hops=True),
    Gathered((evidence(1, 9.0), evidence(2, 4.0)), ("p3",), "weigh@small", inexact=("k2",)),
    Judged(False, ("the place",), "not yet", "judge@small"),
    StepAnswered("s1", "orpiment", ("k1",), "judge@small"),
    Compacted(("c1",), "one search"),
    Stopped(StopReason.sufficient, "enough"),
    Claimed(0, Claim("It is ground in Dunmere.", ("k1",)), side=True),
    Drafted((Block((HOLDS, FAILS)),), Shape.prose, by="write@small", missing=("when",), stray=("zz",)),
    Checked(0, HOLDS),
    Checked(1, FAILS, "check@small"),
    Revised(1, None, "nothing supports it", "revise@small"),
    Critiqued(False, "the year", by="critique@small"),
    Paused(Checkpoint.sources, "These are the sources.", ("answer now", "more sources")),
    Resumed("answer now", "", "me"),
    Answered(Answer("Where?", (Block((HOLDS,)),), Outcome.answered)),
    Failed("ModelError", "The endpoint is down."),
)  # fmt: skip
TRUST: tuple[Event, ...] = (
    AwaitingReview(Answer("Where?", (Block((HOLDS,)),), Outcome.answered), "5ea1" * 16, ("the sources disagree",)),
    Reviewed(Decision.edit, "5ea1" * 16, "reviewer", "too bold", (Edit(0, "It may be orpiment."),)),
    Narrowed(3, "a document is gone"),
    Erased("its document was erased", "owner", ("d1",), {"r1": (4, 5)}),
    Granted("d1", "user:reader", False, "owner"),
    AccountChanged("user:reader", AccountChange.groups, "boss", "desk, night"),
    SettingChanged("retention_days", "200", "365", "boss"),
    FeedbackGiven("r1", FeedbackKind.wrong, "reader", 0, "It is realgar."),
    DocumentEdited("d1", "owner", "Pigments of the north", "2024-05-01"),
    DocumentMarked("d1", "owner", True, ("north",)),
    Withheld("Drafted", "it may hold words of a document that you may not read"),
)


def upto(kind: type) -> Run:
    last = max(place for place, event in enumerate(EVENTS) if isinstance(event, kind))
    return Run("r1", EVENTS[: last + 1])


def shown(
    run: Run,
    titles: Mapping[str, str] = TITLES,
    width: int = 100,
    rows: int = ROWS,
    statements: Sequence[Statement] = (),
) -> str:
    screen = Console(file=io.StringIO(), width=width, force_terminal=False)
    screen.print(view(run, titles, 12.4, rows, {each.key: 3 for each in run.evidence}, statements))
    return screen.file.getvalue()  # pyright: ignore[reportAttributeAccessIssue]


# --- the view -------------------------------------------------------------------------------------------------------


def test_the_plan_gets_a_tick_where_a_step_has_its_answer():
    assert "  · What paint?\n  · Where is {s1} ground?" in shown(upto(Decided))
    assert "  ✓ What paint? → orpiment\n  · Where is orpiment ground?" in shown(upto(StepAnswered))


def test_searches_have_their_counts_and_names_that_are_followed_share_a_line():
    lines = shown(upto(Gathered))
    assert "✓ 3 found, 2 kept: “paint”" in lines
    assert "✗ get_document(document='x'): There is no document called 'x'." in lines
    assert "· following Dunmere, Carrow" in lines


def test_evidence_has_its_score_its_title_and_its_page_the_best_first():
    lines = shown(upto(Gathered)).splitlines()
    at = lines.index("Evidence")
    assert lines[at + 1].strip() == "9.0 The lamp room, page 3: “Words number 1.”" and lines[at + 2].strip().startswith(
        "4.0"
    )


def test_statements_are_ticked_as_they_pass_and_the_others_have_a_placeholder():
    drawn = shown(upto(Checked), statements=(Statement(0, HOLDS), Statement(1, None)))
    assert "  ✓ It is orpiment.\n  · being checked" in drawn and "It is gold." not in drawn


def test_the_claims_of_a_delivered_run_have_their_verdicts():
    answered = next(event for event in EVENTS if isinstance(event, Answered))
    drawn = shown(Run("r1", (*upto(Checked).events, answered)))
    assert "✓ It is orpiment." in drawn and "✗ It is gold. (the quotation says otherwise)" in drawn


def test_the_last_line_says_what_is_going_on_and_what_it_took():
    assert (
        shown(upto(Planned)).splitlines()[-1] == "deciding what to do next · 1 request · 1,500 tokens · $0.0123 · 12 s"
    )
    without = Run("r1", (Asked("?", "me", "2025-06-01"),))
    assert shown(without).splitlines()[-1] == "looking at the question · 12 s"


def test_every_prefix_of_a_run_can_be_drawn():
    for end in range(1, len(EVENTS) + 1):
        assert shown(Run("r1", EVENTS[:end]))


def test_a_long_run_fits_on_a_small_screen():
    steps = tuple(PlanStep(f"s{n}", f"Part {n}?") for n in range(40))
    many = [EVENTS[0], EVENTS[2], Planned(Plan(steps))]
    for n in range(60):
        many += [Decided((Call(f"c{n}", "search", {"query": "long " * 80}),), ""), ToolRan(f"c{n}", found(n))]
    many += [Gathered(tuple(evidence(n) for n in range(60)))]
    many += [Stopped(StopReason.rounds), Drafted((Block((HOLDS,) * 30),), Shape.list)]
    many += [Checked(n, HOLDS) for n in range(30)]
    for height in (16, 24, 32, 50):
        drawn = shown(Run("r1", tuple(many)), width=80, rows=rows_for(height)).splitlines()
        assert len(drawn) < height and max(map(len, drawn)) <= 80


def test_nothing_in_a_view_steers_the_terminal():
    bad = "\x1b[2J\x1b]0;owned\x07\n\r"
    claim = Claim(f"Claim {bad}", ("k1",), Verdict.unsupported, bad)
    events = (
        Asked(f"Question {bad}", "me", "2025-06-01", seats=ROLE_MODELS),
        Routed(Route.research, bad),
        Planned(Plan((PlanStep("s1", bad), PlanStep("s2", bad)))),
        StepAnswered("s1", bad, ()),
        Decided((Call("c1", "search", {"query": bad}), Call("c2", "follow", {"name": bad})), bad),
        ToolRan("c1", found(1)),
        ToolRan("c2", (), error=bad),
        Gathered((Evidence("k1", passage(), Quote("d1", 0, 1, bad), 5.0, "?"),)),
        Stopped(StopReason.sufficient),
        Drafted((Block((claim,)),), Shape.prose),
        Checked(0, claim),
    )
    told = [Statement(0, claim), Statement(1, None)]
    drawn = shown(Run("r1", events), {"d1": f"Title {bad} [bold]x[/bold]"}, statements=told)
    assert "\x1b" not in drawn and "\x07" not in drawn and "[bold]x[/bold]" in drawn
    assert len(drawn.splitlines()) == 14


# --- the line of an event -------------------------------------------------------------------------------------------


def test_every_kind_of_event_has_a_line_in_the_record():
    of_a_synthesis = {kind.__name__ for kind in vars(stages).values() if kind in KINDS.values()}
    every = (*EVENTS, *TRUST)
    assert {type(event).__name__ for event in every} == KINDS.keys() - of_a_synthesis  # those: test_progress.py
    for event in every:
        assert record_line(event) and "\n" not in record_line(event)


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        (ModelReplied, "route: choose how to answer · small · 1,200 + 300 tokens · $0.0123 · 2.5 s"),
        (Asked, "Where is the paint ground? · mode balanced · eagerness normal · small"),
        (Gathered, "2 kept · best 9.0 · 1 dropped · 1 not quoted exactly · weigh@small"),
        (Judged, "not enough · missing: the place · not yet · judge@small"),
        (StepAnswered, "s1 = orpiment · from k1 · judge@small"),
        (Drafted, "2 claims · prose · missing: when · 1 invented key removed · write@small"),
        (Claimed, "claim 0: It is ground in Dunmere. · cites a side of a conflict"),
        (Revised, "claim 1: dropped · nothing supports it · revise@small"),
        (Resumed, "answer now · by me"),
        (Failed, "ModelError · The endpoint is down."),
    ],
)
def test_a_line_says_what_happened(kind: type, line: str):
    assert record_line(next(event for event in EVENTS if isinstance(event, kind))) == line


def test_a_long_event_is_still_one_line():
    assert len(record_line(Stopped(StopReason.rounds, "why\n" * 500))) == LONGEST


def test_whoever_watches_without_a_screen_is_told_what_matters():
    lines = [line for event in EVENTS if (line := live_line(event))]
    assert "Route: research (two steps)." in lines and "Searching: paint\nget_document(document='x')" in lines
    assert "Following: Dunmere\nFollowing: Carrow" in lines and "  s1 found: orpiment" in lines


@pytest.mark.parametrize("tool", ["read_rows", "catalogue"])
def test_a_call_of_the_rules_is_shown_in_words(tool: str):
    assert tool in RULE_TOOLS
    line = live_line(Decided((Call("c1", tool, {"document": "d1", "rows": "120-184"}),), ""))
    assert line and "d1" not in line and "(" not in line


# --- a checkpoint ---------------------------------------------------------------------------------------------------


def test_a_checkpoint_shows_the_sources_and_numbers_the_options():
    paused = upto(Paused)
    asked = question(paused, TITLES, {each.key: 3 for each in paused.evidence})
    assert asked[1] == "   9.0  The lamp room, page 3: “Words number 1.”" and asked[-2:] == [
        "  1. answer now",
        "  2. more sources",
    ]


def test_the_commands_that_answer_it_later_hold_nothing_that_a_model_wrote():
    paused = Paused(Checkpoint.reading, "Which?", ('"; rm -rf ~; "', "other words"))
    run = Run("r1", (EVENTS[0], paused))
    assert commands(run, "assay resume r1") == [
        "assay resume r1 --choose 1",
        "assay resume r1 --choose 2 --words WORDS",
    ]
