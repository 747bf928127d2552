"""Units that a section declares reach its passages and tables, and nothing beyond."""

from __future__ import annotations

import pytest

from assay.core.codec import from_json, to_json
from assay.core.types import Document, Passage
from assay.ingest.formats.detect import read
from assay.ingest.parsed import FileLimits, Parsed
from assay.ingest.split import split_passages

DECLARED = "Dollars in millions, except per share data"


def page(body: str) -> Parsed:
    return read(f"<html><body><h1>Annual report</h1>{body}</body></html>".encode(), "report.html", FileLimits())


def passages(parsed: Parsed) -> list[Passage]:
    document = Document(
        "d1", "b", "a", "", parsed.title, parsed.text, sections=parsed.sections, kind=parsed.kind, tables=parsed.tables
    )
    return split_passages(document, lambda text: len(text.split()), 20, 0)


def contexts(parsed: Parsed, words: str) -> list[str]:
    return [piece.context for piece in passages(parsed) if words in piece.text]


def note(number: int, words: str) -> str:
    return f"<h2>Note {number} – Matters</h2><p>{words} This is a sentence that fills the note a little more.</p>"


FLAT = (
    "<h2>Item 8. Statements</h2><p>See the index to the statements below.</p><h2>Notes to the statements</h2>"
    f"<p>({DECLARED})</p>"
    + note(1, "A charge of $200 was recorded in the year.")
    + note(2, "The plan covers 300 people in four towns.")
    + note(3, "We paid $5 million for the site.")
    + "<h2>Item 9. Fees</h2><p>Each director receives a fee of $450 for a meeting, and the chair twice as much.</p>"
)


def test_a_declaration_above_flat_headings_reaches_what_follows_until_its_part_of_the_report_ends():
    parsed = page(FLAT)
    assert contexts(parsed, "$200") == [DECLARED]
    assert contexts(parsed, "300 people") == [""]
    assert contexts(parsed, "$5 million") == [""]
    assert contexts(parsed, "$450") == [""]


def test_a_declaration_in_a_heading_reaches_the_sections_below_it_and_ends_with_it():
    parsed = page(
        "<h2>Notes (amounts in thousands of euros)</h2><p>These are the notes of the group, as every year.</p>"
        "<h3>Leases</h3><p>Rent of €75 was paid for the depot at the harbour, and for nothing else.</p>"
        "<h2>Outlook</h2><p>A ticket costs €12 at the harbour, and will cost as much next year, we hope.</p>"
    )
    (leases,) = (piece for piece in passages(parsed) if "€75" in piece.text)
    assert "Notes (amounts in thousands of euros) › Leases" in leases.heading and leases.context == ""
    assert contexts(parsed, "€12") == [""]


def test_a_declaration_inside_replaces_the_one_outside_until_it_ends():
    parsed = page(
        "<h2>Anhang</h2><p>(in Mio. EUR)</p><h3>Grundsätze</h3><p>Der Anhang folgt den Grundsätzen, die schon im letzten "
        "Jahr galten, und weicht nirgends von ihnen ab.</p><h3>Steuern</h3>"
        "<p>Der Aufwand betrug 12 EUR im Jahr und blieb damit gleich.</p>"
        "<h3>Honorare</h3><p>(in TEUR)</p><p>Das Honorar betrug 340 EUR im Jahr, wie im Vorjahr auch schon.</p>"
        "<h3>Leasing</h3><p>Die Miete betrug 7 EUR im Jahr, denn mehr war für das Lager nicht zu zahlen.</p>"
    )
    assert contexts(parsed, "12 EUR") == ["in Mio. EUR"]
    assert not any("Mio" in context for context in contexts(parsed, "340 EUR"))
    assert contexts(parsed, "7 EUR") == ["in Mio. EUR"]


def grid(*rows: tuple[str, ...]) -> str:
    return "<table>" + "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows) + "</table>"


def test_tables_with_amounts_take_the_units_of_their_section_unless_they_have_their_own():
    amounts = grid(("", "2022", "2021"), ("Cash", "$12", "$10"), ("Debt", "$7", "$6"))
    people = grid(("", "2022", "2021"), ("Staff", "120", "110"), ("Sites", "7", "6"))
    parsed = page(
        f"<h2>Notes</h2><p>({DECLARED})</p><h3>Cash</h3><p>The amounts were as follows.</p>{amounts}"
        f"<h3>Staff</h3><p>The numbers were as follows.</p>{people}"
        f"<h3>Fees</h3><p>Fees of the auditor (in thousands):</p>{amounts}"
        f"<h2>Other</h2><p>What else there is to say.</p>{amounts}"
    )
    assert [table.units for table in parsed.tables] == [DECLARED, "", "in thousands", ""]


@pytest.mark.parametrize("line", ["(Shares in thousands)", "(Tabular amounts in thousands)", "(in mg/L)"])
def test_units_of_something_else_do_not_reach_amounts_in_the_text(line: str):
    parsed = page(
        f"<h2>Notes</h2><p>{line}</p><h3>Plan</h3><p>A prize of $90 was given to each of the winners in May.</p>"
    )
    assert contexts(parsed, "$90") == [""]


def test_units_directly_above_a_table_are_not_those_of_the_text_below_it():
    amounts = grid(("", "2022", "2021"), ("Cash", "$12", "$10"), ("Debt", "$7", "$6"))
    parsed = page(
        f"<h2>Cash</h2><p>(in millions)</p>{amounts}"
        "<p>A share was worth $25 at the end of the year, which is more than it was at the beginning of it.</p>"
    )
    assert parsed.tables[0].units == "in millions"
    assert contexts(parsed, "$25") == [""]


def test_declared_units_survive_the_way_from_the_parser():
    parsed = page(FLAT)
    assert from_json(Parsed, to_json(parsed)) == parsed
    assert "units" not in to_json(parsed)["sections"][0]
