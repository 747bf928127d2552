"""Words of documents stand between two marks, however little room there is: only the words are cut."""

from __future__ import annotations

import re

import pytest

from assay.core.account import Theme
from assay.models.token_estimate import estimate_tokens
from assay.synthesis.writing import themes

MARK = "0123456789ab"
LONG = "The wheel of the upper mill turns slowly because the water of the pond runs low in a dry summer " * 4


@pytest.mark.parametrize("room", [900, 1500, 3000, 6000])
def test_every_group_of_documents_is_shown_between_marks_and_all_of_it_fits(room: int):
    told = [Theme(f"theme {number}", tuple(f"d{number}-{place}" for place in range(10))) for number in range(12)]
    first = {doc: LONG for theme in told for doc in theme.documents}
    shown = themes.build_prompt(told, first, MARK, room)["themes"]
    assert estimate_tokens(shown) <= room
    assert re.findall(rf"⟦{MARK} quoted: (T\d+)⟧", shown) == [f"T{number}" for number in range(1, 13)]
    assert shown.count(f"⟦end {MARK}⟧") == 12 and shown.endswith(f"⟦end {MARK}⟧")
