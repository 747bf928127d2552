"""Forecasts the cost of a question: an estimate from the loop's structure, calibrated by the cost of earlier work.
Pure. Syntheses and ingestion use the same ranges and ceilings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import median

from assay.core.events import Mode, RoleModel
from assay.core.types import Usage
from assay.store.runs.forecasts import Amount, EstimateRange, PastWork, WorkEstimate

# Typical number of search rounds per mode.
ROUNDS = {Mode.quick: 1.0, Mode.balanced: 1.5, Mode.thorough: 2.5}

# One request of each kind: tokens in and out.
ROUTE, PLAN, JUDGE = (450, 50), (550, 120), (1_100, 80)
DECIDE = (1_600, 90)
TASK, PASSAGE, WEIGHED = 350, 230, 75  # tokens of a weighing request; of each passage in it; of the output per passage
TOGETHER = 9  # passages per weighing request
SHOWN = 14  # passages weighed per round; a small model weighs none
WRITE, CHECK = (1_900, 260), (1_100, 160)
CHECKS = 0.7  # check requests per answer; a small model is not asked

SEARCH = 0.25  # seconds per search
RULED = {Mode.quick: 0.5, Mode.balanced: 0.9, Mode.thorough: 1.8}  # seconds per question without a model

SEEN = 5  # model calls after which its measured speed is used
LEAST, MOST = 0.1, 0.9  # quantiles of the range: one in ten is below it, one in ten above
WIDE = (0.4, 1.0, 2.5)  # prior error of an estimate without history
WIDER = (0.3, 1.0, 4.0)  # the same for seconds


@dataclass(frozen=True, slots=True)
class Speed:
    """Tokens a model reads and writes per second, and its number of parallel requests."""

    read: float
    write: float
    at_once: int = 1


LOCAL = Speed(150.0, 12.0)  # estimate: a model of a few billion parameters on a local CPU
REMOTE = Speed(4_000.0, 60.0, 4)  # estimate: a hosted model


def pace(seen: Usage, guess: Speed) -> Speed:
    """The estimate calibrated by the model's past usage; the ratio of read to write speed is kept."""
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


def question(mode: Mode, role_models: Sequence[RoleModel]) -> Work:
    """The model usage of a question, from the loop's structure; zero without models."""
    writer = next((role_model for role_model in role_models if role_model.role == "write"), None)
    if writer is None:
        return Work(0, 0, 0)
    rounds, small = ROUNDS[mode], writer.small
    shown = 0 if small else SHOWN
    weighings = ceil(shown * rounds / TOGETHER)
    asked = [(1.0, ROUTE), (1.0, PLAN), (rounds, JUDGE), (max(0.0, rounds - 1.0), DECIDE), (1.0, WRITE)]
    asked += [] if small else [(CHECKS, CHECK)]
    tokens_in = sum(many * each[0] for many, each in asked) + weighings * TASK + shown * rounds * PASSAGE
    tokens_out = sum(many * each[1] for many, each in asked) + shown * rounds * WEIGHED
    return Work(ceil(sum(many for many, _ in asked)) + weighings, ceil(tokens_in), ceil(tokens_out))


def estimate_work(guess: Amount, past: Sequence[PastWork], counts: Mapping[str, int] | None = None) -> WorkEstimate:
    """The estimate as ranges: multiplied by past errors, where all past work of this kind has equal weight."""

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
    """Low, likely and high. The prior counts as three extra runs, so that few runs give a wide range and many runs
    dominate it."""
    seen = sorted([*off, *prior])

    def rank(share: float) -> float:
        return seen[max(0, ceil(share * len(seen)) - 1)]

    return EstimateRange(guess * rank(LEAST), guess * (median(seen) if off else prior[1]), guess * rank(MOST))


@dataclass(frozen=True, slots=True)
class Error:
    """Accuracy of past forecasts: the share within range, and the median ratio of actual to likely."""

    inside: float
    ratio: float


def errors(past: Sequence[PastWork]) -> dict[str, Error]:
    """Errors by quantity; quantities that were never expected to be used are omitted."""
    found: dict[str, Error] = {}
    for name in ("calls", "tokens", "money", "seconds"):
        pairs = [(getattr(each.foreseen, name), getattr(each.came, name)) for each in past]
        forecast_pairs = [
            (range_, came) for range_, came in pairs if range_ is not None and range_.likely and came is not None
        ]
        if forecast_pairs:
            inside = sum(range_.low <= came <= range_.high for range_, came in forecast_pairs) / len(forecast_pairs)
            found[name] = Error(
                round(inside, 3), round(median(came / range_.likely for range_, came in forecast_pairs), 3)
            )
    return found


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The maximum of a quantity, the setting it comes from, and what is left of it."""

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
    """The ceilings that may be reached, probable ones first, each group in the given order."""
    found: list[Reached] = []
    for each in ceilings:
        range_: EstimateRange | None = getattr(expected, each.what)
        if each.most and range_ is not None and range_.high > each.left:
            found.append(Reached(each, range_.likely > each.left))
    return tuple(sorted(found, key=lambda one: not one.probably))
