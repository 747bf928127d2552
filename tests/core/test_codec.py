from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.core.codec import digest, dumps, from_json, to_json
from assay.core.events import (
    KINDS,
    Answered,
    Asked,
    Checked,
    Found,
    Gathered,
    Mode,
    Planned,
    SearchFilters,
    ToolRan,
)
from assay.core.types import (
    Answer,
    Block,
    Claim,
    Conflict,
    Evidence,
    Examined,
    Exchange,
    Outcome,
    Passage,
    Plan,
    PlanStep,
    Quote,
    Searched,
    Section,
    Shape,
    Usage,
    Verdict,
)

TEXT = "Cleaning\nThe filters are cleaned every ten days. Nobody knows why."
PASSAGE = Passage("p1", "d1", TEXT[9:48], 9, 48, "Cleaning", 2)


def words(document: str, start: int, end: int) -> tuple[str, str, str]:
    return TEXT[start:end], "Cleaning", ""


def test_a_value_comes_back_as_it_was_written():
    asked = Asked("Why?", "local", "2026-01-01", Mode.quick, SearchFilters(bases=("a",), meta={"team": "x"}))
    assert from_json(Asked, json.loads(dumps(to_json(asked)))) == asked


def test_a_record_has_the_place_of_a_passage_and_not_its_words():
    event = ToolRan("c1", (Found(PASSAGE, 1, 0.5),))
    body = dumps(to_json(event, words=False))
    assert "filters" not in body and digest(PASSAGE.text) in body
    assert from_json(ToolRan, json.loads(body), texts=words) == event


def test_no_words_of_a_quotation_are_in_a_record_either():
    quote = Quote("d1", 9, 48, TEXT[9:48])
    evidence = Evidence("k", PASSAGE, quote, 5.0, "Why?")
    claim = Claim("", ("k",), Verdict.supported, quote=quote)
    assert "filters" not in dumps(to_json([evidence, claim], words=False))


def test_a_document_that_has_changed_gives_no_words_rather_than_other_words():
    body = to_json(PASSAGE, words=False)
    assert from_json(Passage, body, texts=lambda *_: ("Something else.", "", "")).text == ""


def test_an_unknown_field_is_refused():
    with pytest.raises(ValueError, match="nonsense"):
        from_json(Section, {"title": "a", "level": 1, "start": 0, "end": 1, "nonsense": 1})


@pytest.mark.parametrize("data", [{"title": 1, "level": 1, "start": 0, "end": 1}, {"title": "a"}, [], None, "x"])
def test_what_does_not_fit_the_type_is_refused(data: object):
    with pytest.raises(ValueError):
        from_json(Section, data)


@given(st.text(), st.lists(st.text(), max_size=3), st.dictionaries(st.text(), st.text(), max_size=3))
def test_any_words_survive_the_way_there_and_back(question: str, bases: list[str], meta: dict[str, str]):
    asked = Asked(question, "local", "2026-01-01", where=SearchFilters(bases=tuple(bases), meta=meta))
    assert from_json(Asked, json.loads(json.dumps(to_json(asked)))) == asked


def test_every_kind_of_event_has_a_name():
    assert all(name == kind.__name__ for name, kind in KINDS.items())


QUOTE = Quote("d1", 9, 48, TEXT[9:48])
CLAIM = Claim("Every ten days – “always”.", ("k1", "k2"), Verdict.supported, "in its words", QUOTE)
ANSWER = Answer(
    "How often?",
    (Block((CLAIM,), "Cleaning", True),),
    Outcome.answered,
    Shape.prose,
    conflicts=(Conflict("k1", "k2", "days"),),
    gaps=("why",),
    searched=(Searched("filters", 3, 1),),
    stopped="sufficient",
    near=(CLAIM,),
    unread=("a.txt",),
    since="2024",
    readings=("one",),
    examined=Examined(2, 3, 1),
    usage=Usage(1, 20, 3, 0.25, 1.5),
)


@pytest.mark.parametrize(
    ("value", "record", "whole"),
    [
        (Section("Größe", 1, 0, 5), "2e7191056c6f879c", "2e7191056c6f879c"),
        (PASSAGE, "ecf6e57374f43ad6", "a828216e3ade1eea"),
        (QUOTE, "2996452eea6a0a6b", "a0f5531e905a6f8b"),
        (Evidence("k1", PASSAGE, QUOTE, 7.5, "How often?", "n", True), "d24515d9bf37907a", "9a307104f11bfad3"),
        (CLAIM, "6e1c14c4cd4017c9", "b92e3e9c65a4e7ef"),
        (ANSWER, "570380e1770ea51f", "a506d064718f7733"),
        (Exchange("r1", "q", "a", ("d1",), ("p1",)), "61d39f0dc872f651", "61d39f0dc872f651"),
        (Plan((PlanStep("s1", "q", ("s0",), "x", "y"),)), "719d8034117094fd", "719d8034117094fd"),
        (
            SearchFilters(bases=("b",), since="2024", meta={"team": "x", "a": "ü"}),
            "cf8acc26e534ed05",
            "cf8acc26e534ed05",
        ),
        (ToolRan("c1", (Found(PASSAGE, 1, 0.5),), "1 passage"), "865b13f0eb04a41c", "744b2042a4179926"),
        (
            Gathered((Evidence("k1", PASSAGE, QUOTE, 7.5, "How often?"),), ("p2",)),
            "0218430510591c1b",
            "b49c8454ba87de2c",
        ),
        (Checked(0, CLAIM), "6ba447ff5440cba6", "00e4988af8b0cb9b"),
        (Planned(Plan((PlanStep("s1", "q"),))), "d5cedca046a4c922", "d5cedca046a4c922"),
        (Answered(ANSWER), "99c0c1f4fed231b8", "fd20fa4dc4ca4c9f"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_digests_of_stored_values_never_change(value: object, record: str, whole: str):
    """Literal digests, as the first versions wrote them: records on disk are covered by these."""
    assert digest(dumps(to_json(value, words=False))).startswith(record)
    assert digest(dumps(to_json(value))).startswith(whole)
