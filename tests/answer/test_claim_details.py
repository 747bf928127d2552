"""What a reader can open on a claim: what it rests on, who gave the verdict, and how it was computed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.answer.checking.judge import DIFFER
from assay.answer.claim_details import (
    OperandLine,
    basis,
    dispute,
    judged_by,
    recorded_judges,
    show_working,
)
from assay.core.events import Checked
from assay.core.types import (
    Basis,
    Claim,
    Derivation,
    Derived,
    Document,
    Evidence,
    Operand,
    Passage,
    Quote,
    Verdict,
    Working,
)

TEXT = "Sales in 2022 were 340 units.\nSales in 2023 were 480 units."
DOCUMENT = Document("d1", "b", "/papers/sales.txt", "0", "Sales", TEXT)
EVIDENCE = (Evidence("k1", Passage("p1", "d1", TEXT, 0, len(TEXT)), Quote("d1", 0, 29, TEXT[:29]), 9.0, "q"),)
RISE = Working("(480 - 340) / 340 * 100", (Operand("480", "k1"), Operand("340", "k1")), "41.2", "%")
CLAIM = Claim("Sales rose by 41.2 % in 2023.", ("k1",), Verdict.supported, working=RISE)
STATED = Claim("Sales rose.", ("k1",), Verdict.supported)


def derived(rule: Derivation) -> Claim:
    return replace(STATED, derived=Derived(rule, ()))


@pytest.mark.parametrize(
    ("claim", "wanted"),
    [
        (STATED, Basis.statement),
        (Claim("", ("k1",), quote=EVIDENCE[0].quote), Basis.quotation),
        (CLAIM, Basis.calculation),
        (replace(CLAIM, working=replace(RISE, expression='count("480", "340")')), Basis.counted),
        (replace(CLAIM, working=replace(RISE, expression="480 > 340")), Basis.comparison),
        (derived(Derivation.total), Basis.calculation),
        (derived(Derivation.counted), Basis.counted),
        (derived(Derivation.extreme), Basis.comparison),
        (derived(Derivation.cell), Basis.table),
        (derived(Derivation.authors), Basis.catalogue),
        (derived(Derivation.yes), Basis.statement),
    ],
)
def test_a_claim_has_a_basis(claim: Claim, wanted: Basis):
    assert basis(claim) is wanted
    assert basis(claim, opinion=True) is Basis.opinion


def test_who_gave_the_verdict_is_code_or_a_model():
    assert judged_by(STATED) == "code"
    assert judged_by(replace(STATED, by="check@big-model")) == "big-model"
    assert judged_by(replace(STATED, verdict=None)) == ""


def test_who_judged_a_claim_of_an_older_version_is_in_its_events():
    judges = recorded_judges([Checked(0, STATED, "check@old-model"), Checked(1, CLAIM)])
    assert (judged_by(STATED, judges), judged_by(CLAIM, judges)) == ("old-model", "code")


def test_what_another_judgement_says_is_told_where_two_differ():
    claim = replace(STATED, disputed=True, objection="a condition is missing")
    assert dispute(claim) == f"{DIFFER}: a condition is missing" and dispute(replace(claim, objection="")) == DIFFER
    assert dispute(STATED) == ""


def test_a_working_shows_the_expression_its_value_and_the_line_of_each_operand():
    shown = show_working(CLAIM, EVIDENCE, lambda _: DOCUMENT)
    assert shown is not None and shown.expression == "(480 − 340) / 340 × 100 = 41.18"
    assert shown.operands == (
        OperandLine("480", "k1", "Sales in 2023 were 480 units."),
        OperandLine("340", "k1", "Sales in 2022 were 340 units."),
    )
    assert show_working(STATED, EVIDENCE, lambda _: DOCUMENT) is None


def test_a_working_whose_document_is_gone_shows_what_the_claim_says_and_no_lines():
    gone = (replace(EVIDENCE[0], passage=replace(EVIDENCE[0].passage, text="")),)
    shown = show_working(CLAIM, gone, lambda _: None)
    assert shown is not None and shown.expression == "(480 - 340) / 340 * 100 = 41.2 %"
    assert [each.line for each in shown.operands] == ["", ""]
