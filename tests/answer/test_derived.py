"""Statements computed by rule: they are delivered only if they come out the same from what they cite."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ferries import document

from assay.answer.checking.judge import verify
from assay.core.types import Derivation, Document, Evidence, Passage, Quote, Verdict
from assay.tables.derive import derive, table_claims
from assay.tables.lookup import look_up


def evidence(source: Document) -> Evidence:
    passage = Passage("p", source.id, source.text, 0, len(source.text))
    return Evidence("k", passage, Quote(source.id, 0, 6, source.text[:6]), 10.0, "?")


def test_the_statement_comes_first_and_its_rows_after_it():
    source = document()
    one = look_up("Which ferry's contract ends first?", [source])
    found = look_up("Which ferries are in Skelby?", [source])
    assert one is not None
    assert found is not None
    (single,) = table_claims(one, [evidence(source)], source)
    assert single.claims[0].text == "It is Petrel (Contract ends: 2025-12-31)."
    first, rows = table_claims(found, [evidence(source)], source)
    assert first.claims[0].text == "They are Gannet and Skua."
    assert [claim.words for claim in rows.claims] == [source.text[row.start : row.end] for row in found.rows]


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("What is the port of the Petrel?", "It is Marl Quay (Petrel, Port)."),
        ("What is the capacity of the Petrel?", "It is 85 (Petrel, Capacity, cars)."),
        ("What is the total capacity in cars?", "The total is 455 (Capacity, cars)."),
    ],
)
def test_a_statement_says_what_its_value_is_of(question: str, said: str):
    source = document()
    found = look_up(question, [source])
    assert found is not None
    assert table_claims(found, [evidence(source)], source)[0].claims[0].text == said


def test_a_statement_gives_the_unit_of_its_row_and_the_period_of_its_table():
    source = document(b"Water report\nin EUR\nJune 2023\nFee,Price\nMooring,12\nCrane,90\n", "fees.csv", "Fees")
    found = look_up("What is the price of the crane?", [source])
    assert found is not None
    assert (
        table_claims(found, [evidence(source)], source)[0].claims[0].text
        == "It is 90 (Crane, Price, June 2023, in EUR)."
    )
    source = document(b"Substance,Unit,Limit\nNitrate,mg/L,50\nLead,\xc2\xb5g/L,10\n", "limits.csv", "Limits")
    found = look_up("What is the limit of lead?", [source])
    assert found is not None
    assert table_claims(found, [evidence(source)], source)[0].claims[0].text == "It is 10 (Lead, Limit, µg/L)."


def test_a_computed_statement_is_supported_and_a_changed_one_is_not():
    source = document()
    found = look_up("How many ferries are in Skelby?", [source])
    assert found is not None
    claim = table_claims(found, [evidence(source)], source)[0].claims[0]
    assert claim.text == "There are 2 in the table: Gannet and Skua."
    assert verify(claim, [evidence(source)], lambda _: source).verdict is Verdict.supported
    changed = replace(claim, text=claim.text.replace("2", "3"))
    assert verify(changed, [evidence(source)], lambda _: source).verdict is Verdict.unsupported
    elsewhere = replace(source, text=source.text.replace("Gannet", "Puffin"))
    assert verify(claim, [evidence(source)], lambda _: elsewhere).verdict is Verdict.unsupported


def test_a_date_from_the_catalogue_must_be_the_documents_own():
    source = replace(document(), date="2024-05-17")
    claim = derive(Derivation.date, [evidence(source).quote], ["k"], lambda _: source)
    assert claim.text == "The date of Ferries of the sound (ferries.csv) is 2024-05-17."
    assert verify(claim, [evidence(source)], lambda _: source).verdict is Verdict.supported
    assert verify(claim, [evidence(source)], lambda _: replace(source, date="2023")).verdict is not Verdict.supported


def test_the_catalogue_answers_in_sentences():
    source = replace(document(), authors=("Ann Lee", "Lee, Oak & Co."))
    quote = evidence(source).quote

    def said(rule: Derivation, source: Document) -> str:
        return derive(rule, [quote], ["k"], lambda _: source).text

    assert said(Derivation.authors, source) == (
        "The authors of Ferries of the sound (ferries.csv) are Ann Lee and Lee, Oak & Co."
    )
    assert said(Derivation.authors, replace(source, authors=("Ann Lee",))).endswith("(ferries.csv) is Ann Lee.")
    assert said(Derivation.titled, source) == "The title of ferries.csv is “Ferries of the sound”."
    report = {"organisation": "Sound Ferries", "kind_of_document": "annual report", "period": "2024"}
    listed = replace(source, title="Sound Ferries — annual report 2024", meta=report)
    assert said(Derivation.titled, listed) == (
        "ferries.csv states no title; it is listed as “Sound Ferries — annual report 2024”."
    )
    assert said(Derivation.documents, source) == "It is Ferries of the sound (ferries.csv)."
    assert said(Derivation.number, source) == "There is 1 document: Ferries of the sound (ferries.csv)."


def test_an_answer_without_its_rows_in_the_evidence_is_not_given():
    source = document()
    found = look_up("What is the speed of the Petrel?", [source])
    assert found is not None
    assert table_claims(found, [], source) == ()


def test_a_statement_is_carried_by_its_cell_or_by_its_rows():
    source = document()
    one = look_up("What is the speed of the Petrel?", [source])
    several = look_up("How many ferries are in Skelby?", [source])
    assert one is not None and several is not None
    assert [each.text for each in table_claims(one, [evidence(source)], source)[0].claims[0].carried_by] == ["22 kn"]
    carried = table_claims(several, [evidence(source)], source)[0].claims[0].carried_by
    assert [each.text.split()[0] for each in carried] == [
        source.text[row.start : row.end].split()[0] for row in several.rows
    ]


def test_documents_beyond_those_named_are_counted():
    source = document()
    many = [evidence(source).quote] * 25
    claim = derive(Derivation.number, many, ["k"], lambda _: source, "975")
    assert claim.text.startswith("There are 1000 documents: Ferries of the sound (ferries.csv), ")
    assert claim.text.endswith(" and 975 more.")
    assert derive(Derivation.documents, many, ["k"], lambda _: source, "1").text.endswith(" and 1 more.")
