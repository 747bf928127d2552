"""`assay evaluate claims`: the figures with each judge, and what a bad file is told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from doubles import ChatServer
from doubles.fill_policies import cooperative_reply
from doubles.protocol import role_of
from typer.testing import CliRunner

from assay.answer.checking.claim_rules import unhedged
from assay.cli.main import app
from assay.core.errors import UserError
from assay.core.types import Operand, Verdict, Working
from assay.evaluate.claims import Fate, JudgedClaim, JudgeKind, fate, figures, load, measure

TEXT = "The ferry leaves Skelby at noon every day. The crossing takes forty minutes, and a ticket costs 12 euros."


def row(claim: str, label: str = "supported", **more: Any) -> dict[str, Any]:
    passage = {"title": "Timetable", "date": "2024-05", "text": TEXT}
    return {
        "id": claim[:9],
        "question": "When?",
        "claim": claim,
        "passages": [passage],
        "label": label,
        "kind": label,
    } | more


ROWS = [
    row("The ferry leaves Skelby at noon every day."),
    row("Every day the ferry departs from Skelby at midday."),
    row("The ferry leaves Tollvik at midnight with a brass band.", "unsupported"),
    row("The ferry from Skelby is closed to cars in winter.", "contradicted"),
    row("The ferry leaves Skelby at noon every day and carries cars.", "partial"),
]


def written(folder: Path, *lines: object) -> Path:
    file = folder / "claims.jsonl"
    file.write_text("\n".join(each if isinstance(each, str) else json.dumps(each) for each in lines), encoding="utf-8")
    return file


def test_a_row_becomes_a_claim_that_cites_its_whole_passages(tmp_path: Path):
    working = {"expression": "12*2", "operands": [{"value": "12", "passage": 0}], "result": "24", "unit": None}
    (case,) = load(written(tmp_path, row("Two tickets cost 24 euros.", calculation=working), ""))
    (piece,) = case.evidence
    assert case.claim.cites == (piece.key,)
    assert piece.quote.text == piece.passage.text == TEXT
    assert case.documents[piece.passage.doc_id].date == "2024-05"
    assert case.claim.working == Working("12*2", (Operand("12", piece.key),), "24")
    assert case.label is Verdict.supported


@pytest.mark.parametrize(
    "line",
    [
        "no JSON",
        "[]",
        row("It is so.", label="true"),
        row(""),
        row("It is so.", passages=[]),
        row("It is so.", passages=[{"title": "x"}]),
        row("It is so.", calculation={"expression": "1", "operands": [{"value": "1", "passage": 3}], "result": "1"}),
    ],
)
def test_a_wrong_line_is_named(line: object, tmp_path: Path):
    with pytest.raises(UserError, match="line 2 is not a claim"):
        load(written(tmp_path, ROWS[0], line))


def test_a_file_that_is_missing_or_empty_is_named(tmp_path: Path):
    with pytest.raises(UserError, match="There is no file"):
        load(tmp_path / "nothing.jsonl")
    with pytest.raises(UserError, match="has no claims"):
        load(written(tmp_path, ""))


async def test_without_a_judge_only_what_is_written_there_is_kept(tmp_path: Path):
    found = await measure(load(written(tmp_path, *ROWS)), JudgeKind.none)
    assert found["n"] == found["unjudged"] == 5
    assert found["true_kept"] >= 0.5
    assert found["false_passed"] == found["partial_passed"] == 0
    assert found["by_kind"]["unsupported"] == {"false": 1, "false_passed": 0}


async def test_the_oracle_knows_and_the_liar_does_not(tmp_path: Path):
    cases, lines = load(written(tmp_path, *ROWS)), []
    right = await measure(cases, JudgeKind.oracle, report=lines.append)
    wrong = await measure(cases, JudgeKind.liar)
    assert (right["true_kept"], right["false_passed"], right["partial_passed"]) == (1, 0, 0)
    assert wrong["true_kept"] == 1
    assert wrong["false_passed"] + wrong["partial_passed"] > 0
    assert len(lines) == 5
    assert "The ferry" in lines[0]


async def test_a_limit_takes_claims_from_the_whole_file(tmp_path: Path):
    found = await measure(load(written(tmp_path, *ROWS)), JudgeKind.oracle, limit=2)
    assert found["n"] == 2
    assert set(found["by_kind"]) == {"supported", "unsupported"}


async def test_an_endpoint_is_asked_about_several_claims_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    asked: list[str] = []

    def answer(request: Mapping[str, Any]) -> Any:
        if role_of(request)[0] == "check":
            asked.append(json.dumps(request))
        return cooperative_reply(request)

    rows = [row(f"Every day the ferry {verb} from Skelby at midday.") for verb in ("departs", "sails", "sets off")]
    with ChatServer(answer) as server:
        monkeypatch.setenv("ASSAY_LLM_BASE_URL", server.url)
        monkeypatch.setenv("ASSAY_LLM_MODEL", "judge")
        monkeypatch.setenv("ASSAY_LLM_API_KEY", "none")
        found = await measure(load(written(tmp_path, *rows)), JudgeKind.endpoint)
    assert found["n"] == 3
    assert len(asked) == 1
    assert all(verb in asked[0] for verb in ("departs", "sails", "sets off"))


async def test_an_endpoint_must_be_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("ASSAY_LLM_MODEL", raising=False)
    with pytest.raises(UserError, match="no model to judge"):
        await measure(load(written(tmp_path, *ROWS)), JudgeKind.endpoint)


def test_a_hedged_claim_is_lost_if_true_and_passed_if_false(tmp_path: Path):
    true, _, false, _, partial = load(written(tmp_path, *ROWS))
    found = figures([JudgedClaim(case, case.claim, Fate.hedged) for case in (true, false, partial)], JudgeKind.oracle)
    assert (found["true_kept"], found["false_passed"], found["partial_passed"]) == (0, 1, 1)
    marked = figures([JudgedClaim(true, true.claim, Fate.marked)], JudgeKind.oracle)
    assert (marked["true_kept"], marked["true_marked"], marked["false_passed"]) == (1, 1, 0)


def test_what_was_not_judged_supported_is_not_delivered(tmp_path: Path):
    case = load(written(tmp_path, ROWS[0]))[0]
    assert fate(case, case.claim) is Fate.lost
    assert case.claim.text == unhedged(case.claim.text)


def test_the_command_prints_one_object_last(tmp_path: Path):
    file = written(tmp_path, *ROWS)
    shown = CliRunner().invoke(app, ["evaluate", "claims", "--data", str(file), "--judge", "oracle", "--json"])
    found = json.loads(shown.stdout.splitlines()[-1])
    assert found.keys() >= {"true_kept", "true_marked", "false_passed", "partial_passed", "n", "by_kind"}
    plain = CliRunner().invoke(app, ["evaluate", "claims", "--data", str(file)]).stdout
    assert plain.startswith("claims.jsonl\n")
    assert "true_kept" in plain
