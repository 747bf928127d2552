"""`assay evaluate qa`: how answers are graded, which layouts are read, and the figures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay.core.errors import UserError
from assay.core.types import Answer, Block, Claim, Outcome, Quote
from assay.evaluate.qa import GradedAnswer, QaCase, figures, grade, holds, load


def answer(*shown: str, stated: str = "", outcome: Outcome = Outcome.answered) -> Answer:
    """An answer with these extracts, below the line that nothing was found or above it."""
    extracts = tuple(Claim("", ("k",), quote=Quote("d", 0, len(each), each)) for each in shown)
    claims = (*((Claim(stated, ("k",)),) if stated else ()), *extracts)
    if outcome is Outcome.abstained:
        return Answer("?", (), outcome, near=extracts)
    return Answer("?", (Block(claims),), outcome)


def graded_as(case: QaCase, said: Answer) -> GradedAnswer:
    return grade(case, said, lambda _: None)


def test_numbers_are_compared_as_numbers_and_words_as_whole_words():
    assert holds("It holds 38,000 cubic metres.", "38000 cubic metres")
    assert holds("The price is 1.90", "1.9")
    assert not holds("Sales: 112553", "12553")
    assert not holds("The price is 1.895", "1.89")
    assert holds("Balthazar PICSOU", "balthazar picsou")
    assert not holds("Flyersburg", "Flyers")


def test_an_answer_counts_as_shown_from_the_extract_on_that_has_its_words():
    graded = graded_as(
        QaCase("How high is the dam?", answers=("37 m",)), answer("It was built in 1958.", "It is 37 m high.")
    )
    assert not graded.shown_at(1) and graded.shown_at(3) and not graded.stated


def test_what_is_shown_below_the_line_that_nothing_was_found_counts_as_shown_and_as_refused():
    graded = graded_as(QaCase("How high?", answers=("37 m",)), answer("It is 37 m high.", outcome=Outcome.abstained))
    found = figures([graded])
    assert (found["shown@1"], found["refused"]) == (1, 1)


def test_a_statement_without_the_answer_is_wrong_whatever_stands_below_it():
    case = QaCase("How high is the dam?", answers=("37 m",))
    wrong, right = (
        graded_as(case, answer("It is 37 m high.", stated=said)) for said in ("Height: 73 m", "Height: 37 m")
    )
    found = figures([wrong, right])
    assert (found["stated"], found["stated_wrong"]) == (1, 0.5)


def test_every_one_of_several_must_be_shown_and_none_that_is_excluded_stated():
    case = QaCase("Which are they?", all_of=("Ann|Anna", "Bob"), must_not=("Cid",))
    assert graded_as(case, answer("Anna", "Bob")).shown_at(3) and not graded_as(case, answer("Anna")).shown_at(3)
    assert graded_as(case, answer("Bob", stated="Anna and Cid")).stated_wrong


def test_an_unanswerable_question_counts_when_it_is_said_to_have_been_found():
    case = QaCase("Who?", unanswerable=True)
    outcomes = (Outcome.answered, Outcome.partial, Outcome.abstained)
    found = figures([graded_as(case, answer("Somebody.", outcome=each)) for each in outcomes])
    assert found["unanswerable_shown_as_found"] == pytest.approx(1 / 3, abs=1e-3) and found["n"] == 3


def test_figures_are_given_for_each_origin_and_kind():
    cases = (QaCase("?", "person", ("Ann",), origin="letters"), QaCase("?", "date", ("1958",), origin="reports"))
    found = figures([graded_as(case, answer("Ann")) for case in cases])
    assert {name: each["shown@1"] for name, each in found["origins"].items()} == {"letters": 1, "reports": 0}
    assert found["kinds"]["date"]["n"] == 1


def written(folder: Path, *rows: object) -> Path:
    file = folder / "questions.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return file


def test_documents_are_named_by_the_file_and_found_in_the_folders(tmp_path: Path):
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("A.", encoding="utf-8")
    rows = {"documents": ["a.txt"]}, {"question": "What?", "answers": ["x"]}
    assert load(written(tmp_path, *rows), [tmp_path / "texts"]).documents == (tmp_path / "texts" / "a.txt",)
    with pytest.raises(UserError, match=r"names 'a\.txt', which is not below"):
        load(written(tmp_path, *rows))


def test_the_public_layouts_are_read_as_they_are(tmp_path: Path):
    pubmed = {"QUESTION": "Does it help?", "CONTEXTS": ["It was tried.", "It helped."], "final_decision": "yes"}
    turn = {
        "answerability": ["UNANSWERABLE"],
        "contexts": [{"text": "Something else."}],
        "input": [{"text": "Hello"}, {"text": "Who?"}],
    }
    vague = {**turn, "answerability": ["UNDERSPECIFIED"]}  # neither answer would be wrong
    first, second = load(written(tmp_path, pubmed, turn, vague)).cases
    assert (first.answers, first.texts) == (("yes",), ("It was tried.\n\nIt helped.",))
    assert (second.question, second.unanswerable) == ("Who?", True)


def test_a_line_without_an_answer_is_reported_with_its_number(tmp_path: Path):
    with pytest.raises(UserError, match="line 2"):
        load(written(tmp_path, {"question": "What?", "answers": ["x"]}, {"question": "Who?"}))
