"""A claim that gives one cell of a table is proved; one that says anything else is not."""

from __future__ import annotations

import itertools

import pytest

from assay.answer.checking.judge import JUDGE
from assay.answer.checking.table_value import gives_cell
from assay.answer.evidence_text import Sources
from assay.core.types import Claim, Evidence, Passage, Quote, Verdict

TITLE = "Sanna Lines plc, annual report, fiscal 2023"
BALANCE = """Consolidated Balance Sheets
As of May 31,
(Dollars in millions, except per share data) 2023 2022
RECEIVABLES
Ferry services 310 281
Harbour cranes 95 103
INVENTORIES
Ferry services 973 1,044
Harbour cranes 12 (14)
Spare parts (Note 4) 7 9
Net cash before tax 44 48"""
HALVES = """Three Months Ended June 30, Six Months Ended June 30,
($ in thousands) 2023 2022 2023 2022
Licence fees 4,310 3,980 8,655 7,702"""


def evidence(text: str) -> tuple[Evidence, ...]:
    return (Evidence("k", Passage("p", "d", text, 0, len(text)), Quote("d", 0, len(text), text), 8.0, "q"),)


def proved(claim: str, text: str = BALANCE) -> bool:
    return gives_cell(claim, evidence(text), Sources({"d": TITLE}))


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("Sanna's inventories of ferry services were $973 million at May 31, 2023.", BALANCE),
        ("On May 31, 2022, Sanna Lines had receivables of harbour cranes of $103 million.", BALANCE),
        ("Inventories of spare parts amounted to $9 million in 2022.", BALANCE),
        ("Licence fees were $8,655 thousand in the six months ended June 30, 2023.", HALVES),
        ("Boats were 192 in 2023.", "2023 2022\nBoats 192 205"),
        ("Boats were 192 in 2023.", "| 2023 | 2022 |\n| Boats | 192 | 205 |"),
    ],
)
def test_row_column_value_and_unit_as_in_the_table_are_proved(claim: str, text: str):
    assert proved(claim, text)


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("Inventories of ferry services were $310 million in 2023.", BALANCE),  # another section
        ("Inventories of ferry services were $1,044 million in 2023.", BALANCE),  # another column
        ("Inventories of harbour cranes were $973 million in 2023.", BALANCE),  # another row
        ("Inventories of ferry services were $973 thousand in 2023.", BALANCE),
        ("Inventories of ferry services were $973 in 2023.", BALANCE),
        ("Inventories of ferry services were €973 million in 2023.", BALANCE),
        ("Inventories of ferry services were $973 million at June 30, 2023.", BALANCE),
        ("Inventories of ferry services were $973 million in the second quarter of 2023.", BALANCE),
        ("Inventories of ferry services were $973 million.", BALANCE),  # no period
        ("Ferry services were $973 million in 2023.", BALANCE),  # of what?
        ("Inventories of harbour cranes were $14 million in 2022.", BALANCE),  # in brackets: negative
        ("Inventories of ferry services were about $973 million in 2023.", BALANCE),
        ("Inventories of ferry services were not $973 million in 2023.", BALANCE),
        ("Inventories of ferry services rose to $973 million in 2023.", BALANCE),
        ("Only inventories of ferry services were $973 million in 2023.", BALANCE),
        ("Unsold inventories of ferry services were $973 million in 2023.", BALANCE),
        ("Inventories of ferry services were $973 million in 2023 and $1,044 million in 2022.", BALANCE),
        ("Orrel Mining's inventories of ferry services were $973 million in 2023.", BALANCE),  # another firm
        ("Inventories of net cash after tax were $44 million in 2023.", BALANCE),
        ("Licence fees were $8,655 thousand in the three months ended June 30, 2023.", HALVES),
        ("Licence fees were $8,655 thousand in 2023.", HALVES),  # of which months?
        ("Boats were 192 in 2023.", "2023 2022\nBoats — 192 5%"),  # an empty cell
        ("Boats were 192 in 2023.", "2023 | 2022\nBoats | | 192 | 5"),
        ("Boats were 205 in 2022.", "2023 2022\nBoats 192 nil 205"),
        ("Boats were 192 in 2022.", "2023 2022\nBoats 4 192 205"),  # a column of notes
        ("Boats were 192 in 2023.", "Quarter ended June 30,\n2023 2022\nBoats 192 205"),
        ("Boats were 192 in 2023.", "2023 2022\nBoats 192 205\nBoats 7 9"),
        ("Boats were 192 in 2023.", "In 2023 the yard did better than in 2022\nBoats 192 205"),  # no header
    ],
)
def test_anything_else_is_not_proved(claim: str, text: str):
    assert not proved(claim, text)


def test_of_all_rows_columns_and_values_only_those_of_the_table_are_proved():
    sections, rows, years = ("Receivables", "Inventories"), ("ferry services", "harbour cranes"), ("2023", "2022")
    cells = {
        ("Receivables", "ferry services", "2023"): "310", ("Receivables", "ferry services", "2022"): "281",
        ("Receivables", "harbour cranes", "2023"): "95", ("Receivables", "harbour cranes", "2022"): "103",
        ("Inventories", "ferry services", "2023"): "973", ("Inventories", "ferry services", "2022"): "1,044",
        ("Inventories", "harbour cranes", "2023"): "12",
    }  # fmt: skip
    for section, row, year in itertools.product(sections, rows, years):
        for value in cells.values():
            claim = f"{section} of {row} were ${value} million in {year}."
            assert proved(claim) == (cells.get((section, row, year)) == value), claim


def test_a_cell_is_delivered_without_a_judge_and_goes_to_one_that_is_there():
    own, sources = evidence(BALANCE), Sources({"d": TITLE})
    claim = JUDGE.by_rule(
        Claim("Sanna's inventories of ferry services were $973 million in 2023.", ("k",)), own, sources
    )
    assert claim.verdict is Verdict.partial and JUDGE.needs_model(claim)
    assert JUDGE.without_model(claim, own, sources).verdict is Verdict.supported
