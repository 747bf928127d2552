"""The view of a synthesis is a pure function of its run; so is the line of each event."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console
from synthesised import BRIEF, CONTRADICTION, EARLIER, EVENTS, WHOLE, evidence, upto

from assay.cli.run_view import ROWS, rows_for
from assay.cli.synthesis_view import doing, line, view
from assay.core.events import (
    KINDS,
    Asked,
    Checked,
    Covered,
    Described,
    Event,
    Gathered,
    InsightsDrawn,
    Paired,
    PassagesChosen,
    Related,
    SpineWritten,
    Translated,
)
from assay.core.events.describe import Family, describe, record_line
from assay.core.run import Run
from assay.core.synthesis import Brief, Pipeline, Portrait


def shown(run: Run, width: int = 100, rows: int = ROWS) -> str:
    screen = Console(file=io.StringIO(), width=width, force_terminal=False)
    screen.print(view(run, 12.4, rows))
    return screen.file.getvalue()  # pyright: ignore[reportAttributeAccessIssue]


def test_every_stage_says_how_far_it_is():
    drawn = shown(upto(Described))
    assert "Synthesis of 2 documents: the boiler" in drawn
    assert "✓ describe: 2 of 2" in drawn and "· read" in drawn and "· translate" in drawn
    drawn = shown(upto(Covered))
    assert "✓ read: 2 of 2, 2 points" in drawn
    drawn = shown(upto(SpineWritten))
    assert "✓ compare: 1 contradiction" in drawn and "✓ plan: 1 paragraph" in drawn
    assert "2 of 3 hold" in shown(upto(Checked))


def test_a_summary_has_no_plan():
    brief = replace(BRIEF, pipeline=Pipeline.summary)
    drawn = shown(Run("r1", (Asked("?", "me", "2026-01-01", brief=brief), *EVENTS[2:4])))
    assert "Summary of 2 documents" in drawn and "plan" not in drawn and "narrate" in drawn


def test_every_document_has_a_line_with_what_was_found_in_it():
    drawn = shown(upto(InsightsDrawn))
    assert "D1 (1 passage, 1 point) Log of the boiler house" in drawn and "D2 (1 passage, 1 point)" in drawn


def test_many_documents_have_a_sign_each():
    ids = tuple(f"x{n}" for n in range(70))
    brief = Brief(Pipeline.synthesis, ("d1", *ids))
    portraits = tuple(Described(Portrait(doc, f"Title {doc}")) for doc in ("d1", *ids[:5]))
    run = Run(
        "r1", (Asked("?", "me", "2026-01-01", brief=brief), *portraits, Gathered((evidence("d1"),), question="q1"))
    )
    drawn = shown(run).splitlines()
    assert f"  ◐{'○' * 5}{'·' * 54}" in drawn and f"  {'·' * 11}" in drawn


def test_relations_are_shown_with_their_labels_and_contradictions_first():
    assert "contradiction D1–D2: weekly against yearly" in shown(upto(Related))


def test_the_last_line_says_what_is_going_on_and_what_it_took():
    assert (
        shown(upto(Described)).splitlines()[-1]
        == "reading D1 Log of the boiler house · 1 request · 1,500 tokens · $0.0123 · 12 s"
    )
    order = [doing(upto(kind)) for kind in (Described, Covered, Paired, SpineWritten, Checked)]
    assert order == [
        "reading D1 Log of the boiler house",
        "comparing documents",
        "planning the text",
        "writing",
        "telling it for other readers",
    ]
    assert doing(WHOLE) == "answered"


def test_every_prefix_of_a_synthesis_can_be_drawn_on_a_small_screen():
    for height in (16, 24, 40):
        for end in range(1, len(EVENTS) + 1):
            drawn = shown(Run("r1", EVENTS[:end]), width=80, rows=rows_for(height)).splitlines()
            assert len(drawn) < height and max(map(len, drawn)) <= 80


def test_nothing_in_a_view_steers_the_terminal():
    bad = "\x1b[2J\x1b]0;owned\x07\n"
    brief = replace(BRIEF, focus=f"focus {bad}")
    relation = replace(CONTRADICTION, reason=f"reason {bad}")
    run = Run(
        "r1",
        (
            Asked("?", "me", "2026-01-01", brief=brief),
            Described(Portrait("d1", f"Title {bad}[bold]x[/bold]")),
            Related(0, (relation,)),
        ),
    )
    drawn = shown(run)
    assert "\x1b" not in drawn and "\x07" not in drawn and "[bold]x[/bold]" in drawn


# --- lines ----------------------------------------------------------------------------------------------------------


def said(kind: type) -> str:
    """What is said of the first event of a kind, when it happens."""
    place = next(place for place, event in enumerate(EVENTS) if isinstance(event, kind))
    return line(Run("r1", EVENTS[: place + 1]), EVENTS[place])


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Asked, "Synthesis of 2 documents: the boiler."),
        (Described, "Described 1 of 2: D1 Log of the boiler house"),
        (InsightsDrawn, "Read 1 of 2: D1 (1 point)"),
        (Covered, "2 of 2 documents have evidence; D2 read again."),
        (Paired, "2 sentences were held against each other by rule."),
        (SpineWritten, "Theme: How the boiler is kept"),
        (Translated, "Told for plain: grade 12 before, 7 after."),
    ],
)
def test_whoever_watches_without_a_screen_is_told_stage_and_document(kind: type, words: str):
    assert said(kind) == words


def test_a_claim_that_holds_needs_no_line_and_one_that_does_not_has_one():
    lines = [line(WHOLE, event) for event in EVENTS if isinstance(event, Checked)]
    assert lines == ["", "", "  unsupported: The boiler is blue."]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Asked, "the boiler · synthesis of 2 documents · for expert, plain · large"),
        (Described, "d1 · Log of the boiler house · A. Writer · 2020 · rules"),
        (PassagesChosen, "d1 · 1 of 4 passages read · read in part"),
        (Covered, "2 of 2 documents with evidence · 1 asked about again"),
        (InsightsDrawn, "d1 · 1 insight · read@large"),
        (Paired, "2 sentences were held against each other by rule."),
        (SpineWritten, "How the boiler is kept · relate@large"),
        (Translated, "for plain · 1 paragraph · grade 12 before, 7 after · rules"),
    ],
)
def test_every_event_of_a_synthesis_has_a_line_in_the_record(kind: type, words: str):
    assert record_line(next(event for event in EVENTS if isinstance(event, kind))) == words


def test_what_earlier_versions_recorded_has_a_line_too():
    assert [record_line(event) for event in EARLIER] == [
        "d1 · How often is the boiler inspected?; Who inspects it? · questions@large",
        "q1 · 2 insights · 1 quoted instead · insights@large",
        "1 pair compared · 3 left out · of each question",
        "How the boiler is kept · 1 sentence · spine@large",
    ]


def test_no_kind_of_event_is_without_a_line():
    from test_live import EVENTS as OTHERS
    from test_live import TRUST

    every: tuple[Event, ...] = (*EVENTS, *EARLIER, *OTHERS, *TRUST)
    assert {type(event).__name__ for event in every} == KINDS.keys()
    assert all(record_line(event) and "\n" not in record_line(event) for event in every)


def test_every_kind_of_event_has_a_title_and_a_family():
    from test_live import EVENTS as OTHERS
    from test_live import TRUST

    for event in (*EVENTS, *EARLIER, *OTHERS, *TRUST):
        described = describe(event)
        assert described.title and described.line == record_line(event) and described.family in Family
