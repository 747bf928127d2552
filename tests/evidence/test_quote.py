from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.core.types import Document, Evidence, Passage, Quote
from assay.language.quotation import locate_quote, stands, within

TEXT = "The valve was re-\nplaced in May. “It leaked,” says the log — for  three\nweeks. Nobody was hurt."


@pytest.mark.parametrize(
    "words",
    [
        "The valve was replaced in May.",
        '"It leaked," says the log - for three weeks.',
        "The valve was replaced … for three weeks.",
        "the valve was replaced in may.",
        "Nobody was hurt",
    ],
)
def test_a_quotation_is_found_whatever_the_line_breaks_marks_and_dashes(words: str):
    span = locate_quote(words, TEXT)
    assert span is not None and TEXT[slice(*span)][:3].lower() in words.lower()


@pytest.mark.parametrize("words", ["The valve was repaired in May.", "", "…", "  ", "Somebody was hurt"])
def test_what_is_not_there_is_not_found(words: str):
    assert locate_quote(words, TEXT) is None


@given(st.text(min_size=1), st.data())
def test_any_stretch_of_a_text_is_found_in_it(text: str, data: st.DataObject):
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    words = text[start:end]
    if words.strip().strip("\"'“”‘’").strip() and "…" not in words and "..." not in words:
        assert locate_quote(words, text) is not None


def test_a_quote_stands_only_where_its_document_says_it():
    document = Document("d1", "b", "a.txt", "0", "A", "One two three.")
    assert stands(Quote("d1", 4, 7, "two"), document)
    assert not stands(Quote("d1", 4, 7, "owt"), document)
    assert not stands(Quote("d2", 4, 7, "two"), document)
    assert not stands(Quote("d1", 4, 4, ""), document)


def test_evidence_quotes_its_own_passage_or_nothing():
    passage = Passage("p", "d1", "two three", 4, 13)
    good = Evidence("k", passage, Quote("d1", 4, 7, "two"), 5, "q")
    assert within(good.quote, passage)
    assert not within(Quote("d1", 0, 3, "One"), passage)
    assert not within(Quote("d1", 4, 7, "TWO"), passage)
