"""`assay evaluate conflicts`: the pairs, the figures, and what a bad file is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.cli.main import app
from assay.core.errors import UserError
from assay.evaluate.conflicts import (
    ConflictCase,
    LabelledDocument,
    find_by_best_sentences,
    is_conflict,
    load,
    measure,
    scores,
)

LIGHT = "Skerrow Light stands on Gannet Head in Aldersay. It was built in {}. It is kept by the Northern Harbour Trust."
OTHER = (
    "Skerrow Light (Lindholt) is a beacon of the Marl Quay Company near Ostrey. It was built in 1901 by Piet Sander."
)
NOISE = "Log in. Read more about Kelso, Tollvik, Skelby, Ferrin Dock and Upper Dunnock."
DOCUMENTS = (
    LabelledDocument(LIGHT.format(1875), "correct"),
    LabelledDocument(LIGHT.format(1920), "misinfo"),
    LabelledDocument(OTHER, "correct"),
    LabelledDocument(NOISE, "noise"),
)
QUESTION = "When was Skerrow Light built?"


def written(folder: Path, *lines: object) -> Path:
    file = folder / "cases.jsonl"
    file.write_text("\n".join(each if isinstance(each, str) else json.dumps(each) for each in lines), encoding="utf-8")
    return file


def row() -> dict[str, object]:
    return {"question": QUESTION, "documents": [{"text": each.text, "type": each.label} for each in DOCUMENTS]}


def test_only_a_right_and_a_wrong_document_conflict():
    correct, wrong, other, noise = DOCUMENTS
    assert is_conflict(correct, wrong) and is_conflict(wrong, other)
    assert not any(is_conflict(*pair) for pair in ((correct, other), (correct, noise), (wrong, noise), (wrong, wrong)))


def test_every_pair_of_documents_is_counted_and_compared_with_plain_rules():
    found = measure([ConflictCase(QUESTION, DOCUMENTS)])
    assert (found["precision"], found["recall"], found["f1"]) == (1.0, 0.5, 0.6667)
    assert found["every_pair"] == {"precision": 0.3333, "recall": 1.0, "f1": 0.5, "right": 2, "found": 6}
    assert found["best_sentences"]["precision"] < 1
    assert found["kinds"] == {"date": {"right": 1, "found": 1, "precision": 1.0}}
    assert (found["questions"], found["documents"], found["pairs"], found["conflicts"]) == (1, 4, 6, 2)
    assert found["intervals"]["recall"] == (found["recall"], found["recall"])  # there is one question to draw


def test_what_was_held_to_conflict_and_does_not_is_told_by_its_labels():
    right = (LabelledDocument(LIGHT.format(1875), "correct"), LabelledDocument(LIGHT.format(1920), "correct"))
    found = measure([ConflictCase(QUESTION, right), ConflictCase(QUESTION, DOCUMENTS)])
    assert found["wrongly"] == {"correct/correct": 1}
    assert found["precision"] == 0.5


def test_figures_of_nothing_are_zero():
    assert scores([]) == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "right": 0, "found": 0}


def test_the_plain_rule_looks_at_the_best_sentences_alone():
    same = (
        LabelledDocument(LIGHT.format(1875), "correct"),
        LabelledDocument(LIGHT.format(1875) + " Maro Finch, 1920.", "correct"),
    )
    assert find_by_best_sentences(ConflictCase(QUESTION, same)) == {}
    assert find_by_best_sentences(ConflictCase(QUESTION, DOCUMENTS[1:3]))


def test_a_file_is_read_line_by_line(tmp_path: Path):
    assert load(written(tmp_path, row(), "", row())) == (
        ConflictCase(QUESTION, DOCUMENTS),
        ConflictCase(QUESTION, DOCUMENTS),
    )


@pytest.mark.parametrize(
    "line",
    ["{", "[]", '{"question": "Q"}', '{"question": "Q", "documents": [{"text": "T"}]}', '{"documents": [1]}', "3"],
)
def test_a_line_that_is_no_case_is_named(tmp_path: Path, line: str):
    with pytest.raises(UserError, match=r"cases\.jsonl, line 2"):
        load(written(tmp_path, row(), line))


def test_a_file_that_is_missing_or_unreadable_or_has_no_conflict_is_refused(tmp_path: Path):
    with pytest.raises(UserError, match="There is no file"):
        load(tmp_path / "none.jsonl")
    (tmp_path / "bytes.jsonl").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="is not UTF-8"):
        load(tmp_path / "bytes.jsonl")
    with pytest.raises(UserError, match="has no document"):
        load(written(tmp_path, {"question": "Q", "documents": [{"text": "T", "type": "correct"}]}))


def test_the_command_prints_the_figures_for_people_and_for_programs(tmp_path: Path):
    file = str(written(tmp_path, row()))
    people = CliRunner().invoke(app, ["evaluate", "conflicts", "--data", file])
    assert people.exit_code == 0
    assert "every_pair" in people.stdout
    assert "kinds          date (right 1  found 1  precision 1.000)" in people.stdout
    program = json.loads(CliRunner().invoke(app, ["evaluate", "conflicts", "--data", file, "--json"]).stdout)
    assert program["f1"] == 0.6667 and program["conflicts"] == 2
