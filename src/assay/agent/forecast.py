"""What a question will take, before it is asked: a guess from what the loop does, put right by what such work took before.
Pure; the ranges and the ceilings are those of a synthesis and of adding documents as well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import median

from assay.core.events import Mode, RoleModel
from assay.core.types import Usage
from assay.store.runs.forecasts import Amount, EstimateRange, PastWork, WorkEstimate

# Rounds of searching that a question of each mode takes, as a rule.
ROUNDS = {Mode.quick: 1.0, Mode.balanced: 1.5, Mode.thorough: 2.5}

# One request of each kind: tokens in and out.
ROUTE, PLAN, JUDGE = (450, 50), (550, 120), (1_100, 80)
DECIDE = (1_600, 90)
TASK, PASSAGE, WEIGHED = 350, 230, 75  # of a request to weigh; of each passage in it; of what is said about each
TOGETHER, TOGETHER_SMALL = 9, 1  # passages in one such request
SHOWN, SHOWN_SMALL = 14, 8  # passages that are weighed in a round
WRITE, CHECK = (1_900, 260), (1_100, 160)
CHECKS = 0.7  # requests of that kind per answer; a small model is not asked

SEARCH = 0.25  # seconds of one search
RULED = {Mode.quick: 0.5, Mode.balanced: 0.9, Mode.thorough: 1.8}  # seconds of a question without a model

SEEN = 5  # calls of a model, from which on its own pace counts
LEAST, MOST = 0.1, 0.9  # the range is so that one in ten is below it, and one in ten above
WIDE = (0.4, 1.0, 2.5)  # how far off a guess may be where nothing is known yet
WIDER = (0.3, 1.0, 4.0)  # the same for seconds


@dataclass(frozen=True, slots=True)
class Speed:
    """Tokens that a model reads and writes in a second, and how many requests it deals with at a time."""

    read: float
    write: float
    at_once: int = 1


LOCAL = Speed(150.0, 12.0)  # a guess: a model of a few billion parameters on one's own processor
REMOTE = Speed(4_000.0, 60.0, 4)  # a guess: a model at a provider


def pace(seen: Usage, guess: Speed) -> Speed:
    """The guess made right by what the same model took before: read and written tokens keep their proportion."""
    if seen.calls < SEEN or seen.seconds <= 0:
        return guess
    guessed = seen.tokens_in / guess.read + seen.tokens_out / guess.write
    return Speed(guess.read * guessed / seen.seconds, guess.write * guessed / seen.seconds, guess.at_once)


@dataclass(frozen=True, slots=True)
class Work:
    """Requests and tokens."""

    calls: int
    tokens_in: int
    tokens_out: int


def question(mode: Mode, seats: Sequence[RoleModel]) -> Work:
    """What a question takes of models, by the loop's own shape; nothing where there is none."""
    writer = next((seat for seat in seats if seat.role == "write"), None)
    if writer is None:
        return Work(0, 0, 0)
    rounds, small = ROUNDS[mode], writer.small
    shown = SHOWN_SMALL if small else SHOWN
    weighings = ceil(shown * rounds / (TOGETHER_SMALL if small else TOGETHER))
    asked = [(1.0, ROUTE), (1.0, PLAN), (rounds, JUDGE), (max(0.0, rounds - 1.0), DECIDE), (1.0, WRITE)]
    asked += [] if small else [(CHECKS, CHECK)]
    tokens_in = sum(many * each[0] for many, each in asked) + weighings * TASK + shown * rounds * PASSAGE
    tokens_out = sum(many * each[1] for many, each in asked) + shown * rounds * WEIGHED
    return Work(ceil(sum(many for many, _ in asked)) + weighings, ceil(tokens_in), ceil(tokens_out))


def foreseen(guess: Amount, past: Sequence[PastWork], counts: Mapping[str, int] | None = None) -> WorkEstimate:
    """The guess as ranges: times what earlier guesses were off by, the last of such work weighing as much as the first."""

    def ranged(name: str, prior: tuple[float, float, float]) -> EstimateRange:
        guesses = [(getattr(each.foreseen.guess, name), getattr(each.came, name)) for each in past]
        off = [came / guessed for guessed, came in guesses if guessed and came is not None]
        return spread(getattr(guess, name), off, prior)

    return WorkEstimate(
        guess=guess,
        calls=ranged("calls", WIDE),
        tokens=ranged("tokens", WIDE),
        money=None if guess.money is None else ranged("money", WIDE),
        seconds=ranged("seconds", WIDER),
        from_runs=len(past),
        counts=dict(counts or {}),
    )


def spread(guess: float, off: Sequence[float], prior: tuple[float, float, float]) -> EstimateRange:
    """Low, likely and high. The prior counts as three runs more, so that few runs give a wide range and many their own."""
    seen = sorted([*off, *prior])

    def rank(share: float) -> float:
        return seen[max(0, ceil(share * len(seen)) - 1)]

    return EstimateRange(guess * rank(LEAST), guess * (median(seen) if off else prior[1]), guess * rank(MOST))


@dataclass(frozen=True, slots=True)
class Error:
    """How far off earlier forecasts were: the share inside their range, and the middle of what it took by what was likely."""

    inside: float
    ratio: float


def errors(past: Sequence[PastWork]) -> dict[str, Error]:
    """By what was counted; what was never expected to take any is left out."""
    found: dict[str, Error] = {}
    for name in ("calls", "tokens", "money", "seconds"):
        pairs = [(getattr(each.foreseen, name), getattr(each.came, name)) for each in past]
        told = [(range_, came) for range_, came in pairs if range_ is not None and range_.likely and came is not None]
        if told:
            inside = sum(range_.low <= came <= range_.high for range_, came in told) / len(told)
            found[name] = Error(round(inside, 3), round(median(came / range_.likely for range_, came in told), 3))
    return found


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The most that may be used of something, under which setting, and what is left of it."""

    setting: str
    what: str  # calls, tokens, money, seconds
    whose: str  # run, day, all
    most: float
    left: float


@dataclass(frozen=True, slots=True)
class Reached:
    """A ceiling that would cut the work short: probably, or only if it takes more than is likely."""

    ceiling: Ceiling
    probably: bool


def reached(expected: WorkEstimate, ceilings: Sequence[Ceiling]) -> tuple[Reached, ...]:
    """The ceilings in the way, those that will probably be reached first; each in the order given."""
    found: list[Reached] = []
    for each in ceilings:
        range_: EstimateRange | None = getattr(expected, each.what)
        if each.most and range_ is not None and range_.high > each.left:
            found.append(Reached(each, range_.likely > each.left))
    return tuple(sorted(found, key=lambda one: not one.probably))
