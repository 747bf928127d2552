"""`assay evaluate run` and `assay evaluate compare`, as they are typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from terminal import Typed

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
    assert (
        again.code == 1 and "right is 0.500, under 0.9" in again.err and "of 2" not in again.err
    )  # nothing is asked again
    assert json.loads(again.out)["assay"]["right"]["n"] == 2
    results = cases.with_suffix(".results.jsonl")
    both = typed("evaluate", "compare", results, results)
    assert both.code == 0 and "For 50 % of your questions" in both.out
    part = cases.with_suffix(".part.jsonl")
    part.write_text(results.read_text().splitlines()[0])
    shared = json.loads(typed("evaluate", "compare", part, results, "--json").out)
    assert shared["cases.results"]["right"]["n"] == shared["cases.part"]["right"]["n"] == 1  # only what both have
    assert typed(*words, "--fail-under", "rigth=1").code == 2
    assert "Answers were graded by their words." in both.out and "add `given` and `grade`" in both.out
    for words in (("--baseline",), ("--baseline", "one-shot"), ("--baseline=one-shot",)):
        assert "it needs one" in typed("evaluate", "run", cases, "--no-model", *words).err
        assert "it needs one" in typed("evaluate", "run", *words, cases, "--no-model").err
    assert "one-shot" in typed("evaluate", "run", cases, "--baseline=two-shot").err


def test_cases_are_drafted_into_a_file_that_can_be_asked(typed: Typed, noted: Workspace, tmp_path: Path):
    drafts, pumps = tmp_path / "drafts.csv", tmp_path / "pumps.md"
    assert "suggest no questions" in typed("evaluate", "cases", drafts, "--suggest", "2").err
    pumps.write_text("# Pumps\n\n| pump | flow rate |\n|---|---|\n| P-1 | 40 |\n| P-2 | 55 |\n")
    assert typed("add", pumps).code == 0
    done = typed("evaluate", "cases", drafts, "--suggest", "2", "--json")
    assert done.code == 0 and json.loads(done.out) == {"cases": 1, "incomplete": 0, "file": str(drafts)}
    assert typed("evaluate", "run", drafts, "--no-model").code == 0
    assert "exists" in typed("evaluate", "cases", drafts, "--suggest", "2").err
    assert "Say what to draft" in typed("evaluate", "cases", tmp_path / "more.csv").err
    assert "Nothing was reviewed" in typed("evaluate", "cases", tmp_path / "more.csv", "--from-reviews").err
