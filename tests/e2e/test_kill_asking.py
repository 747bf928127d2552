"""kill -9 at events and replies of a run: it is carried on to the same answer, and nothing that is recorded is asked again."""

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
from asking import QUESTION, hasty
from beacon import NOTES, model, requests, serving
from doubles import ChatServer

from assay.core.events import Mode
from assay.core.types import Answer, Usage
from assay.ingest.parsed import Parsed
from assay.ingest.sources import SourceFile
from assay.store.runs import budgets, records
from assay.workspace.facade import Workspace, open_workspace

KILLS = 100 if os.environ.get("ASSAY_SOAK") else 20  # `make soak` takes its time; each durable write has its own test
AT_ONCE = 4  # requests that a run makes side by side, at most
CHILD = Path(__file__).with_name("asking.py")


class Plain:
    async def read(self, data: Path | bytes, name: str) -> Parsed:
        assert isinstance(data, bytes)
        return Parsed(text=data.decode(), kind="text", title=name)


def opened(folder: Path, server: ChatServer, key: str) -> Workspace:
    return hasty(open_workspace(folder, create=True, llm_base_url=server.url, llm_model="scripted", llm_api_key=key))


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with serving(model().answer) as running:
        yield running


def without_price(answer: Answer | None) -> Answer:
    assert answer is not None
    return replace(answer, usage=Usage())


@pytest.mark.kill
@pytest.mark.timeout(240)
def test_kill_9_at_events_and_replies_of_a_run_changes_nothing_in_its_answer(tmp_path: Path, server: ChatServer):
    folder = tmp_path / "workspace"
    with opened(folder, server, "whole") as workspace:
        files = [SourceFile(uri=f"notes/{name}", name=name, data=words.encode()) for name, words in NOTES.items()]
        asyncio.run(workspace.documents.add_sources(files, reader=Plain()))
    command = [sys.executable, CHILD, folder, server.url, "ask"]
    parent = forked.Process(command, stdin=forked.PIPE, stdout=forked.PIPE, text=True)
    try:
        asyncio.run(_killed_and_carried_on(parent, folder, server))
    finally:
        parent.kill()
        parent.wait()


async def _killed_and_carried_on(parent: Any, folder: Path, server: ChatServer) -> None:
    with opened(folder, server, "whole") as workspace:
        whole = [run async for run, _ in workspace.ask(QUESTION, mode=Mode.thorough)][-1]
    replies = len(whole.consulted)
    assert replies == requests(server, "whole") > 8
    assert parent.stdout.readline().strip() == "ready"
    killed, lost = 0, 0
    after: set[str] = set()

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
            assert without_price(run.answer) == without_price(whole.answer), before.kinds
            assert not list(records.faults(workspace.store, run_id))
            first, again = requests(server, f"asked-{trial}"), requests(server, "again") - asked_before
            assert again == replies - len(before.consulted), before.kinds  # what is recorded is not asked again
            in_flight = first - len(before.consulted)
            assert 0 <= in_flight <= AT_ONCE
            assert budgets.spent_by_run(workspace.store, run_id).calls >= first + again  # and what was in flight counts
            killed += word == "killed"
            lost += in_flight
            after.add(before.kinds[-1])
    assert killed == KILLS and lost > 0 and len(after) > 6, (killed, lost, after)
