"""Where a run waits for a person, what it does with what they say, and how modes, eagerness and wishes change its way."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from doubles import (
    ChatServer,
    Script,
    calls,
    direct,
    enough,
    keeps,
    lookup,
    missing,
    no_calls,
    one_step,
    research,
    role_of,
    says,
    supported,
    text_of,
    writes,
)
from doubles import steps as plans
from lighthouse_notes import CLAIMS, GROUND, PAINT, TALL, TENDS, answered, opened, resumed
from lighthouse_notes import script as scripted
from notes import folder_of

from assay.agent.context import ROUNDS
from assay.agent.loop import play
from assay.answer.render import as_html, as_markdown, as_text
from assay.core.access import LOCAL
from assay.core.errors import UserError
from assay.core.events import (
    ANSWER_NOW,
    EACH,
    GO_ON,
    MORE_SOURCES,
    OTHER_WORDS,
    Checkpoint,
    Critiqued,
    Decided,
    Drafted,
    Eagerness,
    Mode,
    Paused,
    Planned,
    Resumed,
    Route,
    Routed,
    Stopped,
    StopReason,
    ToolRan,
)
from assay.core.run import Run
from assay.core.types import Outcome
from assay.store.runs import records
from assay.workspace.services.ask import resumption, run_context_for

TENDED = "Who tends the beacon?"
NOTES = {
    "lamp": PAINT,
    "works": GROUND,
    "tower": TALL,
    "beacon": TENDS,
    "path": "The path to the light is steep.",
    "cliff": "The cliff below the light is soft and falls.",
}


folder = folder_of(NOTES)


def model(**other: Any) -> Script:
    """One that looks up who tends the beacon, and is content with that."""
    lines: dict[str, Any] = {
        "route": research(),
        "plan": one_step(TENDED, "tends beacon"),
        "decide": no_calls(),
        "weigh": keeps(TENDS),
        "judge": enough(),
        "write": writes(CLAIMS[2]),
    }
    return scripted(**lines | other)


def events(run: Run, kind: type) -> list[Any]:
    return [event for event in run.events if isinstance(event, kind)]


def queries(run: Run) -> list[str]:
    return [
        str(call.arguments.get("query")) for event in events(run, Decided) if event.is_round for call in event.calls
    ]


# --- checkpoints ----------------------------------------------------------------------------------------------------


async def test_the_sources_are_shown_before_the_answer_and_a_choice_days_later_in_another_process_carries_on(
    folder: Path,
):
    with ChatServer(model().answer) as server:
        with opened(folder, server) as workspace:
            run = await answered(workspace, TENDED, checkpoints=(Checkpoint.sources,))
            assert run.waiting == Paused(Checkpoint.sources, run.waiting.question, (ANSWER_NOW, MORE_SOURCES))  # type: ignore[union-attr]
            assert run.evidence and run.draft is None and server.counts["write"] == 0
        with opened(folder, server) as workspace:
            later = datetime.now(UTC) + timedelta(days=9)
            clock = lambda: later.isoformat(timespec="milliseconds").replace("+00:00", "Z")  # noqa: E731
            workspace.store = replace(workspace.store, now=clock)
            run = await resumed(workspace, run, ANSWER_NOW)
            assert run.answer is not None and run.answer.outcome is Outcome.answered
            assert [type(event).__name__ for event in run.events].count("Paused") == 1
            assert records.active_seconds(workspace.store, run.id) < 60  # nine days of waiting count for nothing
    assert run.stopped is not None and run.stopped.reason is StopReason.sufficient


async def test_more_sources_reopen_the_search_once_and_then_it_is_answered(folder: Path):
    looks = model(decide=[calls("search", query="steep path")], weigh=keeps(TENDS, NOTES["path"]))
    with ChatServer(looks.answer) as server, opened(folder, server) as workspace:
        run = await answered(workspace, TENDED, checkpoints=(Checkpoint.sources,))
        run = await resumed(workspace, run, MORE_SOURCES)
    assert queries(run)[-1] == "steep path" and run.answer is not None and run.answer.outcome is Outcome.answered
    assert len(events(run, Paused)) == 1 and len(events(run, Stopped)) == 2


async def test_when_nothing_was_found_a_persons_other_words_are_searched_for(folder: Path):
    # The model rests whenever it is asked, and sees nothing in any passage until the words are there.
    words: list[str] = []
    finds = model(
        plan=one_step("Who is the warden of the lantern?", "lantern warden"),
        weigh=lambda text, schema: keeps(TENDS)(text, schema) if words else {"passages": []},
    )
    with ChatServer(finds.answer) as server, opened(folder, server) as workspace:
        run = await answered(workspace, "Who is the warden of the lantern?", checkpoints=(Checkpoint.nothing,))
        assert run.waiting is not None and run.waiting.at is Checkpoint.nothing
        assert run.waiting.options == (OTHER_WORDS, ANSWER_NOW) and not run.evidence
        with pytest.raises(UserError, match="Which other words"):
            await resumed(workspace, run, OTHER_WORDS)
        words.append("beacon log")
        run = await resumed(workspace, run, OTHER_WORDS, "beacon log")
    assert queries(run)[-1] == "beacon log" and events(run, Resumed)[0].words == "beacon log"
    assert len(events(run, Paused)) == 1 and run.answer is not None


async def test_when_nothing_was_found_the_gap_is_said_if_that_is_what_the_person_wants(folder: Path):
    with ChatServer(model(weigh={"passages": []}).answer) as server, opened(folder, server) as workspace:
        run = await answered(workspace, TENDED, checkpoints=(Checkpoint.nothing,))
        run = await resumed(workspace, run, "2")  # by its number
    assert run.answer is not None and run.answer.outcome is Outcome.abstained and run.answer.gaps
    assert events(run, Resumed)[0].choice == ANSWER_NOW


async def test_after_three_searches_a_person_may_go_on_or_have_the_answer_now(folder: Path):
    def searcher() -> Script:
        three = plans((TENDED, "tends log"), ("What is steep?", "steep path"), ("What is soft?", "soft cliff"))
        return model(plan=three, judge=missing("more"), decide=[calls("search", query="tall tower"), no_calls()])

    for choice, more in ((ANSWER_NOW, 0), (GO_ON, 1)):
        with ChatServer(searcher().answer) as server, opened(folder, server) as workspace:
            run = await answered(workspace, TENDED, checkpoints=(Checkpoint.searches,))
            assert run.waiting is not None and run.waiting.at is Checkpoint.searches and len(run.results) >= 3
            assert run.rounds == 1 and run.draft is None
            run = await resumed(workspace, run, choice)
        assert run.answer is not None and len(events(run, Paused)) == 1 and run.rounds == 1 + more
        assert (events(run, Stopped)[-1].reason is StopReason.person) == (choice == ANSWER_NOW)


READINGS = ("Which timeout does the gateway have?", "Which timeout does the lamp have?")


@pytest.mark.parametrize("how", [{"checkpoints": (Checkpoint.reading,)}, {"eagerness": Eagerness.sparing}], ids=str)
async def test_a_person_is_asked_which_reading_is_meant_and_the_others_are_left(folder: Path, how: dict[str, Any]):
    with ChatServer(model(route=research(readings=READINGS)).answer) as server, opened(folder, server) as workspace:
        run = await answered(workspace, "Which timeout?", **how)
        assert run.waiting is not None and run.waiting.options == (*READINGS, EACH)
        assert server.counts["plan"] == 0
        run = await resumed(workspace, run, READINGS[1])
        planned = [text_of(request) for request in server.requests if role_of(request)[0] == "plan"]
    assert run.readings == (READINGS[1],) and READINGS[1] in planned[0] and READINGS[0] not in planned[0]
    assert len(events(run, Paused)) == 1 and run.delivered


@pytest.mark.parametrize("asks", [True, False])
async def test_each_reading_is_a_step_of_its_own_where_all_are_meant_or_nobody_is_to_be_asked(folder: Path, asks: bool):
    how = {"checkpoints": (Checkpoint.reading,)} if asks else {}
    with ChatServer(model(route=research(readings=READINGS)).answer) as server, opened(folder, server) as workspace:
        run = await answered(workspace, "Which timeout?", **how)
        run = await resumed(workspace, run, EACH) if asks else run
    assert [step.question for step in events(run, Planned)[0].plan.steps] == list(READINGS)
    assert server.counts["plan"] == 0 and run.answer is not None and run.answer.readings == READINGS
    assert len(events(run, Paused)) == asks


async def test_a_run_that_was_killed_before_it_could_ask_which_reading_is_meant_still_asks(folder: Path):
    with ChatServer(model(route=research(readings=READINGS)).answer) as server, opened(folder, server) as workspace:
        steps = workspace.ask("Which timeout?", checkpoints=(Checkpoint.reading,))
        run = [await anext(steps) for _ in range(3)][-1][0]
        await steps.aclose()
        assert run.kinds[-1] == "Routed"
        run = await resumed(workspace, run)
    assert run.waiting is not None and run.waiting.at is Checkpoint.reading


async def test_a_run_that_was_killed_before_it_recorded_its_plan_goes_on_though_the_model_routes_otherwise_now(
    folder: Path,
):
    with ChatServer(model(route=research(readings=READINGS)).answer) as server, opened(folder, server) as workspace:
        (asked,) = [event async for run, event in workspace.ask(TENDED) if len(run.events) == 1]
        run = records.begin(workspace.store, LOCAL.id)
        for seq, event in enumerate((asked, Routed(Route.lookup, "one search finds it", by="route@scripted"))):
            records.append(workspace.store, run, seq, event)
        ended = await resumed(workspace, workspace.questions.run(run))
    assert len(events(ended, Routed)) == 1 and ended.plan is not None and ended.answer is not None


async def test_a_choice_is_refused_in_words_that_say_what_to_do(folder: Path):
    with ChatServer(model().answer) as server, opened(folder, server) as workspace:
        run = await answered(workspace, TENDED, checkpoints=(Checkpoint.sources,))
        for choice, words, told in (
            ("", "", "Choose with --choose: answer now · more sources"),
            ("maybe", "", "'maybe' is none of the choices"),
            ("3", "", "none of the choices"),
        ):
            with pytest.raises(UserError, match=told):
                await resumed(workspace, run, choice, words)
        done = await resumed(workspace, run, "ANSWER NOW ")
        with pytest.raises(UserError, match="does not wait for a choice"):
            resumption(done, ANSWER_NOW, "", "local")
        assert len(workspace.questions.run(run.id).events) == len(done.events)


async def test_waiting_takes_nothing_from_the_seconds_that_a_run_may_take(folder: Path):
    with ChatServer(model().answer) as server:
        with opened(folder, server, budget_run_seconds=30) as workspace:
            run = await answered(workspace, TENDED, checkpoints=(Checkpoint.sources,))
        with opened(folder, server, budget_run_seconds=30) as workspace:
            late = (datetime.now(UTC) + timedelta(hours=5)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            workspace.store = replace(workspace.store, now=lambda: late)
            run = await resumed(workspace, run, MORE_SOURCES)
    assert run.answer is not None and run.answer.outcome is Outcome.answered
    assert run.stopped is not None and run.stopped.reason is not StopReason.time


# --- modes and eagerness --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", Mode)
async def test_a_mode_is_a_number_of_rounds_and_reaching_it_is_said(folder: Path, mode: Mode):
    words = iter("steep soft tall falls barrels orpiment painted lamp room log night metres tower cliff".split())
    never = model(
        judge=missing("more"),
        weigh=lambda text, schema: {
            "passages": [{"id": "P1", "quote": "", "score": 9, "note": ""}] if "P1," in text else []
        },
        decide=lambda text, schema: calls("search", query=f"{next(words)} light"),
    )
    with ChatServer(never.answer) as server, opened(folder, server) as workspace:
        run = await answered(workspace, TENDED, mode=mode)
    assert run.answer is not None
    assert run.rounds <= ROUNDS[mode]
    assert events(run, Stopped)[0].reason in {StopReason.rounds, StopReason.nothing_new}
    if mode is Mode.quick:
        assert run.rounds == ROUNDS[mode] and run.answer.outcome is Outcome.partial
        assert not server.counts["judge"] and run.reopened is None, "judged with the weighing, and not again"


@pytest.mark.parametrize(
    ("eagerness", "proposed", "taken"),
    [
        (Eagerness.normal, lookup(), Route.lookup),
        (Eagerness.eager, lookup(), Route.research),
        (Eagerness.sparing, lookup(), Route.lookup),
        (Eagerness.normal, research(), Route.research),
    ],
)
async def test_eagerness_changes_the_route_and_what_the_model_is_told(
    folder: Path, eagerness: Eagerness, proposed: dict[str, Any], taken: Route
):
    with ChatServer(model(route=proposed).answer) as server, opened(folder, server) as workspace:
        run = await answered(workspace, TENDED, eagerness=eagerness)
    told = next(text_of(request) for request in server.requests if role_of(request)[0] == "route")
    assert ("wants few searches" in told, "wants everything" in told) == (
        eagerness is Eagerness.sparing,
        eagerness is Eagerness.eager,
    )
    assert run.route is taken and server.counts["route"] == 1 and not server.counts["plan"]
    assert run.answer is not None and run.answer.outcome is Outcome.answered


async def test_a_person_may_choose_the_route_and_a_model_is_only_asked_about_sets_and_readings(folder: Path):
    for wish in (Route.lookup, Route.research):
        with ChatServer(model().answer) as server, opened(folder, server) as workspace:
            run = await answered(workspace, TENDED, route=wish)
        assert run.route is wish and run.answer is not None
        assert server.counts["route"] == (wish is Route.research) and not server.counts["plan"] + server.counts["judge"]


# --- the judgement of the answer ------------------------------------------------------------------------------------


async def test_a_judge_that_is_never_content_has_what_it_lacks_searched_for_once(folder: Path):
    lacks = "how tall the tower is"
    never = model(judge=enough(), check=supported(missing=[lacks], search=lacks), weigh=keeps(TENDS, TALL))
    with ChatServer(never.answer) as server, opened(folder, server) as workspace:
        run = await answered(workspace, TENDED)
    assert [(each.final, each.complete) for each in events(run, Critiqued)] == [(True, False)]
    assert run.calls[-1].arguments["query"] == lacks and [each.query for each in run.calls].count(lacks) == 1
    assert len(events(run, Drafted)) == 1 and run.answer is not None
    assert run.answer.outcome is Outcome.partial and run.answer.gaps == (lacks,)


async def test_what_a_search_is_not_said_to_find_reopens_nothing(folder: Path):
    lacks = model(check=supported(missing=["the name of who tends"]))
    with ChatServer(lacks.answer) as server, opened(folder, server) as workspace:
        run = await answered(workspace, TENDED, mode=Mode.thorough)
    assert run.reopened is None and len(events(run, Drafted)) == 1
    assert run.answer is not None and run.answer.gaps == ("the name of who tends",)


async def test_what_was_done_in_haste_is_judged_and_not_reopened(folder: Path):
    hasty = model(check=supported(missing=["all"], search="all"))
    with ChatServer(hasty.answer) as server, opened(folder, server) as workspace:
        run = await answered(workspace, TENDED, mode=Mode.quick)
    assert run.reopened is None and run.answer is not None
    assert run.answer.outcome is Outcome.partial and run.answer.gaps == ("all",)


@pytest.mark.parametrize("by_person", [False, True], ids=["by the model", "by the person"])
async def test_what_a_look_up_misses_is_searched_for_unless_the_person_asked_for_one(folder: Path, by_person: bool):
    lacks = model(route=lookup(), check=supported(missing=["the number of the beacon"], search="height of the tower"))
    with ChatServer(lacks.answer) as server, opened(folder, server) as workspace:
        run = await answered(workspace, TENDED, route=Route.lookup if by_person else None)
        again = await workspace.questions.replay(run)
    assert len(events(run, Routed)) == 1 and run.route is Route.lookup, "the search brought nothing"
    assert ("height of the tower" in [call.arguments.get("query") for call in run.calls]) is not by_person
    assert run.answer is not None and run.answer.gaps == ("the number of the beacon",)
    assert again.same and not again.differences


# --- whole sets -----------------------------------------------------------------------------------------------------


async def test_a_question_about_a_whole_set_is_exhausted_and_says_what_was_examined(folder: Path):
    kept = keeps(TALL, NOTES["path"], NOTES["cliff"], TENDS)
    light = one_step("Which notes are about the light?", "note about the light")
    written = writes("The path to the light is steep [{steep}].", shape="list")
    lists = model(route=lookup() | {"every": True}, plan=light, weigh=kept, write=written)
    with ChatServer(lists.answer) as server, opened(folder, server) as workspace:
        run = await answered(workspace, "List every note about the light")
    assert run.every and run.route is Route.research and server.counts["plan"] == server.counts["judge"] == 0
    assert [call.tool for call in run.calls] == ["search_all"]
    assert events(run, Stopped)[0].reason is StopReason.exhausted
    examined = run.answer.examined if run.answer else None
    assert examined is not None and examined.left == 0 and len(examined.whole) == 2 and not examined.partly
    assert examined.passages == len(events(run, ToolRan)[0].found) > 0
    assert not any(event.skipped for event in run.events if hasattr(event, "skipped"))  # nothing is passed over


async def test_what_is_left_of_a_set_is_said(folder: Path):
    light = one_step("Which notes are about the light?", "note about the light")
    written = writes("The path to the light is steep [{steep}].")
    lists = model(route=lookup() | {"every": True}, plan=light, weigh=keeps(NOTES["path"]), write=written)
    with ChatServer(lists.answer) as server, opened(folder, server) as workspace:
        steps = workspace.ask("List every note about the light")
        run = [await anext(steps) for _ in range(5)][-1][0]
        await steps.aclose()
        assert run.kinds[-1] == "Decided"
        context = await run_context_for(workspace.context, run, await workspace.models.connect())
        run = await play(run, replace(context, tool_context=replace(context.tool_context, most=1)))
    examined = run.answer.examined if run.answer else None
    assert examined is not None and examined.left > 0
    assert events(run, Stopped)[0].reason is not StopReason.exhausted


# --- without the documents ------------------------------------------------------------------------------------------


def chatty() -> Script:
    return model(route=direct(), direct=says("I answer from documents."))


async def test_an_answer_that_is_not_from_the_documents_says_so_and_cites_nothing(folder: Path):
    with ChatServer(chatty().answer) as server, opened(folder, server) as workspace:
        run = await answered(workspace, "What can you do?")
    assert run.answer is not None and run.answer.outcome is Outcome.direct
    assert run.answer.said == "I answer from documents." and not run.answer.claims and not run.calls
    for shown in (as_text(run.answer, {}), as_markdown(run.answer, {}), as_html(run.answer, {})):
        assert "not from" in shown.lower()


async def test_answers_that_are_not_from_the_documents_can_be_switched_off(folder: Path):
    with ChatServer(chatty().answer) as server, opened(folder, server, llm_general=False) as workspace:
        run = await answered(workspace, "What can you do?")
    assert run.answer is not None and run.answer.outcome is not Outcome.direct and not run.answer.said
    assert run.calls and "switched off" in events(run, Routed)[0].why


@pytest.mark.parametrize("question", ["Who is Ines Tallow?", "How tall is the tower at Carrow Point?"])
async def test_what_the_documents_speak_of_is_not_answered_without_them(folder: Path, question: str):
    with ChatServer(chatty().answer) as server, opened(folder, server) as workspace:
        run = await answered(workspace, question)
    assert events(run, Routed)[0].route is Route.lookup and "the documents may answer it" in events(run, Routed)[0].why
    assert run.calls and not (run.answer and run.answer.said)


# --- why it stopped -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("why", ["money: there is none", "covered", "limit", "time: it is late"])
async def test_a_model_that_rests_does_not_choose_the_reason_that_is_given(folder: Path, why: str):
    with (
        ChatServer(model(judge=missing("more"), decide=no_calls(why)).answer) as server,
        opened(folder, server) as workspace,
    ):
        run = await answered(workspace, TENDED)
    stopped = events(run, Stopped)[0]
    assert stopped.reason is StopReason.nothing_new and stopped.why == why


async def test_a_call_that_was_made_before_is_not_made_again_and_that_is_said(folder: Path):
    same = model(judge=missing("more"), decide=calls("search", query="Beacon: who TENDS it?"))
    with ChatServer(same.answer) as server, opened(folder, server) as workspace:
        run = await answered(workspace, TENDED)
    last = events(run, Decided)[-1]
    assert not last.calls and last.refused and events(run, Stopped)[0].reason is StopReason.repeated
    assert json.dumps(queries(run)).lower().count("tends") <= 2
