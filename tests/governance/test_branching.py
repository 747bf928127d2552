"""A run made again from its record alone, and runs that are begun anew from one of its steps."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from doubles import (
    ChatServer,
    Script,
    calls,
    enough,
    keeps,
    lookup,
    missing,
    no_calls,
    one_step,
    research,
    supported,
    synthesis_model,
    writes,
)
from notes import folder_of, opened

from assay import prompts
from assay.core.codec import dumps, to_json
from assay.core.errors import UserError
from assay.core.events import (
    Answered,
    Asked,
    AwaitingReview,
    Checked,
    Checkpoint,
    Decision,
    Drafted,
    Failed,
    Mode,
    ModelReplied,
    Paused,
    Resumed,
    Reviewed,
    Stakes,
    Withheld,
)
from assay.core.run import Run, seal_of
from assay.core.types import Answer, Outcome, Shape
from assay.store.access import grants
from assay.store.runs import history, records
from assay.workspace.facade import Workspace
from assay.workspace.services.questions import copied_events, first_of_step

PAINT = "The lamp room at Carrow Point is painted with orpiment."
TALL = "The tower of the lighthouse at Carrow Point is 31 metres tall."
NOTES = {
    "lamp": f"{PAINT} Nobody has painted it anew since.",
    "tower": f"{TALL} It leans a little.",
    "garden": "The roses behind the house are watered twice a week.",
}
ANSWER = Answer("What?", (), Outcome.abstained)
QUESTION = "How tall is the tower at Carrow Point?"


def script(claim: str = "The tower at Carrow Point is 31 metres tall [{31 metres}].") -> Script:
    return Script(route=lookup(), weigh=keeps(TALL), judge=enough(), write=writes(claim), check=supported())


folder = folder_of(NOTES)


@pytest.fixture
def model() -> Iterator[ChatServer]:
    with ChatServer(script().answer) as server:
        yield server


async def asked(workspace: Workspace, question: str = QUESTION, **how: Any) -> Run:
    return [run async for run, _ in workspace.ask(question, mode=Mode.quick, today="2026-01-01", **how)][-1]


async def branched(workspace: Workspace, run: Run, place: int, model: str = "") -> Run:
    return [run async for run, _ in workspace.questions.branch(run, place, model)][-1]


def spelled(answer: Answer | None) -> str:
    return dumps(to_json(answer))


def place_of(run: Run, kind: type) -> int:
    return next(place for place, event in enumerate(run.events) if isinstance(event, kind))


# --- gone through again ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("has_model", [True, False], ids=["with a model", "by rule"])
async def test_an_answer_is_made_again_with_no_model_and_no_index(folder: Path, model: ChatServer, has_model: bool):
    with opened(folder, model) as workspace:
        run = await asked(workspace, model=has_model)
    shutil.rmtree(folder / "index")
    model.close()
    with opened(folder) as workspace:
        again = await workspace.questions.replay(workspace.questions.run(run.id))
    assert again.same and spelled(again.answer) == spelled(run.answer) and not again.differences
    assert again.taken > 0, "what compares vectors cannot be made again without them"
    assert run.answer is not None and run.answer.claims


async def test_where_the_index_is_there_every_step_is_made_again(folder: Path):
    with opened(folder) as workspace:
        run = await asked(workspace)
        again = await workspace.questions.replay(run)
    assert again.same and not again.differences and again.taken == 0


async def test_without_an_index_a_forged_verdict_is_still_found(folder: Path):
    with opened(folder) as workspace:
        run = await asked(workspace)
        shutil.rmtree(folder / "index")
        place = place_of(run, Checked)
        event = run.events[place]
        assert isinstance(event, Checked)
        lied = replace(event, claim=replace(event.claim, why="on a whim"))
        forged = Run(run.id, (*run.events[:place], lied, *run.events[place + 1 :]))
        again = await workspace.questions.replay(forged)
    assert any(f"record {place}: Checked" in each for each in again.differences)


async def test_an_answer_that_was_forged_is_not_the_one_that_is_made_again(folder: Path):
    with opened(folder) as workspace:
        run = await asked(workspace)
        shutil.rmtree(folder / "index")
        forged = Answered(replace(run.answer, gaps=("nothing",)))  # type: ignore[type-var]
        again = await workspace.questions.replay(Run(run.id, (*run.events[:-1], forged)))
    assert not again.same and spelled(again.answer) == spelled(run.answer)


async def test_a_synthesis_is_made_again_without_an_index(folder: Path):
    with ChatServer(synthesis_model()) as server, opened(folder, server) as workspace:
        chosen = [entry.id for entry in workspace.documents.listing()]
        run = [run async for run, _ in workspace.syntheses.begin(chosen)][-1]
    shutil.rmtree(folder / "index")
    with opened(folder) as workspace:
        again = await workspace.questions.replay(workspace.questions.run(run.id))
    assert again.same and not again.differences
    assert 0 < again.taken < len(run.events)


async def test_a_reply_to_a_prompt_in_other_words_is_used_and_told(folder: Path, model: ChatServer, monkeypatch):
    """As it is after an update that changed how a prompt is worded."""
    with opened(folder, model) as workspace:
        run = await asked(workspace)
        assert (await workspace.questions.replay(run)).reworded == 0
        halves = prompts.halves
        monkeypatch.setattr(prompts, "halves", lambda name, values: (f"Please. {halves(name, values)[0]}", "…"))
        again = await workspace.questions.replay(run)
    assert again.same and not again.differences
    assert again.reworded == sum(isinstance(event, ModelReplied) for event in run.events)


async def test_in_which_order_arguments_were_named_changes_nothing_after_a_restart(folder: Path):
    """What is shown of a call is read from the record then, which keeps them in its own order."""
    asks = Script(
        route=research(), plan=one_step("tower Carrow Point"), weigh=keeps(PAINT), judge=[missing("how tall"), enough()],
        decide=[calls("search", query="lighthouse metres", until="2030", type="text"), no_calls()],
        write=writes("It is tall [{orpiment}]."),
        check=supported(),
    )  # fmt: skip
    with ChatServer(asks.answer) as server, opened(folder, server) as workspace:
        run = await asked(workspace)
        made = [call for call in run.calls if "type" in call.arguments]
        assert made and list(made[0].arguments) == sorted(made[0].arguments)
        assert (await workspace.questions.replay(workspace.questions.run(run.id))).reworded == 0


async def test_a_run_without_an_answer_cannot_be_made_again(folder: Path):
    with opened(folder) as workspace:
        run = await asked(workspace)
        with pytest.raises(UserError, match="has no answer yet"):
            await workspace.questions.replay(Run(run.id, run.events[:-1]))


# --- begun anew from a step -----------------------------------------------------------------------------------------


async def test_a_branch_begins_with_what_was_recorded_and_asks_another_model_from_there(
    folder: Path, model: ChatServer
):
    other = script("The lighthouse's tower at Carrow Point is 31 metres tall [{31 metres}].")
    with opened(folder, model) as workspace:
        run = await asked(workspace)
        before = len(model.requests)
        drafted = place_of(run, Drafted)
        with ChatServer(other.answer) as second, opened(folder, second) as elsewhere:
            new = await branched(elsewhere, run, drafted, "another")
            requested = [request["model"] for request in second.requests]
    first = first_of_step(run, drafted)
    assert isinstance(run.events[first], ModelReplied) and run.events[first].role == "write"
    assert new.events[1:first] == run.events[1:first], "the same events, up to the step that is done again"
    assert new.asked.branch is not None and (new.asked.branch.run, new.asked.branch.at) == (run.id, first)
    assert {role_model.model for role_model in new.asked.seats} == {"another"} == set(requested)
    assert new.delivered and new.answer.claims[0].text.startswith("The lighthouse's tower")  # type: ignore[union-attr]
    assert len(model.requests) == before, "what is recorded is not asked again"
    roles = [event.role for event in new.events[first:] if isinstance(event, ModelReplied)]
    assert "route" not in roles and "weigh" not in roles and "write" in roles


async def test_a_branch_of_a_run_by_rule_goes_by_rule_to_the_same_answer(folder: Path):
    with opened(folder) as workspace:
        run = await asked(workspace)
        for place in (1, 3, len(run.events) // 2, len(run.events) - 1):
            new = await branched(workspace, run, place)
            assert new.id != run.id and new.answer == run.answer and not new.asked.has_model, place
            assert list(records.faults(workspace.store, new.id)) == []


async def test_a_run_with_a_model_can_go_on_by_rule(folder: Path, model: ChatServer):
    with opened(folder, model) as workspace:
        run = await asked(workspace)
    with opened(folder) as workspace:
        with pytest.raises(UserError, match="--model none"):
            await branched(workspace, run, place_of(run, Drafted))
        new = await branched(workspace, run, place_of(run, Drafted), "none")
    assert new.delivered and not new.asked.has_model
    assert new.answer is not None and new.answer.outcome is Outcome.answered


@pytest.mark.parametrize("place", [-1, 0, 10_000])
async def test_a_record_that_is_not_there_is_refused_and_nothing_is_written(folder: Path, place: int):
    with opened(folder) as workspace:
        run = await asked(workspace)
        with pytest.raises(UserError, match=rf"no record {place} to go on from: choose 1 to {len(run.events) - 1}"):
            await branched(workspace, run, place)
        assert len(history.history(workspace.store, "local", workspace.scope())) == 1


def test_a_step_is_done_again_as_a_whole():
    question = Asked("What?", "me", "2026-01-01")
    reply = ModelReplied("check", "check", "m", "r", "{}")
    draft = Drafted((), Shape.prose)
    verdicts = [Checked(place, None) for place in range(2)]  # type: ignore[arg-type]
    failure = Failed("ModelError", "gone"), Resumed(by="me")
    run = Run("r1", (question, draft, reply, verdicts[0], *failure, reply, verdicts[1], Answered(ANSWER)))
    assert [first_of_step(run, place) for place in range(1, len(run.events))] == [1, 2, 2, 2, 2, 2, 2, 8]


def test_a_choice_that_somebody_made_is_not_taken_back():
    question = Asked("What?", "me", "2026-01-01")
    paused, chosen = Paused(Checkpoint.sources, "These?", ("go on",)), Resumed("go on", by="me")
    run = Run("r1", (question, paused, chosen, ModelReplied("write", "write", "m", "r", ""), Drafted((), Shape.prose)))
    assert first_of_step(run, 4) == 3, "the draft, with the reply it was made of; the choice stands"


def test_a_branch_never_takes_over_a_decision_on_an_answer():
    question, answer = Asked("What?", "me", "2026-01-01"), ANSWER
    run = Run("r1", (question, Drafted((), Shape.prose)))
    seal = seal_of(run, answer)
    run = Run(
        "r1", (*run.events, AwaitingReview(answer, seal, ("high stakes",)), Reviewed(Decision.approve, seal, "boss"))
    )
    run = run.then(Answered(answer, seal))
    for place in range(2, 5):
        first = first_of_step(run, place)
        assert first == 2
        assert not any(isinstance(event, AwaitingReview | Reviewed | Answered) for event in copied_events(run, first))


def test_what_somebody_may_not_read_is_not_taken_over():
    question = Asked("What?", "me", "2026-01-01")
    run = Run("r1", (question, Drafted((), Shape.prose), Withheld("Checked", "gone"), Withheld("Answered", "")))
    assert copied_events(run, 3) == run.events[1:2]


async def test_a_branch_waits_for_a_reviewer_like_any_run(folder: Path):
    with opened(folder) as workspace:
        run = await asked(workspace)
    with opened(folder, review_always=True) as workspace:
        new = await branched(workspace, run, len(run.events) - 1)
        assert new.held is not None and not new.delivered
        assert new.held.seal != seal_of(run, run.answer)  # type: ignore[arg-type]


async def test_high_stakes_stay_high_in_a_branch(folder: Path):
    with opened(folder) as workspace:
        run = await asked(workspace, stakes=Stakes.high)
        assert run.held is not None
        new = await branched(workspace, run, place_of(run, AwaitingReview))
        assert new.asked.stakes is Stakes.high and new.held is not None and not new.delivered


async def test_what_a_branch_may_read_is_as_of_now(folder: Path):
    with opened(folder) as workspace:
        run = await asked(workspace)
        base = workspace.scope().bases[0]
        grants.embedder_of(workspace.store, base)
        await workspace.documents.remove(["tower"])
        kept = workspace.questions.run(run.id)
        new = await branched(workspace, kept, 3)
    assert "31 metres" not in dumps([to_json(event) for event in new.events[1:]])


async def test_a_branch_that_was_stopped_goes_on_with_its_own_model(folder: Path, model: ChatServer):
    with opened(folder, model) as workspace:
        run = await asked(workspace)
        first = first_of_step(run, place_of(run, Drafted))
        steps = workspace.questions.branch(run, first, "another")
        async for new, _ in steps:
            if len(new.events) == first:
                break  # all that was taken over is on record, and nothing was asked yet
        await steps.aclose()
        done = [now async for now, _ in workspace.resume(new.id)][-1]
    assert done.delivered
    assert {event.model for event in done.events[first:] if isinstance(event, ModelReplied)} == {"another"}


def test_only_a_model_of_the_endpoint_can_be_named_by_anybody(folder: Path, model: ChatServer):
    with opened(folder, model) as workspace:
        assert workspace.models.check_name(" llama3:8b ") == "llama3:8b"
        assert workspace.models.check_name("none") == "none" and workspace.models.check_name("") == ""
        with pytest.raises(UserError, match="a provider's model"):
            workspace.models.check_name("openai:gpt-5")
