"""Runs that a real small model made, gone through again: no model, no index, no network."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay.answer.compose import find_faults
from assay.core.events import DECIDES
from assay.core.types import Outcome
from assay.governance import replay

TRACES = sorted((Path(__file__).parent / "traces").glob("*.jsonl"))
NAMES = [path.stem for path in TRACES]
CURRENT = [path for path in TRACES if f'"version":{DECIDES}' in path.read_text(encoding="utf-8")]


def test_there_is_a_run_of_each_kind_and_one_that_this_version_decides():
    assert NAMES == ["multi-hop", "single-hop", "unanswerable"]
    assert CURRENT


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


@pytest.mark.parametrize("path", CURRENT, ids=[path.stem for path in CURRENT])
async def test_a_record_that_was_changed_does_not_come_out_the_same(path: Path):
    lines = path.read_text(encoding="utf-8").splitlines()
    changed = [
        _lied(line) if '"event":"ModelReplied"' in line and '"prompt":"write"' in line else line for line in lines
    ]
    assert changed != lines
    run, context = replay.load("\n".join(changed))
    again = await replay.replay(run, context, searchable=False)
    assert again.differences


def _lied(line: str) -> str:
    """The same reply with every claim turned round."""
    event = json.loads(line)
    reply = json.loads(event["text"])
    for claim in (claim for block in reply["blocks"] for claim in block["claims"]):
        claim["text"] = f"It is not true: {claim['text']}"
    return json.dumps(event | {"text": json.dumps(reply)})
