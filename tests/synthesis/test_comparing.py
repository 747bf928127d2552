"""What rules find between documents: contradictions with their two sentences."""

from __future__ import annotations

from dataclasses import replace

import pytest
from wharf import DOCS, INSTRUCTION, KEPT_A, KEPT_B, Model, carried, context, document, key, opened, was_read

from assay.core.events import Covered
from assay.core.run import Run
from assay.core.synthesis import QuestionKind, Relation, RelationType
from assay.core.types import Document, Quote
from assay.synthesis import compare, state

TOLD = "“The crane log of the wharf is kept for”: D1 says 30 days, D2 says 90 days."


async def compared(*documents: Document, model: bool = False, small: bool = False) -> Run:
    run = opened(documents, model=model or small, small=small)
    able = context(documents, run, Model() if model or small else None)
    return await was_read(run, able)


def contradictions(run: Run) -> list[Relation]:
    return [each for each in state.relations(run) if each.type is RelationType.contradiction]


@pytest.mark.parametrize(("model", "small"), [(False, False), (True, False), (False, True)])
async def test_a_contradiction_is_found_by_rule_with_its_two_sentences_whatever_model_there_is(
    model: bool, small: bool
):
    run = await compared(*DOCS, model=model, small=small)
    (found,) = contradictions(run)
    assert (found.left.quote.text, found.right.quote.text, found.by) == (KEPT_A, KEPT_B, "rules")
    assert found.about == "30 days / 90 days" and found.reason == TOLD
    known = {each.key for each in run.evidence}
    assert {found.left.key, found.right.key} <= known
    points = {each.id: each for each in state.points(run)}
    for side in (found.left, found.right):
        assert side.quote.text in points[side.insight].claim.words


def test_what_differs_is_told_in_the_words_that_both_share_with_the_dates_of_the_documents():
    left = "By the log, 1,480 households received the notice to boil."
    right = "After a count, 1,840 households had received the notice."
    one, other = replace(document("d1", left), date="2025-05-06"), document("d2", right)
    found = compare.Contradiction(Quote("d1", 0, len(left), left), Quote("d2", 0, len(right), right), "1,480 / 1,840")
    told = compare.contradiction_reason(found, {"d1": "D1", "d2": "D2"}, {"d1": one, "d2": other})
    assert told == "“households received the notice”: D1 (2025-05-06) says 1,480, D2 says 1,840."


async def test_a_side_that_no_reading_noted_becomes_a_point():
    run = opened(DOCS[:2]).then(Covered(()))
    run = await carried(run, context(DOCS[:2], run), compare.compare)
    assert {each.claim.words for each in state.points(run)} == {KEPT_A, KEPT_B}
    assert {each.key for each in run.evidence} == {key(DOCS[0]), key(DOCS[1])}


async def test_passages_made_from_one_mould_are_not_held_against_each_other():
    towns = [document(name, f"The town of {name} has {count} houses. It was founded in {count + 900}. "
                      f"The mayor of {name} is elected every {count % 7 + 2} years. The mill of {name} has two wheels.")
             for name, count in (("Ashby", 300), ("Birkdale", 410))]  # fmt: skip
    assert contradictions(await compared(*towns)) == []


async def test_what_instructs_a_model_is_no_side_of_anything():
    odd = document("odd", f"{KEPT_B} {INSTRUCTION}")
    run = await compared(DOCS[0], odd)
    assert not any("Ignore" in side.quote.text for each in state.relations(run) for side in (each.left, each.right))


async def test_lists_of_references_and_their_numbers_contradict_nothing():
    works = [
        document(
            name, f"{words}\n\nReferences\n\n- [{number}] Xu Zhong, Jianbin Tang, and Antonio Jimeno Yepes. 2019.\n"
        )
        for name, number, words in (
            ("a", 38, "Tables are found by their lines alone, as was shown before [3, 4]."),
            ("b", 6, "Tables are found by their lines alone, as was shown before [17]."),
        )
    ]
    assert contradictions(await compared(*works)) == []


async def test_what_was_compared_is_said():
    run = await compared(*DOCS)
    assert "sentences of 3 documents" in state.compared(run) and "1 of them in contradiction" in state.compared(run)
    one = await compared(DOCS[0])
    assert state.compared(one).startswith("Nothing was compared")


NAMED = [
    document("m", "The crane at Marrow Quay was built by the harbour board in a year of storms."),
    document("n", "The board decided that the crane at Marrow Quay gets a new hook of steel next year."),
    document("o", "The tide tables are computed from nineteen years of readings by the clerks."),
]


@pytest.mark.parametrize(("model", "small"), [(False, False), (True, False), (False, True)])
async def test_a_name_that_documents_share_relates_nothing_and_asks_nothing(model: bool, small: bool):
    run = await compared(*NAMED, model=model, small=small)
    assert state.relations(run) == ()
    assert not any(each.kind is QuestionKind.comparative for each in state.questions(run))
