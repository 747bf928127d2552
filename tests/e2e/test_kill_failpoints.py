"""kill -9 just before and just after every durable write: what was on disk is there unchanged, no reply that is recorded is
asked for again, what is delivered is delivered once, and nothing stays reserved."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import forked
import pytest
from adding import Plain, check, write_notes
from asking import QUESTION, begun, hasty
from beacon import NOTES, PAINT, model, requests, serving
from doubles import ChatServer, synthesis_model
from dying import approved
from notes import filled
from sqlalchemy import select

from assay.core.errors import Missing
from assay.core.run import Run
from assay.core.synthesis import Synthesis
from assay.core.types import Usage
from assay.ingest.sources import find_sources
from assay.store.runs import budgets, records, reviews
from assay.store.schema import payloads, runs, spending
from assay.store.schema import records as recorded
from assay.store.schema import reviews as reviewed
from assay.workspace.facade import Workspace, open_workspace

SOAK = bool(os.environ.get("ASSAY_SOAK"))  # `make soak` dies everywhere
CHILD = Path(__file__).with_name("dying.py")
AT_ONCE = 4  # requests that a run makes side by side, at most
PAPERS = {
    "gate": "The gate was built in 1998. It is lifted by a ram. The ram stands in a dry chamber below the quay.",
    "seal": "The gate was built in 2003. The ram leaks oil at its seal. Inspectors replace the seal every year.",
}
pytestmark = [pytest.mark.kill, pytest.mark.timeout(1800 if SOAK else 300)]


@dataclass(frozen=True)
class Death:
    """Where a process died, and what it had said until then."""

    at: str  # before or after which write
    folder: Path
    key: str
    killed: bool
    said: tuple[str, ...]

    @property
    def run(self) -> tuple[str, int]:
        """The run that somebody was told of, with its number of events."""
        told = [line.split() for line in self.said if line.startswith("run ")]
        return (told[-1][1], int(told[-1][2])) if told else ("", 0)


class Scene:
    """A workspace in which the same is done again and again, each time by a process that dies somewhere else."""

    def __init__(self, place: Path, server: ChatServer, what: str, notes: dict[str, str]) -> None:
        self.place, self.server, self.what = place, server, what
        asyncio.run(filled(place / "first", notes))
        with self.opened(place / "first") as workspace:
            asyncio.run(workspace.models.connect())  # what the endpoint can do is known

    def opened(self, folder: Path, key: str = "again") -> Workspace:
        settings: dict[str, Any] = {"llm_base_url": self.server.url, "llm_model": "scripted", "llm_api_key": key}
        return hasty(open_workspace(folder, **settings, review_always=self.what == "review"))

    def dies(self, key: str, at: int) -> tuple[Path, forked.Process]:
        folder = self.place / key / "workspace"
        shutil.copytree(self.place / "first", folder)
        if (self.place / "notes").exists():
            shutil.copytree(self.place / "notes", folder.with_name("notes"))
        command = [sys.executable, CHILD, folder, self.server.url, key, self.what, str(at)]
        return folder, forked.Process(command, stdout=forked.PIPE, stderr=forked.PIPE, text=True)

    def deaths(self, few: int) -> Iterator[Death]:
        """One at each place there is, or at a few of them that are spread over all; the first of all lives to tell them. Each
        begins while the one before is looked at."""
        _, alive = self.dies("alive", 0)
        said, err = alive.communicate(timeout=100)
        assert alive.wait() == 0, err
        places = said.splitlines()[-1].split()[1:]
        chosen = range(1, len(places) + 1) if SOAK else some(places, few)
        killed, count = 0, len(chosen)
        begun = self.dies("died-0", chosen[0])
        for n, at in enumerate(chosen):
            folder, process = begun
            if n + 1 < count:
                begun = self.dies(f"died-{n + 1}", chosen[n + 1])
            said, err = process.communicate(timeout=100)
            assert "Traceback" not in err, err
            killed += process.wait() < 0
            yield Death(places[at - 1], folder, f"died-{n}", process.wait() < 0, tuple(said.splitlines()))
            shutil.rmtree(folder.parent)
        assert killed >= count - 2, "in the end there may be a write less, and all others must have died"


def some(places: Sequence[str], few: int) -> list[int]:
    """Places that are spread over all, and those where something rare is written, which would fall between them."""
    counts = Counter(places)
    rare = sorted(range(len(places)), key=lambda n: counts[places[n]])[: few // 2 if len(counts) > 2 else 0]
    spread = few - len(rare)
    return sorted(n + 1 for n in {*rare, *(n * (len(places) - 1) // (spread - 1) for n in range(spread))})


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Callable[[str], Scene]]:
    with serving(model().answer) as asked, serving(synthesis_model()) as synthesised:
        yield lambda what: Scene(
            tmp_path, synthesised if what == "synthesise" else asked, what, PAPERS if what == "synthesise" else NOTES
        )


def on_disk(workspace: Workspace) -> list[tuple[Any, ...]]:
    """Every record, with what it says."""
    same = (payloads.c.run == recorded.c.run) & (payloads.c.seq == recorded.c.seq)
    with workspace.store.read() as connection:
        rows = connection.execute(select(recorded, payloads.c.body).outerjoin(payloads, same).order_by(recorded.c.n))
        return [tuple(row) for row in rows]


def unsettled(workspace: Workspace) -> list[Any]:
    with workspace.store.read() as connection:
        return list(connection.execute(select(spending).where(spending.c.state.in_(("reserved", "aside")))))


def begun_here(workspace: Workspace, death: Death) -> Run | None:
    """The run as the dead process has left it; none where it had not said a word, nor written one down."""
    run, told = death.run
    with workspace.store.read() as connection:
        known = list(connection.scalars(select(runs.c.id)))
    assert not run or run in known, death.at
    try:
        found = workspace.questions.run(known[0]) if known else None
    except Missing:  # its name was taken, and nothing asked
        found = None
    assert len(found.events if found else ()) >= told, f"{death.at}: what somebody was told of is gone"
    return found


async def carried_on(workspace: Workspace, run: Run) -> Run:
    """To its end, whatever stands between, as somebody would who knows nothing of what happened."""
    while not run.delivered:
        waiting = reviews.latest(workspace.store, run.id)
        held = waiting is not None and waiting.state is reviews.ReviewState.waiting
        steps = [step async for step, _ in (approved if held else Workspace.resume)(workspace, run.id)]
        assert steps, f"nothing goes on after {run.kinds[-1]}"
        run = steps[-1]
    return run


def looked_at(scene: Scene, death: Death, replies: int) -> Run | None:
    """What holds of every run that somebody was killed in, once it is carried on."""
    with scene.opened(death.folder) as workspace:
        before = begun_here(workspace, death)
        if before is None:
            return None
        kept, counted = on_disk(workspace), requests(scene.server, "again")
        run = asyncio.run(carried_on(workspace, before))
        now = on_disk(workspace)
        assert now[: len(kept)] == kept, f"{death.at}: a record was lost or changed"
        assert not list(records.faults(workspace.store, run.id)), death.at
        first, again = requests(scene.server, death.key), requests(scene.server, "again") - counted
        assert again == replies - len(before.consulted), f"{death.at}: a recorded reply was asked for again"
        assert 0 <= first - len(before.consulted) <= AT_ONCE, death.at
        assert len(now) == len(run.events), f"{death.at}: it is not what is on disk"
        assert run.kinds.count("Answered") == 1 and run.kinds[-1] == "Answered", death.at
        assert not unsettled(workspace), f"{death.at}: something stays reserved"
        assert budgets.spent_by_run(workspace.store, run.id).calls >= first + again, death.at
        if scene.what == "review":
            with workspace.store.read() as connection:
                states = list(connection.scalars(select(reviewed.c.state)))
            assert states.count("delivered") == 1 and not {"waiting", "approved"} & set(states), (death.at, states)
            assert run.kinds.count("Reviewed") == 1, f"{death.at}: it was decided on twice"
        return run


def whole(scene: Scene) -> Run:
    """The same without anybody's death."""
    shutil.copytree(scene.place / "first", scene.place / "whole")
    with scene.opened(scene.place / "whole", "whole") as workspace:

        async def goes() -> Run:
            steps = begun("synthesise" if scene.what == "synthesise" else "ask", workspace)
            return await carried_on(workspace, [run async for run, _ in steps][-1])

        run = asyncio.run(goes())
        assert len(run.consulted) == requests(scene.server, "whole") > 5
        return run


@pytest.mark.parametrize(("what", "few"), [("ask", 10), ("review", 9)])
def test_a_question_goes_on_to_the_same_answer_wherever_it_was_killed(
    scene: Callable[[str], Scene], what: str, few: int
):
    at = scene(what)
    expected = whole(at)
    assert expected.asked.question == QUESTION and expected.answer
    seen = 0
    for death in at.deaths(few):
        if (run := looked_at(at, death, len(expected.consulted))) is not None:
            assert run.answer and replace(run.answer, usage=Usage()) == replace(expected.answer, usage=Usage())
            seen += 1
    assert seen > few - 4


def test_a_synthesis_goes_on_to_the_same_account_wherever_it_was_killed(scene: Callable[[str], Scene]):
    at = scene("synthesise")
    expected = whole(at)
    with at.opened(at.place / "whole") as workspace:
        account = timeless(workspace.syntheses.account(expected.id))
    for death in at.deaths(3):
        if (run := looked_at(at, death, len(expected.consulted))) is not None:
            with at.opened(death.folder) as workspace:
                assert timeless(workspace.syntheses.account(run.id)) == account, death.at


def timeless(account: Synthesis) -> Synthesis:
    """The account without what differs from run to run: its name, and the seconds it took."""
    return replace(account, run="", usage=Usage(), narrative=replace(account.narrative, usage=Usage()))


def test_what_was_said_to_be_added_is_there_once_wherever_an_add_was_killed(scene: Callable[[str], Scene]):
    at = scene("add")
    write_notes(at.place / "notes", 1, 4)
    for death in at.deaths(8):
        folder, done = death.folder.with_name("notes"), {line[5:] for line in death.said if line.startswith("done ")}
        with at.opened(death.folder) as workspace:
            check(workspace, done)
            asyncio.run(workspace.documents.add_sources(find_sources([folder]), reader=Plain()))
            check(workspace, {str(file) for file in folder.iterdir()})


def test_an_erased_document_is_gone_wherever_its_erasing_was_killed(scene: Callable[[str], Scene]):
    at = scene("erase")
    words = PAINT.encode()
    assert traces(at.place / "first", words), "there must be something to find"
    for death in at.deaths(6):
        with at.opened(death.folder) as workspace:
            if any(entry.title == "lamp" for entry in workspace.documents.listing()):
                assert not any(line.startswith("erased") for line in death.said), death.at
                asyncio.run(workspace.documents.remove(["lamp"]))
        with at.opened(death.folder):
            pass  # whatever is left to do is done when it is opened
        assert not traces(death.folder, words), death.at


def traces(folder: Path, words: bytes) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and words in path.read_bytes()]
