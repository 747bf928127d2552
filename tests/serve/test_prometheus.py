"""Figures for Prometheus: what is shown, to whom, and that alert rules and dashboard speak of nothing else."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import yaml
from doubles import ChatServer
from facts_of_runs import BOUNDARIES, facts
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample
from serving import QUESTION, Served, followed, script
from team import team

from assay.core.events import Granted
from assay.governance.reports.definitions import health_figures
from assay.governance.reports.figures import figures
from assay.governance.reports.report import BY_NAME, THRESHOLDS, monitoring_file
from assay.serve.metrics import ServerMetrics
from assay.store.access import members
from assay.store.runs import figures as store_figures
from assay.store.runs import records
from assay.workspace.facade import open_workspace

Serve = Callable[..., AbstractContextManager[Served]]


def read(text: str) -> list[Sample]:
    return [sample for family in text_string_to_metric_families(text) for sample in family.samples]


def values(samples: list[Sample], name: str, **labels: str) -> float:
    return sum(each.value for each in samples if each.name == name and labels.items() <= each.labels.items())


@pytest.fixture
def meters(tmp_path: Path) -> Iterator[ServerMetrics]:
    with open_workspace(tmp_path / "workspace", create=True) as opened:
        yield ServerMetrics(opened)


def shown(meters: ServerMetrics) -> list[Sample]:
    from prometheus_client import generate_latest

    return read(generate_latest(meters.registry).decode())


# --- over a real server ---------------------------------------------------------------------------------------------


@pytest.mark.long
def test_what_runs_did_is_shown_and_no_label_names_a_person_a_document_or_a_question(serve: Serve):
    with ChatServer(script().answer) as model, serve(model, metrics=True) as at, at.client() as client:
        for _ in range(2):
            before = read(client.get("/metrics").text)  # the first question also tries the model
            followed(client, client.post("/api/runs", json={"question": QUESTION, "mode": "quick"}).json()["run"])
        client.get("/api/nothing")
        reply = client.get("/metrics")
        run = client.get("/api/runs").json()["runs"][0]["id"]
        usage = client.get(f"/api/runs/{run}/trace").json()["usage"]
        again = read(client.get("/metrics").text)
    samples = read(reply.text)
    assert reply.headers["content-type"].startswith("text/plain") and "version=" in reply.headers["content-type"]
    assert values(samples, "assay_runs_total", kind="question", outcome="answered") == 2
    assert values(samples, "assay_rounds_count") == values(samples, "assay_session_seconds_count") == 2
    assert values(samples, "assay_tool_calls_total", tool="search") == 2
    assert values(samples, "assay_traces_total") == values(samples, "assay_traces_complete_total") == 2
    spent, spent_before = (values(each, "assay_tokens_total", direction="in") for each in (samples, before))
    assert spent - spent_before == usage["tokens_in"] > 0 and spent_before > usage["tokens_in"]
    assert values(samples, "assay_http_requests_total", status="4xx") >= 1
    assert values(again, "assay_runs_total") == 2, "what was counted is not counted again"
    labels = {value for sample in samples for value in sample.labels.values()}
    assert not [value for value in labels if re.search(r"local|tower|scripted|carrow|/|r[0-9a-f]{8}", value)]


def test_nothing_is_shown_where_the_setting_is_off(serve: Serve):
    with serve() as at, at.client() as client:
        assert client.get("/metrics").status_code == 404 and at.server.metrics is None


def test_only_administrators_see_figures_where_people_sign_in(folder: Path):
    with team(folder, metrics=True) as people:
        store = people.at.server.workspace.store
        members.set_admin(store, "editor", True)
        with people.as_("editor") as editor, people.as_("reader") as reader, people.at.client() as nobody:
            assert editor.get("/metrics").status_code == 200
            assert reader.get("/metrics").status_code == 404
            assert nobody.get("/metrics").status_code == 401


# --- what the rules and the dashboard speak of ----------------------------------------------------------------------

NAMES = re.compile(r"\bassay_[a-z0-9_]+")


def named(words: str) -> set[str]:
    return set(NAMES.findall(words))


def test_alert_rules_and_dashboard_name_only_figures_that_are_there(meters: ServerMetrics):
    with meters._figures.store.write() as connection:
        records.note(connection, meters._figures.store, Granted("b", "user:x", True, "local"))
    play(meters, rounds=1, tool="search", errors=1, decisions=("approve",))
    meters.requests.labels("GET", "2xx").inc()
    meters.failures.inc()
    there = {sample.name for sample in shown(meters)} | {"assay_jobs", "assay_model_calls_total"}
    panels = json.loads(monitoring_file("dashboard.json"))["panels"]
    spoken = named(monitoring_file("alerts.yml")) | named(json.dumps([panel["targets"] for panel in panels]))
    assert {"assay_jobs", "assay_model_calls_total"} <= spoken
    assert spoken - there == set()


def play(meters: ServerMetrics, run: str = "r1", **told: object) -> None:
    """One run, as its records would tell it."""
    for fact in facts(run, **told):  # type: ignore[arg-type]
        meters._count(fact)


GROWN = re.compile(r"sum\(increase\((\w+)(?:\{(\w+)!=\"(\w+)\"\})?\[7d\]\)\)")
SPREAD = re.compile(r"histogram_quantile\(([\d.]+), sum by \(le\) \(increase\((\w+)\[7d\]\)\)\)")


def worked_out(expr: str, samples: list[Sample]) -> bool:
    """An alert rule over one snapshot, as Prometheus would work it out: everything happened within the days it looks at."""
    quantiles = SPREAD.fullmatch(expr.rpartition(" ")[0].rpartition(" ")[0])
    compares, limit = expr.rsplit(" ", 2)[1:]
    if quantiles:
        value = spread(samples, quantiles[2], float(quantiles[1]))
    else:
        parts = [_grown(match, samples) for match in GROWN.finditer(expr)]
        assert len(parts) == 2 and GROWN.sub("", expr).replace(" ", "").startswith("/")
        value = parts[0] / parts[1] if parts[1] else math.nan
    return value < float(limit) if compares == "<" else value > float(limit)


def _grown(match: re.Match[str], samples: list[Sample]) -> float:
    name, label, other = match.groups()
    return sum(each.value for each in samples if each.name == name and (not label or each.labels[label] != other))


def spread(samples: list[Sample], name: str, share: float) -> float:
    """As `histogram_quantile`: linear within the bucket that the share falls into."""
    buckets = sorted((float(each.labels["le"]), each.value) for each in samples if each.name == name)
    wanted = share * buckets[-1][1]
    before = (0.0, 0.0)
    for bound, count in buckets:
        if count >= wanted and count:
            return before[0] + (bound - before[0]) * (wanted - before[1]) / (count - before[1])
        before = (bound, count)
    return math.nan


def rules() -> dict[str, str]:
    (group,) = yaml.safe_load(monitoring_file("alerts.yml"))["groups"]
    return {each.name: rule["expr"] for each, rule in zip(THRESHOLDS, group["rules"], strict=True)}


@pytest.mark.parametrize("name", BY_NAME)
def test_an_alert_rule_is_silent_at_the_limit_and_raised_just_past_it(name: str, tmp_path: Path):
    raised = []
    for side, runs in enumerate(BOUNDARIES[name]):
        with open_workspace(tmp_path / str(side), create=True) as opened:
            meters = ServerMetrics(opened)
            for number, told in enumerate(runs):
                play(meters, f"r{number}", **told)
            raised.append(worked_out(rules()[name], shown(meters)))
    assert raised == [False, True]


def test_without_anything_done_no_alert_is_raised(meters: ServerMetrics):
    samples = shown(meters)
    assert not any(worked_out(expr, samples) for expr in rules().values())


def test_the_rules_and_the_report_on_health_come_to_the_same(serve: Serve):
    with ChatServer(script().answer) as model, serve(model, metrics=True) as at, at.client() as client:
        followed(client, client.post("/api/runs", json={"question": QUESTION, "mode": "quick"}).json()["run"])
        samples = read(client.get("/metrics").text)
        store = at.server.workspace.store
        told = health_figures(list(figures(store_figures.facts(store))))
        assert client.get("/api/reports/health").json()["rows"][0][4] == "ok"
    assert told["iterations"] == values(samples, "assay_rounds_sum") / values(samples, "assay_rounds_count")
    assert told["trace_completeness"] == 1.0 and told["tool_errors"] == 0.0
    assert not any(worked_out(expr, samples) for expr in rules().values())


def test_a_tool_that_a_model_made_up_is_no_label(meters: ServerMetrics):
    play(meters, tool="delete_everything_in_carrow_point", calls=3, errors=3)
    samples = shown(meters)
    assert values(samples, "assay_tool_calls_total", tool="other") == 3 == values(samples, "assay_tool_errors_total")
    assert "carrow" not in str(samples)
