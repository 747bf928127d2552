"""Replay knows every event: it is made again, taken as recorded, or progress of the run."""

from __future__ import annotations

from pathlib import Path

import pytest
from doubles import ChatServer, Script, enough, keeps, lookup, supported, writes
from notes import folder_of, opened

from assay.core.events import Mode, Routed
from assay.governance import replay

TALL = "The tower of the lighthouse at Carrow Point is 31 metres tall."
folder = folder_of({"tower": f"{TALL} It leans a little."})


def test_no_event_is_in_two_groups():
    groups = (set(replay.STEP_OF), set(replay.TAKEN), set(replay.ASIDE))
    assert sum(map(len, groups)) == len(set().union(*groups))


async def test_an_event_that_no_group_names_is_made_again_by_the_step_that_the_loop_names(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    script = Script(
        route=lookup(), weigh=keeps(TALL), judge=enough(), write=writes(f"{TALL} [{{31 metres}}]"), check=supported()
    )
    with ChatServer(script.answer) as server, opened(folder, server) as workspace:
        run = [run async for run, _ in workspace.ask("How tall is the tower?", mode=Mode.quick)][-1]
        others = {kind: step for kind, step in replay.STEP_OF.items() if kind is not Routed}
        monkeypatch.setattr(replay, "STEP_OF", others)
        assert (await workspace.questions.replay(run)).differences == ()
        monkeypatch.setattr(replay, "next_step", lambda run, limits: replay.Step.PLAN)
        assert (await workspace.questions.replay(run)).differences != ()
