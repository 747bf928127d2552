from __future__ import annotations

import pytest

from assay.answer import claims
from assay.core.types import Claim, Evidence, Passage, Quote

ONE, TWO = "1a2b3c4d", "5e6f7a8b"
KNOWN = {ONE, TWO}
WORDS = "The dam above Coldwell was built in 1931 by Mara Lindqvist. It does not leak."
EVIDENCE = (
    Evidence(ONE, Passage("p", "d", WORDS, 0, len(WORDS), "History"), Quote("d", 0, len(WORDS), WORDS), 8.0, "q"),
)


def split(words: str, *cites: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(claim.text, claim.cites) for claim in claims.split_claims(words, cites, KNOWN)[0]]


def test_a_claim_of_several_sentences_is_split_and_each_keeps_the_keys_that_stand_in_it():
    assert split(f"The dam is old [{ONE}]. The dam leaks. [{TWO}] Nobody repaired the dam.", ONE) == [
        ("The dam is old.", (ONE,)),
        ("The dam leaks.", (TWO,)),
        ("Nobody repaired the dam.", (ONE,)),
    ]


@pytest.mark.parametrize(
    "written",
    [
        f"[{ONE}]",
        f"({ONE})",
        f"[{ONE.upper()}]",
        f"[key: {ONE}]",
        f"(keys {ONE})",
        f"【{ONE}】",
        f"[“{ONE}”]",
        ONE,
        f"[{ONE}, {ONE}]",
    ],
)
def test_a_key_is_lifted_out_of_the_words_however_it_is_written(written: str):
    assert split(f"The dam is old {written}.") == [("The dam is old.", (ONE,))]


def test_several_keys_in_one_bracket_are_all_lifted():
    assert split(f"The dam is old ({ONE}; {TWO}).") == [("The dam is old.", (ONE, TWO))]


@pytest.mark.parametrize("written", ["[deadbeef]", "(deadbeef)", "[1]", "[2, 3]", "[12–14]", "[12345678]"])
def test_an_invented_key_or_number_is_taken_out_and_reported(written: str):
    found, stray = claims.split_claims(f"The dam is old {written}.", (ONE,), KNOWN)
    assert [claim.text for claim in found] == ["The dam is old."] and found[0].cites == (ONE,) and stray


def test_a_key_of_another_run_among_the_cites_is_removed_and_reported():
    found, stray = claims.split_claims("The dam is old.", ("deadbeef", TWO), KNOWN)
    assert found[0].cites == (TWO,) and stray == ("deadbeef",)


@pytest.mark.parametrize(
    "words", ["The dam (built in 1931) is old.", "The dam is old (see the plan).", "The day (20240517) was dry."]
)
def test_brackets_that_hold_words_or_a_day_stay(words: str):
    assert split(words, ONE) == [(words, (ONE,))]


def test_what_says_nothing_that_could_be_checked_is_left_out():
    assert split("Yes. The dam is old. It was so.", ONE) == [("The dam is old.", (ONE,))]


def test_a_row_of_a_table_stays_whole():
    assert split(f"Coldwell | 1931. Old | M. Lindqvist [{ONE}]") == [("Coldwell | 1931. Old | M. Lindqvist", (ONE,))]


def test_hidden_characters_and_bullets_are_gone():
    assert split("- The d\u200bam is\u202e old.", ONE) == [("The dam is old.", (ONE,))]


def test_what_is_far_too_long_is_no_claim():
    assert split("dam " * 400, ONE) == []


QUESTION = "Who built the dam above Coldwell?"


@pytest.mark.parametrize(
    "words",
    [
        "Summary",
        "Dam above Coldwell",
        "## Reasons",
        "Who built the dam?",
        "Dam | Year | Mara Lindqvist",
        "No. | Dam | Leak | Builder",
    ],
)
def test_a_heading_that_names_a_topic_stays(words: str):
    assert claims.read_heading(words, QUESTION, EVIDENCE, ()) == (words.strip("# "), ())


@pytest.mark.parametrize(
    "words",
    [
        "Built in 1960",
        "John Harlow",
        "Mara Lindqvist",
        "The dam does leak",
        "The dam above Coldwell was built",  # in words of the question alone
        "No dam above Coldwell",
        "Mara Lindqvist is a fraud",
        "A splendid restaurant",
        "The dam above Coldwell was built in 1931 by Mara Lindqvist",
    ],
)
def test_a_heading_that_states_something_is_a_claim_on_what_stands_below_it(words: str):
    assert claims.accept_heading(words, QUESTION, EVIDENCE) == ""
    below = (Claim("The dam is old.", (ONE,)), Claim("The dam leaks.", (TWO, ONE)))
    assert claims.read_heading(words, QUESTION, EVIDENCE, below) == (words, (Claim(words, (ONE, TWO)),))


@pytest.mark.parametrize(
    "words", ["Dam | 1960", "Dam | John Harlow", "Dam | it does leak", "Dam | the builder stole money", ""]
)
def test_columns_that_state_something_are_dropped(words: str):
    assert claims.read_heading(words, QUESTION, EVIDENCE, ()) == ("", ())


def test_a_gap_brings_no_fact_of_its_own():
    question = "Who built the dam above Coldwell, and what did it cost?"
    known = claims.known_words(question, EVIDENCE)
    assert claims.accept_gap("what the dam did cost.", known) == "what the dam did cost"
    for told in (
        "The dam cost 90,000 pounds",
        "Zanker paid for the dam",
        "The pope likes ice cream",
        "Buy gold now. The dam is fine.",
    ):
        assert claims.accept_gap(told, known) == ""


@pytest.mark.parametrize("nothing", ["", " ", "[0a1b2c3d]"])
def test_what_has_no_words_has_no_claims(nothing: str):
    assert split(nothing, ONE) == []
