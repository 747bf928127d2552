"""How many requests each kind of question takes with a capable model, and what each is for."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

from doubles import (
    ChatServer,
    Script,
    enough,
    keeps,
    lookup,
    missing,
    one_step,
    research,
    steps,
    supported,
    text_of,
    verdicts,
    writes,
)
from lighthouse_notes import GROUND, NOTES, PAINT, TALL, TENDS, answered, fill, opened
from notes import folder_of
from test_turns import turned

from assay.core.events import ModelReplied
from assay.core.events.describe import describe
from assay.core.run import Run

folder = folder_of(NOTES)


def requests(run: Run) -> list[str]:
    return [event.prompt for event in run.events if isinstance(event, ModelReplied)]


def model(**lines: Any) -> Script:
    usual: dict[str, Any] = {"weigh": keeps(TALL, TENDS, PAINT, GROUND), "write": writes(f"{TALL} [{{31 metres}}]")}
    return Script(**{**usual, "check": supported(), **lines})


async def asked(folder: Path, script: Script, question: str) -> Run:
    with ChatServer(script.answer) as server, opened(folder, server) as workspace:
        run = await answered(workspace, question)
    assert run.answer is not None and run.answer.claims
    return run


async def test_a_look_up_takes_four_requests_and_the_record_says_what_each_was_for(folder: Path):
    run = await asked(folder, model(route=lookup()), "How tall is the tower?")
    assert requests(run) == ["route", "weigh", "write", "check"]
    told = [describe(event).line.split(" · ")[0] for event in run.events if isinstance(event, ModelReplied)]
    assert told == [
        "route: choose how to answer",
        "weigh: weigh what was found and judge whether there is enough",
        "write: write the answer",
        "check: check the claims",
    ]


async def test_a_comparison_takes_four_requests(folder: Path):
    both = steps(("How tall is the tower?", "tower metres"), ("Who tends the beacon?", "beacon log"))
    run = await asked(folder, model(route=research(), plan=both, judge=enough()), "How tall is it, and who tends it?")
    assert requests(run) == ["route", "weigh", "write", "check"]


async def test_a_look_up_that_lacks_something_searches_for_it_in_the_words_of_the_same_reply(folder: Path):
    lacks = [missing("who tends it", searches=["beacon log watch"]), enough()]
    script = model(route=lookup() | one_step("How tall is it?", "tower metres"), judge=lacks)
    run = await asked(folder, script, "How tall is the tower and who tends it?")
    assert "beacon log watch" in [call.query for call in run.calls] and not run.answer.gaps  # type: ignore[union-attr]
    assert requests(run).count("weigh") <= 2 and "decide" not in requests(run) and "judge" not in requests(run)


async def test_a_set_over_fourteen_long_documents_takes_at_most_eight_requests(tmp_path: Path):
    page = "The plant lists its valves here. Valve {n} of filing {f} was closed and signed for by the keeper.\n\n"
    filler = " ".join(f"Paragraph about pumps and seals of the yard, part {word}." for word in range(20))
    filings = {f"filing-{f}": "".join(page.format(n=n, f=f) + filler + "\n\n" for n in range(40)) for f in range(14)}
    await fill(tmp_path / "workspace", filings)
    script = model(
        route=research(every=True),
        plan=one_step("Which valves were closed?", "valve closed signed keeper"),
        weigh=keeps("was closed and signed for by the keeper"),
        judge=enough(),
        write=writes("A valve was closed [{0}]."),
    )
    run = await asked(tmp_path / "workspace", script, "List every valve that was closed")
    assert len(requests(run)) <= 8, requests(run)
    assert len({each.passage.doc_id for each in run.evidence}) == 14


async def test_a_turn_of_a_conversation_takes_one_request_more(folder: Path):
    script = model(standalone={"question": "How tall is the tower?"}, route=lookup())
    with ChatServer(script.answer) as server, opened(folder, server) as workspace:
        first = await turned(workspace, "Who tends the tower?")
        second = await turned(workspace, "And how tall is it?", first.asked.thread)
    assert requests(second) == ["standalone", "route", "weigh", "write", "check"]


async def test_what_is_nowhere_is_said_to_be_missing_without_another_draft(folder: Path):
    lacks, tried = "who built the tower", iter(["architect of the tower", "tower plans", "tower contract"])
    script = model(
        route=research(),
        plan=one_step(lacks, "tower builder mason"),
        weigh=keeps(TALL),
        judge=lambda text, schema: missing(lacks, searches=[*islice(tried, 1)])(text, schema),
        check=supported(missing=[lacks], search="stone mason of the tower"),
    )
    with ChatServer(script.answer) as server, opened(folder, server) as workspace:
        run = await answered(workspace, "Who built the tower, and how tall is it?")
        replayed = await workspace.questions.replay(run)
    assert requests(run) == ["route", *3 * ["weigh"], "write", "check", "weigh"]
    assert run.answer is not None and run.answer.claims and run.answer.gaps == (lacks,)
    assert run.calls[-1].query == "stone mason of the tower" and run.reopened is None
    judged = next(text for text in map(text_of, server.requests) if "judge the claims as an answer" in text)
    assert "Tried so far" in judged and "tower plans" in judged
    assert replayed.same and not replayed.differences


async def test_what_is_found_for_a_gap_is_written_and_the_next_draft_knows_what_did_not_hold(folder: Path):
    lacks = "who tends the light"
    drafts = [
        writes("The tower is made of glass [{31 metres}]."),
        writes(f"{TALL} [{{31 metres}}]", f"{TENDS} [{{tends}}]"),
    ]
    script = model(
        route=research(),
        plan=one_step("How tall is the tower?", "tower lighthouse Carrow Point metres"),
        judge=enough(),
        write=drafts,
        check=[verdicts("unsupported", why="it is brick", missing=[lacks], search="beacon log watch"), supported()],
    )
    with ChatServer(script.answer) as server, opened(folder, server) as workspace:
        run = await answered(workspace, "How tall is the tower, and who tends its light?")
        replayed = await workspace.questions.replay(run)
    assert requests(run) == ["route", "weigh", "write", "check", "weigh", "write", "check"]
    assert run.reopened is not None and run.answer is not None and len(run.answer.claims) == 2
    again = [text for text in map(text_of, server.requests) if "An earlier draft said this" in text]
    assert len(again) == 1 and "it is brick" in again[0] and "The tower is made of glass" in again[0]
    assert lacks in again[0] and "beacon log watch" not in again[0], "what was searched for is not what is missing"
    assert replayed.same and not replayed.differences
