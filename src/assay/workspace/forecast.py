"""Forecasts: what a question takes by the loop's structure, calibrated by what earlier work took, the limits it may reach, and
all of it in words. Pure. Syntheses and added files use the same ranges, limits and words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from statistics import median

from assay.core.events import Mode, RoleModel
from assay.core.types import Usage
from assay.models.cost import PICTURE
from assay.store.runs.forecasts import Amount, EstimateRange, PastWork, WorkEstimate, WorkKind

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

PICTURED = 3  # pictures, where the model takes them: a figure is weighed, read and judged
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


def question(mode: Mode, role_models: Sequence[RoleModel]) -> Usage:
    """The model usage of a question, from the loop's structure; zero without models."""
    writer = next((role_model for role_model in role_models if role_model.role == "write"), None)
    if writer is None:
        return Usage()
    rounds = ROUNDS[mode]
    weighings = ceil(SHOWN * rounds / TOGETHER)
    asked = [(1.0, ROUTE), (1.0, PLAN), (rounds, JUDGE), (max(0.0, rounds - 1.0), DECIDE), (1.0, WRITE)]
    asked.append((CHECKS, CHECK))
    tokens_in = sum(many * each[0] for many, each in asked) + weighings * TASK + SHOWN * rounds * PASSAGE
    tokens_in += PICTURED * PICTURE if writer.images else 0
    tokens_out = sum(many * each[1] for many, each in asked) + SHOWN * rounds * WEIGHED
    return Usage(ceil(sum(many for many, _ in asked)) + weighings, ceil(tokens_in), ceil(tokens_out))


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
        pairs = [(foreseen, came) for foreseen, came in pairs if foreseen and foreseen.likely and came is not None]
        if pairs:
            inside = sum(foreseen.low <= came <= foreseen.high for foreseen, came in pairs) / len(pairs)
            ratio = median(came / foreseen.likely for foreseen, came in pairs)
            found[name] = Error(round(inside, 3), round(ratio, 3))
    return found


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The maximum of a quantity, the setting it comes from, and what is left of it. One that may be reached would cut the work
    short: probably, or only if it takes more than is likely."""

    setting: str
    what: str  # calls, tokens, money, seconds
    whose: str  # run, day, all
    most: float
    left: float
    probably: bool = False


def reached(expected: WorkEstimate, ceilings: Sequence[Ceiling]) -> tuple[Ceiling, ...]:
    """The ceilings that may be reached, probable ones first, each group in the given order."""
    found: list[Ceiling] = []
    for each in ceilings:
        range_: EstimateRange | None = getattr(expected, each.what)
        if each.most and range_ is not None and range_.high > each.left:
            found.append(replace(each, probably=range_.likely > each.left))
    return tuple(sorted(found, key=lambda one: not one.probably))


def charge(money: float | None) -> str:
    if money is None:
        return "price not known"
    return "no charge" if not money else f"${money:.2f}" if money >= 0.01 else "less than $0.01"


def lasting(seconds: float) -> str:
    """A duration in words."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5_400 else f"{seconds / 3_600:.1f} h"


def counted(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def rounded(number: int) -> int:
    """Round to two significant digits: more would suggest false precision."""
    step = 10 ** max(0, len(str(number)) - 2)
    return round(number / step) * step


@dataclass(frozen=True, slots=True)
class WorkForecast:
    """What a piece of work is expected to take, which limits it may reach, and how good earlier forecasts were."""

    kind: WorkKind
    alike: str  # key of the earlier work it is compared with
    foreseen: WorkEstimate
    reached: tuple[Ceiling, ...] = ()
    errors: Mapping[str, Error] = field(default_factory=dict)


def forecast_lines(forecast: WorkForecast) -> list[str]:
    """The forecast, how good such forecasts were, and which limits may be reached. Figures are rounded: they are guesses."""
    expected = forecast.foreseen
    count = "1 earlier one" if expected.from_runs == 1 else f"{expected.from_runs:,} earlier ones"
    basis = f"from {count}" if expected.from_runs else "a guess: nothing like it was done here yet"
    lines = [f"Forecast ({basis}): {describe_ranges(expected)}."]
    if forecast.errors:
        shares = [f"{name} {error.inside:.0%}" for name, error in forecast.errors.items()]
        typical = forecast.errors.get("tokens") or forecast.errors["seconds"]
        lines.append(
            f"Earlier forecasts ({expected.from_runs:,}) that held their range: {', '.join(shares)}; "
            f"in the middle it took {typical.ratio:.2g} times what was likely."
        )
    return [*lines, *map(describe_limit, forecast.reached)]


def describe_ranges(expected: WorkEstimate) -> str:
    """Low, high and likely of everything that is forecast."""
    parts: list[str] = []
    if expected.calls.high:
        parts.append(_range(expected.calls, _number, " requests"))
        parts.append(_range(expected.tokens, _number, " tokens"))
        parts.append("price not known" if expected.money is None else _range(expected.money, charge))
    if expected.counts.get("new") is not None:
        parts.append(counted(expected.counts["new"], "new file"))
        parts.append(f"about {counted(rounded(expected.counts['passages']), 'passage')}")
    return "; ".join([*parts, _range(expected.seconds, lasting)])


def describe_limit(limit: Ceiling) -> str:
    amount = {"calls": f"{limit.most:,.0f} requests", "tokens": f"{limit.most:,.0f} tokens"}.get(limit.what)
    amount = amount or (charge(limit.most) if limit.what == "money" else lasting(limit.most))
    whose = {"run": "for one run", "day": "for one person in a day", "all": "for all together in a day"}[limit.whose]
    how = "will probably be reached" if limit.probably else "may be reached"
    return f"Note: the limit of {amount} {whose} (`{limit.setting}`) {how}; from there on it goes by rule."


def _number(value: float) -> str:
    return f"{rounded(round(value)):,}"


def _range(values: EstimateRange, render: Callable[[float], str], unit: str = "") -> str:
    low, likely, high = (render(each) for each in (values.low, values.likely, values.high))
    return f"{likely}{unit}" if low == likely == high else f"{low} to {high}{unit}, likely {likely}"
