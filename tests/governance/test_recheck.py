"""An answer after its documents were replaced: what still stands, what was rewritten, and what code shows to be wrong now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from assay.core.types import (
    Answer,
    Block,
    Claim,
    ClaimedCell,
    Derivation,
    Document,
    Evidence,
    Operand,
    Outcome,
    Quote,
    Verdict,
    Working,
)
from assay.governance.recheck import AnswerStanding, Finding, Replacement, recheck, standing_of
from assay.ingest.formats.detect import read
from assay.ingest.parsed import FileLimits
from assay.ingest.split import split_passages
from assay.models.cost import estimate_tokens
from assay.tables.cells import FoundCell, cell_at, passage_tables
from assay.tables.derive import derive

KEY = "aaaaaaaa"
RULES = """# House rules

Guests may stay for 30 days. Dogs are welcome in the garden.

Breakfast is served from seven.

Die Küche schließt um 22 Uhr.
"""
REPORT = """# Annual report

| | 2022 | 2021 |
|---|---|---|
| Net sales | 480 | 340 |
| Costs | 300 | 280 |

The company employed 92 people.
"""


def document(id: str, text: str) -> Document:
    parsed = read(text.encode(), f"{id}.md", FileLimits())
    return Document(id, "b", "file.md", "", parsed.title, parsed.text, sections=parsed.sections, tables=parsed.tables)


def evidence(source: Document) -> Evidence:
    passage = split_passages(source, estimate_tokens)[0]
    return Evidence(KEY, passage, Quote(source.id, passage.start, passage.end, passage.text), 9.0, "q")


def quote(source: Document, words: str) -> Quote:
    start = source.text.index(words)
    return Quote(source.id, start, start + len(words), words)


def checked(claim: Claim, then: Document, now: Document | None) -> tuple[Finding, ...]:
    answer = Answer("q", (Block((claim,)),), Outcome.answered)
    replaced = {then.id: Replacement(then, now) if now else None}
    return recheck(answer, [evidence(then)], replaced, {then.id: then}.get)


def quoted(words: str, old: str, new: str | None) -> tuple[Finding, ...]:
    then = document("d1", old)
    claim = Claim("", (KEY,), Verdict.supported, quote=quote(then, words))
    return checked(claim, then, document("d2", new) if new is not None else None)


def stated(text: str, carried: Sequence[str], new: str, old: str = RULES) -> tuple[Finding, ...]:
    then = document("d1", old)
    claim = Claim(text, (KEY,), Verdict.supported, carried_by=tuple(quote(then, each) for each in carried))
    return checked(claim, then, document("d2", new))


def test_a_quotation_that_moved_to_another_place_holds():
    moved = "# House rules\n\nA new first paragraph.\n\n" + "\n\n".join(reversed(RULES.split("\n\n")[1:]))
    assert quoted("Guests may stay for 30 days.", RULES, moved) == ()


def test_a_quotation_whose_figure_changed_no_longer_holds_and_both_are_shown():
    [found] = quoted("Guests may stay for 30 days.", RULES, RULES.replace("30 days", "45 days"))
    assert (found.standing, found.document) == (AnswerStanding.fallen, "d1")
    assert (found.then, found.now) == ("Guests may stay for 30 days.", "Guests may stay for 45 days.")


def test_words_that_were_merely_rewritten_are_a_changed_source():
    [found] = quoted("Dogs are welcome in the garden.", RULES, RULES.replace("welcome in", "allowed into"))
    assert found.standing is AnswerStanding.changed
    assert found.now == "Dogs are allowed into the garden."


def test_a_sentence_of_another_language_is_compared_like_any_other():
    [found] = quoted("Die Küche schließt um 22 Uhr.", RULES, RULES.replace("22 Uhr", "23 Uhr"))
    assert (found.standing, found.now) == (AnswerStanding.fallen, "Die Küche schließt um 23 Uhr.")


def test_short_words_that_stand_elsewhere_now_do_not_hide_that_their_sentence_changed():
    new = RULES.replace("for 30 days", "for 45 days") + "\nInvoices are due in 30 days.\n"
    [found] = stated("The stay is limited to 30 days.", ["30 days"], new)
    assert found.then == "Guests may stay for 30 days."
    assert found.now == "Guests may stay for 45 days."


def test_a_line_that_stood_twice_and_stands_once_is_looked_for_in_its_own_place():
    old = "# Rooms\n\nFirst floor:\n\nOpen all day.\n\nSecond floor:\n\nOpen all day.\n"
    then = document("d1", old)
    start = then.text.rindex("Open all day.")
    claim = Claim("", (KEY,), Verdict.supported, quote=Quote("d1", start, start + 13, "Open all day."))
    new = old[: old.rindex("Open")] + "Closed.\n"
    assert [each.standing for each in checked(claim, then, document("d2", new))] == [AnswerStanding.changed]
    first = Claim("", (KEY,), Verdict.supported, quote=quote(then, "Open all day."))
    assert checked(first, then, document("d2", new)) == ()


def test_a_written_claim_whose_words_are_all_there_holds_whatever_else_changed():
    new = RULES.replace("Dogs are welcome", "No dogs").replace("from seven", "from eight")
    assert stated("A stay lasts at most 30 days.", ["Guests may stay for 30 days."], new) == ()


def test_a_written_claim_whose_figure_is_gone_no_longer_holds():
    new = RULES.replace("30 days", "45 days")
    [found] = stated("A stay lasts at most 30 days.", ["Guests may stay for 30 days."], new)
    assert found.standing is AnswerStanding.fallen
    assert "30" in found.why


def test_a_written_claim_whose_words_were_rewritten_is_left_to_a_judge():
    new = RULES.replace("Guests may stay", "Visitors can remain")
    [found] = stated("A stay lasts at most 30 days.", ["Guests may stay for 30 days."], new)
    assert found.standing is AnswerStanding.changed


def test_a_document_that_is_gone_leaves_nothing_to_rest_on():
    [found] = quoted("Guests may stay for 30 days.", RULES, None)
    assert (found.standing, found.now) == (AnswerStanding.fallen, "")
    assert "no longer among your documents" in found.why


# --- tables ---------------------------------------------------------------------------------------------------------


def sales(then: Document, cell: str = "r1c1") -> Claim:
    assert passage_tables(then, evidence(then).passage).find(cell)
    return Claim("Net sales were 480.", (KEY,), Verdict.supported, cells=(ClaimedCell(KEY, cell, "Net sales"),))


def test_a_cell_with_another_figure_no_longer_holds():
    then = document("d1", REPORT)
    [found] = checked(sales(then), then, document("d2", REPORT.replace("| 480 |", "| 475 |")))
    assert (found.standing, found.then, found.now) == (
        AnswerStanding.fallen,
        "Net sales, 2022: 480",
        "Net sales, 2022: 475",
    )


def test_a_cell_whose_column_moved_and_whose_neighbours_changed_holds():
    new = REPORT.replace("| | 2022 | 2021 |", "| | 2021 | 2022 |").replace("| 480 | 340 |", "| 341 | 480 |")
    then = document("d1", REPORT)
    assert checked(sales(then), then, document("d2", new)) == ()


def test_columns_that_changed_places_over_the_same_row_are_noticed():
    then = document("d1", REPORT)
    [found] = checked(sales(then), then, document("d2", REPORT.replace("| | 2022 | 2021 |", "| | 2021 | 2022 |")))
    assert (found.standing, found.now) == (AnswerStanding.fallen, "Net sales, 2022: 340")


def test_a_row_with_another_name_is_a_changed_source():
    then = document("d1", REPORT)
    [found] = checked(sales(then), then, document("d2", REPORT.replace("Net sales", "Revenue")))
    assert (found.standing, found.now) == (AnswerStanding.changed, "")


def cells_of(then: Document, *texts: str) -> list[FoundCell]:
    return [cell for each in texts if (cell := cell_at(then, then.text.index(each)))]


def test_a_total_that_rules_computed_is_computed_again():
    then = document("d1", REPORT)
    operands = [each.quote for each in cells_of(then, "480", "300")]
    claim = derive(Derivation.total, operands, [KEY, KEY], lambda _: then)
    assert claim.text == "The total is 780."
    assert checked(claim, then, document("d2", REPORT.replace("92 people", "93 people"))) == ()
    [found] = checked(claim, then, document("d2", REPORT.replace("300", "310")))
    assert (found.standing, found.now) == (AnswerStanding.fallen, "The total is 790.")


def test_a_calculation_whose_operand_changed_no_longer_holds():
    then = document("d1", REPORT)
    working = Working("480 - 340", (Operand("480", KEY), Operand("340", KEY)), "140")
    row = quote(then, cells_of(then, "480")[0].row.label)
    claim = Claim("Net sales rose by 140.", (KEY,), Verdict.supported, working=working, carried_by=(row,))
    [found] = checked(claim, then, document("d2", REPORT.replace("| 340 |", "| 350 |")))
    assert found.standing is AnswerStanding.fallen


def test_of_extracts_the_first_decides_and_the_others_are_sources_beside_it():
    then, now = document("d1", RULES), document("d2", RULES.replace("30 days", "45 days"))
    one, two = (
        Claim("", (KEY,), Verdict.supported, quote=quote(then, words))
        for words in ("Breakfast is served from seven.", "Guests may stay for 30 days.")
    )
    for claims, standing in (((one, two), AnswerStanding.changed), ((two, one), AnswerStanding.fallen)):
        answer = Answer("q", (Block(claims),), Outcome.answered)
        found = recheck(answer, [evidence(then)], {"d1": Replacement(then, now)}, {"d1": then}.get)
        assert standing_of(found) is standing


def test_the_worst_of_its_claims_is_how_an_answer_stands():
    one = Finding(0, AnswerStanding.changed, "d1", "then")
    assert standing_of([one, replace(one, standing=AnswerStanding.fallen)]) is AnswerStanding.fallen
    assert standing_of([]) is AnswerStanding.holds
