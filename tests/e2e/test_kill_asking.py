"""kill -9 at events and replies of a run: it is carried on to the same end, and nothing that is recorded is asked again."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import forked
import pytest
from asking import begun, hasty
from beacon import NOTES, model, requests, serving
from doubles import ChatServer, synthesis_model
from notes import filled

from assay.core.synthesis import Synthesis
from assay.core.types import Answer, Usage
from assay.store.runs import budgets, records
from assay.workspace.facade import Workspace, open_workspace

SOAK = bool(os.environ.get("ASSAY_SOAK"))  # `make soak` takes its time; each durable write has its own test
AT_ONCE = 4  # requests that a run makes side by side, at most
CHILD = Path(__file__).with_name("asking.py")
PAPERS = {
    "gate": "The gate was built in 1998. It is lifted by a ram. The ram stands in a dry chamber below the quay.",
    "seal": "The gate was built in 2003. The ram leaks oil at its seal. Inspectors replace the seal every year.",
    "silt": "Silt settles in the basin. The gate flushes silt at spring tides. Dredging does the rest of the work.",
}


def opened(folder: Path, server: ChatServer, key: str) -> Workspace:
    return hasty(open_workspace(folder, llm_base_url=server.url, llm_model="scripted", llm_api_key=key))


def answer_of(workspace: Workspace, run_id: str) -> Answer:
    """The answer, without what it cost."""
    answer = workspace.questions.run(run_id).answer
    assert answer is not None
    return replace(answer, usage=Usage())


def account_of(workspace: Workspace, run_id: str) -> Synthesis:
    """The account, without what differs from run to run: its name, and the seconds it took."""
    account = workspace.syntheses.account(run_id)
    return replace(account, run="", usage=Usage(), narrative=replace(account.narrative, usage=Usage()))


@pytest.mark.kill
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("work", "texts", "scripted", "ended", "kills", "least_replies"),
    [
        ("ask", NOTES, lambda: model().answer, answer_of, 100 if SOAK else 20, 5),
        ("synthesise", PAPERS, synthesis_model, account_of, 25 if SOAK else 14, 6),
    ],
    ids=["ask", "synthesise"],
)
def test_kill_9_at_events_and_replies_changes_nothing_in_what_comes_out(
    tmp_path: Path,
    work: str,
    texts: dict[str, str],
    scripted: Callable[[], Any],
    ended: Callable[[Workspace, str], Any],
    kills: int,
    least_replies: int,
):
    folder = tmp_path / "workspace"
    asyncio.run(filled(folder, texts))
    with serving(scripted()) as server:
        parent = forked.Process(
            [sys.executable, CHILD, folder, server.url, work], stdin=forked.PIPE, stdout=forked.PIPE, text=True
        )
        try:
            asyncio.run(_killed_and_carried_on(parent, folder, server, work, ended, kills, least_replies))
        finally:
            parent.kill()
            parent.wait()


async def _killed_and_carried_on(
    parent: Any,
    folder: Path,
    server: ChatServer,
    work: str,
    ended: Callable[[Workspace, str], Any],
    kills: int,
    least_replies: int,
) -> None:
    with opened(folder, server, "whole") as workspace:
        whole = [run async for run, _ in begun(work, workspace)][-1]
        expected = ended(workspace, whole.id)
    replies = len(whole.consulted)
    assert replies == requests(server, "whole") > least_replies
    assert parent.stdout.readline().strip() == "ready"
    killed, lost, after = 0, 0, set[str]()

    # The points are spread over the whole run: half of them at events, half at replies that are not recorded yet.
    half = kills // 2
    points = [f"event {1 + n * (len(whole.events) - 2) // half}" for n in range(half)]
    points += [f"reply {1 + n * (replies - 1) // half}" for n in range(kills - half)]

    def start(trial: int) -> None:
        """One more process begins, while the one before is looked at."""
        if trial < kills:
            parent.stdin.write(f"{points[trial]} asked-{trial}\n")

    start(0)
    with opened(folder, server, "again") as workspace:
        for trial in range(kills):
            word, run_id = parent.stdout.readline().split()
            start(trial + 1)
            asked_before = requests(server, "again")
            before = workspace.questions.run(run_id)
            run = before if before.delivered else [each async for each, _ in workspace.resume(run_id)][-1]
            assert run.events[: len(before.events)] == before.events
            assert ended(workspace, run_id) == expected, before.kinds
            assert not list(records.faults(workspace.store, run_id))
            first, again = requests(server, f"asked-{trial}"), requests(server, "again") - asked_before
            assert again == replies - len(before.consulted), before.kinds  # what is recorded is not asked again
            in_flight = first - len(before.consulted)
            assert 0 <= in_flight <= AT_ONCE
            assert budgets.spent_by_run(workspace.store, run_id).calls >= first + again  # and what was in flight counts
            killed += word == "killed"
            lost += in_flight
            after.add(before.kinds[-1])
    assert killed == kills and lost > 0 and len(after) > 6, (killed, lost, after)
