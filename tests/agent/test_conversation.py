"""A conversation works on its own answers: what is said of the last answer is not searched for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import conversation as talk
import pytest
from conversation import FIRST, GERMAN, LEANS, NOTES, PAINT, TALL
from doubles import ChatServer, keeps, lookup, no_calls, research, says, supported, verdicts, writes
from notes import filled, opened

from assay.answer import citations, render
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
)
from assay.core.events.describe import understood_turn
from assay.core.events.upgrade import read_event
from assay.core.run import Run
from assay.core.types import Exchange, Outcome
from assay.governance.replay import replay
from assay.workspace.chat_history import history
from assay.workspace.facade import Workspace
from assay.workspace.services.ask import run_context_for
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
    return render.as_text(run.answer, citations.of_answer(run.answer, run.evidence, workspace.documents.get))


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
            assert talk.printed(shown) in told(workspace, run), (said, told(workspace, run))
            assert searches(run) is (place in talk.SEARCHED), said
        paint, german, sure, boiled, thanks = runs[2:7]
        assert german.answer and paint.answer and german.answer.cited_keys == paint.answer.cited_keys
        assert prompts(german) == prompts(boiled) == ["standalone", "rework", "check"]
        assert prompts(sure) == ["standalone", "check"]
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
        run = await turn(workspace, "In German, please.", first.asked.thread)
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


async def test_the_gaps_of_the_last_answer_stay_gaps(folder: Path):
    partly = talk.script(check=supported(missing=["how wide the tower is"]))
    with ChatServer(partly.answer) as server, opened(folder, server) as workspace:
        first, german = await turns(workspace, FIRST, "In German, please.")
        assert first.answer and first.answer.gaps and german.answer
        assert german.answer.gaps == first.answer.gaps and german.answer.outcome is Outcome.partial


async def test_passages_that_may_no_longer_be_read_are_not_worked_on(folder: Path):
    model = talk.script(direct=says("There is nothing to translate."))
    with ChatServer(model.answer) as server, opened(folder, server) as workspace:
        first = await turn(workspace, FIRST)
        gone = {each.passage.doc_id for each in first.evidence}
        await workspace.documents.remove([entry.uri for entry in workspace.documents.listing() if entry.id in gone])
        run = await turn(workspace, "In German, please.", first.asked.thread)
        assert run.answer and not run.answer.claims and TALL not in told(workspace, run) and not searches(run)


async def test_an_answer_that_cannot_be_worked_on_is_looked_up_again(folder: Path):
    with (
        ChatServer(talk.script(weigh=keeps(), decide=no_calls()).answer) as server,
        opened(folder, server) as workspace,
    ):
        nothing, run = await turns(workspace, "Which submarine won the Zanzibar regatta?", "Are you sure?")
        assert nothing.answer and nothing.answer.outcome is Outcome.abstained
        assert run.question == nothing.question and searches(run)


async def test_a_rewriting_that_the_model_does_not_give_leaves_the_answer_and_its_conflicts_as_they_were(folder: Path):
    def fails(text: str, schema: Any) -> Any:
        return "no JSON"

    def differ(text: str, schema: Any) -> Any:
        draft: Any = writes(f"{TALL} [{{31 metres}}]", f"{LEANS} [{{leans}}]")(text, schema)
        left, right = (claim["cites"][0] for block in draft["blocks"] for claim in block["claims"])
        return draft | {"conflicts": [{"left": left, "right": right, "about": "the tower"}]}

    with ChatServer(talk.script(rework=fails, write=differ).answer) as server, opened(folder, server) as workspace:
        first, german = await turns(workspace, FIRST, "In German, please.")
        assert first.answer and german.answer and german.answer.conflicts == first.answer.conflicts
        assert [claim.words for claim in german.answer.claims] == [claim.words for claim in first.answer.claims]


async def test_a_shorter_answer_still_says_that_sources_differ(folder: Path):
    def differ(text: str, schema: Any) -> Any:
        draft: Any = writes(f"{TALL} [{{31 metres}}]", f"{LEANS} [{{leans}}]")(text, schema)
        left, right = (claim["cites"][0] for block in draft["blocks"] for claim in block["claims"])
        return draft | {"conflicts": [{"left": left, "right": right, "about": "the tower"}]}

    with ChatServer(talk.script(write=differ).answer) as server, opened(folder, server) as workspace:
        first, shorter = await turns(workspace, FIRST, "In German, please.")
        assert first.answer and shorter.answer and shorter.answer.conflicts == first.answer.conflicts


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


# --- a change of subject --------------------------------------------------------------------------------------------


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
