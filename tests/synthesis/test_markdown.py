from __future__ import annotations

import re
from dataclasses import replace

import pytest
from accounts_by_hand import account

from assay.core.synthesis import Pipeline, RelationType
from assay.core.types import Block, Claim, Document, Quote, Section
from assay.synthesis.content import footnotes, md
from assay.synthesis.render import markdown


@pytest.mark.parametrize("documents", [1, 3, 10, 60])
def test_every_number_has_one_footnote_and_every_footnote_a_quotation(documents: int):
    made = markdown(account(documents))
    notes = re.findall(r"^\[\^(\d+)\]: (.*)$", made, re.MULTILINE)
    assert [int(number) for number, _ in notes] == list(range(1, len(notes) + 1))
    assert set(re.findall(r"\[\^(\d+)\](?!:)", made)) <= {number for number, _ in notes}
    assert all(said.endswith("”") for _, said in notes)


def test_it_holds_what_the_page_holds():
    made = account(10)
    said = markdown(made)
    for claim in made.narrative.claims:
        assert claim.words in said
    for relation in made.relations:
        assert relation.left.quote.text in said and relation.right.quote.text in said and relation.reason in said
    for question in made.questions:
        assert question.text in said
    for portrait in made.documents:
        assert portrait.title in said
    assert made.theme in said and made.pairing in said and made.notes[0] in said and "$0.4123" in said


def test_a_contradiction_stands_with_both_sides_and_its_labels():
    made = account(10)
    relation = next(each for each in made.relations if each.type is RelationType.contradiction)
    said = markdown(made).partition("## Contradictions")[2].partition("## Other relations")[0]
    left, right = (made.labels[side.doc_id] for side in (relation.left, relation.right))
    assert f"### {left} and {right}" in said
    assert f"> {left}: “{relation.left.quote.text}”" in said and f"> {right}: “{relation.right.quote.text}”" in said


def test_few_documents_are_compared_in_a_table_and_many_in_a_list():
    few, many = (markdown(account(count)).partition("## Comparison")[2].partition("\n## ")[0] for count in (3, 10))
    assert "| Question | D1 | D2 | D3 |" in few
    assert "| Question" not in many and "- D1: " in many


def test_a_table_has_as_many_cells_in_each_row_as_it_has_heads():
    made = account(3)
    barred = replace(made, documents=tuple(replace(each, title="A | B | C") for each in made.documents))
    tables = re.findall(r"(?:^\|.*\|\n)+", markdown(barred), re.MULTILINE)
    assert len(tables) >= 3
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1


def test_words_of_documents_format_nothing():
    hostile = "# Not a heading\n\n- [x](http://x) ![i](u) <script>alert(1)</script> `code` | cell [^1]: note \u202e\x00"
    made = account(3)
    said = markdown(
        replace(made, theme=hostile, documents=tuple(replace(each, title=hostile) for each in made.documents))
    )
    assert "<script>" not in said and "\\<script\\>" in said
    assert not re.search(r"(?<!\\)!\[|(?<!\\)\[x|^# Not|\u202e|\x00", said, re.MULTILINE)


@pytest.mark.parametrize(
    ("words", "shown"), [("1. one", "1\\. one"), ("- a", "\\- a"), ("= b", "\\= b"), ("2020 was", "2020 was")]
)
def test_a_paragraph_that_begins_like_a_list_is_none(words: str, shown: str):
    assert md(words) == shown


def test_a_summary_and_an_account_without_a_model_say_what_they_are():
    assert "## Contradictions" not in markdown(account(10, pipeline=Pipeline.summary))
    assert "no model: extractive, quotations only" in markdown(account(10, model=""))


def test_a_footnote_names_the_section_and_the_page_of_its_words_not_of_their_passage():
    made = account(1)
    first = made.evidence[0]
    text = " " * first.quote.start + first.quote.text
    sections = (Section("Start", 1, 0, 0), Section("Where it stands", 1, first.quote.start, first.quote.start))
    pages = (0, first.quote.start)
    source = Document(first.quote.doc_id, "b", "x.pdf", "", "x", text, sections=sections, pages=pages, kind="pdf")
    said = markdown(made, lambda _: source)
    assert "page 2 · Where it stands: “" in said and "passage from page" not in said


def test_sentences_of_two_sections_are_never_joined_and_stand_under_their_headings():
    text = "Report\n\nCranes\n\nOne crane is old. It was painted. The other is new.\n\nRails\n\nBoth rails are worn."
    heads = [Section(each, 1, text.index(each), text.index(each) + len(each)) for each in ("Cranes", "Rails")]
    source = Document("d", "b", "x.md", "", "Report", text, sections=tuple(heads))
    told = ("One crane is old.", "The other is new.", "Both rails are worn.")
    quotes = [Quote("d", text.index(each), text.index(each) + len(each), each) for each in told]
    block = Block(tuple(Claim("", ("k",), quote=each) for each in quotes), "D1 · Report")
    found = footnotes(account(1), lambda _: source).excerpts(block)
    assert [each.under for each in found] == ["Cranes", "Rails"]
    assert [(gap, claim.words) for gap, claim in found[0].claims] == [(False, told[0]), (True, told[1])]


def test_a_question_cites_the_words_that_were_drawn_for_it():
    made = account(1)
    insight = made.insights[0]
    other = next(each for each in made.evidence if each.key not in insight.claim.cites)
    misled = replace(made, answers={insight.question: (other.key,)})
    notes = footnotes(misled)
    assert notes.of_question(insight.question) == notes.of_claim(insight.claim)
