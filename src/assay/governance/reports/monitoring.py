"""Generates the alert rules for Prometheus and the dashboard for Grafana from `thresholds.py`, so that every number
is defined once. `data/monitoring` contains the output."""

from __future__ import annotations

import json
from typing import Any

from assay.governance.reports.thresholds import DAYS, THRESHOLDS, Threshold

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
    (
        "Seconds of a reply, P95",
        "s",
        "histogram_quantile(0.95, sum by (le) (rate(assay_http_seconds_bucket[5m])))",
    ),
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
