"""What nobody has reviewed yet stays so whatever happens meanwhile: runs that are stopped, begun anew, or lose a document."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from notes import filled, opened
from sqlalchemy import select

from assay import erasing, reviewing
from assay.access import LOCAL, Principal
from assay.reviewing import Bench
from assay.run import Run
from assay.store import people, records, reviews
from assay.store.schema import reviews as waiting
from assay.trust import Decision, Narrowed
from assay.workspace import Workspace

NOTES = {
    "tower.txt": "The tower of the lighthouse at Carrow Point is 31 metres tall. It leans a little.",
    "survey.txt": "A survey says that the tower at Carrow Point is 31 metres tall.",
}
QUESTION = "How tall is the tower at Carrow Point?"
ASKER, REVIEWER = Principal("asker"), Principal("reviewer")


@pytest.fixture(scope="module")
def stocked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unreviewed") / "workspace"
    asyncio.run(filled(folder, NOTES))
    with opened(folder) as whole:
        (base,) = whole.scope().bases
        for who in (ASKER, REVIEWER):
            people.share(whole.store, base, f"user:{who.id}")
    return folder


@pytest.fixture
def folder(stocked: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stocked, tmp_path / "workspace"))


@contextmanager
def team(folder: Path, **flags: Any) -> Iterator[Workspace]:
    """The workspace as the asker sees it; every answer waits."""
    with opened(folder, None, **{"review_always": True, "reviewers": "user:reviewer"} | flags) as whole:
        yield whole.seen_by(ASKER)


def bench(workspace: Workspace) -> Bench:
    return Bench(workspace.seen_by(REVIEWER), False, lambda run, asker: Principal(asker))


async def asked(workspace: Workspace) -> Run:
    return [run async for run, _ in workspace.ask(QUESTION)][-1]


def states(workspace: Workspace, run: str) -> list[str]:
    with workspace.store.read() as connection:
        return list(connection.scalars(select(waiting.c.state).where(waiting.c.run == run).order_by(waiting.c.id)))


async def erase(workspace: Workspace, name: str) -> None:
    owner = workspace.seen_by(LOCAL)
    await erasing.erase(owner, [each for each in owner.sources() if each.name == name], owner.scope())


async def test_an_answer_that_waits_and_loses_a_document_waits_no_more_and_its_run_goes_on_without_it(folder: Path):
    with team(folder) as seen:
        run = await asked(seen)
        assert run.held and states(seen, run.id) == ["waiting"]
        await erase(seen, "survey.txt")
        assert states(seen, run.id) == ["superseded"] and reviewing.queue(bench(seen))[0] == []
        again = [now async for now, _ in seen.resume(run.id)][-1]
        assert again.held is not None and any(isinstance(event, Narrowed) for event in again.events)
        assert states(seen, run.id) == ["superseded", "waiting"]
        (line,) = reviewing.queue(bench(seen))[0]
        sheet = reviewing.shown(bench(seen), run.id)
        assert line.may_decide and sheet.seal == again.held.seal and sheet.claims
        reviewing.decide(bench(seen), run.id, Decision.approve, sheet.seal)
        done = [now async for now, _ in reviewing.carried_on(bench(seen), run.id)][-1]
        assert done.answer is not None and not list(records.faults(seen.store, run.id))


async def test_an_answer_that_waits_when_access_is_taken_away_is_held_anew_when_it_is_carried_on(folder: Path):
    from assay import reaching

    with team(folder) as seen:
        run = await asked(seen)
        owner = seen.seen_by(LOCAL)
        (survey,) = (each.id for each in owner.sources() if each.name == "survey.txt")
        await reaching.change_document(owner, survey, "user:asker", False)
        again = [now async for now, _ in seen.resume(run.id)][-1]
        assert again.held is not None and states(seen, run.id) == ["superseded", "waiting"]
        sheet = reviewing.shown(bench(seen), run.id)
        reviewing.decide(bench(seen), run.id, Decision.approve, sheet.seal)
        done = [now async for now, _ in reviewing.carried_on(bench(seen), run.id)][-1]
        assert done.answer is not None and survey not in {each.passage.doc_id for each in done.evidence}
        assert reviews.latest(seen.store, run.id).state == "delivered"
