"""The monitored figures and their thresholds, for the health report. The alert rules for Prometheus and the dashboard for
Grafana in `data` have the same limits; a test compares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

DAYS = 7  # length of the observed period


@dataclass(frozen=True, slots=True)
class Threshold:
    """A figure is bad above `limit` or, with `falls`, below it; `limit` itself is fine."""

    name: str
    about: str
    limit: float
    unit: str = ""  # empty, "s", "%"
    goal: float | None = None
    falls: bool = False  # small values are bad

    def breached(self, value: float | None) -> bool:
        """Whether the value is beyond the limit. No data is not a breach."""
        if value is None:
            return False
        return value < self.limit if self.falls else value > self.limit

    @property
    def words(self) -> str:
        """The limit in words."""
        return f"{'under' if self.falls else 'over'} {format_figure(self.limit, self.unit)}"


def format_figure(value: float | None, unit: str) -> str:
    """A figure with its unit; shares are shown in per cent."""
    if value is None:
        return "–"
    return f"{value * 100:.4g} %" if unit == "%" else f"{value:.4g}{f' {unit}' if unit else ''}"


THRESHOLDS = (
    Threshold("iterations", "rounds of searching per question, on average", 8.0),
    Threshold(
        "cap_hits",
        "share of questions to a model whose search ended because a limit was reached",
        0.10,
        unit="%",
        goal=0.05,
    ),
    Threshold("session_p95", "seconds at work that 95 of 100 questions stay within", 30.0, unit="s", goal=20.0),
    Threshold("tool_errors", "share of tool calls that went wrong", 0.02, unit="%"),
    Threshold("overrides", "share of reviewed answers that were changed or rejected", 0.30, unit="%"),
    Threshold("trace_completeness", "share of delivered runs whose record is complete", 1.0, unit="%", falls=True),
)
BY_NAME: Mapping[str, Threshold] = {each.name: each for each in THRESHOLDS}


def quantile(values: Sequence[float], share: float) -> float | None:
    """The smallest value that at least this share of the values do not exceed; None if there are no values."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[max(0, -(-round(share * 1_000_000) * len(ordered) // 1_000_000) - 1)]


def monitoring_file(name: str) -> str:
    """A file for the monitoring of a server: the alert rules for Prometheus, or the dashboard for Grafana."""
    return (resources.files("assay.governance.reports") / "data" / name).read_text(encoding="utf-8")
