"""A model's word settles a statement only if the model was measured to judge well, unless the settings say otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from doubles import ChatServer, Script, direct
from doubles.protocol import ModelOutput, Request
from doubles.trial_replies import claims_of_trial, trial_rulings
from notes import opened

from assay.core.events import RoleModel
from assay.models.llm import Role
from assay.store import facts
from assay.store.runs import budgets, records
from assay.workspace.facade import Workspace, open_workspace
from assay.workspace.services import models


class Endpoint:
    """A chat endpoint that answers the trial with a function, and a probe with whatever is wanted."""

    def __init__(self, judge: Any, lacks: tuple[str, ...] = ()) -> None:
        self.judge = judge
        self.trials = 0
        self.server = ChatServer(self.answer, lacks=lacks, trial=False)

    def answer(self, request: Request) -> ModelOutput:
        if not claims_of_trial(request):
            return Script().answer(request)
        self.trials += 1
        return self.judge(request)


def right(request: Request) -> ModelOutput:
    rulings = trial_rulings(request, capable=True)
    assert rulings is not None
    return rulings


def lenient(request: Request) -> ModelOutput:
    rulings = trial_rulings(request, capable=False)
    assert rulings is not None
    return rulings


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with open_workspace(tmp_path / "workspace", create=True):
        return tmp_path / "workspace"


@pytest.fixture
def workspace(folder: Path) -> Iterator[Workspace]:
    with opened(folder) as workspace:
        yield workspace


async def role_models(workspace: Workspace, endpoint: Endpoint, **settings: Any) -> dict[str, RoleModel]:
    own = {"llm_base_url": endpoint.server.url, "llm_model": "scripted", "llm_api_key": "k"}
    roles = await workspace.with_settings(**own | settings).models.connect()
    return {role.value: models[0].role_model for role, models in roles.items()}


async def test_a_judge_that_judges_well_is_large_and_is_measured_once(workspace: Workspace):
    endpoint = Endpoint(right)
    with endpoint.server:
        first = await role_models(workspace, endpoint)
        again = await role_models(workspace, endpoint)
    assert not first["check"].small and first == again
    assert endpoint.trials == 2
    (fact,) = [fact for fact in _facts(workspace) if fact.startswith("trial:")]
    assert fact.endswith("/scripted") and '"capable":true' in (facts.remembered(workspace.store, fact) or "")


async def test_a_judge_that_passes_everything_is_small_in_its_own_role_only(workspace: Workspace):
    endpoint = Endpoint(lenient)
    with endpoint.server:
        found = await role_models(workspace, endpoint)
        await role_models(workspace, endpoint)
    assert found["check"].small
    assert not any(role_model.small for role, role_model in found.items() if role != "check")
    assert endpoint.trials == 1


async def test_a_model_that_judges_well_is_large_in_every_role_without_tool_calls(workspace: Workspace):
    endpoint = Endpoint(right, lacks=("tools",))
    with endpoint.server:
        found = await role_models(workspace, endpoint)
    assert not any(role_model.small for role_model in found.values())


async def test_a_judge_that_writes_garbage_is_small_and_no_question_waits_for_it_again(workspace: Workspace):
    endpoint = Endpoint(lambda _: "no idea")
    with endpoint.server:
        assert (await role_models(workspace, endpoint))["check"].small
        before = endpoint.trials
        endpoint.judge = right
        assert (await role_models(workspace, endpoint))["check"].small
        assert endpoint.trials == before


@pytest.mark.parametrize(("size", "small"), [("large", False), ("small", True)])
async def test_the_setting_overrides_and_no_trial_is_run(workspace: Workspace, size: str, small: bool):
    endpoint = Endpoint(lenient)
    with endpoint.server:
        assert (await role_models(workspace, endpoint, llm_size=size))["check"].small is small
    assert endpoint.trials == 0


async def test_only_the_models_that_check_are_measured(workspace: Workspace):
    endpoint = Endpoint(right)
    with endpoint.server:
        await role_models(workspace, endpoint, llm_check_model="other", llm_write_model="third")
    assert endpoint.trials == 2
    assert [fact for fact in _facts(workspace) if fact.startswith("trial:") and fact.endswith("/other")]


async def test_a_result_for_another_prompt_is_out_of_date(workspace: Workspace, monkeypatch: pytest.MonkeyPatch):
    endpoint = Endpoint(right)
    with endpoint.server:
        await role_models(workspace, endpoint)
        monkeypatch.setattr(models, "trial_form", lambda: "another")
        await role_models(workspace, endpoint)
    assert endpoint.trials == 4


async def test_a_forecast_takes_what_was_measured_and_asks_nothing(workspace: Workspace):
    endpoint = Endpoint(lenient)
    with endpoint.server:
        await role_models(workspace, endpoint)
        asked = workspace.with_settings(llm_base_url=endpoint.server.url, llm_model="scripted", llm_api_key="k")
        known = {role_model.role: role_model for role_model in asked.models.known_role_models()}
    assert known["check"].small and not known["write"].small and endpoint.trials == 1
    assert "passes 100% of false ones" in asked.models.judge_summary()
    assert asked.with_settings(llm_size="large").models.judge_summary() == ""


def test_without_a_model_nothing_is_said_about_a_judge(workspace: Workspace):
    assert workspace.models.judge_summary() == ""


async def test_no_script_has_to_foresee_the_trial(folder: Path):
    script = Script()
    with ChatServer(script.answer) as server, opened(folder, server) as workspace:
        roles = await workspace.models.connect()
    assert not roles[Role.check][0].role_model.small and not server.problems and not server.counts["check"]


def _facts(workspace: Workspace) -> list[str]:
    from sqlalchemy import select

    from assay.store.schema import facts as table

    with workspace.store.read() as connection:
        return list(connection.scalars(select(table.c.name)))


async def test_probes_are_made_once_and_count_in_the_budget_of_the_run_that_makes_them(folder: Path):
    script, spent = Script(route=direct(), direct={"text": "Nobody knows."}), budgets.spent_by_run
    with ChatServer(script.answer) as server:
        with opened(folder, server) as workspace:
            first = [run async for run, _ in workspace.ask("What did the alert say?")][-1]
            assert spent(workspace.store, first.id).calls == first.usage.calls + 5, "three probes, two of the trial"
        with opened(folder, server) as workspace:
            second = [run async for run, _ in workspace.ask("Who sent the alert?")][-1]
            assert spent(workspace.store, second.id).calls == second.usage.calls
    assert len(server.requests) == 3 + first.usage.calls + second.usage.calls, "the server counts no trial"


async def test_of_questions_asked_together_one_tries_the_model(folder: Path):
    script = Script(route=direct(), direct={"text": "Nobody knows."})
    with ChatServer(script.answer) as server, opened(folder, server) as workspace:
        await asyncio.gather(*(workspace.models.connect() for _ in range(4)))
        assert len(server.requests) == 3 and budgets.spent_by_run(workspace.store, "").calls == 5


async def test_a_run_never_makes_more_requests_than_it_may_though_it_is_the_one_that_tries_the_model(folder: Path):
    script, spent = Script(route=direct(), direct={"text": "Nobody knows."}), budgets.spent_by_run
    with ChatServer(script.answer) as server, opened(folder, server, budget_run_calls=4) as workspace:
        run, other = records.new_id(workspace.store), records.new_id(workspace.store)
        (alone, *_), (beside, *_) = (
            roles[Role.check]
            for roles in await asyncio.gather(workspace.models.connect(run), workspace.models.connect(other))
        )
        assert alone.role_model.small and not beside.role_model.small, "a trial has two requests, and one was left"
        assert spent(workspace.store, run).calls == 4 and spent(workspace.store, other).calls == 2
