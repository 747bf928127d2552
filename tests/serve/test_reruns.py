"""Runs begun anew from a step, differences and reports, over HTTP."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import httpx
import pytest
from doubles import ChatServer
from serving import QUESTION, Served, followed, script
from team import team

from assay.governance.reports import ReportKind
from assay.store.access import members

Serve = Callable[..., AbstractContextManager[Served]]


def asked(client: httpx.Client, **more: object) -> str:
    run = client.post("/api/runs", json={"question": QUESTION, "mode": "quick", **more}).json()["run"]
    followed(client, run)
    return run


def kinds(client: httpx.Client, run: str) -> list[str]:
    return [event["kind"] for event in client.get(f"/api/runs/{run}/trace").json()["events"]]


def test_a_run_is_begun_anew_from_a_step_with_another_model_and_the_difference_is_told(serve: Serve):
    with ChatServer(script().answer) as model, serve(model) as at, at.client() as client:
        run = asked(client)
        drafted = kinds(client, run).index("Claimed")  # with which the step of the draft begins
        reply = client.post(f"/api/runs/{run}/rerun", json={"from": drafted, "model": "another"})
        assert reply.status_code == 201
        new = reply.json()["run"]
        assert reply.json() == {"run": new, "thread": "", "events": f"/api/runs/{new}/events"} and new != run
        followed(client, new)
        assert client.get(f"/api/runs/{new}").json()["state"] == "delivered"
        told = client.get(f"/api/runs/{run}/diff/{new}").json()
        events = client.get(f"/api/runs/{new}/trace").json()["events"]
    assert events[0]["event"]["branch"] == {"run": run, "at": drafted - 1, "model": "another"}
    parts = {part["name"]: part for part in told["parts"]}
    assert list(parts) == ["question", "route", "plan", "searches", "evidence", "claims", "answer", "cost"]
    assert parts["question"]["changed"] == [{"what": "models", "a": "scripted", "b": "another"}]
    assert parts["evidence"]["same"] and parts["claims"]["same"] and not told["same"]


NONSENSE: tuple[tuple[dict[str, object], int], ...] = (
    ({"from": 0}, 400),
    ({"from": 9999}, 400),
    ({"from": -1}, 422),
    ({"from": "1"}, 422),
    ({"from": True}, 422),
    ({}, 422),
    ({"from": 1, "model": "openai:gpt-5"}, 400),
    ({"from": 1, "model": "m" * 201}, 422),
    ({"from": 1, "who": "somebody"}, 422),
)


@pytest.mark.long
def test_nonsense_is_refused_and_nothing_is_begun(serve: Serve):
    with serve(llm_base_url="http://127.0.0.1:9/v1") as at, at.client() as client:
        run = asked(client)
        for body, status in NONSENSE:
            assert client.post(f"/api/runs/{run}/rerun", json=body).status_code == status, body
        assert len(client.get("/api/runs").json()["runs"]) == 1


def test_nobody_begins_compares_or_reports_on_somebody_elses_run(folder: Path):
    with team(folder) as people, people.as_("editor") as editor, people.as_("reader") as reader:
        members.set_admin(people.at.server.workspace.store, "editor", True)
        run = asked(editor)
        own = asked(reader)
        unknown = run.replace(run[1:5], "0000")
        for there, missing in ((run, unknown),):
            for method, path in (
                ("POST", "/api/runs/{}/rerun"),
                ("GET", f"/api/runs/{{}}/diff/{own}"),
                ("GET", f"/api/runs/{own}/diff/{{}}"),
                ("GET", "/api/reports/runs?run={}"),
            ):
                given = {"json": {"from": 1}} if method == "POST" else {}
                replies = [reader.request(method, path.format(each), **given) for each in (there, missing)]
                assert [each.status_code for each in replies] == [404, 404], path
                assert replies[0].text.replace(there, "") == replies[1].text.replace(missing, ""), path
        mine = reader.get("/api/reports/runs").json()
        everybody = editor.get("/api/reports/runs").json()
    assert [row[1] for row in mine["rows"]] == [1] and [row[1] for row in everybody["rows"]] == [2]


def test_every_report_comes_as_a_table_and_as_csv(serve: Serve):
    with serve() as at, at.client() as client:
        empty = {kind: client.get(f"/api/reports/{kind}").json() for kind in ReportKind}
        asked(client)
        for kind in ReportKind:
            made = client.get(f"/api/reports/{kind}").json()
            written = client.get(f"/api/reports/{kind}", params={"format": "csv"})
            assert list(made) == ["title", "about", "columns", "rows", "charts"] == list(empty[kind])
            assert written.headers["content-type"].startswith("text/csv")
            assert "attachment" in written.headers["content-disposition"]
            rows = list(csv.reader(io.StringIO(written.text)))
            assert rows[0] == [column["name"] for column in made["columns"]] and len(rows) == len(made["rows"]) + 1
            for chart in made["charts"]:
                assert chart["kind"] in ("bar", "line")
                assert all(len(own["y"]) == len(chart["x"]) for own in chart["series"])


def test_a_report_is_on_the_time_that_is_asked_for(serve: Serve):
    with serve() as at, at.client() as client:
        run = asked(client)
        assert client.get("/api/reports/runs", params={"until": "2001"}).json()["rows"] == []
        assert client.get("/api/reports/runs", params={"since": "2001-05"}).json()["rows"]
        assert client.get("/api/reports/runs", params={"since": "yesterday"}).status_code == 422
        assert client.get("/api/reports/nothing").status_code == 422
        account = dict(client.get("/api/reports/runs", params={"run": run}).json()["rows"])
        assert account["question"] == QUESTION and account["record"] == "whole"
        assert client.get("/api/reports/tools", params={"run": run}).status_code == 400
