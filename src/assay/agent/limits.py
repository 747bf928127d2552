"""Limits live in code: how many rounds, how many searches, how long. Reaching one is an outcome, not an error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from assay.events import Mode, Stopped, StopReason
from assay.run import Run

ROUNDS = {Mode.quick: 3, Mode.balanced: 5, Mode.thorough: 10}


@dataclass(frozen=True, slots=True)
class Limits:
    """`seconds_left` counts active time only; a run that waits for a person waits for free."""

    rounds: int = ROUNDS[Mode.balanced]
    seconds_left: Callable[[], float] = lambda: 1.0

    def reached(self, run: Run) -> Stopped | None:
        if run.rounds >= self.rounds:
            return Stopped(StopReason.rounds, f"{run.rounds} rounds of searching were allowed")
        if self.seconds_left() <= 0:
            return Stopped(StopReason.time, "the time for this question was used up")
        return None
