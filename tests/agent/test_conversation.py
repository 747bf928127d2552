"""A conversation works on its own answers: what is said of the last answer is not searched for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import conversation as talk
import pytest
from conversation import FIRST, GERMAN, LEANS, NOTES, PAINT, TALL
from notes import filled, opened

from assay.agent.steps.rephrase import rephrase_by_rule, stands_alone
from assay.agent.steps.rework import by_rule
from assay.agent.turns import by_words
from assay.answer import render
from assay.core.codec import from_json, to_json
from assay.core.events import (
    Asked,
    Checkpoint,
    Decided,
    HistorySummarised,
    ModelReplied,
    Rephrased,
    Route,
    Subject,
    Task,
)
from assay.core.events.describe import understood_turn
from assay.core.events.upgrade import read_event
from assay.core.run import Run
from assay.core.types import Answer, Block, Claim, Exchange, Outcome, Quote
from assay.governance.replay import replay
from assay.testing import ChatServer, lookup, research, says, supported, verdicts, writes
from assay.workspace.ask import run_context_for
from assay.workspace.chat_history import history
from assay.workspace.facade import Workspace
from assay.workspace.types import AskOptions


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    await filled(tmp_path / "w", NOTES)
    return tmp_path / "w"


async def turn(workspace: Workspace, said: str, thread: str = "", **how: Any) -> Run:
    return [run async for run, _ in workspace.chat(said, thread, AskOptions(**how))][-1]


async def turns(workspace: Workspace, *said: str) -> list[Run]:
    runs: list[Run] = []
    for words in said:
        runs.append(await turn(workspace, words, runs[0].asked.thread if runs else ""))
    return runs


def told(workspace: Workspace, run: Run) -> str:
    assert run.answer is not None, run.kinds
    return render.as_text(run.answer, render.citations(run.answer, run.evidence, workspace.document))


def prompts(run: Run) -> list[str]:
    return [event.prompt for event in run.events if isinstance(event, ModelReplied)]


def searches(run: Run) -> bool:
    return any(isinstance(event, Decided) and event.calls and not event.recalls for event in run.events)


@pytest.mark.long
async def test_ten_turns_with_a_model(folder: Path):
    with ChatServer(talk.script().answer) as server, opened(folder, server) as workspace:
        runs = await turns(workspace, *(said for said, _, _ in talk.TURNS))
        for place, (run, (said, meant, shown)) in enumerate(zip(runs, talk.TURNS, strict=True)):
            assert understood_turn(said, run.rephrased).partition(" (")[0] == meant, said
            assert shown in told(workspace, run), (said, told(workspace, run))
            assert searches(run) is (place in talk.SEARCHED), said
        paint, german, sure, boiled, thanks = runs[2:7]
        assert german.answer and paint.answer and german.answer.cited_keys == paint.answer.cited_keys
        assert prompts(german) == ["rework", "check"]  # its words alone say what is wanted: no request for that
        assert prompts(sure) == ["check"] and prompts(boiled) == ["standalone", "rework", "check"]
        assert prompts(thanks) == []
        assert sure.answer and [claim.words for claim in sure.answer.claims] == [GERMAN]
        assert sure.answer.claims[0].carried_by and sure.answer.rechecked == 1
        for run in runs:
            again = await replay(run, await run_context_for(workspace.context, run))
            assert again.differences == () and again.same, run.asked.question


@pytest.mark.long
async def test_ten_turns_without_a_model(folder: Path):
    with opened(folder) as workspace:
        runs = await turns(workspace, *(said for said, _, _ in talk.RULED))
        for place, (run, (said, meant, shown)) in enumerate(zip(runs, talk.RULED, strict=True)):
            assert understood_turn(said, run.rephrased).partition(" (")[0] == meant, said
            assert shown in told(workspace, run), (said, told(workspace, run))
            assert searches(run) is (place in talk.RULED_SEARCHED), said
        for run in runs:
            again = await replay(run, await run_context_for(workspace.context, run))
            assert again.differences == () and again.same, run.asked.question


@pytest.mark.parametrize(
    ("said", "task"),
    [
        ("Shorter!", Task.shorten),
        ("tl;dr", Task.shorten),
        ("in one sentence please", Task.shorten),
        ("auf Deutsch", Task.rewrite),
        ("Can you translate that into Swahili?", Task.rewrite),
        ("Say it more simply.", Task.rewrite),
        ("what does that mean?", Task.rewrite),
        ("Really?", Task.check),
        ("Is that right?", Task.check),
        ("only the numbers", Task.numbers),
        ("as bullet points", Task.list),
    ],
)
def test_some_turns_only_say_what_to_do_with_the_last_answer(said: str, task: Task):
    assert by_words(said) == (Subject.answer, task)


@pytest.mark.parametrize(
    "said",
    [
        "Does it lean?",
        "Is the German tower shorter?",
        "Which one is right?",
        "How many words?",
        "Who checks the list?",
        "Why?",
    ],
)
def test_others_ask_something(said: str):
    assert by_words(said) is None


@pytest.mark.parametrize("said", ["Thanks!", "thank you very much", "Bye"])
async def test_thanks_are_not_searched_for(folder: Path, said: str):
    with ChatServer(talk.script().answer) as server, opened(folder, server) as workspace:
        alone = await turn(workspace, said)
        assert alone.route is Route.direct and not alone.calls and prompts(alone) == []
        within = (await turns(workspace, FIRST, said))[1]
        assert within.route is Route.direct and not within.calls and prompts(within) == []


async def test_what_does_not_hold_when_judged_again_is_said(folder: Path):
    both = writes(f"{TALL} [{{31 metres}}]", f"{LEANS} [{{leans}}]")

    def check(text: str, schema: Any) -> Any:
        each = ("supported", "supported") if "Question: " in text else ("supported", "contradicted")
        return verdicts(*each)(text, schema)

    with ChatServer(talk.script(write=both, check=check).answer) as server, opened(folder, server) as workspace:
        _, sure = await turns(workspace, FIRST, "Are you sure?")
        assert sure.answer and sure.answer.outcome is Outcome.partial
        assert [claim.words for claim in sure.answer.claims] == [TALL] and sure.answer.fallen == (LEANS,)
        assert f"Does not hold: “{LEANS}”." in told(workspace, sure)
        assert "revise" not in prompts(sure) and not searches(sure)


async def test_a_rewriting_that_the_passages_do_not_bear_out_is_not_delivered(folder: Path):
    invents = writes("Der Turm ist 90 Meter hoch [{0}].")
    bad = talk.script(
        rework=invents, check=verdicts("contradicted"), revise={"revisions": [{"claim": 1, "action": "drop"}]}
    )
    with ChatServer(talk.script().answer) as server, opened(folder, server) as workspace:
        first = await turn(workspace, FIRST)
    with ChatServer(bad.answer) as server, opened(folder, server) as workspace:
        run = await turn(workspace, "In German", first.asked.thread)
        assert run.answer and "90" not in told(workspace, run) and TALL in told(workspace, run)  # quoted instead
        assert not searches(run)


async def test_what_the_last_answer_does_not_give_is_asked_of_the_documents_after_all(folder: Path):
    def standalone(text: str, schema: Any) -> Any:
        return {"about": "answer", "question": "What is the lamp room at Carrow Point painted with?"}

    nothing = writes(lacking=["what the lamp room is painted with"])
    model = talk.script(standalone=standalone, rework=nothing)
    with ChatServer(model.answer) as server, opened(folder, server) as workspace:
        _, run = await turns(workspace, FIRST, "And say what its lamp room has on it")
        assert [event.on for event in run.events if isinstance(event, Rephrased)] == [Subject.answer, None]
        assert run.question == "What is the lamp room at Carrow Point painted with?" and searches(run)
        assert PAINT in told(workspace, run) and prompts(run).count("standalone") == 1
        again = await replay(run, await run_context_for(workspace.context, run))
        assert again.differences == () and again.same


async def test_a_turn_that_names_something_new_is_a_question_whatever_the_model_says(folder: Path):
    model = talk.script(standalone={"about": "answer", "question": "Where in Dunmere is it ground?"})
    with ChatServer(model.answer) as server, opened(folder, server) as workspace:
        _, run = await turns(workspace, FIRST, "Where in Dunmere is it ground?")
        assert run.subject is None and searches(run)


async def test_the_gaps_of_the_last_answer_stay_gaps(folder: Path):
    partly = talk.script(check=supported(missing=["how wide the tower is"]))
    with ChatServer(partly.answer) as server, opened(folder, server) as workspace:
        first, german = await turns(workspace, FIRST, "In German")
        assert first.answer and first.answer.gaps and german.answer
        assert german.answer.gaps == first.answer.gaps and german.answer.outcome is Outcome.partial


@pytest.mark.long
async def test_passages_that_may_no_longer_be_read_are_not_worked_on(folder: Path):
    with opened(folder) as workspace:
        first = await turn(workspace, FIRST)
        gone = {each.passage.doc_id for each in first.evidence}
        await workspace.remove([entry.uri for entry in workspace.sources() if entry.id in gone])
        run = await turn(workspace, "Shorter", first.asked.thread)
        assert run.answer and not run.answer.claims and TALL not in told(workspace, run) and not searches(run)


async def test_there_may_be_no_answer_to_work_on(folder: Path):
    with opened(folder) as workspace:
        _, run = await turns(workspace, "Hello", "Shorter")
        assert run.answer and run.answer.said == "There is no answer yet to shorten." and not run.calls


async def test_an_answer_that_cannot_be_worked_on_is_looked_up_again(folder: Path):
    with opened(folder) as workspace:
        nothing, run = await turns(workspace, "Which submarine won the Zanzibar regatta?", "Are you sure?")
        assert nothing.answer and nothing.answer.outcome is Outcome.abstained
        assert run.question == nothing.question and searches(run)


async def test_the_router_and_the_direct_reply_see_the_conversation(folder: Path):
    seen: dict[str, str] = {}

    def route(text: str, schema: Any) -> Any:
        seen["route"] = text
        return lookup()

    def direct(text: str, schema: Any) -> Any:
        seen["direct"] = text
        return says("You asked how tall the tower is.")

    read = lambda text, schema: (  # noqa: E731
        {"about": "talk", "question": "x"} if "did I ask" in text else {"question": "Does the tower lean?"}
    )
    with (
        ChatServer(talk.script(standalone=read, route=route, direct=direct).answer) as server,
        opened(folder, server) as workspace,
    ):
        *_, run = await turns(workspace, FIRST, "Does it lean?", "What did I ask first?")
        assert FIRST in seen["route"] and FIRST in seen["direct"]
        assert run.answer and run.answer.said == "You asked how tall the tower is." and "route" not in prompts(run)


async def test_an_unclear_turn_is_asked_back_once_where_the_person_allows_it(folder: Path):
    readings = ["How tall is the tower of the yard?", "How tall is the tower of the lighthouse?"]
    model = talk.script(standalone={"question": "How tall is the tower?"}, route=research(readings=readings))
    with ChatServer(model.answer) as server, opened(folder, server) as workspace:
        first = await turn(workspace, "Who tends the beacon?")
        run = await turn(workspace, "How tall is the tower?", first.asked.thread, checkpoints=(Checkpoint.reading,))
        assert run.waiting and run.waiting.at is Checkpoint.reading and run.waiting.options[:2] == tuple(readings)
        not_asked = await turn(workspace, "How tall is the tower?", first.asked.thread, checkpoints=())
        assert not not_asked.waiting and not not_asked.pauses


def test_rules_shorten_by_leaving_out():
    whole = Answer(FIRST, (), Outcome.answered)
    quote = Quote("d1", 10, 10 + len(f"{LEANS} {TALL}"), f"{LEANS} {TALL}")
    one = (Block((Claim("", ("k1",), quote=quote),)),)
    (kept,) = by_rule(Task.shorten, FIRST, one, whole).blocks[0].claims
    assert kept.quote == Quote("d1", 11 + len(LEANS), 11 + len(LEANS) + len(TALL), TALL)
    three = (
        Block(tuple(Claim(text, ("k1",)) for text in ("One.", "Two.")), "A"),
        Block((Claim("Three.", ("k1",)),), "B"),
    )
    shorter = by_rule(Task.shorten, FIRST, three, whole)
    assert [claim.text for block in shorter.blocks for claim in block.claims] == ["One.", "Two."]
    figures = by_rule(Task.numbers, FIRST, (*three, *one), whole)
    assert [claim.words for block in figures.blocks for claim in block.claims] == [quote.text]
    assert by_rule(Task.numbers, FIRST, three, whole).said == "The last answer has no figures."


# --- a change of subject --------------------------------------------------------------------------------------------

EARLIER = (Exchange("r1", FIRST, TALL, ("d1",), ("p1",)),)


@pytest.mark.parametrize(
    "said",
    [
        "Is there a ferry to the mainland?",
        "Where is the ferry that leaves at noon?",
        "When was the ferry built and who owns it?",
        "How is orpiment ground?",
    ],
)
def test_a_question_with_a_subject_of_its_own_takes_nothing_from_before(said: str):
    assert stands_alone(said) and rephrase_by_rule(said, EARLIER).question == said


@pytest.mark.parametrize("said", ["Does it lean?", "Which storm damaged it?", "And in Dunmere?", "Is that tower old?"])
def test_a_follow_up_does_not_stand_alone(said: str):
    assert not stands_alone(said)


@pytest.mark.long
async def test_after_a_change_of_subject_the_old_evidence_is_not_looked_at(folder: Path):
    with opened(folder) as workspace:
        _, other = await turns(
            workspace, "Who tends the beacon?", "What is the lamp room at Carrow Point painted with?"
        )
        assert not other.recalled
        _, near = await turns(workspace, FIRST, "Does the tower at Carrow Point lean?")
        assert near.recalled


# --- long conversations ---------------------------------------------------------------------------------------------


@pytest.mark.long
async def test_older_turns_are_summed_up_once_for_every_six(folder: Path):
    words = "The person asked who tends the beacon; Ines Tallow does."
    seen: list[str] = []

    def standalone(text: str, schema: Any) -> Any:
        seen.append(text)
        return {"question": "Who tends the beacon?"}

    model = talk.script(standalone=standalone, recap={"summary": words})
    with ChatServer(model.answer) as server, opened(folder, server) as workspace:
        runs = await turns(workspace, *["Who tends the beacon?"] * 13)
        made = [place for place, run in enumerate(runs) if run.summarised]
        assert made == [10] and prompts(runs[10])[0] == "recap"
        assert runs[10].summarised and runs[10].summarised.turns == 6 and runs[10].summarised.words == words
        assert words in seen[9] and words in seen[-1] and "turns 1 to 6" in seen[-1]
        kept = runs[12].asked.history
        assert [turn.turns for turn in kept] == [6, 0, 0, 0, 0, 0, 0] and kept[0].answer == words
        assert kept[0].passages == runs[5].asked.history[0].passages
        again = await replay(runs[10], await run_context_for(workspace.context, runs[10]))
        assert again.differences == () and again.same


@pytest.mark.long
async def test_a_summary_that_names_what_nobody_named_is_not_taken(folder: Path):
    model = talk.script(
        standalone={"question": "Who tends the beacon?"}, recap={"summary": "Skerry Rock has 90 keepers."}
    )
    with ChatServer(model.answer) as server, opened(folder, server) as workspace:
        runs = await turns(workspace, *["Who tends the beacon?"] * 12)
        assert runs[10].summarised and not runs[10].summarised.words and runs[11].summarised is None
        assert all(not each.turns for each in runs[11].asked.history) and len(runs[11].asked.history) == 11


@pytest.mark.long
async def test_without_a_model_older_turns_are_shortened(folder: Path):
    with opened(folder) as workspace:
        runs = await turns(workspace, *["Who tends the beacon?"] * 12)
        assert not any(run.summarised for run in runs) and len(history(runs)) == 12


# --- records --------------------------------------------------------------------------------------------------------


def test_records_of_before_still_open():
    old = {"question": "Does the tower lean?", "why": "", "by": "rules"}
    assert read_event("Rephrased", old) == Rephrased("Does the tower lean?")
    assert to_json(Rephrased("Does the tower lean?")) == old
    asked = Asked(FIRST, "me", "2026-01-02", history=(Exchange("r1", FIRST, TALL),))
    assert set(to_json(asked)["history"][0]) == {"run", "question", "answer", "documents", "passages"}
    made = HistorySummarised(6, "r6", "words", ("d1",), ("p1",), by="recap@m")
    assert from_json(HistorySummarised, to_json(made)) == made
