"""What a small model may say, and what stands in for what it may not."""

from __future__ import annotations

from assay.core.types import Block, Claim, Evidence, Passage, Quote
from assay.synthesis.writing import small_models

WORDS = (
    "The north sluice at Marrow Quay was rebuilt in 2003. The hydraulic ram leaks oil at its lower seal. "
    "Inspectors replaced the seal and pressed the ram for two hours without loss."
)
KEY = "a1b2c3d4"
EVIDENCE = (Evidence(KEY, Passage("p", "d", WORDS, 0, len(WORDS)), Quote("d", 0, 52, WORDS[:52]), 8.0, "q"),)


def test_a_sentence_said_again_in_nearly_its_words_stands():
    assert small_models.is_close_to_a_sentence("The ram leaks oil at the lower seal.", (KEY,), EVIDENCE)
    assert small_models.is_close_to_a_sentence("Marrow Quay's north sluice was rebuilt in 2003.", (KEY,), EVIDENCE)


def test_words_of_two_sentences_made_one_do_not():
    assert not small_models.is_close_to_a_sentence(
        "The inspection of the sluice was conducted in 2003, and the ram leaks oil at its lower seal.", (KEY,), EVIDENCE
    )
    assert not small_models.is_close_to_a_sentence("The ram leaks oil at its lower seal.", ("ffffffff",), EVIDENCE)


def test_the_sentence_that_was_meant_stands_in_and_what_means_none_is_gone():
    meant = Claim("The hydraulic ram leaks oil at its lower seal since the sluice was rebuilt.", (KEY,))
    vague = Claim("Harbours everywhere face hard choices about money.", (KEY,))
    (block,) = small_models.keep_close_claims([Block((meant, vague))], EVIDENCE)
    assert [claim.words for claim in block.claims] == ["The hydraulic ram leaks oil at its lower seal."]
    assert small_models.keep_close_claims([Block((vague,))], EVIDENCE) == ()
