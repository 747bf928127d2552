"""`assay review` as somebody types it: the queue, one answer, a decision; and what whoever asked is told meanwhile."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from notes import filled, opened
from typer.testing import CliRunner, Result

from assay.cli.main import app
from assay.core.errors import UserError
from assay.store.runs import reviews
from assay.workspace import facade

QUESTION = "How tall is the tower at Carrow Point?"
TALL = "The tower of the lighthouse at Carrow Point is 31 metres tall."
DOCUMENTS = ("ToolRan", "Gathered")  # events that hold words of documents, which are no draft


@pytest.fixture(scope="module")
def stocked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("typed") / "workspace"
    asyncio.run(filled(folder, {"tower.txt": f"{TALL} It leans a little."}))
    return folder


@pytest.fixture
def typed(stocked: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The command line in this process, over those notes."""
    monkeypatch.setattr(facade, "open_workspace", lambda path, **flags: opened(stocked, None, **flags))

    def run(*words: str) -> Result:
        return CliRunner().invoke(app, list(words))

    return run


def held(typed: Any) -> str:
    """A run that waits, asked at the terminal."""
    done = typed("ask", QUESTION, "--stakes", "high", "--json")
    assert done.exit_code == 5, done.output
    assert TALL not in "".join(
        line for line in done.stdout.splitlines() if '"ToolRan"' not in line and '"Gathered"' not in line
    )
    return json.loads(done.stdout.splitlines()[0])["run"]


@pytest.mark.long
def test_an_answer_is_asked_for_held_edited_approved_and_then_read(typed: Any):
    run = held(typed)
    assert run in typed("review").stdout
    sheet = json.loads(typed("review", run, "--json").stdout)
    words_of_first = sheet["claims"][0]["text"]
    assert TALL in words_of_first and sheet["may_decide"]
    assert (sheet["claims"][0]["basis"], sheet["claims"][0]["by"]) == ("quotation", "code")
    words = typed("review", run, "--trace").stdout
    assert f"0. supported (found word for word in the document): {words_of_first}" in words and sheet["seal"] in words
    assert "\n     quotation, judged by code\n" in words
    edited = typed("review", run, "--edit", "0=The tower at Carrow Point is 31 metres tall.")
    assert edited.exit_code == 5 and "waits again" in edited.output and "edited by local" in edited.output
    again = json.loads(typed("review", run, "--json").stdout)["seal"]
    with pytest.raises(UserError, match="no longer what you looked at"):
        raise typed("review", run, "--approve", "--seal", sheet["seal"]).exception
    done = typed("review", run, "--approve", "--seal", again)
    assert done.exit_code == 0 and "Approved and delivered." in done.output
    assert "The tower at Carrow Point is 31 metres tall." in typed("resume", run).stdout
    kept = json.loads(typed("review", "--decided", "--json").stdout)
    assert [(each["decision"], each["question"]) for each in kept if each["run"] == run] == [
        ("approve", QUESTION),
        ("edit", QUESTION),
    ]
    assert kept[1]["edits"] == [{"place": 0, "text": "The tower at Carrow Point is 31 metres tall."}]


def test_whoever_asked_is_told_that_it_waits_and_later_that_it_was_rejected_and_why(typed: Any):
    told = typed("ask", QUESTION, "--stakes", "high")
    assert told.exit_code == 5 and "waits for a reviewer: whoever asked says that much depends on it" in told.output
    assert TALL not in told.stdout
    run = told.output.split("assay review ")[1].split("`")[0]
    assert f"{run}" in typed("runs").stdout and "held" in typed("runs").stdout
    assert typed("resume", run).exit_code == 5
    traced = typed("trace", run).stdout
    assert "waits for a reviewer" in traced and "31 metres tall" not in traced.split("Drafted")[-1]
    assert typed("review", run, "--reject", "--note", "It is out of date.").exit_code == 0
    done = typed("resume", run)
    assert done.exit_code == 1 and "rejected in review: It is out of date." in done.output
    assert "rejected" in typed("runs").stdout


def test_with_four_eyes_whoever_asked_sees_it_and_cannot_decide(typed: Any):
    run = held(typed)
    with pytest.raises(UserError, match="somebody else has to look"):
        raise typed("review", run, "--approve", "--four-eyes").exception
    seen = typed("review", run, "--four-eyes").stdout
    assert "somebody else has to look" in seen and "not shown to whoever asked" in seen and "Claims:" not in seen


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--approve",), "Name one run"),
        (("RUN", "--approve", "--reject"), "one decision"),
        (("RUN", "--edit", "tower"), "PLACE=TEXT"),
        (("r0000000000000000",), "for you to review"),
    ],
)
def test_what_makes_no_sense_is_said_in_a_line(typed: Any, words: tuple[str, ...], says: str):
    run = held(typed) if "RUN" in words else ""
    with pytest.raises(UserError, match=says):
        raise typed("review", *(run if word == "RUN" else word for word in words)).exception


def test_a_knowledge_base_is_marked_and_no_longer(typed: Any, stocked: Path):
    done = typed("base", "review", "default", "on")
    assert done.exit_code == 0 and "wait for a reviewer" in done.stdout
    assert "Answers wait for a reviewer." in typed("base", "list").stdout
    assert typed("ask", QUESTION).exit_code == 5
    assert typed("base", "review", "default", "off").exit_code == 0
    assert typed("ask", QUESTION).exit_code == 0
    with opened(stocked) as whole:
        assert reviews.bases_with_review(whole.store) == {}
