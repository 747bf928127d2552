"""What is watched, and from where on it is too much: the one place that these numbers live in. The report on health, the
alert rules and the dashboard are made from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

DAYS = 7  # that are looked at


@dataclass(frozen=True, slots=True)
class Threshold:
    """`limit` itself is still well: it is over it, or with `falls` under it, that something is wrong. `expr` is the same
    figure as Prometheus works it out from what a server shows."""

    name: str
    about: str
    limit: float
    expr: str
    unit: str = ""  # empty, "s", "%"
    goal: float | None = None
    falls: bool = False  # small values are the bad ones

    def breached(self, value: float | None) -> bool:
        """Where nothing happened there is nothing to be wrong."""
        if value is None:
            return False
        return value < self.limit if self.falls else value > self.limit

    @property
    def words(self) -> str:
        """The limit in words."""
        return f"{'under' if self.falls else 'over'} {format_figure(self.limit, self.unit)}"


def format_figure(value: float | None, unit: str) -> str:
    """A figure with its unit; shares are told in per cent."""
    if value is None:
        return "–"
    return f"{value * 100:.4g} %" if unit == "%" else f"{value:.4g}{f' {unit}' if unit else ''}"


def _grown(name: str) -> str:
    return f"sum(increase({name}[{DAYS}d]))"


THRESHOLDS = (
    Threshold(
        "iterations",
        "rounds of searching per question, on average",
        8.0,
        f"{_grown('assay_rounds_sum')} / {_grown('assay_rounds_count')}",
    ),
    Threshold(
        "cap_hits",
        "share of questions to a model whose search ended because a limit was reached",
        0.10,
        f"{_grown('assay_cap_hits_total')} / {_grown('assay_model_runs_total')}",
        unit="%",
        goal=0.05,
    ),
    Threshold(
        "session_p95",
        "seconds at work that 95 of 100 questions stay within",
        30.0,
        f"histogram_quantile(0.95, sum by (le) (increase(assay_session_seconds_bucket[{DAYS}d])))",
        unit="s",
        goal=20.0,
    ),
    Threshold(
        "tool_errors",
        "share of tool calls that went wrong",
        0.02,
        f"{_grown('assay_tool_errors_total')} / {_grown('assay_tool_calls_total')}",
        unit="%",
    ),
    Threshold(
        "overrides",
        "share of reviewers' decisions that changed or rejected the answer",
        0.30,
        f'sum(increase(assay_reviews_total{{decision!="approve"}}[{DAYS}d])) / {_grown("assay_reviews_total")}',
        unit="%",
    ),
    Threshold(
        "trace_completeness",
        "share of delivered runs whose record is complete",
        1.0,
        f"{_grown('assay_traces_complete_total')} / {_grown('assay_traces_total')}",
        unit="%",
        falls=True,
    ),
)
BY_NAME: Mapping[str, Threshold] = {each.name: each for each in THRESHOLDS}


def quantile(values: Sequence[float], share: float) -> float | None:
    """The smallest value that at least this share of them does not pass; none of nothing."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[max(0, -(-round(share * 1_000_000) * len(ordered) // 1_000_000) - 1)]
