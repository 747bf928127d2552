"""A run that is followed on the terminal, and a person who stops it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import typer

from assay.cli.follow import OutputFormat, Show, follow
from assay.core.events import Answered, Asked, Event
from assay.core.run import Run
from assay.core.types import Answer, Outcome
from assay.workspace.facade import Workspace

ASKED = Asked("What?", "local", "2026-01-01")
ANSWERED = Answered(Answer("What?", (), Outcome.abstained))
QUIET = Show(OutputFormat.text, json=False, quiet=True, again="")


async def stopped_after(*events: Event) -> AsyncIterator[tuple[Run, Event]]:
    run = Run("r1", ())
    for event in events:
        run = run.then(event)
        yield run, event
    raise KeyboardInterrupt


def test_who_stops_a_run_in_the_moment_it_is_answered_gets_the_answer(empty: Workspace):
    assert follow(empty, stopped_after(ASKED, ANSWERED), QUIET).answer == ANSWERED.answer


def test_who_stops_a_run_before_that_is_told_how_to_carry_it_on(empty: Workspace, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(typer.Exit) as stopped:
        follow(empty, stopped_after(ASKED), QUIET)
    assert stopped.value.exit_code == 130
    assert "`assay resume r1` carries it on" in capsys.readouterr().err
