"""Answers that go stale: what is listed after documents change, to whom, and what asking again makes of it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from doubles import ChatServer, Script, WordAnswers
from notes import Plain, filled, opened

from assay.core.access import Principal
from assay.core.codec import to_json
from assay.core.events import SearchFilters
from assay.core.run import Run
from assay.core.synthesis import Pipeline
from assay.governance.difference import difference
from assay.governance.recheck import AnswerStanding, Finding, Recheck
from assay.ingest.sources import SourceFile
from assay.store import rechecks as stored
from assay.store.access import document_access, grants, members
from assay.workspace.facade import Workspace
from assay.workspace.types import SynthesisRequest

NOTES = {
    "tower.txt": "The tower at Carrow Point is 31 metres tall.",
    "lamp.txt": "The lamp at Carrow Point is lit with colza oil.",
    "ferry.txt": "The ferry to Sandholm leaves at nine in the morning.",
}
TALL, FERRY = "How tall is the tower at Carrow Point?", "When does the ferry to Sandholm leave?"
HIGHER = "The tower at Carrow Point is 34 metres tall."
READER = Principal("reader")


@pytest.fixture
async def workspace(tmp_path: Path) -> AsyncIterator[Workspace]:
    await filled(tmp_path / "workspace", NOTES)
    with opened(tmp_path / "workspace") as made:
        made.context.parts.answer_model = WordAnswers()
        yield made


async def ask(workspace: Workspace, question: str) -> Run:
    """The answer of one document: the one that the question names."""
    where = SearchFilters(sources=("ferry.txt" if question == FERRY else "tower.txt",))
    return [run async for run, _ in workspace.ask(question, where=where)][-1]


async def put(workspace: Workspace, texts: Mapping[str, str]) -> None:
    files = [SourceFile(uri=f"notes/{name}", name=name, data=words.encode()) for name, words in texts.items()]
    await workspace.documents.add_sources(files, reader=Plain())


async def test_a_changed_figure_is_listed_with_what_was_said_and_what_is_said_now(workspace: Workspace):
    tall, ferry = await ask(workspace, TALL), await ask(workspace, FERRY)
    assert workspace.rechecks.stale() == []
    await put(workspace, {"tower.txt": HIGHER})
    [found] = workspace.rechecks.stale()
    assert (found.run, found.standing) == (tall.id, AnswerStanding.fallen)
    assert found.line == f"No longer holds: “{NOTES['tower.txt']}” is now “{HIGHER}” (tower.txt)."
    still = workspace.rechecks.of_run(workspace.run(ferry.id))
    assert still is not None
    assert still.line == f"Checked against your documents of {still.on}."


async def test_a_document_that_comes_back_as_it_was_makes_its_answer_hold_again(workspace: Workspace):
    await ask(workspace, TALL)
    await put(workspace, {"tower.txt": HIGHER})
    assert len(workspace.rechecks.stale()) == 1
    await put(workspace, {"tower.txt": f"{NOTES['tower.txt']} It leans a little."})
    assert workspace.rechecks.stale() == []


async def test_an_answer_that_held_is_looked_at_again_only_after_another_change(workspace: Workspace):
    tall, ferry = await ask(workspace, TALL), await ask(workspace, FERRY)
    await put(workspace, {"ferry.txt": f"{NOTES['ferry.txt']} Dogs travel free."})
    looked: list[str] = []
    answers = stored.answers

    def seen(store: Any, runs: list[str], *rest: Any) -> Any:
        looked.extend(runs)
        return answers(store, runs, *rest)

    with patch.object(stored, "answers", seen):
        assert workspace.rechecks.stale() == []
        first = list(looked)
        assert ferry.id in first
        assert workspace.rechecks.stale() == []
        assert looked == first
        await put(workspace, {"tower.txt": HIGHER})
        assert [each.run for each in workspace.rechecks.stale()] == [tall.id]


async def test_of_a_removed_document_only_that_it_is_gone_is_told(workspace: Workspace):
    await ask(workspace, FERRY)
    await workspace.documents.remove(["ferry.txt"])
    [found] = workspace.rechecks.stale()
    assert found.question == FERRY
    assert found.line.startswith("No longer holds for you. It spoke of a document that was erased, or")
    assert "nine" not in json.dumps(to_json(found)) and "ferry.txt" not in json.dumps(to_json(found))


async def test_erased_words_do_not_come_back_as_what_was_said_then(workspace: Workspace):
    await ask(workspace, TALL)
    await put(workspace, {"tower.txt": HIGHER})
    assert "31 metres" in str(workspace.rechecks.stale())
    await workspace.documents.remove(["tower.txt"])
    assert "metres" not in str(workspace.rechecks.stale())


async def test_whoever_may_not_read_the_changed_document_is_told_what_they_would_be_if_it_were_erased(
    workspace: Workspace,
):
    store = workspace.store
    members.add(store, READER.id)
    [base] = grants.every_base(store)
    grants.share(store, base, "user:reader")
    theirs = workspace.for_principal(READER)
    theirs.context.parts.answer_model = WordAnswers()
    run = await ask(theirs, TALL)
    await put(workspace, {"tower.txt": HIGHER})
    assert "34 metres" in str(theirs.rechecks.stale())
    entry = next(each for each in workspace.documents.listing() if each.name == "tower.txt")
    document_access.set_access(store, base, entry, "user:reader", False, "local")
    [closed] = theirs.rechecks.stale()
    assert closed == theirs.rechecks.of_run(theirs.run(run.id))
    assert not any(words in str(closed) for words in ("34 metres", "31 metres", "tower.txt", entry.id))
    await workspace.documents.remove(["tower.txt"])
    assert theirs.rechecks.stale() == [closed]


async def test_a_question_asked_again_can_be_compared_with_the_first_time(workspace: Workspace):
    first = await ask(workspace, TALL)
    await put(workspace, {"tower.txt": HIGHER})
    again = [run async for run, _ in workspace.rechecks.ask_again(workspace.run(first.id))][-1]
    assert again.asked.branch is not None and again.asked.branch.run == first.id
    [claims] = [part for part in difference(first, again, {}).parts if part.name == "claims"]
    assert "31 metres" in str(claims) and "34 metres" in str(claims)


async def test_a_withheld_question_can_be_asked_again(workspace: Workspace):
    first = await ask(workspace, FERRY)
    await workspace.documents.remove(["ferry.txt"])
    again = [run async for run, _ in workspace.rechecks.ask_again(workspace.run(first.id))][-1]
    assert again.answer is not None and "nine" not in str(again.answer)


async def test_a_synthesis_goes_stale_like_an_answer_and_is_made_again_of_the_new_versions(workspace: Workspace):
    ids = [entry.id for entry in workspace.documents.listing()]
    steps = workspace.syntheses.begin(ids, SynthesisRequest(Pipeline.summary))
    made = [run async for run, _ in steps][-1]
    await put(workspace, {"tower.txt": HIGHER})
    [found] = workspace.rechecks.stale()
    assert (found.run, found.synthesis, found.standing) == (made.id, True, AnswerStanding.fallen)
    again = [run async for run, _ in workspace.rechecks.ask_again(workspace.run(made.id))][-1]
    assert "34 metres" in str(again.answer) and "31 metres" not in str(again.answer)


def test_several_changed_sources_are_counted_and_named():
    one = Finding(0, AnswerStanding.changed, "d1", "then", title="Rules")
    found = Recheck("r", "q", False, AnswerStanding.changed, "2026-01-01", (one,))
    assert found.line == "One source has changed: Rules."
    two = replace(found, findings=(one, replace(one, title="Report")))
    assert two.line == "2 sources have changed: Rules; Report."


# --- with a model ---------------------------------------------------------------------------------------------------

LETTER = "A letter of the keeper: the tower at Carrow Point is 29 metres tall, as I measured it."


def judge(words: str, verdict: str = "contradicted") -> Script:
    ruling = {"claim": 1, "words": [words], "why": "another height", "verdict": verdict}
    return Script(check={"rulings": [ruling]})


async def asked_of_model(folder: Path, script: Script) -> tuple[int, list[Recheck], Any]:
    """An answer, then a letter, then the model is asked."""
    await filled(folder, NOTES)
    with ChatServer(script.answer) as server, opened(folder, server, llm_size="large") as workspace:
        workspace.context.parts.answer_model = WordAnswers()
        where = SearchFilters(sources=("tower.txt",))
        first = [run async for run, _ in workspace.ask(TALL, where=where, model=False)][-1]
        assert await workspace.rechecks.ask_model() == 0, "no document is newer"
        await put(workspace, {"letter.txt": LETTER})
        asked = await workspace.rechecks.ask_model()
        assert await workspace.rechecks.ask_model() == 0, "nobody is asked twice of the same documents"
        found = workspace.rechecks.stale()
        [recorded] = [run for run in workspace.questions.recent("local", workspace.scope()) if run.id != first.id]
        trace = workspace.run(recorded.id)
        await workspace.documents.remove(["letter.txt"])
        assert "29 metres" not in str(workspace.rechecks.stale())
    return asked, found, trace


async def test_a_newer_document_that_a_model_says_contradicts_an_answer_is_shown_with_both_quotations(
    tmp_path: Path,
):
    words = "the tower at Carrow Point is 29 metres tall"
    asked, [found], trace = await asked_of_model(tmp_path / "workspace", judge(words))
    assert asked == 1
    assert found.standing is AnswerStanding.contradicted
    assert found.line == f"A newer document says otherwise: “{words}” (letter.txt) against “{NOTES['tower.txt']}”."
    assert [type(event).__name__ for event in trace.events] == [
        "Asked", "Gathered", "ModelReplied", "Drafted", "Checked", "Answered"
    ]  # fmt: skip
    assert trace.usage.calls == 1


async def test_words_that_no_newer_document_has_contradict_nothing(tmp_path: Path):
    asked, found, _ = await asked_of_model(tmp_path / "workspace", judge("the tower is 12 metres tall"))
    assert (asked, found) == (1, [])
