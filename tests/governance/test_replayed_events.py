"""Replay knows every event: it is made again, taken as recorded, or progress of the run."""

from __future__ import annotations

from typing import get_args

from assay.core.events import Event
from assay.governance.replay import ASIDE, CONCLUDED, TAKEN


def test_every_event_of_a_question_is_in_one_group():
    events = set(get_args(Event))
    of_a_question = {each for each in events if each.__module__ == "assay.core.events"}
    groups = (set(CONCLUDED), set(TAKEN), set(ASIDE))
    assert len(of_a_question) > 15 and of_a_question <= set().union(*groups)
    assert sum(map(len, groups)) == len(set().union(*groups)), "an event is in two groups"
