"""kill -9 at events and replies of a synthesis: it is carried on to the same account, and nothing recorded is asked again."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import forked
import pytest
from asking import begun, hasty
from beacon import requests, serving
from doubles import ChatServer, synthesis_model
from notes import filled

from assay.core.synthesis import Synthesis
from assay.core.types import Usage
from assay.store.runs import budgets, records
from assay.workspace.facade import Workspace, open_workspace

KILLS = 25 if os.environ.get("ASSAY_SOAK") else 14  # `make soak` takes its time
AT_ONCE = 4  # requests that a run makes side by side, at most
CHILD = Path(__file__).with_name("asking.py")
PAPERS = {
    "gate": "The gate was built in 1998. It is lifted by a ram. The ram stands in a dry chamber below the quay.",
    "seal": "The gate was built in 2003. The ram leaks oil at its seal. Inspectors replace the seal every year.",
    "silt": "Silt settles in the basin. The gate flushes silt at spring tides. Dredging does the rest of the work.",
}


def opened(folder: Path, server: ChatServer, key: str) -> Workspace:
    return hasty(open_workspace(folder, llm_base_url=server.url, llm_model="scripted", llm_api_key=key))


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with serving(synthesis_model()) as running:
        yield running


def timeless(account: Synthesis) -> Synthesis:
    """The account without what differs from run to run: its name, and the seconds it took."""
    return replace(account, run="", usage=Usage(), narrative=replace(account.narrative, usage=Usage()))


@pytest.mark.kill
@pytest.mark.timeout(240)
def test_kill_9_at_events_and_replies_of_a_synthesis_changes_nothing_in_its_account(tmp_path: Path, server: ChatServer):
    folder = tmp_path / "workspace"
    asyncio.run(filled(folder, PAPERS))
    command = [sys.executable, CHILD, folder, server.url, "synthesise"]
    parent = forked.Process(command, stdin=forked.PIPE, stdout=forked.PIPE, text=True)
    try:
        asyncio.run(_killed_and_carried_on(parent, folder, server))
    finally:
        parent.kill()
        parent.wait()


async def _killed_and_carried_on(parent: Any, folder: Path, server: ChatServer) -> None:
    with opened(folder, server, "whole") as workspace:
        whole = [run async for run, _ in begun("synthesise", workspace)][-1]
        account = workspace.syntheses.account(whole.id)
    replies = len(whole.consulted)
    assert replies == requests(server, "whole") > 6
    assert parent.stdout.readline().strip() == "ready"
    killed, after = 0, set[str]()

    # The points are spread over the whole run: half of them at events, half at replies that are not recorded yet.
    half = KILLS // 2
    points = [f"event {1 + n * (len(whole.events) - 2) // half}" for n in range(half)]
    points += [f"reply {1 + n * (replies - 1) // half}" for n in range(KILLS - half)]

    def start(trial: int) -> None:
        """One more process begins, while the one before is looked at."""
        if trial < KILLS:
            parent.stdin.write(f"{points[trial]} asked-{trial}\n")

    start(0)
    with opened(folder, server, "again") as workspace:
        for trial in range(KILLS):
            word, run_id = parent.stdout.readline().split()
            start(trial + 1)
            asked_before = requests(server, "again")
            before = workspace.questions.run(run_id)
            run = before if before.delivered else [each async for each, _ in workspace.resume(run_id)][-1]
            assert run.events[: len(before.events)] == before.events
            assert timeless(workspace.syntheses.account(run_id)) == timeless(account), before.kinds
            assert not list(records.faults(workspace.store, run_id))
            first, again = requests(server, f"asked-{trial}"), requests(server, "again") - asked_before
            assert again == replies - len(before.consulted), before.kinds  # what is recorded is not asked again
            assert 0 <= first - len(before.consulted) <= AT_ONCE
            assert budgets.spent_by_run(workspace.store, run_id).calls >= first + again
            killed += word == "killed"
            after.add(before.kinds[-1])
    assert killed == KILLS and len(after) > 6, (killed, after)
