"""How hard a text is to read: syllables by rule, and the scores that are published for known sentences."""

from __future__ import annotations

import pytest

from assay.language.readability import measure_readability, syllables

KNOWN = {
    "the": 1,
    "used": 1,
    "wanted": 2,
    "table": 2,
    "creature": 2,
    "science": 2,
    "patient": 2,
    "media": 3,
    "mechanism": 4,
    "evaluation": 5,
    "measurement": 3,
    "continuous": 4,
    "doesn't": 2,
    "well-being": 3,
    "DNS": 3,
    "1994": 4,
}


@pytest.mark.parametrize(("word", "count"), KNOWN.items())
def test_a_word_has_the_syllables_that_are_heard(word: str, count: int):
    assert syllables(word) == count


@pytest.mark.parametrize(
    ("words", "ease", "grade"),
    [
        ("The cat sat on the mat.", 116.1, -1.4),
        ("This sentence, taken as a reading passage unto itself, is being used to prove a point.", 69.0, 7.6),
        ("The Australian platypus is seemingly a hybrid of a mammal and reptilian creature.", 37.5, 11.3),
    ],
)
def test_known_sentences_have_their_published_scores(words: str, ease: float, grade: float):
    found = measure_readability(words)
    assert (found.ease, found.grade) == (pytest.approx(ease, abs=0.1), pytest.approx(grade, abs=0.1))


def test_words_are_counted_by_the_sentence():
    found = measure_readability("The pump runs. It is old, and nobody knows how old.\n\nA heading")
    assert (found.words, found.sentence) == (13, pytest.approx(4.3))


@pytest.mark.parametrize("words", ["", "   \n", "… — !", "。"])
def test_a_text_without_words_is_no_crash(words: str):
    assert measure_readability(words).words == 0


def test_a_text_in_another_script_is_no_crash():
    assert measure_readability("日本語の文です。もう一つ。").words > 0


def test_long_sentences_of_long_words_are_harder_than_short_ones_of_short_words():
    hard = measure_readability(
        "Intermittent pressurisation of the secondary containment necessitates periodic recalibration."
    )
    easy = measure_readability("The tank fills up now and then. So the gauge must be set again.")
    assert hard.grade > easy.grade and hard.ease < easy.ease
