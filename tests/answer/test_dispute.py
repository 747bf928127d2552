"""What counts as a contradiction between two sentences, and what only looks like one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.language import names
from assay.language.disputes import Statement, among_documents, between, between_documents, statements

LIGHT = "Skerrow Light stands on Gannet Head in Aldersay. {} It is kept by the Northern Harbour Trust, founded in 1822."
LOUISIANA = "Port Vell is a village in Marrow Parish, Louisiana. {} It is part of the Baton Rouge region."
AUSTRALIA = "Port Vell is a town on Yorke Peninsula in South Australia, north of Adelaide. {} Kelso Bay is near."


def describe_dispute(left: Statement, right: Statement, alike: float, question: str = "") -> str:
    found = between(left, right, alike, question)
    return found.about if found else ""


def said(words: str, around: str = "{}", title: str = "") -> Statement:
    return Statement(words, around.format(words), title)


def about(left: str, right: str, question: str = "") -> str:
    return describe_dispute(Statement(left), Statement(right), 0.9, question)


# --- a value in the same place --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right", "found"),
    [
        ("Raw telemetry is kept for 30 days.", "2.1 Raw telemetry is kept for 90 days.", "30 days / 90 days"),
        ("The pumping station was built in 1856.", "The pumping station was built in 1900.", "1856 / 1900"),
        ("The desk opens at 09:00 on working days.", "The desk opens at 10:30 on working days.", "09:00 / 10:30"),
        (
            "The licence was signed by Orla Brandt.",
            "The licence was signed by Piet Sander.",
            "Orla Brandt / Piet Sander",
        ),
        (
            "The team found that 1,840 households had received the notice.",
            "By the log, 1,480 households received the notice to boil water.",
            "1,840 / 1,480",
        ),
        ("The river passed 4.2 m in the flood.", "The river passed 5.1 m in the flood.", "4.2 m / 5.1 m"),
    ],
)
def test_another_value_in_the_same_place_is_a_dispute(left: str, right: str, found: str):
    assert about(left, right) == found
    assert about(right, left) == " / ".join(reversed(found.split(" / ")))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (
            "The bridge opened May 2024 with a speech of the mayor.",
            "The bridge opened 17 May 2024 with a speech of the mayor.",
        ),
        ("The district has a total area of 93.9 km in all.", "The district has a total area of 94 km in all."),
        ("The village has a population of 1,417 people.", "The village has a population of about 1,400 people."),
        (
            "He played as a guard in the NBA for years.",
            "He played as a guard in the National Basketball Association for years.",
        ),
        ("The licence was signed by Orla Brandt.", "The licence was signed by O. Brandt."),
        ("The tank holds a reserve of 500 litres.", "The tank holds a reserve of 500 l."),
    ],
)
def test_the_same_value_told_otherwise_is_no_dispute(left: str, right: str):
    assert about(left, right) == about(right, left) == ""


def test_a_value_that_both_sentences_have_is_not_disputed():
    left = "The desks at Skelby and Ostrey are open to everybody all year."
    assert about(left, "The desks at Skelby, Kelso and Ostrey are open to everybody all year.") == ""
    assert about(left, left.replace("Skelby", "Kelso")) == "Skelby / Kelso"


def test_the_number_of_a_clause_is_no_value():
    assert about("2.1 Raw telemetry is kept for 30 days.", "3.4 Raw telemetry is kept for 30 days.") == ""


def test_numbers_of_different_units_are_not_compared():
    assert about("The archive is kept for 30 days in all.", "The archive is kept for 10 years in all.") == ""


def test_sentences_that_are_not_alike_by_meaning_are_not_compared():
    left, right = Statement("Raw telemetry is kept for 30 days."), Statement("Raw telemetry is kept for 90 days.")
    assert describe_dispute(left, right, 0.49) == "" and describe_dispute(left, right, 0.51)


def test_a_changed_word_is_a_dispute_only_where_a_word_of_that_sort_is_asked_for():
    left = "A defender, he began his career with Marl Quay before moving on to Skelby in 1981."
    right = left.replace("defender", "forward")
    assert about(left, right, "What position did Maro Tarn play in?") == "defender / forward"
    for question in ("", "How did Maro Tarn begin?", "What did he do?", "When did Maro Tarn begin?"):
        assert about(left, right, question) == ""


def test_a_word_that_may_mean_the_same_is_not_disputed():
    left = "There were two hundred families residing in the town of Lindholt at that time."
    assert about(left, left.replace("residing", "living"), "What sort of place is Lindholt?") == ""


def test_the_same_form_filled_in_for_two_things_is_no_dispute():
    left = "As of the census there were 1,417 people, 591 households and 382 families residing there."
    right = "As of the census there were 874 people, 338 households and 238 families residing there."
    for question in ("", "How many people live in Pittsvale?"):
        assert about(left, right, question) == ""


def test_a_rule_and_what_happened_once_are_two_things():
    rule = "The change is made when the turbidity at the outlet passes 0.5 NTU."
    assert about(rule, "At 04:20 the turbidity at the outlet passes 1.5 NTU.") == ""
    assert about(rule, "Nothing is done before the turbidity at the outlet passes 1.5 NTU.") == "0.5 / 1.5"


def test_rows_of_tables_are_not_compared():
    left = "Probe: N-4; Town: Skelby; Kept in stock by the depot: 12 pieces"
    assert about(left, left.replace("12", "20")) == ""
    assert about("Kept in stock by the depot: 12 pieces", "Kept in stock by the depot: 20 pieces") == "12 / 20"


def test_issues_of_a_series_do_not_dispute_each_other():
    words = "The desk registered {} complaints about brown water."
    left = Statement(words.format(203), "", "Operations report, March 2025")
    assert describe_dispute(left, Statement(words.format(117), "", "Operations report, April 2025"), 0.9) == ""
    assert describe_dispute(left, Statement(words.format(117), "", "Annual review"), 0.9) == "203 / 117"


# --- the question ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("When was the light built?", "date"),
        ("What is the birth date of Maro Roche?", "date"),
        ("What is the total population of Katwe?", "number"),
        ("How many gates does it have?", "number"),
        ("Who designed the hall?", "name"),
        ("What was the courtesy name of Marquis Su?", "name"),
        ("What sport did he play?", ""),
    ],
)
def test_a_question_tells_the_kind_of_its_answer(question: str, kind: str):
    assert names.kind(question) == kind


def test_only_the_kind_that_is_asked_for_is_disputed():
    left = said("The light was built in 1875 by Maro Finch.", LIGHT)
    right = said("The light was built in 1920 by Maro Finch.", LIGHT)
    assert describe_dispute(left, right, 0.9, "When was the light constructed?") == "1875 / 1920"
    assert describe_dispute(left, right, 0.9, "Who built the light?") == ""


def test_a_date_of_something_else_is_not_disputed():
    life = "Bloom sat for Vermont and practised law in Rutland with {}. {{}}"
    words = "Bloom graduated from the University of Vermont in {}."
    left, right = said(words.format(1913), life.format("Kelso")), said(words.format(1952), life.format("Sander"))
    assert describe_dispute(left, right, 0.9, "When was Senator Bloom born?") == ""
    assert describe_dispute(left, right, 0.9, "When did Senator Bloom graduate?") == "1913 / 1952"


# --- two things of one name -----------------------------------------------------------------------------------------


def test_two_places_of_one_name_do_not_dispute_their_population():
    words = "The population was {} at the 2010 census."
    question = "What is the population of Port Vell?"
    left = said(words.format("741"), LOUISIANA)
    assert describe_dispute(left, said(words.format("472"), AUSTRALIA), 0.9, question) == ""
    assert describe_dispute(left, said(words.format("1,234"), LOUISIANA), 0.9, question) == "741 / 1,234"


def test_two_people_of_one_surname_do_not_dispute_their_birth():
    life = "{} Bloom sat for Vermont and practised law in Rutland with {}. {{}}"
    question = "When was Senator Bloom born?"
    words = "Bloom was born in Proctor in {}."
    asa = said(words.format(1891), life.format("Asa", "Kelso"))
    assert describe_dispute(asa, said(words.format(1921), life.format("Robert", "Sander")), 0.9, question) == ""
    assert describe_dispute(asa, said(words.format(1921), life.format("Asa", "Sander")), 0.9, question) == "1891 / 1921"


def test_a_day_that_both_have_tells_that_they_speak_of_one_thing():
    words = "Tarn was born in {} in Skelby."
    question = "When was Admiral Tarn born?"
    left = said(
        words.format(1850), "{} He died on 10 September 1939. Fowler, Brandt, Sander and Kelso served with him."
    )
    right = "{} Until 10 September 1939 he lived with Ada, Lena, Marit and Runa."
    assert describe_dispute(left, said(words.format(1900), right), 0.9, question) == "1850 / 1900"
    assert describe_dispute(left, said(words.format(1900), right.replace("10", "11")), 0.9, question) == ""


# --- documents ------------------------------------------------------------------------------------------------------

QUESTION = "When was Skerrow Light built?"


def test_the_dispute_of_two_documents_has_both_sentences_as_they_stand():
    left = statements(LIGHT.format("It was built in 1875."))
    right = statements(LIGHT.format("It was built in 1920."))
    found = between_documents(QUESTION, left, right)
    assert found and found.about == "1875 / 1920" and found.kind == "date"
    assert (found.left.words, found.right.words) == ("It was built in 1875.", "It was built in 1920.")
    assert found.left.words in found.left.around and found.right.words in found.right.around


def test_a_document_agrees_with_itself():
    told = statements(LIGHT.format("It was built in 1875."))
    assert between_documents(QUESTION, told, told) is None


SHORT = "Gannet Head was bare rock before. Skerrow has shone since 1875. {} Aldersay, Runa, Marit, Ada and Lena were wrecked."


def test_who_says_what_one_side_says_is_on_that_side():
    right, wrong = LIGHT.format("It was built in 1875."), LIGHT.format("It was built in 1920.")
    documents = [statements(each) for each in (right, wrong, SHORT.format(""))]
    found = among_documents(QUESTION, documents)
    assert found.keys() == {(0, 1), (1, 2)}
    assert found[1, 2].about == "1920 / 1875"
    assert (found[1, 2].left.words, found[1, 2].right.words) == (
        "It was built in 1920.",
        "Skerrow has shone since 1875.",
    )


def test_who_says_both_is_on_neither_side():
    right, wrong = LIGHT.format("It was built in 1875."), LIGHT.format("It was built in 1920.")
    documents = [statements(each) for each in (right, wrong, SHORT.format("Some say since 1920."))]
    assert among_documents(QUESTION, documents).keys() == {(0, 1)}


def test_a_year_alone_does_not_say_its_day():
    right, wrong = LIGHT.format("It was built on 3 May 1875."), LIGHT.format("It was built on 9 June 1920.")
    documents = [statements(each) for each in (right, wrong, SHORT.format(""))]
    assert among_documents(QUESTION, documents).keys() == {(0, 1)}
    whole = [*documents[:2], statements(SHORT.format("").replace("1875", "3 May 1875"))]
    assert among_documents(QUESTION, whole).keys() == {(0, 1), (1, 2)}


def test_who_names_the_same_year_and_nothing_else_in_common_is_on_neither_side():
    right, wrong = LIGHT.format("It was built in 1875."), LIGHT.format("It was built in 1920.")
    other = "In 1875 Orla Brandt wed Piet Sander of Kelso, the mayor of Lindholt and Ostrey."
    assert among_documents(QUESTION, [statements(each) for each in (right, wrong, other)]).keys() == {(0, 1)}


@given(
    st.text(max_size=80), st.text(max_size=80), st.sampled_from(("", QUESTION, "How many are there?", "What is it?"))
)
def test_any_words_can_be_compared_and_none_dispute_themselves(left: str, right: str, question: str):
    describe_dispute(Statement(left), Statement(right), 1.0, question)
    assert describe_dispute(Statement(left), Statement(left), 1.0, question) == ""
