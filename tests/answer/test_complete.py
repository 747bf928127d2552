from __future__ import annotations

from assay.answer.evidence_text import Sources
from assay.answer.extractive.completion import complete_draft, continuation
from assay.answer.extractive.extract import require_complete
from assay.core.events import Drafted
from assay.core.types import Block, Claim, Evidence, Passage, Quote, Shape

QUESTION = "Which colour is the pump that failed first in the Alder flood?"


def piece(key: str, words: str) -> Evidence:
    return Evidence(
        key, Passage(key, f"d{key}", words, 0, len(words)), Quote(f"d{key}", 0, len(words), words), 9.0, QUESTION
    )


FAILED = piece("11111111", "In the Alder flood pump KX-40 failed first, at noon.")
LISTED = piece("22222222", "Pump KX-40 is of a red colour and stands at the weir.")
BESIDE = piece("33333333", "Pump KX-51 is of a blue colour and stands at the mill.")
EVIDENCE = (FAILED, BESIDE, LISTED)
NAMED = Claim("The pump that failed first in the Alder flood is KX-40.", ("11111111",))


def test_a_name_that_the_answer_brings_up_leads_to_what_it_leaves_open():
    further = continuation(QUESTION, [NAMED], EVIDENCE, Sources())
    assert further is not None and further.cites == ("22222222",) and further.quote == LISTED.quote
    draft = complete_draft(Drafted((Block((NAMED,)),), Shape.sentence), QUESTION, EVIDENCE, Sources())
    assert [claim.cites for block in draft.blocks for claim in block.claims] == [("11111111",), ("22222222",)]


def test_nothing_is_added_to_an_answer_that_leaves_nothing_open():
    whole = Claim(
        "The pump KX-40, which failed first in the Alder flood, is of a red colour.", ("11111111", "22222222")
    )
    assert continuation(QUESTION, [whole], EVIDENCE, Sources()) is None


def test_nothing_is_added_that_no_name_leads_to():
    assert continuation(QUESTION, [NAMED], (FAILED, BESIDE), Sources()) is None


def test_where_a_model_has_failed_a_part_of_an_answer_is_only_what_came_nearest():
    part = Drafted((Block((Claim("", ("11111111",), quote=FAILED.quote),)),), Shape.sentence)
    nearest = require_complete(part, "Which company insured pump KX-40?", EVIDENCE, {})
    assert not nearest.blocks and nearest.near[0].quote == FAILED.quote
    assert require_complete(part, "When did pump KX-40 fail?", EVIDENCE, {}) == part
