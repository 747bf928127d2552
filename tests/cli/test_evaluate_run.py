"""`assay evaluate run` and `assay evaluate compare`, as they are typed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from doubles import ChatServer, HttpReply, Script
from terminal import QUESTION, Typed, looked_up

from assay.workspace.facade import Workspace


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    file = tmp_path / "cases.csv"
    file.write_text(
        "question,answer,tags\nWhere is orpiment ground?,Dunmere,place\nWhere is orpiment ground now?,Lima,place\n"
    )
    return file


@pytest.mark.long
def test_questions_in_a_spreadsheet_become_figures_a_report_and_an_exit_code(
    typed: Typed, noted: Workspace, cases: Path
):
    words = ("evaluate", "run", cases, "--no-model", "--report", cases.with_suffix(".html"))
    done = typed(*words, "--fail-under", "right=0.5")
    assert done.code == 0 and "right               50 %" in done.out and "2 of 2" in done.err
    page = cases.with_suffix(".html").read_text()
    assert "Worst cases" in page and "Trace of run" in page and "assay trace" not in page
    again = typed(*words, "--fail-under", "right=0.9", "--json")
    assert again.code == 1 and "right is 0.500, under 0.9" in again.err
    assert "2 of 2 were answered before" in again.err and "2 of 2: " not in again.err
    assert json.loads(again.out)["assay"]["right"]["n"] == 2
    results = cases.with_suffix(".results.jsonl")
    copy = cases.parent / "workspace" / results.name
    copy.write_text(results.read_text())
    both = typed("evaluate", "compare", results, copy)
    assert both.code == 0 and "For 50 % of your questions" in both.out
    assert f"{copy.with_suffix('')}, 2 questions" in both.out  # files of one name are told apart
    part = cases.with_suffix(".part.jsonl")
    part.write_text(results.read_text().splitlines()[0])
    shared = json.loads(typed("evaluate", "compare", part, results, "--json").out)
    assert shared["cases.results"]["right"]["n"] == shared["cases.part"]["right"]["n"] == 1  # only what both have
    assert typed(*words, "--fail-under", "rigth=1").code == 2
    assert "Answers were graded by their words." in both.out and "(columns `given`, `grade`)" in both.out
    assert "one-shot" in typed("evaluate", "run", cases, "--baseline=two-shot").err


@pytest.mark.long
def test_without_a_model_one_search_is_the_baseline(typed: Typed, noted: Workspace, cases: Path):
    done = typed("evaluate", "run", "--baseline", cases, "--no-model", "--json")
    found = json.loads(done.out)
    assert done.code == 0 and found["one search"]["rounds"]["mean"] <= 1 and found["comparison"]["n"] == 2
    assert "For 50 % of your questions one search is enough" in found["verdict"] and "tokens" not in found["verdict"]
    assert "one search: balanced mode, route one-shot, no model" in done.err
    assert len(list(cases.parent.glob("cases.results.*jsonl"))) == 2
    for words in (("--baseline", "one-shot"), ("--baseline=one-shot",)):  # the same; nothing is asked again
        assert json.loads(typed("evaluate", "run", *words, cases, "--no-model", "--json").out) == found
        assert json.loads(typed("evaluate", "run", cases, *words, "--no-model", "--json").out) == found


def test_a_comparison_fails_if_the_second_is_worse_than_allowed(typed: Typed, cases: Path):
    lines = [
        {"case": str(n), "question": "Q?", "tags": [], "run": "r", "outcome": "answered", "answer": "", "expected": ""}
        for n in range(4)
    ]
    good, bad = cases.with_name("good.jsonl"), cases.with_name("bad.jsonl")
    for file, right in ((good, 1.0), (bad, 0.5)):
        file.write_text("".join(json.dumps(each | {"metrics": {"right": right}}) + "\n" for each in lines))
    assert typed("evaluate", "compare", bad, good, "--fail-under", "difference.right=0").code == 0
    worse = typed(
        "evaluate", "compare", good, bad, "--fail-under", "right=0.6", "--fail-under", "difference.right=-0.1"
    )
    assert worse.code == 1 and "right is 0.500, under 0.6; difference.right is -0.500, under -0.1" in worse.err
    assert typed("evaluate", "compare", good, bad, "--fail-under", "difference.right=worse").code == 2
    assert typed("evaluate", "compare", good, cases.with_name("none.jsonl")).code == 2


# --- graded by a model ----------------------------------------------------------------------------------------------

Model = Callable[[Script], ChatServer]
PLACES = (QUESTION, "Where is orpiment ground?", "Where is the paint of Carrow Point ground?")


def grader(shown: str, _: Any) -> dict[str, Any]:
    """A model for which an answer is right if it has the last word of the expected one."""
    _, expected, answer = re.findall(r" quoted: \w+⟧\n(.*?)\n⟦end ", shown, re.DOTALL)
    return {"right": expected.split()[-1] in answer, "covered": []}


@pytest.fixture
def graded_cases(tmp_path: Path) -> Path:
    """Answers that say it in other words, and two that people call right, one wrong. The second has another answer."""
    file = tmp_path / "cases.csv"
    file.write_text(
        "question;answer;given;grade\n"
        f"{PLACES[0]};the works in Dunmere;In Dunmere.;right\n"
        f"{PLACES[1]};Lima;In Lima.;right\n"
        f"{PLACES[2]};the works in Dunmere;Far from Dunmere.;wrong\n;;;\n"
    )
    return file


def grades(server: ChatServer) -> int:
    return sum("· grade" in str(each["messages"]) for each in server.requests)


def test_a_model_grades_and_its_agreement_with_people_is_shown(
    typed: Typed, noted: Workspace, model: Model, graded_cases: Path
):
    server = model(looked_up(grade=grader))
    words = ("evaluate", "run", graded_cases, "--report", graded_cases.with_suffix(".html"))
    first = typed(*words, "--json", "--parallel", "3")
    found = json.loads(first.out)
    assert first.code == 0 and found["assay"]["right"]["mean"] == pytest.approx(2 / 3) and not server.problems
    assert found["assay"]["exact"]["mean"] == 0  # by their words all three would be wrong
    assert {name: (each["n"], each["same"]) for name, each in found["agreement"].items()} == {
        "words": (3, 2),
        "model": (3, 2),
    }
    assert 0 <= found["agreement"]["model"]["low"] < 2 / 3 < found["agreement"]["model"]["high"] <= 1
    asked = len(server.requests)
    again = typed(*words)
    assert len(server.requests) == asked and "3 of 3 were answered before" in again.err
    agreed = "Of 3 answers that people graded, 2 get the same grade by the model: 67 % ("
    for shown in (again.out, graded_cases.with_suffix(".html").read_text()):
        assert "A model graded 3 of 3 answers that have an expected text." in shown and agreed in shown

    changed = graded_cases.read_text().replace("Far from Dunmere", "In Skelby")  # people graded another, and added tags
    graded_cases.write_text(changed.replace("grade\n", "grade;tags\n").replace(";right\n", ";right;place\n"))
    more = typed(*words)
    assert grades(server) == 7 and "3 get the same grade by the model: 100 %" in more.out
    assert len(server.requests) < asked + 8 and "<td>place</td>" in graded_cases.with_suffix(".html").read_text()
    other = typed(*words, "--no-model")
    assert other.code == 2 and "Name another file with --out" in other.err


@pytest.mark.long
def test_an_endpoint_that_fails_between_answer_and_grade_loses_nothing(
    typed: Typed, noted: Workspace, model: Model, graded_cases: Path
):
    right = {"right": True, "covered": []}
    server = model(looked_up(grade=[right, right, HttpReply(401, b"{}")]))
    words = ("evaluate", "run", graded_cases, "--json")
    stopped = typed(*words)
    assert stopped.code == 1 and not stopped.out
    assert "2 of 3 questions are answered" in stopped.err and "the same command goes on from there" in stopped.err
    written = server.counts["write"]
    server.answer = looked_up(grade=grader).answer
    done = typed(*words)
    assert done.code == 0 and server.counts["write"] == written + 1  # only the third question is asked
    assert json.loads(done.out)["agreement"]["model"]["n"] == 3
    server.answer = looked_up(write=HttpReply(401, b"{}")).answer
    failed = typed(*words, "--out", graded_cases.with_name("other.jsonl"))
    assert failed.code == 1 and f"No answer to {PLACES[0]!r}" in failed.err and "0 of 3" in failed.err


@pytest.mark.long
def test_a_grade_that_cannot_be_read_leaves_that_by_words(
    typed: Typed, noted: Workspace, model: Model, graded_cases: Path
):
    model(looked_up(grade="No idea."))
    done = typed("evaluate", "run", graded_cases)
    assert done.code == 0 and "Answers were graded by their words." in done.out and "by the model" not in done.out
    assert done.err.count("The model's grade cannot be used, the words decide") == 3


@pytest.mark.long
def test_easy_questions_are_told_that_the_agent_is_not_worth_its_cost(
    typed: Typed, noted: Workspace, model: Model, graded_cases: Path
):
    graded_cases.write_text(graded_cases.read_text().replace(";Lima;In Lima.", ";Dunmere;In Dunmere."))
    server = model(looked_up(grade=grader))
    found = json.loads(typed("evaluate", "run", graded_cases, "--baseline", "--json").out)
    assert not server.problems and found["comparison"]["n"] == 3
    assert found["one search"]["tokens"]["mean"] < found["assay"]["tokens"]["mean"]
    assert found["verdict"].startswith("For 100 % of your questions one search is enough.")
    assert "times the tokens of one search. On these questions assay is not shown to be worth" in found["verdict"]


def test_cases_are_drafted_into_a_file_that_can_be_asked(typed: Typed, noted: Workspace, tmp_path: Path):
    drafts, pumps = tmp_path / "drafts.csv", tmp_path / "pumps.md"
    (tmp_path / "list.csv").write_text("a,b\n1,2\n")
    bare = ("--workspace", tmp_path / "bare")
    assert typed("add", tmp_path / "list.csv", *bare).code == 0
    assert "suggest no questions" in typed("evaluate", "cases", drafts, "--suggest", "2", *bare).err
    pumps.write_text("# Pumps\n\n| pump | flow rate |\n|---|---|\n| P-1 | 40 |\n| P-2 | 55 |\n")
    assert typed("add", pumps).code == 0
    done = typed("evaluate", "cases", drafts, "--suggest", "9", "--json")
    assert done.code == 0 and json.loads(done.out) == {
        "cases": 3,
        "incomplete": 0,
        "evidence_only": 2,  # what a document as a whole is about
        "file": str(drafts),
    }
    assert typed("evaluate", "run", drafts, "--no-model").code == 0
    assert "exists" in typed("evaluate", "cases", drafts, "--suggest", "2").err
    assert "Say what to draft" in typed("evaluate", "cases", tmp_path / "more.csv").err
    assert "Nothing was reviewed" in typed("evaluate", "cases", tmp_path / "more.csv", "--from-reviews").err
