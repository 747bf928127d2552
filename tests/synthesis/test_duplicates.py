"""Documents that say the same in the same words, under the same title: each of them is named and told, none in the other's
place."""

from __future__ import annotations

from dataclasses import replace

import pytest
from mills import Model, context, document, drawn, good, told

from assay.core.account import Pipeline
from assay.synthesis import state
from assay.synthesis.stages import coverage

FIRST = document(1)
TWINS = [FIRST, replace(FIRST, id="copy"), document(2)]


@pytest.mark.parametrize("pipeline", list(Pipeline))
@pytest.mark.parametrize("with_model", [False, True], ids=["by rule", "by a model"])
async def test_a_copy_of_a_document_has_claims_of_its_own(pipeline: Pipeline, with_model: bool):
    run = drawn(TWINS, pipeline, model=with_model)
    run = await told(run, context(TWINS, run, Model(good) if with_model else None))
    assert {row.doc_id: bool(row.claims) for row in coverage.ledger(run)} == {each.id: True for each in TWINS}
    assert not any(row.reason for row in coverage.ledger(run))


async def test_a_spine_that_nobody_wrote_names_a_copy_beside_its_original():
    run = drawn(TWINS)
    run = await told(run, context(TWINS, run, Model(lambda name, shown: _silent(name, shown))))
    spun = state.spine(run)
    assert spun is not None
    assert {doc for beat in spun.spine for doc in beat.documents} == {each.id for each in TWINS}


def _silent(name: str, shown: str) -> dict[str, object]:
    """A spine without a sentence that holds."""
    return {"theme": "", "sentences": [{"text": "Nothing.", "cites": []}]} if name == "spine" else good(name, shown)
