"""What a question, and adding, will take: a range that narrows with what was seen, is kept, and says how far off it was."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from assay.core.access import Principal
from assay.core.events import Mode, RoleModel
from assay.core.types import Usage
from assay.evaluate.plain_text import WordEmbedder
from assay.ingest.parsed import Parsed
from assay.ingest.sources import SourceFile
from assay.store.runs import forecasts
from assay.store.runs.forecasts import Amount, EstimateRange, PastWork, WorkKind
from assay.store.schema import forecasts as table
from assay.workspace import forecast
from assay.workspace.facade import Workspace, open_workspace
from assay.workspace.forecast import Ceiling, forecast_lines, spread
from assay.workspace.types import AskOptions

LARGE = (RoleModel("write", "large", True, True, True, 32_768, False),)


def test_a_further_mode_takes_more():
    calls = [forecast.question(mode, LARGE).calls for mode in (Mode.quick, Mode.balanced, Mode.thorough)]
    assert calls == sorted(calls) and len(set(calls)) == 3
    assert forecast.question(Mode.balanced, ()) == Usage()


def test_with_few_runs_the_range_is_wide_and_with_many_it_is_their_own():
    prior = (0.4, 1.0, 2.5)
    assert spread(100, [], prior) == EstimateRange(40, 100, 250)
    few, many = spread(100, [1.4, 1.5, 1.6], prior), spread(100, [1.4, 1.5, 1.6] * 20, prior)
    assert (few.low, few.high) == (40, 250) and few.low < few.likely < few.high
    assert (many.low, many.likely, many.high) == (140, 150, 160)
    assert spread(0, [], prior) == EstimateRange(0, 0, 0)


@pytest.mark.parametrize("count", [0, 1, 5, 50])
def test_low_is_never_above_likely_nor_likely_above_high(count: int):
    found = spread(10, [3.0] * count, (0.4, 1.0, 2.5))
    assert found.low <= found.likely <= found.high


def came(tokens: float) -> PastWork:
    guess = Amount(10, 1_000, 0.01, 10.0)
    return PastWork(forecast.estimate_work(guess, ()), Amount(10, tokens, 0.01, 10.0))


def test_the_error_is_the_share_inside_the_range_and_the_middle_of_how_far_off_it_was():
    found = forecast.errors([came(500), came(1_500), came(9_000), came(2_000)])
    assert found["tokens"] == forecast.Error(inside=0.75, ratio=1.75)
    assert found["calls"] == forecast.Error(inside=1.0, ratio=1.0)
    assert forecast.errors([]) == {}


def test_the_ceilings_in_the_way_are_named_those_that_will_be_met_before_those_that_may():
    expected = forecast.estimate_work(Amount(10, 1_000, 0.01, 10.0), ())
    ceilings = [
        Ceiling("a", "tokens", "run", 2_000, 2_000),
        Ceiling("b", "calls", "day", 100, 5),
        Ceiling("c", "money", "all", 0.0, 0.0),
        Ceiling("d", "seconds", "run", 900, 900),
    ]
    met = forecast.reached(expected, ceilings)
    assert [(each.setting, each.probably) for each in met] == [("b", True), ("a", False)]


# --- in a workspace -------------------------------------------------------------------------------------------------


class Plain:
    async def read(self, data: Path | bytes, name: str) -> Parsed:
        assert isinstance(data, bytes)
        return Parsed(text=data.decode(), kind="text", title=name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("foreseen") / "workspace"
    with opened(place) as workspace:
        asyncio.run(workspace.documents.add_sources(sources(), reader=Plain()))
    return place


def opened(folder: Path, **flags: Any) -> Workspace:
    made = open_workspace(folder, create=True, **flags)
    made.embedder = WordEmbedder()
    return made


def sources() -> list[SourceFile]:
    return [
        SourceFile(uri=f"notes/{n}", name=f"{n}.txt", data=f"Tower {n} is {n} metres tall.".encode()) for n in range(3)
    ]


def rows(workspace: Workspace) -> list[Any]:
    with workspace.store.read() as connection:
        return list(connection.execute(select(table).order_by(table.c.at)))


async def answered(workspace: Workspace) -> str:
    return [run.id async for run, _ in workspace.ask("How tall is tower 2?", AskOptions(mode=Mode.quick, model=False))][
        -1
    ]


async def test_what_was_foreseen_is_kept_with_the_run_and_what_it_came_to_at_its_end(folder: Path):
    with opened(folder) as workspace:
        how = AskOptions(mode=Mode.quick, model=False)
        before = workspace.questions.forecast(how)
        steps = workspace.ask("How tall is tower 2?", how)
        run, _ = await anext(steps)
        kept = next(row for row in rows(workspace) if row.run == run.id)
        assert (kept.kind, kept.came, kept.foreseen["guess"]["seconds"]) == ("ask", None, before.foreseen.guess.seconds)
        _ = [step async for step in steps]
        kept = next(row for row in rows(workspace) if row.run == run.id)
        assert kept.came["calls"] == 0 and 0 < kept.came["seconds"] < 60
        after = workspace.questions.forecast(how)
        assert after.foreseen.from_runs == before.foreseen.from_runs + 1
        assert set(after.errors) == {"seconds"}


async def test_what_others_asked_changes_nothing_in_a_forecast(folder: Path):
    with opened(folder) as workspace:
        how = AskOptions(mode=Mode.thorough, model=False)
        other = workspace.for_principal(Principal("somebody"))
        before = other.questions.forecast(how)
        expected = forecast.estimate_work(Amount(seconds=1.0), ())
        forecasts.add_forecast(
            workspace.store, "r-x", WorkKind.ask, "local", before.alike, expected, Amount(seconds=50.0)
        )
        assert other.questions.forecast(how) == before


def test_a_forecast_asks_nobody_and_names_the_ceilings_in_the_way(folder: Path):
    """The endpoint is not there: whoever asked it would fail."""
    ceilings = {"budget_run_calls": 2, "budget_day_tokens": 15_000, "budget_all_day_money": 0.0001}
    ceilings["budget_run_seconds"] = 10_000
    model = {"llm_base_url": "http://127.0.0.1:9/v1", "llm_model": "m", "llm_prices": "m=1/4"}
    with opened(folder, **ceilings, **model) as workspace:
        found = workspace.questions.forecast(AskOptions())
        assert [(each.setting, each.probably) for each in found.reached] == [
            ("budget_run_calls", True),
            ("budget_all_day_money", True),
            ("budget_day_tokens", False),
        ]
        assert found.foreseen.money is not None and found.foreseen.money.likely > 0
        told = "\n".join(forecast_lines(found))
    assert "a guess" in told and "requests" in told and "(`budget_run_calls`) will probably be reached" in told
    assert "for all together in a day (`budget_all_day_money`)" in told


def test_files_that_are_there_cost_nothing_and_new_ones_are_counted(folder: Path):
    with opened(folder) as workspace:
        new = SourceFile(uri="notes/new", name="new.txt", data=b"word " * 4_000)
        found = workspace.documents.forecast([*sources(), new], "default")
        assert found.foreseen.counts["files"] == 4 and found.foreseen.counts["new"] == 1
        assert 10 < found.foreseen.counts["passages"] < 30
        assert workspace.documents.forecast(sources(), "default").foreseen.seconds.high == 0
        report = asyncio.run(workspace.documents.add_sources([new], reader=Plain()))
        workspace.documents.record_added(found, report)
        assert workspace.documents.forecast([new], "default").foreseen.from_runs == 1
        nowhere = workspace.documents.forecast([new], "a base that is not there yet")
        assert nowhere.foreseen.counts["new"] == 1


def test_a_forecast_survives_being_written_down(folder: Path):
    expected = forecast.estimate_work(Amount(3, 400, None, 2.0), (), {"documents": 2})
    with opened(folder) as workspace:
        forecasts.add_forecast(workspace.store, "r-y", WorkKind.ask, "me", "x", expected, Amount(3, 380, None, 1.5))
        assert forecasts.past_work(workspace.store, WorkKind.ask, "me", "x") == (
            PastWork(expected, Amount(3, 380, None, 1.5)),
        )
        with workspace.store.write() as connection:
            forecasts.add_outcome(connection, "r-y", Amount(9, 9, 9.0, 9.0))  # it has ended: what it came to stays
        assert forecasts.past_work(workspace.store, WorkKind.ask, "me", "x")[0].came.calls == 3
    assert json.dumps(expected.counts)
