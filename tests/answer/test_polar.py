"""Yes/no and either/or questions: how they are parsed, and which sentences decide them."""

from __future__ import annotations

import pytest

from assay.answer import polar
from assay.core.types import Derivation, Quote


def decided(question: str, sentence: str, label: str = "") -> Derivation | None:
    asked = polar.parse(question)
    assert asked is not None
    return polar.decide_by_rule(asked, Quote("d", 0, len(sentence), sentence), label)


@pytest.mark.parametrize(
    ("question", "sentence", "label", "expected"),
    [
        ("Are dogs allowed on the Gannet?", "Dogs are allowed on deck.", "Ferries › Gannet", Derivation.yes),
        ("Are dogs allowed on the Gannet?", "Dogs are not allowed.", "Ferries › Gannet", Derivation.no),
        ("Did the Petrel company sell its harbour?", "The Petrel company sold nothing.", "", None),
        ("Is the harbour open to visitors?", "The harbour is not open to visitors.", "", Derivation.no),
        ("Is the harbour open to visitors?", "We asked whether the harbour is open to visitors.", "", None),
        ("Is the harbour open to visitors?", "The aim of the visit is a harbour open to visitors.", "", None),
        ("The old harbour: is it open to visitors?", "The old harbour is open to visitors.", "", Derivation.yes),
        ("Does the firm own boats of its own?", "The firm does not own boats, and boats cost much.", "", Derivation.no),
        (
            "Are cars allowed on the long stone quay?",
            "The long stone quay is closed to cars, and open to walkers.",
            "",
            Derivation.no,
        ),
        (
            "Are walkers allowed on the stone quay?",
            "The stone quay is closed to cars, and open to walkers.",
            "",
            None,  # which half is meant is left open
        ),
        ("Is the harbour open to visitors?", "The lighthouse keeper is called Bo.", "", None),
        ("Is the harbour as deep as the lake?", "The lake is not deep, and the harbour is open.", "", None),
        ("Is the harbour as deep as the lake?", "The harbour is not as deep as the lake.", "", Derivation.no),
        (
            "Does the drift study want the probes cleaned as often as the rules do?",
            "A clean alarm would not have been raised.",
            "Drift study of probes › Rules",  # what stands above a sentence does not decide
            None,
        ),
    ],
)
def test_a_sentence_decides_a_question_only_if_it_speaks_of_all_of_it(
    question: str, sentence: str, label: str, expected: Derivation | None
):
    assert decided(question, sentence, label) is expected


@pytest.mark.parametrize(
    ("question", "alternatives"),
    [
        ("Does the works use an iron or an aluminium salt?", ("iron", "aluminium")),
        ("Was it built in 1875 or in 1920?", ("1875", "1920")),
        ("Was it chosen for its price or its use of power?", ("price", "use of power")),
        ("Was it built by Marl Quay Company or Northern Trust?", ("Marl Quay Company", "Northern Trust")),
    ],
)
def test_alternatives_are_what_stands_on_both_sides_of_or(question: str, alternatives: tuple[str, str]):
    asked = polar.parse(question)
    assert asked is not None
    assert asked.alternatives == alternatives


def test_a_sentence_chooses_an_alternative_if_it_names_only_that_one():
    asked = polar.parse("Was it built in 1875 or in 1920?")
    assert asked is not None
    span = polar.chosen_alternative(asked, "It was built in 1875.")
    assert span is not None
    assert "It was built in 1875."[slice(*span)] == "1875"
    assert polar.chosen_alternative(asked, "Some say 1875, some say 1920.") is None


@pytest.mark.parametrize("question", ["Who built it?", "How many are there?", "What is the speed of the Tern?"])
def test_other_questions_are_not_to_be_decided(question: str):
    assert polar.parse(question) is None
