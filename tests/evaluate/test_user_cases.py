"""A user's own questions: cases read from files, answers graded, evaluations compared."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.core.errors import UserError
from assay.evaluate.cases import Case, load_cases
from assay.evaluate.grading import (
    Agreement,
    Comparison,
    Estimate,
    Graded,
    agreement,
    compare,
    covers,
    estimate,
    grade_by_model,
    numbers_match,
    summarise,
    token_f1,
    verdict,
)
from assay.evaluate.html_report import render_report
from assay.evaluate.user_cases import evaluate_cases, load_results
from assay.workspace.facade import open_workspace
from assay.workspace.types import AskOptions

TABLE = (
    "question,answer,documents,abstain,tags\nHow tall is it?,31 metres,a.md;b.md,,tall; easy\nWho lives there?,,,yes,\n"
)
SEMICOLONS = (  # as spreadsheet programs write it where the comma is a decimal sign; with an empty row
    'question;answer;documents;abstain;tags\nHow tall is it?;31 metres;"a.md;b.md";;"tall; easy"\n'
    "Who lives there?;;;yes;\n;;;;\n"
)


def test_lines_and_a_spreadsheet_make_the_same_cases(tmp_path: Path):
    (tmp_path / "c.csv").write_text(TABLE)
    (tmp_path / "c.jsonl").write_text(
        '{"question": "How tall is it?", "answer": "31 metres", "documents": ["a.md", "b.md"], "tags": ["tall", "easy"]}\n'
        '{"question": "Who lives there?", "abstain": true}\n'
    )
    assert load_cases(tmp_path / "c.csv") == load_cases(tmp_path / "c.jsonl")
    (tmp_path / "semicolons.csv").write_text(SEMICOLONS)
    assert load_cases(tmp_path / "semicolons.csv") == load_cases(tmp_path / "c.csv")
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    book = openpyxl.Workbook()
    for line in TABLE.splitlines():
        book.active.append([cell or None for cell in line.split(",")])
    book.save(tmp_path / "c.xlsx")
    assert load_cases(tmp_path / "c.xlsx") == load_cases(tmp_path / "c.csv")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"answer": "31"}', "it has no question"),
        ('{"question": "How tall?"}', "it says nothing about the answer"),
        ('{"question": "How tall?", "anwser": "31"}', "the unknown column 'anwser'"),
        ("{", "is not JSON"),
        ("[1]", "is not a case"),
        ("", "has no questions"),
    ],
)
def test_what_is_no_case_is_said_with_its_line(tmp_path: Path, line: str, why: str):
    (tmp_path / "c.jsonl").write_text(line)
    with pytest.raises(UserError, match=why):
        load_cases(tmp_path / "c.jsonl")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"question,answer\nHow tall, and since when?,31\n", "line 2 .* more cells than there are columns"),
        ("question,answer\nWie hoch?,groß\n".encode("latin-1"), "Save it as `CSV UTF-8`"),
    ],
)
def test_what_is_wrong_with_a_spreadsheet_is_said(tmp_path: Path, data: bytes, why: str):
    (tmp_path / "c.csv").write_bytes(data)
    with pytest.raises(UserError, match=why):
        load_cases(tmp_path / "c.csv")
    (tmp_path / "c.xlsx").write_bytes(data)
    with pytest.raises(UserError, match=r"c\.xlsx cannot be read: It is damaged"):
        load_cases(tmp_path / "c.xlsx")


def test_numbers_match_within_the_rounding_of_the_less_exact():
    assert numbers_match("It grew by 3.27 per cent to 1,228.", "3.3 %")
    assert numbers_match("It was 1,228 million.", "1228")
    assert not numbers_match("It grew by 3.4 per cent.", "3.3 %")
    assert not numbers_match("It grew.", "3.3 %")


def test_a_point_is_covered_by_its_words_and_its_numbers():
    point = "The contract with Norrvane ends on 30 September 2026"
    assert covers("Norrvane's framework contract ends on 30 September 2026.", point)
    assert not covers("The contract with Norrvane ends on 30 September 2025.", point)
    assert not covers("Nothing is said.", point)
    assert token_f1("red tower", "red tower") == 1.0 and token_f1("blue", "red") == 0.0


def graded(case: str, right: float, tokens: float = 100.0, tags: tuple[str, ...] = ()) -> Graded:
    return Graded(
        case, f"Question {case}?", tags, "r1", "answered", "It is so.", "so", {"right": right, "tokens": tokens}
    )


def test_an_interval_holds_the_mean_and_narrows_with_more_cases():
    few, many = estimate([0.0, 1.0] * 4), estimate([0.0, 1.0] * 100)
    assert few.low <= 0.5 <= few.high and many.high - many.low < few.high - few.low
    assert estimate([]) == Estimate(0.0, 0.0, 0.0, 0) and estimate([1.0] * 5) == Estimate(1.0, 1.0, 1.0, 5)


def test_the_verdict_says_whether_the_second_is_worth_its_cost():
    easy = compare([graded(str(n), 1.0) for n in range(20)], [graded(str(n), 1.0, 310.0) for n in range(20)])
    words = verdict(easy, "one search", "the agent")
    assert (
        "For 100 % of your questions" in words and "3.1 times the tokens" in words and "not shown to be worth" in words
    )
    hard = compare(
        [graded(str(n), float(n < 5)) for n in range(20)],
        [graded(str(n), float(n < 17), 200.0, tags=("hop",) if n < 9 else ()) for n in range(20)],
    )
    words = verdict(hard, "one search", "the agent")
    assert "The agent is right more often, by 60 points" in words and "worth" not in words
    assert (
        "For 25 % of your questions one search is enough. The agent alone is right on 12 (hop: 4). Neither is right on 3."
        in words
    )
    assert len(hard.better) == 12 and not hard.worse and hard.same == 8
    lost = compare([graded(str(n), 1.0) for n in range(20)], [graded(str(n), 0.0) for n in range(20)])
    assert "One search alone is right on 20." in verdict(lost, "one search", "the agent")
    assert "One search is right more often, by 100 points (100 to 100)" in verdict(lost, "one search", "the agent")
    cheap = compare([graded(str(n), 1.0, 200.0) for n in range(9)], [graded(str(n), 1.0) for n in range(9)])
    assert "0.5 times the tokens" in (words := verdict(cheap, "a", "b")) and "worth" not in words
    quick = [replace(graded(str(n), 1.0), metrics={"right": 1.0, "seconds": 0.9}) for n in range(9)]
    slow = [replace(graded(str(n), 1.0), metrics={"right": 1.0, "seconds": 1.0}) for n in range(9)]
    assert "b is not shown to add anything" in verdict(compare(slow, quick), "a", "b")
    assert "no verdict" in verdict(Comparison(0, {}, {}, {}, (), (), 0), "a", "b")


def test_a_report_escapes_what_was_asked_and_answered():
    shown = render_report("<b>", [("a", "as it is", [graded("<script>", 0.0, tags=("<i>",))])])
    assert "<script>" not in shown and "&lt;script&gt;" in shown and "assay trace r1" in shown and "&lt;i&gt;" in shown


async def test_cases_are_asked_graded_and_carried_on(tmp_path: Path):
    note = tmp_path / "tower.md"
    note.write_text("# The tower\n\nThe tower at Carrow Point is 31 metres tall. Ines Tallow tends the beacon.\n")
    tall = Case("How tall is the tower at Carrow Point?", "31 metres", documents=("tower.md",), tags=("tall",))
    cases = [tall, Case("What is the price of copper in Lima?", abstain=True)]
    out = tmp_path / "results.jsonl"
    with open_workspace(tmp_path / "w", create=True) as opened:
        await opened.add([note])
        how = AskOptions(model=False)
        first = await evaluate_cases(opened, cases[:1], out, how)
        again: list[str] = []
        both = await evaluate_cases(opened, cases, out, how, load_results(out), report=again.append)
    assert both[0] == first[0] and load_results(out) == both
    assert len(again) == 2 and "1 of 2 were answered before" in again[0]
    assert [each.metrics["right"] for each in both] == [1.0, 1.0]
    assert both[0].metrics["evidence_recall"] == both[0].metrics["citation_recall"] == both[0].metrics["support"] == 1.0
    assert summarise(both)["right"].n == 2 and out.stat().st_mode & 0o077 == 0
    out.write_text("{}\n")
    with pytest.raises(UserError, match="is not a file of results"):
        load_results(out)


def test_follow_ups_belong_to_their_case(tmp_path: Path):
    follow = {"question": "And its keeper?", "answer": "Ines"}
    (tmp_path / "c.jsonl").write_text(json.dumps({"question": "How tall?", "answer": "31", "follow_ups": [follow]}))
    (case,) = load_cases(tmp_path / "c.jsonl")
    assert [each.question for each in case.with_follow_ups()] == ["How tall?", "And its keeper?"]


async def test_a_model_grades_points_and_people_say_how_well(tmp_path: Path):
    (tmp_path / "tower.md").write_text("# The tower\n\nThe tower at Carrow Point is 31 metres tall.\n")
    asked: list[str] = []

    async def ask(
        role: object, name: str, kind: Any, build_prompt: Callable[[int], Mapping[str, str]], **more: Any
    ) -> Any:
        asked.append("\n".join(build_prompt(9000).values()))
        found = kind(right=True, covered=[2])
        assert not more["check"](found) and more["check"](kind(right=True, covered=[3]))
        return found, f"{name}@scripted"

    points = ("It measures some hundred feet", "It stands at Carrow Point")
    case = Case("How tall is the tower at Carrow Point?", points=points, given="A hundred feet.", grade=False)
    with open_workspace(tmp_path / "w", create=True) as opened:
        await opened.add([tmp_path / "tower.md"])
        (found,) = await evaluate_cases(opened, [case], tmp_path / "r.jsonl", AskOptions(model=False), ask=ask)
    assert found.by == "model" and found.metrics["right"] == 0.0 and found.metrics["points"] == 0.5
    assert "1. It measures" in asked[0] and "31 metres" in asked[0] and "A hundred feet." in asked[1]
    assert all(text.count(" quoted: ") == text.count("⟦end ") == 3 for text in asked)  # all of it between marks
    assert load_results(tmp_path / "r.jsonl") == [found]
    assert agreement([found]) == {"words": Agreement(1, 1, 1.0, 1.0, None), "model": Agreement(1, 1, 1.0, 1.0, None)}
    shown = render_report("r", [("one", "", [graded(found.case, 1.0)]), ("two", "", [found])])
    assert "one: Answers were graded by their words. two: A model graded 1 of 1 answers" in shown
    assert await grade_by_model(ask, Case("Who?", abstain=True), "Ines") is None and len(asked) == 2


def test_agreement_beyond_chance_is_kappa():
    cases = [
        replace(graded(str(place), 1.0), person=person, given={"words": own})
        for place, (own, person) in enumerate([(True, True), (False, False), (True, False), (True, True)])
    ]
    (found,) = agreement(cases).values()
    assert (found.n, found.same, found.kappa) == (4, 3, 0.5) and 0 <= found.low < 0.75 < found.high <= 1


def test_the_sample_cases_are_questions_of_the_sample_corpus():
    samples = Path(__file__).parents[2] / "samples"
    known = {row["question"]: row for row in map(json.loads, (samples / "questions.jsonl").read_text().splitlines())}
    cases = load_cases(samples / "cases.csv")
    assert len(cases) == 20 and sum(case.abstain for case in cases) == 3
    for case in cases:
        assert list(case.documents) == known[case.question]["documents"]
        assert case.abstain == (known[case.question]["kind"] == "unanswerable")
