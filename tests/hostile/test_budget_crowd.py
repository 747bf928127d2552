"""Budgets under a crowd: 200 runs at once in threads and processes, one of them killed, and whole runs over a model. What is
spent and reserved never passes a ceiling, and every run that is refused ends in an answer."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import crowd
import pytest
from doubles import ChatServer, Script, enough, keeps, lookup, no_calls, one_step, supported, writes
from sqlalchemy import select

from assay.core.events import RULES, Mode, ModelReplied, Route, Stopped
from assay.core.run import Run
from assay.core.types import Outcome
from assay.evaluate.plain_text import WordEmbedder
from assay.governance import replay
from assay.ingest.parsed import Parsed
from assay.ingest.sources import SourceFile
from assay.store.runs import budgets
from assay.store.schema import spending
from assay.workspace.facade import Workspace, open_workspace
from assay.workspace.services.ask import run_context_for

SOAK = bool(os.environ.get("ASSAY_SOAK"))
RUNS = 200 if SOAK else 12  # whole ones, with a model
PROCESSES, KILLS = (3, 3) if SOAK else (1, 1)


@pytest.mark.kill
@pytest.mark.timeout(900 if SOAK else 120)
def test_200_runs_in_threads_and_processes_pass_no_ceiling_though_a_process_is_killed(tmp_path: Path):
    chance = random.Random(6)
    path = tmp_path / "state.db"
    store = crowd.opened(path)
    for kill in range(KILLS):
        others = [
            subprocess.Popen(
                [sys.executable, crowd.__file__, str(path), f"{kill}.{n}", "200"], stdout=subprocess.PIPE, text=True
            )
            for n in range(PROCESSES)
        ]
        for other in others:
            assert other.stdout is not None
            for _ in range(chance.randrange(2, 8)):  # it is in the middle of it
                granted, *wrong = other.stdout.readline().split()
                assert not wrong and int(granted) >= 0
        for granted, wrong in crowd.spend(store, f"k{kill}-", 200 if SOAK else 60):
            assert not wrong
            if granted and others[0].poll() is None:
                others[0].send_signal(signal.SIGKILL)
        others[0].kill()
        for other in others:
            told, _ = other.communicate(timeout=300)
            assert [line for line in told.splitlines()[:-1] if len(line.split()) != 1] == []
        assert crowd.passed(store, whole=True) == []
    with store.read() as connection:
        states = Counter(connection.execute(select(spending.c.state)).scalars())
    assert states[budgets.SpendingState.settled] > 100 and states[budgets.SpendingState.reserved] > 20
    crowd.use_up(store)
    spare = {day: crowd.left_over(store, day) for day in list(crowd.DAYS)[:6]}
    assert all(share + 1e-9 >= 0 and share < 0.1 for share in spare.values()), spare  # nobody was refused for nothing
    assert crowd.passed(store, whole=True) == []
    store.close()


# --- whole runs -----------------------------------------------------------------------------------------------------

PRICES = "scripted=2/8"  # USD per million tokens
TALL = "The tower of the lighthouse is 31 metres tall."
NOTES = {"tower": f"{TALL} It leans a little.", "cliff": "The cliff below is soft.", "path": "The path is steep."}
QUESTION = "How tall is the tower of the lighthouse?"
ASIDE = 4096 + 1500  # tokens of the draft, in a window of 8192


class Plain:
    async def read(self, data: Path | bytes, name: str) -> Parsed:
        assert isinstance(data, bytes)
        return Parsed(text=data.decode(), kind="text", title=name)


def script() -> Script:
    return Script(
        route=lookup(),
        plan=one_step(QUESTION),
        decide=no_calls(),
        weigh=keeps(TALL),
        judge=enough(),
        write=writes("The tower of the lighthouse is 31 metres tall [{31 metres}]."),
        check=supported(),
    )


@pytest.fixture(scope="module")
def endpoint():
    with ChatServer(script().answer) as server:
        yield server


def opened(folder: Path, server: ChatServer, **ceilings: Any) -> Workspace:
    made = open_workspace(
        folder, create=True, llm_base_url=server.url, llm_model="scripted", llm_prices=PRICES, **ceilings
    )
    made.embedder = WordEmbedder()
    made.store.engine.dispose()
    crowd.event.listen(made.store.engine, "connect", lambda raw, _: raw.execute("PRAGMA synchronous=OFF"))
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, endpoint: ChatServer) -> Path:
    place = tmp_path_factory.mktemp("crowd") / "workspace"
    with opened(place, endpoint) as workspace:
        files = [SourceFile(uri=f"notes/{name}", name=name, data=words.encode()) for name, words in NOTES.items()]
        asyncio.run(workspace.documents.add_sources(files, reader=Plain()))
    return place


@pytest.fixture
def tool_context(folder: Path, endpoint: ChatServer):
    """`desk(budget_day_tokens=9)` is the workspace under that ceiling, on a day on which nobody has asked anything."""
    made: list[Workspace] = []

    def sit(**ceilings: Any) -> Workspace:
        endpoint.counts.clear()
        made.append(workspace := opened(folder, endpoint, **ceilings))
        with workspace.store.write() as connection:
            connection.execute(spending.delete())
        return workspace

    yield sit
    for workspace in made:
        workspace.close()


async def answered(workspace: Workspace, **how: Any) -> Run:
    return [run async for run, _ in workspace.ask(QUESTION, mode=Mode.quick, **how)][-1]


def rows(workspace: Workspace) -> list[Any]:
    with workspace.store.read() as connection:
        return list(connection.execute(select(spending)))


def held(workspace: Workspace) -> dict[str, float]:
    """What is spent, reserved or set aside."""
    total: Counter[str] = Counter()
    for row in rows(workspace):
        settled = row.state == budgets.SpendingState.settled
        total["calls"] += row.calls
        total["tokens"] += row.tokens_in + row.tokens_out if settled else row.reserved_tokens
        total["money"] += row.money if settled else row.reserved_money
        total["seconds"] += row.seconds
    return dict(total)


TRIED = 5  # requests of the run that is first to need the model: three probes, and two of its trial as a judge
CROWDED = [
    ("budget_day_tokens", 60_000 if SOAK else 18_000),
    *([("budget_day_money", 0.2), ("budget_day_calls", 100), ("budget_all_day_tokens", 60_000)] if SOAK else []),
    *([("budget_all_day_money", 0.2)] if SOAK else []),
]


@pytest.mark.long
@pytest.mark.timeout(900 if SOAK else 120)
@pytest.mark.parametrize(("ceiling", "most"), CROWDED)
async def test_many_whole_runs_at_once_pass_no_ceiling_and_each_ends_in_an_answer(
    tool_context, endpoint: ChatServer, ceiling: str, most: float
):
    what = ceiling.rpartition("_")[2]
    highest: list[float] = []
    workspace = tool_context(**{ceiling: most})
    tried = 0 if workspace.models.known_trial("scripted") else TRIED  # an earlier test may have tried it

    async def one() -> Run:
        run = None
        async for run, step in workspace.ask(QUESTION, mode=Mode.quick):  # noqa: B007
            if isinstance(step, ModelReplied | Stopped):
                highest.append(held(workspace).get(what, 0.0))
        assert run is not None
        return run

    runs = await asyncio.gather(*(one() for _ in range(RUNS)))
    final = held(workspace)
    states = Counter(row.state for row in rows(workspace))
    spent = budgets.spent(workspace.store, workspace.principal.id, workspace.store.now()[:10])

    # What is reserved counts as spent, so nothing is passed at any time, not even by what is in flight.
    assert most * 0.5 < max(highest) <= most + budgets.ROUNDING
    assert not endpoint.problems and states.keys() == {
        budgets.SpendingState.settled
    }  # nothing is left reserved or set aside
    own = sum(endpoint.counts.values()) - endpoint.counts[""]
    assert spent.calls == own + tried == final["calls"]
    assert (final["tokens"], final["money"]) == (spent.tokens_in + spent.tokens_out, pytest.approx(spent.money))

    # Every run has ended in an answer: those that came too late to be written are quoted, and say why they are partial.
    assert {run.kinds[-1] for run in runs} == {"Answered"}
    assert all(run.answer and run.answer.claims and run.answer.claims[0].words for run in runs)
    by_model = [run for run in runs if run.draft and run.draft.by != RULES]
    by_rule = [run for run in runs if run.draft and run.draft.by == RULES]
    assert len(by_model) > 1 and len(by_rule) > RUNS / 3 and len(by_model) + len(by_rule) == RUNS
    assert {run.answer.stopped for run in by_rule if run.answer} >= {what}
    assert all(run.answer and run.answer.outcome is Outcome.answered for run in by_model if not _cut_short(run))
    assert all(run.answer and run.answer.outcome is Outcome.partial for run in runs if _cut_short(run))


def _cut_short(run: Run) -> bool:
    return run.stopped is not None and run.stopped.reason in {"calls", "tokens", "money"}


async def test_the_price_of_the_draft_is_set_aside_before_anything_is_asked(tool_context, endpoint: ChatServer):
    workspace = tool_context(budget_run_tokens=ASIDE + 700)
    await workspace.models.connect()  # what finds out what the model can do is on nobody's run
    tried = len(rows(workspace))
    steps = workspace.ask(QUESTION, mode=Mode.quick, route=Route.research)
    await anext(steps)
    await anext(steps)  # the route was said: nobody was asked yet
    aside = rows(workspace)[tried:]
    assert [(row.state, row.reserved_tokens) for row in aside] == [(budgets.SpendingState.aside, ASIDE)]
    assert aside[0].reserved_money == pytest.approx((4096 * 2 + 1500 * 8) / 1e6)
    run = [run async for run, _ in steps][-1]
    spent = budgets.spent_by_run(workspace.store, run.id)
    assert (
        endpoint.counts["write"] == 1 and endpoint.counts["weigh"] == 0
    )  # searching may not touch it, and writing may
    assert run.draft is not None and run.draft.by == "write@scripted"
    assert run.answer is not None and run.answer.outcome is Outcome.partial
    assert run.answer.claims[0].text == "The tower of the lighthouse is 31 metres tall."
    assert spent.tokens_in + spent.tokens_out <= ASIDE + 700


@pytest.mark.parametrize(
    ("ceiling", "reason", "whose"),
    [
        ({"budget_run_calls": 2}, "calls", "this run may take"),
        ({"budget_run_money": 0.0215}, "money", "this run may take"),
        ({"budget_all_day_tokens": ASIDE + 700}, "tokens", "all together may use in a day"),
        ({"budget_day_seconds": 0.5}, "time", "one person may use in a day"),
        ({"budget_run_tokens": 100}, "tokens", "this run may take"),
    ],
)
async def test_a_ceiling_is_an_outcome_and_the_words_say_whose_it_is(
    tool_context, endpoint: ChatServer, ceiling: dict[str, Any], reason: str, whose: str
):
    await tool_context().models.connect()  # what finds out what the model can do is of another day
    workspace = tool_context(**ceiling)
    run = await answered(workspace, route=Route.research)
    spent = budgets.spent_by_run(workspace.store, run.id)
    assert run.stopped is not None and run.stopped.reason == reason, run.stopped
    assert whose in run.stopped.why
    assert run.answer is not None and run.answer.outcome is Outcome.partial
    again = await replay.replay(run, await run_context_for(workspace.context, run), searchable=False)
    assert again.same, again.differences  # also the words of the refusal are in the record
    assert spent.calls <= ceiling.get("budget_run_calls", 99)
    assert spent.money <= ceiling.get("budget_run_money", 99)
    if ceiling in (
        {"budget_run_tokens": 100},
        {"budget_day_seconds": 0.5},
    ):  # nothing is left to write with: it is quoted
        assert rows(workspace) == [] and endpoint.counts.keys() <= {""}  # the endpoint was asked what it can do at most
        assert run.draft is not None and run.draft.by == RULES and run.answer.claims[0].words.startswith(TALL)
