"""Runs that a real small model made, gone through again: no model, no index, no network."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.answer.compose import find_faults
from assay.core.types import Outcome
from assay.governance import replay

TRACES = sorted((Path(__file__).parent / "traces").glob("*.jsonl"))
NAMES = [path.stem for path in TRACES]


def test_there_is_a_run_of_each_kind():
    assert NAMES == ["multi-hop", "single-hop", "unanswerable"]


@pytest.mark.parametrize("path", TRACES, ids=NAMES)
async def test_a_recorded_run_comes_to_the_same_answer_again(path: Path):
    run, context = replay.load(path.read_text(encoding="utf-8"))
    again = await replay.replay(run, context, searchable=False)
    assert again.answer == run.answer
    assert not again.differences


@pytest.mark.parametrize("path", TRACES, ids=NAMES)
def test_whatever_the_model_wrote_only_what_holds_was_delivered(path: Path):
    run, context = replay.load(path.read_text(encoding="utf-8"))
    assert run.answer is not None and not find_faults(run.answer, run, context.document)
    assert run.usage.calls >= 2 and all(not role_model.tools for role_model in run.asked.seats)
    if path.stem == "unanswerable":
        assert run.answer.outcome is not Outcome.answered
    else:
        assert run.answer.claims
