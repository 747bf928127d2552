from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.core.codec import digest, dumps, from_json, to_json
from assay.core.events import KINDS, Asked, Found, Mode, SearchFilters, ToolRan
from assay.core.types import Claim, Evidence, Passage, Quote, Section, Verdict

TEXT = "Cleaning\nThe filters are cleaned every ten days. Nobody knows why."
PASSAGE = Passage("p1", "d1", TEXT[9:48], 9, 48, "Cleaning", 2)


def words(document: str, start: int, end: int) -> tuple[str, str]:
    return TEXT[start:end], "Cleaning"


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
    assert from_json(Passage, body, texts=lambda *_: ("Something else.", "")).text == ""


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
