"""`assay evaluate qa`: how answers are judged, which layouts are read, and the figures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay.core.errors import UserError
from assay.core.types import Answer, Block, Claim, Outcome
from assay.evaluate.qa import ABSTAINED, RIGHT, WRONG, QaCase, figures, holds, judge, load


def answer(*claims: str, outcome: Outcome = Outcome.answered) -> Answer:
    return Answer("?", (Block(tuple(Claim(each, ("k",)) for each in claims)),) if claims else (), outcome)


def test_numbers_are_compared_as_numbers_and_words_as_whole_words():
    assert holds("It holds 38,000 cubic metres.", "38000 cubic metres")
    assert holds("The price is 1.90", "1.9")
    assert not holds("Sales: 112553", "12553")
    assert not holds("The price is 1.895", "1.89")
    assert holds("Balthazar PICSOU", "balthazar picsou")
    assert not holds("Flyersburg", "Flyers")


def test_yes_and_no_must_come_first():
    assert holds("Yes. It sold the division in 2005.", "yes")
    assert not holds("There is no doubt: yes.", "no")
    assert not holds("Nobody knows", "no")


def test_an_answer_is_judged_by_what_it_says_first():
    case = QaCase("How high is the dam?", answers=("37 m",))
    assert judge(case, answer("It is 37 m high.", "It was built in 1958.")).verdict == RIGHT
    assert judge(case, answer("It was built in 1958.", "It is 37 m high.")).verdict == WRONG
    assert judge(case, answer(outcome=Outcome.abstained)).verdict == ABSTAINED


def test_every_one_of_several_must_be_said_and_none_that_is_excluded():
    case = QaCase("Which are they?", all_of=("Ann|Anna", "Bob"), must_not=("Cid",))
    assert judge(case, answer("Anna", "Bob")).verdict == RIGHT
    assert judge(case, answer("Anna")).verdict == WRONG
    assert judge(case, answer("Anna and Cid", "Bob")).verdict == WRONG


def test_an_unanswerable_question_is_right_when_nothing_is_answered():
    case = QaCase("Who?", unanswerable=True)
    silent, spoken = judge(case, answer(outcome=Outcome.abstained)), judge(case, answer("Somebody."))
    assert (silent.verdict, spoken.verdict) == (RIGHT, WRONG)
    found = figures([silent, spoken, judge(QaCase("What?", answers=("x",)), answer(outcome=Outcome.abstained))])
    assert (found["abstain_precision"], found["abstain_recall"], found["n"]) == (0.5, 0.5, 3)
    assert found["counts"] == {"right": 1, "wrong": 1, "abstained": 1, "wrong_exit_0": 1}


def test_a_partial_answer_that_is_wrong_does_not_end_with_exit_code_0():
    wrong = judge(QaCase("What?", answers=("x",)), answer("y", outcome=Outcome.partial))
    assert figures([wrong])["counts"]["wrong_exit_0"] == 0


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
