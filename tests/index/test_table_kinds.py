"""Kinds of table learned from the shelf: which table of a document a question is sent to."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.core.errors import UserError
from assay.ingest.sources import find_sources
from assay.language.glossary import Glossary, asked_measures, asked_rows, load_glossary
from assay.language.terms import content_terms
from assay.tables.labels import TableKinds, TableLabels, asked_tables, learn_kinds, table_labels
from assay.workspace.facade import open_workspace

# A trade that no glossary knows: every site has a bill of materials, and extracts of it.
BILL = ["Copper pipe", "Ball valves", "Pump housing", "Gate valves", "Pipe lagging", "Total materials"]
EXTRACT = ["Pump housing", "Mr Alder's van"]


def table(at: int, caption: str, labels: list[str]) -> TableLabels:
    stems = [" ".join(content_terms(label)) for label in labels]
    return TableLabels(at, at + 10, " ".join(content_terms(caption)), tuple(stems))


SHELF = {
    site: [
        table(0, "Visits", EXTRACT),
        table(100, f"Bill of materials, {site}", BILL),
        table(200, "Rota", [site, "Ann"]),
    ]
    for site in ("Alder", "Birch", "Cedar")
}
KINDS = learn_kinds(SHELF.values())


def asked(question: str, kinds: TableKinds = KINDS, glossary: Glossary | None = None) -> list[int]:
    found = asked_tables(question, kinds, {"Birch": SHELF["Birch"]}, glossary or load_glossary())
    return [each.start for each in found]


def test_a_row_that_many_documents_have_leads_to_the_table_that_they_have_in_common():
    assert asked("What did the pump housing cost at Birch?")[0] == 100
    assert KINDS.prominence(SHELF["Birch"][1]) > KINDS.prominence(SHELF["Birch"][0])


def test_words_that_are_no_rows_lead_to_no_table():
    assert asked("Who repaired the fence at Birch?") == []


def test_in_a_single_document_the_longer_table_with_the_row_comes_first():
    alone = learn_kinds([SHELF["Birch"]])
    glossary = load_glossary()
    known = Glossary({**glossary.names, "pump": ("pump housing",)}, glossary.measures, {
        **glossary.called, frozenset({"pump"}): "pump", frozenset({"pump", "hous"}): "pump"})  # fmt: skip
    assert asked("What did the pump cost?", alone, known)[0] == 100


STATEMENTS = {
    firm: [
        table(0, "Five year summary", ["Revenue", "Total assets"]),
        table(100, "Consolidated balance sheets", [
            "Cash", "Inventories", "Total current assets", "Total assets", "Accounts payable", "Total current liabilities",
        ]),
        table(200, "Consolidated statements of income", ["Revenue", "Cost of sales", "Income taxes", "Net income"]),
    ]
    for firm in ("Nike", "Boeing")
}  # fmt: skip


@pytest.mark.parametrize(
    ("question", "starts"),
    [
        ("Has the quick ratio improved?", {100}),
        ("Does it have an improving gross margin profile?", {200}),
        ("What is the inventory turnover ratio?", {100, 200}),
        ("By the statement of financial position, what are total assets?", {100}),
    ],
)
def test_a_measure_leads_to_the_tables_of_its_operands(question: str, starts: set[int]):
    found = asked_tables(question, learn_kinds(STATEMENTS.values()), {"Nike": STATEMENTS["Nike"]}, load_glossary())
    assert {each.start for each in found} == starts


def test_measures_are_named_by_their_longest_name_and_have_the_rows_of_measures_inside_them():
    [measure] = asked_measures("Is the free cashflow improving?", load_glossary())
    assert measure.name == "free cash flow"
    for words in ("Is the free cashflow conversion improving?", "Compare the free cash flow conversion of both years"):
        [measure] = asked_measures(words, load_glossary())
        assert measure.name == "free cash flow conversion"
    assert measure.operands == ("operating cash flow", "capital expenditure", "net income")


def test_a_team_adds_measures_and_names_of_its_own(tmp_path: Path):
    own = tmp_path / "own.toml"
    own.write_text(
        '[measures]\n"load factor" = "passenger miles / seat miles"\n[names]\n"seat miles" = ["ASM"]\n', "utf-8"
    )
    rows = asked_rows("What was the load factor?", load_glossary(own))
    assert [row.name for row in rows] == ["load factor", "passenger miles", "seat miles"]
    assert frozenset({"asm"}) in rows[-1].spellings
    assert asked_measures("the quick ratio", load_glossary(own))


@pytest.mark.parametrize("text", ["[names]\n'a' = 'b'\n", "[measures\n", "[measures]\na = 1\n"])
def test_a_glossary_that_cannot_be_read_says_what_it_needs(tmp_path: Path, text: str):
    own = tmp_path / "own.toml"
    own.write_text(text, "utf-8")
    with pytest.raises(UserError, match="glossary"):
        load_glossary(own)


BALANCE = """| | 2021 | 2020 |
|---|---|---|
| Inventories | {} | 11 |
| Total current assets | 61 | 52 |
| Total current liabilities | 31 | 22 |
"""


async def test_a_ratio_is_searched_for_in_the_table_of_its_operands(tmp_path: Path):
    """None of the words of the question is in the table; they are all over the rest of the document."""
    talk = "The quick ratio is a ratio that analysts of the company like, for it is quick to form. " * 30
    for firm in ("Harbour", "Orchard", "Quarry"):
        text = f"# {firm} Company\n\n{talk}\n\n## Consolidated balance sheets\n\n{BALANCE.format(len(firm))}\n## More\n\n{talk}"
        (tmp_path / f"{firm.lower()}_2021.md").write_text(text, "utf-8")
    with open_workspace(tmp_path / "w", create=True, embedder="gte-small") as opened:
        await opened.documents.add_sources(find_sources([tmp_path]))
        [first, *_] = await opened.search("Has the quick ratio of Orchard Company improved in 2021?")
        assert "Total current liabilities" in first.passage.text
        assert Path(str(first.fields["source"])).stem == "orchard_2021"


def test_labels_are_without_groups_numbers_and_asides(tmp_path: Path):
    from assay.core.types import Document
    from assay.ingest.formats.detect import read
    from assay.ingest.parsed import FileLimits

    parsed = read(b"Item,2021\nAssets (Note 4),\n  Cash 2,5\nTotal assets,9\n", "t.csv", FileLimits())
    [found] = table_labels(Document("d", "b", "t.csv", "", "t", parsed.text, tables=parsed.tables))
    assert found.labels[0] == "asset" and "total asset" in found.labels
