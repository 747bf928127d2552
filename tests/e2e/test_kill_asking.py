"""kill -9 at random moments of a run: it is carried on to the same answer, and nothing that is recorded is asked again."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from asking import QUESTION

from assay.events import Mode
from assay.ingest.fetch import Source
from assay.ingest.parsed import Parsed
from assay.run import Run
from assay.store import budgets, records
from assay.testing import (
    ChatServer,
    Script,
    WordEmbedder,
    calls,
    complete,
    enough,
    keeps,
    missing,
    research,
    rests,
    role_of,
    steps,
    supported,
    writes,
)
from assay.types import Answer, Usage
from assay.workspace import Workspace, open_workspace

KILLS = 100
SLOW = 0.004  # seconds that the model thinks
CHILD = Path(__file__).with_name("asking.py")

PAINT = "The lamp room is painted with orpiment."
GROUND = "All orpiment is ground at the works in Dunmere."
TENDS = "Ines Tallow tends the beacon."
NOTES = {"lamp": PAINT, "works": GROUND, "beacon": TENDS} | {
    f"yard-{n}": f"The paint of room {n} is ground in yard {n}. The lamp of the room was out." for n in range(12)
}


def model() -> Script:
    """What it says follows from what it is shown: it does not know that anybody was killed."""

    def judge(text: str, schema: Any) -> Any:
        if "— found: orpiment" not in text:
            return missing(s1="orpiment")(text, schema)
        return (enough() if TENDS in text else missing("who tends the beacon"))(text, schema)

    return Script(
        route=research(),
        plan=steps(("What is the lamp room painted with?", "lamp room painted"), ("Where is {s1} ground?", "{s1} works")),
        decide=lambda text, schema: rests() if "tends beacon log" in text else calls("search", query="tends beacon log"),
        weigh=keeps(PAINT, GROUND, TENDS),
        judge=judge,
        write=writes("All orpiment is ground in Dunmere [{Dunmere}].", "Ines Tallow tends the beacon [{tends}]."),
        check=supported(),
        critique=complete(),
    )


class Plain:
    async def read(self, data: Path | bytes, name: str) -> Parsed:
        assert isinstance(data, bytes)
        return Parsed(text=data.decode(), kind="text", title=name)


def opened(folder: Path, server: ChatServer, key: str) -> Workspace:
    workspace = open_workspace(folder, create=True, llm_base_url=server.url, llm_model="scripted", llm_api_key=key)
    workspace.embedder = WordEmbedder()
    return workspace


@pytest.fixture
def server() -> Iterator[ChatServer]:
    script = model()

    async def thinks(request: dict[str, Any]) -> Any:
        await asyncio.sleep(SLOW)
        return script.answer(request)

    with ChatServer(thinks) as running:
        yield running
    assert not running.problems


def requests(server: ChatServer, key: str) -> int:
    """How many requests of runs were made with this key."""
    asked = zip(server.requests, server.headers, strict=False)
    return sum(bool(role_of(body)[0]) and head.get("authorization") == f"Bearer {key}" for body, head in asked)


def without_price(answer: Answer | None) -> Answer:
    assert answer is not None
    return replace(answer, usage=Usage())


@pytest.mark.timeout(240)
def test_kill_9_at_random_moments_of_a_run_changes_nothing_in_its_answer(tmp_path: Path, server: ChatServer):
    chance = random.Random(7)
    folder = tmp_path / "workspace"
    with opened(folder, server, "whole") as workspace:
        files = [Source(uri=f"notes/{name}", name=name, data=words.encode()) for name, words in NOTES.items()]
        asyncio.run(workspace.add_sources(files, reader=Plain()))
    parent = subprocess.Popen(
        [sys.executable, str(CHILD), str(folder), server.url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )
    try:
        asyncio.run(_killed_and_carried_on(parent, folder, server, chance))
    finally:
        parent.kill()
        parent.wait()


async def _killed_and_carried_on(parent: Any, folder: Path, server: ChatServer, chance: random.Random) -> None:
    with opened(folder, server, "whole") as workspace:
        whole = [run async for run, _ in workspace.ask(QUESTION, mode=Mode.thorough)][-1]
    assert len(whole.consulted) == requests(server, "whole") > 8
    assert parent.stdout.readline().strip() == "ready"
    typical = _taken(parent, folder, server)
    killed, at, lost = 0, set(), 0
    for trial in range(KILLS):
        server.requests.clear()
        server.headers.clear()
        parent.stdin.write(f"{chance.uniform(0, typical)}\n")
        word, run_id = parent.stdout.readline().split()
        killed += word == "killed"
        with opened(folder, server, f"again-{trial}") as workspace:
            before = workspace.run(run_id)
            at.add(before.kinds[-1])
            run = [each async for each, _ in workspace.resume(run_id)][-1] if not before.delivered else before
            spent = budgets.spent_by_run(workspace.store, run_id)
            assert not list(records.faults(workspace.store, run_id))
        assert run.events[: len(before.events)] == before.events
        assert without_price(run.answer) == without_price(whole.answer), (trial, before.kinds)
        again, first = requests(server, f"again-{trial}"), requests(server, "asked")
        assert again == len(whole.consulted) - len(before.consulted), (trial, before.kinds)  # nothing is asked twice
        assert spent.calls >= first + again  # what was in flight may have been paid for, so it counts
        lost += first - len(before.consulted)
        assert 0 <= first - len(before.consulted) <= workspace.settings.llm_concurrency
    assert killed > KILLS * 3 // 4 and len(at) > 8 and lost > 0, (killed, at, lost)


def _taken(parent: Any, folder: Path, server: ChatServer) -> float:
    """How long a process takes that nobody kills, from its first record to its last."""
    parent.stdin.write("5\n")
    word, run_id = parent.stdout.readline().split()
    assert word == "finished"
    with opened(folder, server, "typical") as workspace:
        return records.active_seconds(workspace.store, run_id)
