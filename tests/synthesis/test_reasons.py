"""Why two documents are related, as a model gives it: a reason that mixes documents up is not printed."""

from __future__ import annotations

import re
from typing import Any

import pytest
from wharf import LOGS, A, B, Model, asked, carried, context, document

from assay.core.run import Run
from assay.synthesis import state
from assay.synthesis.stages import insights, relations

DOCS = [document("a", A), document("b", B)]
LOG_A, LOG_B = (each.split(". ")[0] + "." for each in (A, B))
ANSWERS = {LOGS: [("a", LOG_A), ("b", LOG_B)]}


async def reason(given: str, type: str = "contradiction") -> str:
    """What is printed where a model gives this reason."""

    def says(name: str, shown: str) -> dict[str, Any]:
        count = len(re.findall(r"^Pair \d+", shown, re.M))
        told = {"left": LOG_A, "right": LOG_B, "reason": given, "type": type}
        return {"relations": [{"pair": number, **told} for number in range(1, count + 1)]}

    plain = asked(DOCS, ANSWERS, model=False)
    plain = await carried(plain, insights.draw, context(DOCS, plain))
    plain = await carried(plain, relations.pair, context(DOCS, plain))
    run = Run("r1", (asked(DOCS, ANSWERS).events[0], *plain.events[1:]))
    run = await carried(run, relations.relate, context(DOCS, run, Model(says)))
    (found,) = state.relations(run)
    return found.reason


async def test_a_reason_that_gives_each_document_its_own_figures_stands():
    given = "D1 says the crane log is kept for 30 days, while D2 says it is kept for 90 days."
    assert await reason(given) == given


@pytest.mark.parametrize(
    "given",
    [
        "D1 says the crane log is kept for 90 days, while D2 says it is kept for 30 days.",
        "D1 says the crane log is kept for 30 days, while D7 says it is kept for 90 days.",
    ],
    ids=["turned round", "a third document"],
)
async def test_a_reason_that_gives_a_document_what_another_says_is_replaced_by_what_the_rules_can_tell(given: str):
    told = await reason(given)
    assert told != given and "D7" not in told and "D1 and D2" in told
