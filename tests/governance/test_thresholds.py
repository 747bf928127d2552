"""Thresholds at their boundary, in the report on health and in the alert rules; and the files that have the same limits."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml
from facts_of_runs import BOUNDARIES, one

from assay.governance.reports.definitions import health_figures, health_report
from assay.governance.reports.figures import RunFigures
from assay.governance.reports.report import BY_NAME, DAYS, THRESHOLDS, monitoring_file, quantile

LIMITS = {
    "iterations": 8.0,
    "cap_hits": 0.10,
    "session_p95": 30.0,
    "tool_errors": 0.02,
    "overrides": 0.30,
    "trace_completeness": 1.0,
}


def state_of(runs: list[RunFigures], name: str) -> str:
    return next(str(row[4]) for row in health_report(runs).rows if row[0] == name)


def test_every_figure_that_is_promised_is_watched_at_the_promised_limit():
    assert {each.name: each.limit for each in THRESHOLDS} == LIMITS == {name: LIMITS[name] for name in BOUNDARIES}
    assert {each.name for each in THRESHOLDS if each.falls} == {"trace_completeness"}
    assert (BY_NAME["cap_hits"].goal, BY_NAME["session_p95"].goal) == (0.05, 20.0)


@pytest.mark.parametrize("name", BOUNDARIES)
def test_exactly_at_the_limit_there_is_no_alarm_and_just_past_it_there_is(name: str):
    at, past = ([one(f"r{n}", **told) for n, told in enumerate(side)] for side in BOUNDARIES[name])
    value = health_figures(at)[name]
    assert value == pytest.approx(LIMITS[name], abs=1e-3) and not BY_NAME[name].breached(LIMITS[name])
    assert state_of(at, name) == "ok"
    assert state_of(past, name) == "alarm"


@pytest.mark.parametrize("each", THRESHOLDS, ids=[each.name for each in THRESHOLDS])
def test_the_least_that_is_more_than_the_limit_is_too_much(each):
    least = 1e-9 if not each.falls else -1e-9
    assert not each.breached(each.limit) and each.breached(each.limit + least) and not each.breached(each.limit - least)
    assert not each.breached(None)


def test_where_nothing_happened_there_is_no_alarm():
    assert {str(row[4]) for row in health_report([]).rows} == {"–"}


def test_a_quantile_is_one_of_the_values_and_enough_of_them_do_not_pass_it():
    values = [float(n) for n in range(1, 101)]
    assert (quantile(values, 0.95), quantile(values, 0.99), quantile([5.0], 0.95), quantile([], 0.5)) == (
        95,
        99,
        5,
        None,
    )
    assert quantile([1.0] * 19 + [9.0], 0.95) == 1.0 and quantile([1.0] * 18 + [9.0] * 2, 0.95) == 9.0


# --- the files ------------------------------------------------------------------------------------------------------


def alert_rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(monitoring_file("alerts.yml"))["groups"]
    return group["rules"]


def test_there_is_an_alert_for_every_threshold_with_its_limit_and_its_direction():
    rules = alert_rules()
    assert len({rule["alert"] for rule in rules}) == len(THRESHOLDS)
    for each, rule in zip(THRESHOLDS, rules, strict=True):
        compared = re.search(r" ([<>]) ([\d.]+)$", rule["expr"])
        assert compared is not None and (compared[1], float(compared[2])) == ("<" if each.falls else ">", each.limit)
        assert rule["alert"] == f"Assay{each.name.title().replace('_', '')}" and rule["for"] == "10m"
        assert rule["annotations"]["summary"] == f"{each.about}: {each.words} over {DAYS} days"
        assert set(re.findall(r"\[(\w+)\]", rule["expr"])) == {f"{DAYS}d"}


def test_the_dashboard_draws_every_threshold_and_places_no_panel_over_another():
    made = json.loads(monitoring_file("dashboard.json"))
    drawn = {panel["targets"][0]["expr"]: panel["fieldConfig"]["defaults"] for panel in made["panels"]}
    for each, rule in zip(THRESHOLDS, alert_rules(), strict=True):
        steps = drawn[rule["expr"].rsplit(" ", 2)[0]]["thresholds"]["steps"]
        assert [step["value"] for step in steps] == [None, each.limit]
        assert [step["color"] for step in steps] == (["red", "green"] if each.falls else ["green", "red"])
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in made["panels"]]
    assert len(set(places)) == len(places) and all(x in (0, 8, 16) for x, _ in places)
