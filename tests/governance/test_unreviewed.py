"""What nobody has reviewed yet stays so whatever happens meanwhile: runs that are stopped, begun anew, or lose a document."""

from __future__ import annotations

import asyncio
import io
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from notes import filled, opened
from sqlalchemy import insert, select
from starlette.testclient import TestClient

from assay.core.access import LOCAL, Principal
from assay.core.events import (
    Asked,
    AwaitingReview,
    Checked,
    Decision,
    ModelReplied,
    Narrowed,
    Route,
    Routed,
    ToolRan,
)
from assay.core.run import Run
from assay.core.types import Answer, Outcome
from assay.governance.audit import check
from assay.governance.audit.retention import erase_old
from assay.serve.app import make_app
from assay.serve.state import ServeOptions, Server
from assay.store.access import grants, tokens
from assay.store.runs import records, reviews
from assay.store.runs.visibility import ERASED
from assay.store.schema import facts
from assay.store.schema import reviews as waiting
from assay.workspace.facade import Workspace
from assay.workspace.services.reviews import Reviews

UNSIGNED = lambda _: ("", "")  # noqa: E731 - nothing was sealed before


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
            grants.share(whole.store, base, f"user:{who.id}")
    return folder


@pytest.fixture
def folder(stocked: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stocked, tmp_path / "workspace"))


@contextmanager
def team(folder: Path, **flags: Any) -> Iterator[Workspace]:
    """The workspace as the asker sees it; every answer waits."""
    with opened(folder, None, **{"review_always": True, "reviewers": "user:reviewer"} | flags) as whole:
        yield whole.for_principal(ASKER)


def bench(workspace: Workspace) -> Reviews:
    return workspace.for_principal(REVIEWER).reviews.acting(
        admin=False, principal_of=lambda run, asker: Principal(asker)
    )


async def asked(workspace: Workspace) -> Run:
    return [run async for run, _ in workspace.ask(QUESTION)][-1]


async def stopped_after(steps: Any, kind: type) -> str:
    async for run, event in steps:
        if isinstance(event, kind):
            await steps.aclose()
            return run.id
    raise AssertionError(f"{kind} comes")


def states(workspace: Workspace, run: str) -> list[str]:
    with workspace.store.read() as connection:
        return list(connection.scalars(select(waiting.c.state).where(waiting.c.run == run).order_by(waiting.c.id)))


async def erase(workspace: Workspace, name: str) -> None:
    owner = workspace.for_principal(LOCAL)
    await owner.records.erase([each for each in owner.documents.listing() if each.name == name], owner.scope())


async def test_an_answer_that_waits_and_loses_a_document_waits_no_more_and_its_run_goes_on_without_it(folder: Path):
    with team(folder) as seen:
        run = await asked(seen)
        assert run.held and states(seen, run.id) == ["waiting"]
        await erase(seen, "survey.txt")
        assert states(seen, run.id) == ["superseded"] and bench(seen).queue()[0] == []
        again = [now async for now, _ in seen.resume(run.id)][-1]
        assert again.held is not None and any(isinstance(event, Narrowed) for event in again.events)
        assert states(seen, run.id) == ["superseded", "waiting"]
        (line,) = bench(seen).queue()[0]
        sheet = bench(seen).sheet(run.id)
        assert line.may_decide and sheet.seal == again.held.seal and sheet.claims
        bench(seen).decide(run.id, Decision.approve, sheet.seal)
        done = [now async for now, _ in bench(seen).resume(run.id)][-1]
        assert done.answer is not None and not list(records.faults(seen.store, run.id))


async def test_an_answer_that_waits_when_access_is_taken_away_is_held_anew_when_it_is_carried_on(folder: Path):
    with team(folder) as seen:
        run = await asked(seen)
        owner = seen.for_principal(LOCAL)
        (survey,) = (each.id for each in owner.documents.listing() if each.name == "survey.txt")
        await owner.people.share_document(survey, "user:asker", False)
        again = [now async for now, _ in seen.resume(run.id)][-1]
        assert again.held is not None and states(seen, run.id) == ["superseded", "waiting"]
        sheet = bench(seen).sheet(run.id)
        bench(seen).decide(run.id, Decision.approve, sheet.seal)
        done = [now async for now, _ in bench(seen).resume(run.id)][-1]
        assert done.answer is not None and survey not in {each.passage.doc_id for each in done.evidence}
        assert reviews.latest(seen.store, run.id).state == "delivered"


async def test_a_follow_up_that_was_stopped_goes_on_without_what_was_taken_away_meanwhile(folder: Path):
    with team(folder, review_always=False) as seen:
        first = [run async for run, _ in seen.chat(QUESTION)][-1]
        steps = seen.chat("And does the tower at Carrow Point lean?", first.asked.thread)
        run = await stopped_after(steps, ToolRan)
        owner = seen.for_principal(LOCAL)
        (survey,) = (each.id for each in owner.documents.listing() if each.name == "survey.txt")
        await owner.people.share_document(survey, "user:asker", False)
        done = [now async for now, _ in seen.resume(run)][-1]
        assert done.answer is not None and seen.questions.run(run).answer == done.answer
        assert [event.since for event in done.events if isinstance(event, Narrowed)] == [0]


async def test_a_run_that_is_stopped_before_it_waits_is_exported_without_its_draft(folder: Path):
    with team(folder, review_always=False, review_flagged=True) as seen:
        run = await stopped_after(seen.ask(QUESTION), Checked)
        server = Server(seen.for_principal(LOCAL), ServeOptions(), grace=0.1)
        with seen.store.write() as connection:  # the one whom a server for one person serves
            connection.exec_driver_sql("UPDATE runs SET who = 'local' WHERE id = ?", (run,))
        with TestClient(make_app(server), base_url="http://127.0.0.1") as client:
            reply = client.get(f"/api/runs/{run}/bundle")
    assert reply.status_code == 200, reply.text
    with zipfile.ZipFile(io.BytesIO(reply.content)) as packed:
        files = {name: packed.read(name) for name in packed.namelist()}
    assert list(check.check(files))
    told = [name for name in files if name.startswith("payloads/")]
    assert any("Asked" in name for name in told)
    assert not [name for name in told if any(kind in name for kind in ("Gathered", "Drafted", "Checked", "ToolRan"))]


async def test_what_a_reviewer_has_or_has_rejected_is_not_to_be_had_by_beginning_it_anew_later(folder: Path):
    with team(folder) as seen:
        held = await asked(seen)
        place = held.kinds.index("AwaitingReview")
        bench(seen).decide(held.id, Decision.reject, held.held.seal, "not like this")
    with team(folder, review_always=False) as seen:
        again = [now async for now, _ in seen.questions.branch(seen.questions.run(held.id), place)][-1]
        assert again.held is not None and again.answer is None
        assert seen.reviews.may_be_needed(again.id)


async def test_what_a_person_decided_as_a_reviewer_is_under_no_name_when_they_are_erased(folder: Path):
    with team(folder) as seen:
        run = await asked(seen)
        bench(seen).decide(run.id, Decision.reject, run.held.seal, "zqremark of mine")
        with seen.store.write() as connection:
            connection.exec_driver_sql(
                "INSERT INTO forecasts (run, kind, who, alike, foreseen, at) VALUES ('x', 'ask', 'reviewer', '', '{}', '')"
            )
            connection.exec_driver_sql("INSERT INTO members VALUES ('reviewer', '[]', 0, '', '')")
        await seen.for_principal(LOCAL).records.erase_person("reviewer")
        with seen.store.read() as connection:
            rows = connection.exec_driver_sql("SELECT by, note, state FROM reviews").all()
            whose = connection.exec_driver_sql("SELECT who FROM forecasts WHERE run = 'x'").scalar()
        assert [(row.by.startswith("erased:"), row.note, row.state) for row in rows] == [(True, "", "rejected")]
        assert whose.startswith("erased:")


async def test_an_answer_that_waited_until_it_was_too_old_waits_no_more(folder: Path):
    with team(folder) as seen:
        run = await asked(seen)
        with seen.store.write() as connection:
            connection.exec_driver_sql("UPDATE runs SET started = '2020-01-01T00:00:00.000Z'")
            connection.exec_driver_sql("UPDATE records SET at = '2020-01-01T00:00:00.000Z'")
        assert erase_old(seen.store, 200, "somebody", UNSIGNED).payloads
        assert states(seen, run.id) == ["superseded"]


async def test_a_reviewer_learns_nothing_of_the_knowledge_bases_and_records_of_others_from_a_trace(folder: Path):
    with team(folder) as seen:
        for who, about in ((ASKER, "zqplans of the asker"), (REVIEWER, "my own")):
            grants.create_base(seen.store, "plans", who, about)
        run = await asked(seen)
        reviewer = Principal("reviewer")
        with seen.store.write() as connection:
            connection.exec_driver_sql(
                "INSERT INTO members VALUES ('reviewer', '[]', 0, '', ''), ('asker', '[]', 0, '', '')"
            )
        key = tokens.new_key(seen.store, reviewer.id)
        server = Server(seen.for_principal(LOCAL), ServeOptions(auth="keys"), grace=0.1)
        with TestClient(make_app(server), base_url="http://127.0.0.1") as client:
            told = client.get(f"/api/reviews/{run.id}/trace", headers={"Authorization": f"Bearer {key}"})
    assert told.status_code == 200 and "AwaitingReview" in told.text
    assert "zqplans" not in told.text
    assert {"n", "link"}.isdisjoint(told.json()["chain"][0])


def test_an_answer_that_comes_to_wait_while_its_document_is_erased_waits_for_nobody(folder: Path):
    with team(folder) as seen:
        run = records.begin(seen.store, ASKER.id)
        records.append(seen.store, run, 0, Asked(QUESTION, ASKER.id, "2026-03-01"))
        with seen.store.write() as connection:
            connection.execute(insert(facts).values(name=ERASED + run, value=""))
        records.append(seen.store, run, 1, AwaitingReview(Answer(QUESTION, (), Outcome.abstained), "a seal", ("why",)))
        assert states(seen, run) == ["superseded"]


async def test_an_answer_that_waits_and_names_an_unreadable_file_waits_again_when_that_is_erased(tmp_path: Path):
    await filled(tmp_path / "workspace", NOTES | {"empty.txt": ""})
    with opened(tmp_path / "workspace") as whole:
        (base,) = whole.scope().bases
        grants.share(whole.store, base, f"user:{ASKER.id}")
    with team(tmp_path / "workspace") as seen:
        run = await asked(seen)
        assert run.held and [Path(each).name for each in run.held.answer.unread] == ["empty.txt"]
        await erase(seen, "empty.txt")
        assert states(seen, run.id) == ["superseded"]
        for _ in range(2):  # what is recorded first may still come from what a process had in memory
            run = [now async for now, _ in seen.resume(run.id)][-1]
        assert states(seen, run.id) == ["superseded", "superseded", "waiting"]
        assert run.held and not run.held.answer.unread


async def test_what_follows_a_reply_that_came_after_its_document_was_erased_is_erased_too(folder: Path):
    with team(folder, review_always=False) as seen:
        (survey,) = (each.id for each in seen.documents.listing() if each.name == "survey.txt")
        run = records.begin(seen.store, ASKER.id)
        records.append(seen.store, run, 0, Asked(QUESTION, ASKER.id, "2026-03-01"))
        await erase(seen, "survey.txt")
        reply = ModelReplied("route", "route", "scripted", "a request", "zqwords", documents=(survey,))
        records.append(seen.store, run, 1, reply)
        records.append(seen.store, run, 2, Routed(Route.research, "zqwords"))
        assert seen.questions.run(run).kinds == ["Asked", "Withheld", "Withheld"]
        ended = [now async for now, _ in seen.resume(run)][-1]
        assert ended.answer is not None and "Narrowed" in ended.kinds
        with seen.store.read() as connection:
            bodies = connection.exec_driver_sql("SELECT body FROM payloads").scalars()
            assert not [body for body in bodies if body and "zqwords" in body]
