"""Whatever ends first, and in whatever order a set has its members: a synthesis goes the same way."""

from __future__ import annotations

from pathlib import Path

import pytest
from doubles import ChatServer
from doubles.synthesis_replies import synthesis_model
from quay import fill, opened, synthesised, wish
from wharf import opened as opened_documents

from assay.core.events import Checked, Drafted
from assay.core.run import Run
from assay.core.types import Block, Claim, Shape, Verdict
from assay.governance.replay import replay
from assay.synthesis.render import markdown
from assay.workspace.services.ask import run_context_for

WRONG = [Claim(f"Claim {n}.", ("k",), Verdict.unsupported) for n in range(3)]


def test_claims_that_do_not_hold_are_revised_in_reading_order_whichever_verdict_came_first():
    run = opened_documents().then(Drafted((Block(tuple(WRONG)),), Shape.prose))
    for place in (2, 0, 1):
        run = run.then(Checked(place, WRONG[place]))
    assert [place for place, _ in run.unsupported] == [0, 1, 2]


@pytest.mark.long
async def test_a_replay_does_not_mind_in_which_order_verdicts_came(tmp_path: Path):
    await fill(tmp_path / "w")
    with ChatServer(synthesis_model(), window=8192) as server, opened(tmp_path / "w", server) as workspace:
        run = await synthesised(workspace, wish(questions=1))
        events = list(run.events)
        (first, second, *_) = [place for place, event in enumerate(events) if isinstance(event, Checked)]
        events[first], events[second] = events[second], events[first]
        turned = Run(run.id, tuple(events))
        assert turned.checked == run.checked
        assert (await replay(turned, await run_context_for(workspace.context, turned))).differences == ()


@pytest.mark.long
async def test_a_digest_is_the_same_in_any_workspace_apart_from_ids_and_dates(tmp_path: Path):
    texts: list[str] = []
    for name in ("one", "other"):
        await fill(tmp_path / name)
        with opened(tmp_path / name) as workspace:
            run = await synthesised(workspace, wish())
            account = workspace.syntheses.account(run.id)
            texts.append(markdown(account).replace(run.id, "RUN"))
    assert texts[0] == texts[1] and "sluice" in texts[0]
