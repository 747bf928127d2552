"""The monitored figures and their thresholds, defined only here. The health report, the alert rules for Prometheus and the
dashboard for Grafana are generated from them; `data/monitoring` contains the output of the latter two."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

DAYS = 7  # length of the observed period


@dataclass(frozen=True, slots=True)
class Threshold:
    """A figure is bad above `limit` or, with `falls`, below it; `limit` itself is fine. `expr` is the same figure as
    a Prometheus expression over a server's metrics."""

    name: str
    about: str
    limit: float
    expr: str
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
        "share of reviewed answers that were changed or rejected",
        0.30,
        f'sum(increase(assay_reviewed_answers_total{{overridden!="no"}}[{DAYS}d])) / '
        f"{_grown('assay_reviewed_answers_total')}",
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
    """The smallest value that at least this share of the values do not exceed; None if there are no values."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[max(0, -(-round(share * 1_000_000) * len(ordered) // 1_000_000) - 1)]


WAIT = "10m"  # how long a condition must last before the alert fires

# Panels beside the figures with a threshold: title, Grafana unit, expression.
DRAWN = (
    ("Questions answered, by outcome", "short", "sum by (outcome) (increase(assay_runs_total[1d]))"),
    ("Runs that failed", "short", "sum(increase(assay_run_failures_total[1d]))"),
    ("Rounds per question", "short", "sum(rate(assay_rounds_sum[1d])) / sum(rate(assay_rounds_count[1d]))"),
    ("Runs under way", "short", "assay_runs_under_way"),
    ("Answers that wait for a reviewer", "short", "assay_reviews_waiting"),
    ("Uploads, by state", "short", "sum by (state) (assay_jobs)"),
    ("Calls of tools", "short", "sum by (tool) (increase(assay_tool_calls_total[1d]))"),
    ("Requests to models, by role", "short", "sum by (role) (increase(assay_model_calls_total[1d]))"),
    ("Tokens", "short", "sum by (direction) (increase(assay_tokens_total[1d]))"),
    ("What models cost", "currencyUSD", "sum(increase(assay_money_usd_total[1d]))"),
    ("Requests to the server", "reqps", "sum by (status) (rate(assay_http_requests_total[5m]))"),
    ("Seconds of a reply, P95", "s", "histogram_quantile(0.95, sum by (le) (rate(assay_http_seconds_bucket[5m])))"),
)
UNITS = {"%": "percentunit", "s": "s", "": "short"}


def alerts() -> str:
    """The alert rules for Prometheus."""
    lines = [
        "# Alert rules for a server of Assay's. Made by `assay monitor alerts`.",
        "groups:",
        "  - name: assay",
        "    rules:",
    ]
    for each in THRESHOLDS:
        lines += [
            f"      - alert: Assay{_camel(each.name)}",
            f"        expr: {_quoted(expression(each))}",
            f"        for: {WAIT}",
            "        labels:",
            "          severity: warning",
            "        annotations:",
            f"          summary: {_quoted(f'{each.about}: {each.words} over {DAYS} days')}",
        ]
    return "\n".join(lines) + "\n"


def expression(of: Threshold) -> str:
    """The condition of an alert rule."""
    return f"{of.expr} {'<' if of.falls else '>'} {of.limit:g}"


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def _quoted(words: str) -> str:
    """A string as YAML: JSON strings are valid YAML."""
    return json.dumps(words, ensure_ascii=False)


def dashboard() -> str:
    """The dashboard for Grafana."""
    watched = [_panel(each.about, UNITS[each.unit], each.expr, each) for each in THRESHOLDS]
    drawn = [_panel(title, unit, expr) for title, unit, expr in DRAWN]
    panels = [
        {**panel, "id": number + 1, "gridPos": {"h": 8, "w": 8, "x": number % 3 * 8, "y": number // 3 * 8}}
        for number, panel in enumerate([*watched, *drawn])
    ]
    made = {
        "title": "Assay",
        "uid": "assay",
        "tags": ["assay"],
        "schemaVersion": 39,
        "refresh": "1m",
        "time": {"from": "now-7d", "to": "now"},
        "templating": {
            "list": [{"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}]
        },
        "panels": panels,
    }
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"


def _panel(title: str, unit: str, expr: str, threshold: Threshold | None = None) -> dict[str, Any]:
    defaults: dict[str, Any] = {"unit": unit, "min": 0}
    if threshold is not None:
        bad, well = {"color": "red", "value": threshold.limit}, {"color": "green", "value": None}
        steps = [{"color": "red", "value": None}, {"color": "green", "value": threshold.limit}]
        defaults["thresholds"] = {"mode": "absolute", "steps": steps if threshold.falls else [well, bad]}
        defaults["custom"] = {"thresholdsStyle": {"mode": "line"}}
    return {
        "title": title[0].upper() + title[1:],
        "type": "timeseries",
        "datasource": {"type": "prometheus", "uid": "${source}"},
        "targets": [{"refId": "A", "expr": expr}],
        "fieldConfig": {"defaults": defaults, "overrides": []},
    }
