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


def test_questions_in_a_spreadsheet_become_figures_a_report_and_an_exit_code(
    typed: Typed, noted: Workspace, cases: Path
):
    words = ("evaluate", "run", cases, "--no-model", "--report", cases.with_suffix(".html"))
    done = typed(*words, "--fail-under", "right=0.5")
    assert done.code == 0 and "right               50 %" in done.out and "2 of 2" in done.err
    assert "Worst cases" in cases.with_suffix(".html").read_text()
    again = typed(*words, "--fail-under", "right=0.9", "--json")
    assert (
        again.code == 1 and "right is 0.500, under 0.9" in again.err and "of 2" not in again.err
    )  # nothing is asked again
    assert json.loads(again.out)["assay"]["right"]["n"] == 2
    results = cases.with_suffix(".results.jsonl")
    both = typed("evaluate", "compare", results, results)
    assert both.code == 0 and "For 100 % of your questions" in both.out
    assert typed(*words, "--fail-under", "rigth=1").code == 2
    assert "it needs one" in typed("evaluate", "run", cases, "--no-model", "--baseline").err
