"""Limits of a run, enforced in code: rounds, calls, tokens, money, active seconds. Reaching one is an outcome, not an
error. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from assay.core.events import Mode, Stopped, StopReason
from assay.core.run import Run

ROUNDS = {Mode.quick: 3, Mode.balanced: 5, Mode.thorough: 10}
SET_ROUNDS = {
    Mode.quick: 3,
    Mode.balanced: 8,
    Mode.thorough: 16,
}  # of a question about a whole set: reading takes rounds
BARREN = 2  # consecutive rounds without anything new


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on the search phase of a run.

    `seconds_left` counts active time only; time spent waiting for a person is free. The meter enforces the ceilings on
    calls, tokens and money again before each request; the limits here end the search early enough that budget remains
    for writing the answer. A ceiling of 0 means no limit.
    """

    rounds: int = ROUNDS[Mode.balanced]
    set_rounds: int = SET_ROUNDS[Mode.balanced]
    calls: int = 0
    tokens: int = 0
    money: float = 0.0
    kept_back: float = 0.25  # share of every ceiling reserved for writing and checking
    room: int = 8192  # tokens of the smallest deciding window; older results are compacted when it fills
    seconds: float = 900.0
    seconds_left: Callable[[], float] = lambda: 900.0

    def rounds_for(self, run: Run) -> int:
        """The rounds that this kind of question is allowed."""
        return self.set_rounds if run.every else self.rounds

    def reached(self, run: Run) -> Stopped | None:
        if run.rounds >= self.rounds_for(run):
            return Stopped(StopReason.rounds, f"{run.rounds} rounds of searching were allowed")
        if self.seconds_left() <= self.kept_back * self.seconds:
            return Stopped(StopReason.time, f"{self.seconds:g} seconds were allowed for this question")
        used, share = run.usage, 1 - self.kept_back
        if self.calls and used.calls >= share * self.calls:
            return Stopped(StopReason.calls, f"{self.calls} calls of a model were allowed")
        if self.tokens and used.tokens_in + used.tokens_out >= share * self.tokens:
            return Stopped(StopReason.tokens, f"{self.tokens} tokens were allowed")
        if self.money and used.money >= share * self.money:
            return Stopped(StopReason.money, f"{self.money:g} USD were allowed")
        return None

    def barren(self, run: Run) -> bool:
        """Whether the last rounds found nothing new."""
        last = run.fresh[-BARREN:]
        return len(last) == BARREN and not any(last)
