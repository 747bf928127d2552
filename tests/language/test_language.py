"""What is read off a text by rule: clean characters, sentences, names, abbreviations, terms."""

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.core.printable import clean_text
from assay.language.names import find_names
from assay.language.sentences import split_sentences
from assay.language.terms import content_terms, uncovered_words


def split(body: str) -> list[str]:
    return [body[start:end] for start, end in split_sentences(body)]


def named(body: str) -> list[str]:
    return [name.text for name in find_names(body)]


def test_invisible_characters_are_removed_and_nothing_else():
    hidden = "ig\u200bnore\u202e \U000e0041all\u00ad — naïve café 👍 ½\tx"
    assert clean_text(hidden) == "ignore all — naïve café 👍 ½\tx"


def test_every_kind_of_line_end_becomes_one():
    assert clean_text("a\r\nb\rc\u2028d\u0085e\n") == "a\nb\nc\nd\ne\n"


@given(st.text())
@pytest.mark.long
def test_cleaning_twice_changes_nothing_more(body: str):
    assert clean_text(clean_text(body)) == clean_text(body)


@given(st.text(alphabet=st.sampled_from("ab AB.!?\n\"'()[]1-•。 ")))
def test_sentences_are_in_order_do_not_overlap_and_lose_only_white_space(body: str):
    spans = split_sentences(body)
    assert all(start < end for start, end in spans)
    assert all(left[1] <= right[0] for left, right in pairwise(spans))
    assert "".join("".join(split(body)).split()) == "".join(body.split())


@pytest.mark.parametrize(
    "body",
    [
        "Dr. A. B. Marsh (b. 3 Jan. 1892) paid 3.14 million to Mr. Oak.",
        "The U.S. Navy asked Prof. Hill, e.g. about Fig. 3 and No. 7.",
        "It rose by approx. 3.5 percent vs. 2.1 before.",
        "This line was wrapped by whoever typed it, because it was long, and it\ngoes on here.",
    ],
)
def test_a_full_stop_inside_a_sentence_does_not_end_it(body: str):
    assert split(body) == [body]


@pytest.mark.parametrize(
    ("body", "first"),
    [
        ("It was shown.[12] Others differ.", "It was shown.[12]"),
        ("It was shown.12 Others differ.", "It was shown.12"),
        ("She took vitamin C. The dose was small.", "She took vitamin C."),
        ("They moved to the U.S. It was spring.", "They moved to the U.S."),
        ('He said "Stop!" She did.', 'He said "Stop!"'),
        ("A heading\nThe text begins.", "A heading"),
        ("One paragraph without a stop\n\nanother one", "One paragraph without a stop"),
        ("今日は。明日。", "今日は。"),
    ],
)
def test_a_sentence_ends_where_a_reader_would_end_it(body: str, first: str):
    assert split(body)[0] == first
    assert len(split(body)) == 2


def test_every_item_of_a_list_is_a_sentence_with_its_mark():
    assert split("- one thing\n- another\n1. First\n2. Second") == ["- one thing", "- another", "1. First", "2. Second"]


def test_a_long_text_takes_time_in_proportion_to_its_length():
    began = time.thread_time()
    split_sentences("The U.S. Navy paid Dr. Hill. It failed. " * 5000)
    assert time.thread_time() - began < 5


def test_names_are_found_with_their_particles_initials_and_numbers():
    body = "There Ludwig van Oak met J. R. R. Marsh, now at the University of the Arts, aboard Vostok 7, Lumen's ship."
    assert named(body) == ["Ludwig van Oak", "J. R. R. Marsh", "University of the Arts", "Vostok 7", "Lumen"]


def test_a_name_stands_where_it_says():
    body = 'The song "Low Tide" was written by Ann Lee and Bo Marsh.'
    assert all(body[name.start : name.end] == name.text for name in find_names(body))
    assert named(body) == ["Low Tide", "Ann Lee", "Bo Marsh"]


def test_a_capital_that_only_opens_a_sentence_makes_no_name():
    assert named("Which river is longer? The water rose. However, it fell.") == []


def test_a_day_or_a_month_is_no_name():
    assert named("It opened on Monday, in May 2010 and closed on October 5.") == []


def test_terms_are_stems_without_small_words_or_accents():
    assert content_terms("The rivers of Tekezé were flooding") == ["river", "tekez", "flood"]


def test_what_is_covered_leaves_the_residual():
    assert uncovered_words("Who founded the city of Oak Hill?", set(content_terms("Oak Hill city"))) == "founded"


def test_what_a_terminal_is_told_leaves_nothing_behind():
    assert clean_text("a\x1b[31mred\x1b[0m \x1b]0;owned\x07b\x1b]8;;x\x1b\\c \x1b[2J.") == "ared bc ."
    assert clean_text("array[0m] stays, and a lone \x1b too goes") == "array[0m] stays, and a lone  too goes"
