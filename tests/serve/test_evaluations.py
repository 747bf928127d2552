"""Evaluations of a workspace over HTTP: the figures of the report, for administrators, and no answers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from serving import Served
from team import team

from assay.evaluate.grading import Graded
from assay.evaluate.html_report import render_report
from assay.evaluate.user_cases import FOLDER, keep_evaluation, kept_evaluations

Serve = Callable[..., AbstractContextManager[Served]]


def side(right: int, tokens: float) -> list[Graded]:
    return [
        Graded(str(n), f"Question {n}?", ("hop",) if n > 7 else (), f"r{n}", "answered", "The gate is oak.", "larch",
               {"right": float(n < right), "tokens": tokens})
        for n in range(10)
    ]  # fmt: skip


SIDES = [("one search", "balanced mode", side(4, 100.0)), ("assay", "balanced mode", side(9, 310.0))]


def test_the_page_gets_the_figures_of_the_report(serve: Serve, folder: Path):
    keep_evaluation(folder, "my cases.csv", SIDES)
    (folder / FOLDER / "broken.json").write_text("{}")
    with serve() as at, at.client() as client:
        (entry,) = client.get("/api/evaluations").json()["evaluations"]
        assert entry["name"] == "my-cases.csv" and entry["questions"] == 10 and entry["right"].startswith("90 % (")
        found = client.get(f"/api/evaluations/{entry['name']}").json()
        report = render_report("my cases.csv", SIDES)
        assert found["verdict"] in report and found["grading"] in report
        right = next(each for each in found["metrics"] if each["name"] == "right")
        assert right["cells"][1]["mean"] == 0.9 and all(each["words"] in report for each in right["cells"])
        assert right["difference"]["words"] in report and right["share"]
        assert found["worst"] == [{"question": "Question 9?", "expected": "larch", "outcome": "answered", "run": "r9"}]
        assert found["tags"][0]["tag"] == "hop" and found["tags"][0]["questions"] == 2
        assert client.get("/api/evaluations/nothing").status_code == 404
        assert client.get("/api/evaluations/..%2Fstate").status_code == 404


def test_no_answer_is_kept_outside_of_the_runs(tmp_path: Path):
    keep_evaluation(tmp_path, "cases.csv", SIDES)
    assert "oak" not in (tmp_path / FOLDER / "cases.csv.json").read_text()
    keep_evaluation(tmp_path, "cases.csv", SIDES[1:])
    assert len(kept_evaluations(tmp_path)["cases.csv"].sides) == 1  # the last one counts


@pytest.mark.long
def test_evaluations_are_for_administrators(folder: Path):
    keep_evaluation(folder, "cases.csv", SIDES)
    with team(folder) as at, at.as_("reader") as reader:
        assert reader.get("/api/evaluations").status_code == 404
        assert reader.get("/api/evaluations/cases.csv").status_code == 404
