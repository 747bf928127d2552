"""Reports: pure functions over what the records tell, and the same through a store, a terminal and HTTP."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from facts_of_runs import facts, one
from notes import filled, opened

from assay.core.events import Mode
from assay.core.types import Usage
from assay.governance.reports import ReportKind
from assay.governance.reports.definitions import (
    build_report,
    build_run_account,
    forecasts_report,
    health_figures,
    iterations_report,
    overrides_report,
    roles_report,
    runs_report,
    tools_report,
)
from assay.governance.reports.figures import figures
from assay.governance.reports.report import (
    NOTHING,
    Report,
    ReportField,
    find_outliers,
    iso_week,
    iso_weeks,
    render_report,
    to_csv,
)
from assay.store.database import open_store
from assay.store.runs import figures as store_figures
from assay.store.runs.figures import ForecastOutcome


def column(made: Report, name: str) -> list[object]:
    at = [each.name for each in made.columns].index(name)
    return [row[at] for row in made.rows]


# --- runs in figures ------------------------------------------------------------------------------------------------


def test_a_run_in_figures_is_what_its_records_tell():
    run = one(rounds=3, calls=2, errors=1, seconds=9.0, stopped="rounds", every=True)
    assert (run.rounds, run.calls, run.failed_calls, run.state) == (3, 6, 1, "answered")
    assert run.capped and run.complete and run.kind == "research · whole set · balanced"
    assert run.seconds == pytest.approx(9.0, abs=0.01)


def test_waiting_for_a_reviewer_is_not_work():
    run = one(seconds=8.0, decisions=("edit", "approve"))
    assert [each for _, each in run.decisions] == ["edit", "approve"]
    assert run.seconds == pytest.approx(8.0, abs=0.01)


def test_a_record_that_is_missing_or_a_call_without_a_result_makes_a_trace_incomplete():
    assert one(rounds=2).complete
    for lost in range(6):
        assert not one(rounds=2, lost=lost).complete, lost
    assert not one(outcome="").complete


def test_roles_are_told_with_requests_per_question_and_their_share_of_all_tokens():
    spent = {"weigh": Usage(6, 3000, 300, 0.03), "write": Usage(2, 600, 100, 0.01)}
    made = roles_report([one(by="model"), one(by="model"), one(by="rules")], spent)
    assert column(made, "role") == ["weigh", "write", "all"]
    assert column(made, "requests") == [6, 2, 8] and column(made, "per question") == [3.0, 1.0, 4.0]
    assert column(made, "share") == [0.825, 0.175, 1.0] and column(made, "tokens in")[-1] == 3600


def test_a_limit_that_is_reached_without_a_model_is_the_usual_end_and_no_cap():
    assert one(stopped="rounds", by="model").capped
    assert not one(stopped="rounds", by="rules").capped and not one(stopped="sufficient").capped


def test_what_a_run_took_over_from_another_is_not_counted_as_its_own_calls():
    assert one(rounds=2, calls=1).calls == 2
    assert one(rounds=2, calls=1, own=4).calls == 1


# --- the reports ----------------------------------------------------------------------------------------------------


def test_the_report_on_runs_tells_weeks_apart_and_fills_those_in_which_nothing_happened():
    runs = [one("r1"), one("r2", outcome="partial", seconds=40.0), one("r3", day=15, outcome="")]
    made = runs_report(runs, {"r1": Usage(2, 100, 20, 0.5, 1.0), "r2": Usage(1, 10, 0, 0.0, 1.0)})
    assert column(made, "week") == ["2026-W10", "2026-W11", "2026-W12"]
    assert column(made, "runs") == [2, 0, 1] and column(made, "answered") == [1, 0, 0]
    assert column(made, "unfinished") == [0, 0, 1] and column(made, "tokens") == [130, 0, 0]
    assert column(made, "p95 s") == [40.0, None, None] and column(made, "usd") == [0.5, 0, 0]
    assert made.charts[1].threshold == 30.0 and made.charts[1].series[0].y == (40.0, None, None)


def test_the_report_on_tools_counts_calls_and_errors_by_week():
    runs = [one("r1", calls=3, errors=1), one("r2", tool="read", day=7), one("r3", calls=2)]
    made = tools_report(runs)
    assert [row[:5] for row in made.rows] == [
        ("2026-W10", "search", 5, 1, 0.2),
        ("2026-W11", "read", 1, 0, 0.0),
    ]
    assert "error rate" in str(column(made, "stands out")[0]) and column(made, "stands out")[1] == ""
    assert made.charts[1].threshold == 0.02


def test_a_week_with_far_more_calls_stands_out_and_an_ordinary_one_does_not():
    usual = [one(f"r{n}", day=7 * n, calls=20 + n % 3) for n in range(8)]
    made = tools_report([*usual, one("odd", day=7 * 8, calls=90)])
    assert [bool(each) for each in column(made, "stands out")] == [False] * 8 + [True]
    assert "median" in made.about and "3.5" in made.about, "the rule is said"


def test_a_single_run_with_far_more_calls_is_named():
    made = tools_report([one(f"r{n}", calls=2 + n % 2) for n in range(20)] + [one("rogue", calls=60)])
    assert "rogue" in str(column(made, "stands out")[0])


def test_few_calls_in_a_week_that_is_there_in_part_say_nothing():
    made = tools_report([one(f"r{n}", day=7 * n, calls=40 if 0 < n < 8 else 1) for n in range(9)])
    assert not any("calls" in str(each) for each in column(made, "stands out"))


def test_of_few_values_nothing_stands_out():
    assert find_outliers([1, 1, 1, 500]) == (False,) * 4
    assert find_outliers([1, 1, 1, 1, 500]) == (False,) * 4 + (True,)


def test_the_override_rate_is_of_answers_and_each_counts_once_however_often_it_was_edited():
    runs = [
        one("r1", decisions=("approve",)),
        one("r2", decisions=("edit", "edit", "edit", "approve")),
        one("r3", decisions=("reject",)),
        one("r5", decisions=("approve",)),
        one("r6", decisions=("edit",)),
    ]
    made = overrides_report([*runs, one("r4", day=31, decisions=("approve",))])
    assert made.rows == (("2026-03", 4, 2, 1, 1, 0.5), ("2026-04", 1, 1, 0, 0, 0.0))
    assert made.charts[0].threshold == 0.30


def test_the_report_on_iterations_has_mean_and_p99_by_week_and_the_most_expensive_kind_first():
    cheap = [one(f"c{n}", rounds=1, route="lookup") for n in range(99)]
    runs = [*cheap, one("dear", rounds=9, stopped="rounds", every=True), one("open", outcome="", rounds=50)]
    made = iterations_report(runs, {"dear": Usage(9, 9000, 100, 0.1, 5.0)} | {each.id: Usage(1, 10) for each in cheap})
    assert column(made, "of") == ["2026-W10", "research · whole set · balanced", "lookup · balanced"]
    assert made.rows[0][1:5] == (100, 1.08, 1.0, 0.01)
    assert made.rows[1][1:5] == (1, 9.0, 9.0, 1.0) and made.rows[1][6] == 9100.0
    assert made.charts[0].threshold == 8.0 and made.charts[1].threshold == 0.1


def test_the_report_on_forecasts_says_how_far_off_they_were():
    told = {"calls": {"low": 2, "likely": 4, "high": 8}, "tokens": {"low": 10, "likely": 20, "high": 30}}
    rows = [
        ForecastOutcome("r1", "ask", "2026-03-02", told, {"calls": 4, "tokens": 40}),
        ForecastOutcome("r2", "ask", "2026-03-02", told, {"calls": 8, "tokens": 30}),
        ForecastOutcome("r3", "ask", "2026-03-02", told, None),
    ]
    made = forecasts_report(rows)
    assert made.rows[0] == ("ask", "calls", 2, 1.0, 0.25, 1.5, 1)
    assert made.rows[1][:4] == ("ask", "tokens", 2, 0.5)
    assert made.rows[2][:4] == ("ask", "money", 0, None)


def test_weeks_are_those_of_the_iso_calendar_also_around_new_year():
    assert iso_week("2027-01-01T08:00:00.000Z") == "2026-W53"
    assert iso_weeks(["2026-12-28", "2027-01-12"]) == ("2026-W53", "2027-W01", "2027-W02")


def test_a_cell_that_a_spreadsheet_would_run_is_kept_from_it():
    made = render_report(
        "t", "a", [ReportField("x", "y", lambda cell: cell)], ["=1+1", "@sum", "plain, with a comma", None, -1]
    )
    assert to_csv(made) == 'x\r\n\'=1+1\r\n\'@sum\r\n"plain, with a comma"\r\n""\r\n-1\r\n'


# --- through a store ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [kind for kind in ReportKind if kind is not ReportKind.health])
def test_of_nothing_every_report_is_an_empty_table_with_words(kind: ReportKind, tmp_path: Path):
    store = open_store(tmp_path / "state.db", create=True)
    made = build_report(store, kind)
    assert made.rows == () and made.charts == () and made.about.startswith(NOTHING) and made.columns
    store.close()


async def test_reports_are_computed_from_the_records_of_real_runs(tmp_path: Path):
    await filled(tmp_path / "w", {"tower": "The tower at Carrow Point is 31 metres tall."})
    with opened(tmp_path / "w") as workspace:
        runs = []
        for question in ("How tall is the tower?", "Who painted the tower at Carrow Point?"):
            runs.append([run async for run, _ in workspace.ask(question, mode=Mode.quick)][-1])
        store = workspace.store
        told = {run.id: run for run in figures(store_figures.facts(store))}
        for run in runs:
            own = told[run.id]
            assert (own.rounds, own.calls) == (run.rounds, len(run.results))
            assert own.state == run.answer.outcome and own.by == "rules" and own.complete  # type: ignore[union-attr]
            assert own.records == len(run.events)
        made = build_report(store, ReportKind.runs)
        assert column(made, "runs") == [2]
        assert build_report(store, ReportKind.runs, who="somebody else").rows == ()
        assert build_report(store, ReportKind.runs, until="2001").rows == ()
        assert column(build_report(store, ReportKind.runs, since="2001", until=store.now()[:10]), "runs") == [2]
        account = dict(build_run_account(store, runs[0]).rows)
        assert account["question"] == "How tall is the tower?" and account["record"] == "whole"
        new = [run async for run, _ in workspace.questions.branch(runs[0], len(runs[0].events) - 1)][-1]
        assert next(figures(store_figures.facts_of_run(store, new.id))).calls == 0, "those were the other run's"
        assert dict(build_run_account(store, new).rows)["goes on from"].startswith(runs[0].id)


def test_the_pseudo_run_of_the_workspace_is_in_no_report(tmp_path: Path):
    from assay.core.events import Granted
    from assay.store.runs import records

    store = open_store(tmp_path / "state.db", create=True)
    with store.write() as connection:
        records.note(connection, store, Granted("base", "user:reader", True, "local"))
    assert list(store_figures.facts(store)) == [] == store_figures.facts_after(store, 0)
    store.close()


def test_a_report_is_the_same_in_json_and_csv(tmp_path: Path):
    from assay.core.codec import to_json

    made = tools_report([one("r1", calls=3, errors=1)])
    rows = list(csv.reader(io.StringIO(to_csv(made))))
    plain = json.loads(json.dumps(to_json(made)))
    assert rows[0] == [each["name"] for each in plain["columns"]]
    assert rows[1] == ["" if cell is None else str(cell) for cell in plain["rows"][0]]


def test_facts_by_hand_have_the_form_of_those_in_the_store():
    assert [fact.kind for fact in facts("r1")] == ["Asked", "Routed", "Decided", "ToolRan", "Stopped", "Answered"]


def test_rounds_of_what_was_erased_are_not_counted():
    gone = one("gone", rounds=0)
    gone.erased = 2
    made = iterations_report([one("there", rounds=9), gone], {})
    assert [row[1:3] for row in made.rows] == [(1, 9), (1, 9)]
    assert health_figures([one("there", rounds=9), gone])["iterations"] == 9
    assert health_figures([gone])["iterations"] is None
