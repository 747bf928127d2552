"""Figures from tables: what the writer says of a cell is compared with the cell, and with the sentence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from assay.answer import draft, revise
from assay.answer.checking import cells, claim_rules, judge
from assay.answer.claims import Sources, quotations
from assay.core.codec import from_json, to_json
from assay.core.identity import ORGANISATION
from assay.core.types import Claim, ClaimedCell, Derivation, Document, Evidence, Operand, Quote, Table, Verdict, Working
from assay.ingest.formats.detect import read
from assay.ingest.parsed import FileLimits
from assay.ingest.split import split_passages
from assay.models.cost import estimate_tokens
from assay.tables.cells import PassageTables

INCOME = """# Annual report 2022

Consolidated statement of income (in millions)

| | 2022 | 2021 | 2020 |
|---|---|---|---|
| Net sales | $34,229 | $35,355 | $32,184 |
| Cost of sales | 19,232 | 18,795 | 16,605 |
| Operating income | 6,539 | 7,369 | 7,161 |
| Loss on ships | (2,724) | — | (389) |

The company employed 92,000 people.
"""
FLEET = """# Annual report 2023

| Region | Americas | Asia Pacific |
|---|---|---|
| Tickets sold (thousands) | 1,204 | 977 |
| Ships | 41 | 38 |
"""


def document(id: str, text: str, organisation: str) -> Document:
    parsed = read(text.encode(), f"{id}.md", FileLimits())
    return Document(
        id, "b", f"{id}.md", "", parsed.title, parsed.text, tables=parsed.tables, meta={ORGANISATION: organisation}
    )


DOCUMENTS = {
    each.id: each for each in (document("d1", INCOME, "Harrow Tides plc"), document("d2", FLEET, "Norrland Lines AB"))
}


def evidence_of(key: str, source: Document) -> Evidence:
    passage = split_passages(source, estimate_tokens)[0]
    return Evidence(key, passage, Quote(source.id, passage.start, passage.end, passage.text), 9.0, "q")


ONE, TWO = "aaaaaaaa", "bbbbbbbb"
EVIDENCE = (evidence_of(ONE, DOCUMENTS["d1"]), evidence_of(TWO, DOCUMENTS["d2"]))
SOURCES = judge.sources_of(EVIDENCE, DOCUMENTS.get)
SALES = ClaimedCell(ONE, "r1c2", "net sales", "2021", "Harrow Tides", "35,355 million")
BEFORE = ClaimedCell(ONE, "r1c3", "net sales", "2020", "Harrow Tides", "32,184 million")
TICKETS = ClaimedCell(TWO, "r1c1", "tickets sold, Americas", "", "Norrland Lines", "1,204 thousand")
TRUE = "Harrow Tides had net sales of $35,355 million in 2021."


def ruled(text: str, *named: ClaimedCell, **more: Any) -> Claim:
    cites = tuple(dict.fromkeys(each.cite for each in named)) or (ONE,)
    return claim_rules.by_rule(Claim(text, cites, cells=named, **more), EVIDENCE, SOURCES)


# --- what is shown --------------------------------------------------------------------------------------------------


def test_rows_and_columns_of_a_table_have_ids_and_prose_has_none():
    shown = quotations(EVIDENCE, SOURCES, "mark", 3000, cells=True)
    assert "columns c1 2022, c2 2021, c3 2020" in shown
    assert "[r1] | Net sales |" in shown and "[r3] | Operating income |" in shown
    assert "\nThe company employed 92,000 people." in shown
    assert "[r1]" not in quotations(EVIDENCE, SOURCES, "mark", 3000)


def test_the_columns_of_two_tables_are_told_apart_and_each_has_its_scale():
    first, second = (
        Table(0, 1, ("", *names), units=units) for names, units in ((("2022",), "in millions"), (("Q1",), ""))
    )
    rows = {"r1": (first, None), "r2": (first, None), "r3": (second, None)}
    tables = PassageTables(DOCUMENTS["d1"], rows, {"c1": (first, 1), "c2": (second, 1)})  # pyright: ignore[reportArgumentType]
    assert tables.label == "columns of r1 to r2 c1 2022 (in millions); columns of r3 to r3 c2 Q1"


def test_ids_stay_the_same_where_only_a_part_of_the_passage_is_shown():
    passage = EVIDENCE[0].passage
    at = passage.text.index("| Operating income")
    part = replace(
        EVIDENCE[0], quote=Quote("d1", passage.start + at, passage.start + at + 30, passage.text[at : at + 30])
    )
    shown = quotations([part], SOURCES, "mark", 90, cells=True)
    assert "[r3] | Operating income" in shown and "Net sales" not in shown


def test_cells_are_asked_for_only_where_a_table_is_shown():
    prompt = draft.build_prompt("What were net sales?", EVIDENCE, SOURCES, "mark", 4000)
    assert "put under cells" in prompt["calculations"] and "[r1]" in prompt["evidence"]
    without = draft.build_prompt("What were net sales?", EVIDENCE, Sources(), "mark", 4000)
    assert "put under cells" not in without["calculations"]


def test_the_judge_sees_what_the_cell_is_beside_the_claim():
    request = judge.JudgeRequest((ruled(TRUE, SALES),))
    prompt = judge.build_prompt(request, EVIDENCE, SOURCES, "mark", 4000)
    assert "cell, read by code: Net sales, 2021, Harrow Tides plc: $35,355 (in millions)" in prompt["claims"]


# --- what is true ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (TRUE, SALES),
        ("Net sales were 35.355 billion dollars.", replace(SALES, value="35.355 billion")),
        ("Cost of sales was 19.232 billion.", ClaimedCell(ONE, "r2c1", "cost of sales", "2022", "", "19.232 billion")),
        ("Revenue was about 35.4 billion dollars.", replace(SALES, measure="revenue", value="$35.4 billion")),
        ("Der Umsatz von Harrow Tides betrug 2021 35,4 Mrd. $.", replace(SALES, measure="Umsatz", value="35,4 Mrd.")),
        ("Net sales were 35,355 in FY21.", replace(SALES, period="FY21", value="35,355")),
        ("Sales came to $35,355,000,000 in 2021.", replace(SALES, measure="sales", value="35,355,000,000")),
        ("Sales came to some 35,400 million.", replace(SALES, value="35,400 million")),
        ("The loss on ships was 389 million in 2020.", ClaimedCell(ONE, "r4c3", "loss", "2020", "", "389 million")),
        ("In the Americas, Norrland Lines sold 1.2 million tickets.", replace(TICKETS, value="1.2 million")),
        ("Net sales were 35,355 million.", replace(SALES, organisation="", period="", measure="", value="")),
    ],
)
def test_a_true_figure_may_be_said_in_many_ways(text: str, named: ClaimedCell):
    claim = ruled(text, named)
    assert claim.verdict is Verdict.partial, claim.why
    assert claim.cells[0].found is not None


def test_a_change_names_two_cells_and_its_direction():
    rose = "Net sales rose from 32,184 million in 2020 to 35,355 million in 2021."
    assert ruled(rose, BEFORE, replace(SALES, direction="up")).verdict is Verdict.partial
    fell = ruled(rose, BEFORE, replace(SALES, direction="down"))
    assert fell.verdict is Verdict.unsupported and "is not “down”" in fell.why
    assert (
        ruled(rose, replace(SALES, direction="down"), replace(BEFORE, direction="down")).verdict is not Verdict.partial
    )


def test_cells_of_two_things_at_one_time_are_no_change():
    cost = ClaimedCell(ONE, "r2c2", "cost of sales", "2021", "Harrow Tides", "18,795 million", "up")
    text = "Net sales grew to 35,355 million in 2021, and cost of sales to 18,795 million."
    assert ruled(text, replace(SALES, direction="up"), cost).verdict is Verdict.partial


def test_the_direction_of_losses_is_left_to_the_judge():
    grew = ClaimedCell(ONE, "r4c1", "loss on ships", "2022", "", "2,724 million", "up")
    before = ClaimedCell(ONE, "r4c3", "loss on ships", "2020", "", "389 million")
    claim = ruled("The loss on ships rose from 389 million in 2020 to 2,724 million in 2022.", before, grew)
    assert claim.verdict is Verdict.partial


def test_a_year_that_ends_in_spring_may_be_called_by_the_one_before():
    text = (
        "| | January 29, 2023 | January 30, 2022 |\n|---|---|---|\n| Net sales | 471 | 455 |\n| Costs | 401 | 399 |\n"
    )
    source = document("d3", text, "Harrow Tides plc")
    own = evidence_of("cccccccc", source)
    claim = Claim("Net sales were 455 in fiscal 2021.", (own.key,))
    claim = replace(claim, cells=(ClaimedCell(own.key, "r1c2", "net sales", "fiscal 2021", "", "455"),))
    assert claim_rules.by_rule(claim, (own,), judge.sources_of((own,), {"d3": source}.get)).verdict is Verdict.partial


def test_operands_of_a_calculation_need_not_be_in_the_sentence():
    working = Working("32184 + 35355", (Operand("32,184", ONE), Operand("35,355", ONE)), "67539", "million")
    text = "Net sales of 2020 and 2021 were 67,539 million together."
    assert ruled(text, SALES, BEFORE, working=working).verdict is Verdict.partial


def test_a_cell_that_does_not_exist_proves_nothing_and_refutes_nothing():
    claim = ruled(TRUE, replace(SALES, cell="r9c9"))
    assert claim.verdict is Verdict.partial and claim.cells[0].found is None


# --- what differs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Harrow Tides had net sales of $34,229 million in 2021.", replace(SALES, value="34,229 million")),
        ("Harrow Tides had net sales of $34,229 million in 2021.", SALES),
        ("Harrow Tides had net sales of $35.355 million in 2021.", replace(SALES, value="35.355 million")),
        ("Harrow Tides had net sales of $35,355 billion in 2021.", replace(SALES, value="35,355 billion")),
        ("Harrow Tides had net sales of $35,355 billion in 2021.", SALES),
        ("Harrow Tides had net sales of $35,355 million in 2020.", replace(SALES, period="2020")),
        ("Harrow Tides had net sales of $35,355 million in 2020.", SALES),
        ("Harrow Tides had an operating income of $35,355 million.", replace(SALES, measure="Operating income")),
        ("Harrow Tides had an operating income of $35,355 million.", SALES),
        ("Norrland had net sales of $35,355 million in 2021.", replace(SALES, organisation="Norrland Lines")),
        ("Norrland Lines had net sales of $35,355 million in 2021.", SALES),
        ("Ostby had net sales of $35,355 million in 2021.", replace(SALES, organisation="Ostby Shipping AS")),
        ("Norrland Lines sold 1,204 thousand tickets in Asia.", replace(TICKETS, measure="tickets sold, Asia Pacific")),
        ("Norrland Lines sold 1,204 thousand tickets in the Asia Pacific region.", TICKETS),
    ],
)
def test_what_differs_from_its_cell_fails_and_the_reason_gives_the_cell(text: str, named: ClaimedCell):
    claim = ruled(text, named)
    assert claim.verdict is Verdict.unsupported
    assert claim.cells[0].found is not None and claim.cells[0].found.line in claim.why


def test_a_figure_of_a_table_without_a_cell_is_asked_for_and_one_of_prose_is_not():
    asks = cells.without_cell(Claim(TRUE, (ONE,)), EVIDENCE, SOURCES.tables)
    assert asks == "“$35,355 million” is from a table, and the claim does not name its cell"
    assert not cells.without_cell(Claim("It employed 92,000 people.", (ONE,)), EVIDENCE, SOURCES.tables)
    assert not cells.without_cell(Claim(TRUE, (ONE,), cells=(SALES,)), EVIDENCE, SOURCES.tables)


def test_the_facts_of_cells_prove_themselves():
    claim = cells.own_facts(Claim("Wrong.", (ONE,), cells=(SALES, BEFORE)), EVIDENCE, SOURCES.tables)
    assert claim is not None and claim.derived is not None and claim.derived.rule is Derivation.facts
    assert claim.text.startswith("Net sales, 2021, Harrow Tides plc: $35,355 (in millions); Net sales, 2020,")
    assert judge.verify(claim, EVIDENCE, DOCUMENTS.get).verdict is Verdict.supported
    altered = replace(claim, text=claim.text.replace("35,355", "35,356"))
    assert judge.verify(altered, EVIDENCE, DOCUMENTS.get).verdict is Verdict.unsupported


# --- what the writer replies ----------------------------------------------------------------------------------------

CELL = {"cite": ONE, "cell": "r1c2", "measure": "net sales", "period": "2021", "value": "35,355 million"}


def test_cells_of_a_reply_are_read_with_the_claim_and_cited():
    stated = draft.Stated(text=f"[r1] {TRUE}", cites=[TWO], cells=[draft.Cell(**CELL)])
    (claim,), stray = draft.read_claim(stated, {ONE, TWO})
    assert claim.text == TRUE and claim.cites == (TWO, ONE) and not stray
    assert claim.cells == (replace(SALES, organisation=""),)


@pytest.mark.parametrize("named", [(), ("r1c1",), ("r1c1", "r1c2")])
def test_a_code_in_a_table_is_a_name_and_needs_no_cell(named: tuple[str, ...]):
    source = document("d3", "| Supplier | Contract | Ends |\n|---|---|---|\n| Tavorn | F-42 | 2027-01-31 |\n", "Sarrow")
    evidence, sources = (
        [evidence_of(ONE, source)],
        judge.sources_of([evidence_of(ONE, source)], {source.id: source}.get),
    )
    own = tuple(ClaimedCell(ONE, cell, "Contract", "", "Sarrow", "F-42") for cell in named)
    claim = Claim("The contract with Tavorn is F-42.", (ONE,), cells=own)
    assert not cells.without_cell(claim, evidence, sources.tables)


def test_a_reply_without_cells_is_still_read():
    assert draft.Stated.model_validate({"text": TRUE, "cites": [ONE]}).cells == []


def test_a_rewritten_claim_with_the_same_figures_keeps_its_cells():
    wrong = Claim("Net sales were $35,355 million in 2020.", (ONE,), cells=(SALES,), why="another year")
    again = revise.Revision(claim=1, action="rewrite", text="In 2020 net sales were $35,355 million.", cites=[ONE])
    other = revise.Revision(claim=1, action="rewrite", text="In 2020 net sales were $32,184 million.", cites=[ONE])
    kept, changed = (
        revise.read(revise.Revisions(revisions=[each]), [(0, wrong)], EVIDENCE, "w")[0].claim for each in (again, other)
    )
    assert kept is not None and kept.cells == (SALES,)
    assert changed is not None and changed.cells == ()


def test_cells_are_recorded_with_a_claim_and_a_claim_without_them_has_its_old_form():
    claim = ruled(TRUE, SALES)
    assert from_json(Claim, to_json(claim)) == claim
    assert "cells" not in to_json(Claim("x", (ONE,)))
