"""Forecasts as text. Pure."""

from __future__ import annotations

from collections.abc import Callable

from assay.agent.forecast import Reached
from assay.store.runs.forecasts import EstimateRange, WorkEstimate
from assay.synthesis.forecast import charge, counted, lasting, rounded
from assay.workspace.types import WorkForecast


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


def describe_limit(reached: Reached) -> str:
    limit = reached.ceiling
    amount = {"calls": f"{limit.most:,.0f} requests", "tokens": f"{limit.most:,.0f} tokens"}.get(limit.what)
    amount = amount or (charge(limit.most) if limit.what == "money" else lasting(limit.most))
    whose = {"run": "for one run", "day": "for one person in a day", "all": "for all together in a day"}[limit.whose]
    how = "will probably be reached" if reached.probably else "may be reached"
    return f"Note: the limit of {amount} {whose} (`{limit.setting}`) {how}; from there on it goes by rule."


def _number(value: float) -> str:
    return f"{rounded(round(value)):,}"


def _range(values: EstimateRange, render: Callable[[float], str], unit: str = "") -> str:
    low, likely, high = (render(each) for each in (values.low, values.likely, values.high))
    return f"{likely}{unit}" if low == likely == high else f"{low} to {high}{unit}, likely {likely}"
