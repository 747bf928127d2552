"""A question of several hops over real HTTP, step by step; gone through again without a server; carried on from anywhere."""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from doubles import ChatServer, Script, calls, enough, keeps, lookup, passages_in, role_of, text_of, writes
from lighthouse_notes import (
    CLAIMS,
    GROUND,
    NOTES,
    PAINT,
    QUESTION,
    STEPS,
    TALL,
    TENDS,
    answered,
    literal,
    opened,
    self_critical,
    stateless,
)
from lighthouse_notes import script as scripted
from notes import folder_of

from assay.agent.context import RunContext
from assay.agent.loop import play
from assay.core.events import Asked, Critiqued, Decided, Gathered, Mode, Planned, RoleModel, Routed, StepAnswered
from assay.core.run import Run
from assay.core.types import Answer, Outcome, Usage
from assay.governance.replay import load, replay, save
from assay.models.llm import Prompt, Reply, Role
from assay.models.meter import ConnectedModel, Ledger, Meter
from assay.workspace.facade import Workspace
from assay.workspace.services.ask import run_context_for

LEVELS = {
    "native tools": (),
    "schema": ("tools",),
    "json": ("tools", "schema"),
    "text": ("tools", "schema", "json"),
}


folder = folder_of(NOTES)


@pytest.fixture
def reader(folder: Path) -> Iterator[Workspace]:
    """A workspace without a model, which nobody writes to."""
    with opened(folder) as workspace:
        yield workspace


def without_price(answer: Answer | None) -> Answer:
    """The answer but for what it took, which is never twice the same."""
    assert answer is not None
    return replace(answer, usage=Usage())


@pytest.mark.long
@pytest.mark.parametrize("lacks", LEVELS.values(), ids=LEVELS)
async def test_a_question_of_several_hops_takes_every_step_at_every_level_of_endpoint(
    folder: Path, lacks: tuple[str, ...]
):
    script = scripted()
    with ChatServer(script.answer, lacks=lacks) as server, opened(folder, server, llm_size="large") as workspace:
        run = await answered(workspace, mode=Mode.thorough)
        titles = {doc.title for claim in run.answer.claims for doc in _cited(run, claim.cites, workspace)}  # type: ignore[union-attr]
    script.assert_used_up()
    assert not server.problems

    # In the order of the plan: what does not depend on anything side by side, then what depends on it, then what is missing.
    assert list(dict.fromkeys(run.kinds)) == [
        *("Asked", "ModelReplied", "Routed", "Planned", "Decided", "ToolRan", "Gathered", "StepAnswered", "Judged"),
        *("Stopped", "Claimed", "Drafted", "Checked", "Critiqued", "Answered"),
    ]
    first, second, third = [event for event in run.events if isinstance(event, Decided) and event.is_round]
    assert [call.arguments["query"] for call in first.calls] == [
        "lamp room Carrow Point painted",
        "tower lighthouse Carrow Point metres",
        QUESTION,
    ]
    assert [call.arguments["query"] for call in second.calls] == ["orpiment barrels works"]
    assert [call.arguments["query"] for call in third.calls] == ["beacon log watch"]
    assert third.by == "decide@scripted" and first.by == second.by == "rules"

    # The second search is for a value that was bound before, and only it brought the passage that the answer needs.
    bound = [event for event in run.events if isinstance(event, StepAnswered)]
    assert [(event.step, event.value) for event in bound] == [
        ("s1", "orpiment"),
        ("s3", "31 metres"),
        ("s2", "Dunmere"),
    ]
    assert run.events.index(bound[0]) < run.events.index(second) < run.events.index(bound[2])
    evidence = {each.key: each.quote.text for each in run.evidence}
    assert [evidence[event.cites[0]] for event in bound] == [PAINT, TALL, GROUND]
    assert GROUND not in _quoted_before(run, second) and GROUND in _quoted_before(run, third)

    assert run.answer is not None and run.answer.outcome is Outcome.answered
    assert titles == {"lamp", "works", "tower", "beacon"}
    # One request both chooses the way and plans the steps.
    assert [(type(event), event.by) for event in run.events if isinstance(event, Routed | Planned)] == [
        (Routed, "route@scripted"),
        (Planned, "route@scripted"),
    ]


def _quoted_before(run: Run, event: Any) -> set[str]:
    earlier = Run(run.id, run.events[: run.events.index(event)])
    return {each.quote.text for each in earlier.evidence}


def _cited(run: Run, keys: tuple[str, ...], workspace: Workspace) -> list[Any]:
    found = {each.key: each.passage.doc_id for each in run.evidence}
    return [workspace.documents.get(found[key]) for key in keys]


@pytest.mark.long
async def test_the_levels_of_endpoint_differ_in_form_and_not_in_what_is_done(folder: Path):
    seen = {}
    for level, lacks in LEVELS.items():
        server = ChatServer(literal().answer, lacks=lacks, good_judge=True)  # a capable model, whatever its interface
        with server, opened(folder, server) as workspace:
            run = await answered(workspace, mode=Mode.balanced)
        asked = [request for request in server.requests if role_of(request)[0] == "decide"]
        forms = {(request.get("response_format") or {}).get("type", "text") for request in asked}
        native = any(request.get("tools") for request in asked)
        decided = [
            str(call.arguments["query"])
            for event in run.events
            if isinstance(event, Decided) and event.is_round
            for call in event.calls
        ]
        seen[level] = ("tools" if native else "", *forms), [claim.words for claim in run.answer.claims], decided  # type: ignore[union-attr]
    assert [form for form, _, _ in seen.values()] == [
        ("tools", "text"),
        ("", "json_schema"),
        ("", "json_object"),
        ("", "text"),
    ]
    done = [(claims, decided) for _, claims, decided in seen.values()]
    assert done[0][0] and done == done[:1] * 4


async def test_a_model_that_neither_calls_tools_nor_judges_well_writes_nothing(folder: Path):
    with ChatServer(literal().answer, lacks=("tools",)) as server, opened(folder, server) as workspace:
        run = await answered(workspace)
        said = workspace.setup.written_by()
    assert set(server.counts) == {""}, "only the trials of a model name no role"
    assert not run.asked.has_model
    assert run.answer is not None and run.answer.claims and all(claim.quote for claim in run.answer.claims)
    assert said == "scripted is too small to write answers, and is not asked: they are quotations."


async def test_a_passage_is_weighed_once_and_a_hopeless_one_never_reaches_the_model(folder: Path):
    with ChatServer(stateless().answer) as server, opened(folder, server) as workspace:
        run = await answered(workspace, mode=Mode.quick)
    asked = [text_of(request) for request in server.requests if role_of(request)[0] == "weigh"]
    shown = Counter(words for text in asked for id, words in passages_in(text).items() if re.fullmatch(r"P\d+", id))
    found = {each.passage.id: each.passage.text for each in run.found}
    gathered = [event for event in run.events if isinstance(event, Gathered)]
    kept = {each.passage.id for event in gathered for each in event.evidence}
    dropped = {passage for event in gathered for passage in event.dropped}
    skipped = {passage for event in gathered for passage in event.skipped} - kept - dropped
    assert set(shown.values()) == {1} and set(shown) == {found[passage] for passage in kept | dropped}
    assert len(skipped) >= 10 and found.keys() == kept | dropped | skipped  # most of what came back costs nothing
    assert len(asked) <= len(shown) // 2  # and several share a request


# --- without a server -----------------------------------------------------------------------------------------------


async def _recorded(folder: Path, model: Script, question: str = QUESTION, **how: Any) -> Run:
    with ChatServer(model.answer) as server, opened(folder, server) as workspace:
        return await answered(workspace, question, **how)


async def test_the_events_replay_to_the_same_answer_with_no_server(folder: Path):
    run = await _recorded(folder, scripted(), mode=Mode.thorough)
    with opened(folder) as workspace:
        again = workspace.questions.run(run.id)
        assert again == run
        replayed = await replay(again, await run_context_for(workspace.context, again))
    assert replayed.differences == () and replayed.answer == run.answer


async def test_a_run_replays_from_a_file_with_no_workspace_at_all(folder: Path):
    run = await _recorded(folder, scripted(), mode=Mode.thorough)
    with opened(folder) as workspace:
        saved = save(run, workspace.documents.get)
    shutil.rmtree(folder)
    loaded, context = load(saved)
    replayed = await replay(loaded, context, searchable=False)
    assert loaded == run and replayed.differences == () and replayed.answer == run.answer


async def test_a_record_that_was_tampered_with_does_not_replay(folder: Path):
    run = await _recorded(folder, scripted(), mode=Mode.thorough)
    for kind, change in (
        (StepAnswered, lambda event: replace(event, value="ochre")),
        (Routed, lambda event: replace(event, why="on a whim")),
        (Gathered, lambda event: replace(event, evidence=tuple(replace(e, score=1.0) for e in event.evidence))),
        (Decided, lambda event: replace(event, calls=event.calls[1:])),
    ):
        place = next(at for at, event in enumerate(run.events) if isinstance(event, kind) and change(event) != event)
        forged = Run(run.id, (*run.events[:place], change(run.events[place]), *run.events[place + 1 :]))
        with opened(folder) as workspace:
            replayed = await replay(forged, await run_context_for(workspace.context, forged))
        assert any(f"record {place}: {kind.__name__}" in each for each in replayed.differences), kind.__name__


async def test_a_look_up_that_finds_nothing_becomes_research_and_replays(folder: Path):
    model = stateless()
    turned = scripted(
        route=lookup(), plan=STEPS, weigh=[{"passages": []}, *[keeps(TENDS)] * 9], judge=enough(),
        decide=[calls("search", query="beacon log watch")], write=writes(CLAIMS[2]),
    )  # fmt: skip
    run = await _recorded(folder, turned, "Who tends the light of the lamp?", mode=Mode.quick)
    assert [event.route.value for event in run.events if isinstance(event, Routed)] == ["lookup", "research"]
    assert run.answer is not None and run.answer.claims[0].text == "Ines Tallow tends the beacon."
    with opened(folder) as workspace:
        replayed = await replay(run, await run_context_for(workspace.context, run))
    assert replayed.differences == () and replayed.answer == run.answer
    assert not model.problems


# --- from any prefix ------------------------------------------------------------------------------------------------


class Counted:
    """A model without a memory that keeps count of what it is asked."""

    name = "scripted"

    def __init__(self, model: Script) -> None:
        self.model = model
        self.asked = 0

    async def complete(self, prompt: Prompt, seconds: float) -> Reply:
        self.asked += 1
        return await self.model.complete(prompt, seconds)


async def _kit(workspace: Workspace, run: Run, model: Counted) -> RunContext:
    models = {Role(role_model.role): (ConnectedModel(model, role_model),) for role_model in run.asked.seats}
    meter = Meter(models, lambda _: None, lambda _: None, Ledger())
    return replace(await run_context_for(workspace.context, run), record=Run.then, meter=meter)


def _asked(question: str = QUESTION, **how: Any) -> Run:
    role_models = tuple(RoleModel(role.value, "scripted", True, True, True, small=False) for role in Role)
    return Run("r1", (Asked(question, "local", "2026-01-01", seats=role_models, **how),))


PATHS: dict[str, tuple[Callable[[], Script], Mode, str, int]] = {
    "every step": (stateless, Mode.thorough, "Asked", 1),
    "revised and reopened": (self_critical, Mode.thorough, "Drafted", 1),
}


@pytest.mark.parametrize("sparse", [7, pytest.param(1 if os.environ.get("ASSAY_SOAK") else 3, marks=pytest.mark.long)])
@pytest.mark.parametrize(("model", "mode", "after", "stride"), PATHS.values(), ids=PATHS)
async def test_a_run_carried_on_from_any_of_its_events_ends_the_same_and_asks_nothing_twice(
    reader: Workspace, model: Callable[[], Script], mode: Mode, after: str, stride: int, sparse: int
):
    begun = _asked(mode=mode)
    first = Counted(model())
    whole = await play(begun, await _kit(reader, begun, first))
    assert whole.answer is not None and whole.answer.outcome is Outcome.answered
    replies = len(whole.consulted)
    assert first.asked == replies > 5
    wrong = []
    for length in range(1 + whole.kinds.index(after), len(whole.events), stride * sparse):
        prefix = Run("r1", whole.events[:length])
        counted = Counted(model())
        again = await play(prefix, await _kit(reader, begun, counted))
        left = replies - len(prefix.consulted)
        if without_price(again.answer) != without_price(whole.answer) or counted.asked != left:
            wrong.append((length, whole.kinds[length - 1], counted.asked, left))
    assert not wrong


async def test_a_draft_is_revised_once_and_the_search_reopened_once(reader: Workspace):
    begun = _asked(mode=Mode.thorough)
    run = await play(begun, await _kit(reader, begun, Counted(self_critical())))
    kinds = Counter(run.kinds)
    judgements = [event for event in run.events if isinstance(event, Critiqued)]
    assert [(each.final, each.complete) for each in judgements if not each.final] == [(False, False)]
    assert judgements[-1].final and judgements[-1].complete
    assert (
        kinds["Stopped"] == kinds["Drafted"] == 2 and kinds["Revised"] == 4
    )  # what code strikes is put right before the whole is judged
    assert run.answer is not None and {claim.text for claim in run.answer.claims} >= {
        "All orpiment is ground in Dunmere.",
        "The tower of the lighthouse at Carrow Point is 31 metres tall.",
    }
    assert not any("32" in claim.text or "33" in claim.text for claim in run.answer.claims)
