"""Many runs of one person at once, and one run with little to spend: no ceiling is passed, and everybody gets an answer."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, select

from assay.events import RULES, Consulted, Mode, Route, Stopped
from assay.ingest.fetch import Source
from assay.ingest.parsed import Parsed
from assay.run import Run
from assay.store import budgets
from assay.store.schema import spending
from assay.testing import ChatServer, Script, WordEmbedder, enough, keeps, lookup, one_step, rests, supported, writes
from assay.types import Outcome
from assay.workspace import Workspace, open_workspace

PRICES = "scripted=2/8"  # USD per million tokens
TALL = "The tower of the lighthouse is 31 metres tall."
NOTES = {"tower": f"{TALL} It leans a little.", "cliff": "The cliff below is soft.", "path": "The path is steep."}
QUESTION = "How tall is the tower of the lighthouse?"


class Plain:
    async def read(self, data: Path | bytes, name: str) -> Parsed:
        assert isinstance(data, bytes)
        return Parsed(text=data.decode(), kind="text", title=name)


def script() -> Script:
    return Script(
        route=lookup(),
        plan=one_step(QUESTION),
        decide=rests(),
        weigh=keeps(TALL),
        judge=enough(),
        write=writes("The tower of the lighthouse is 31 metres tall [{31 metres}]."),
        check=supported(),
    )


def opened(folder: Path, server: ChatServer, **ceilings: Any) -> Workspace:
    made = open_workspace(
        folder, create=True, llm_base_url=server.url, llm_model="scripted", llm_prices=PRICES, **ceilings
    )
    made.embedder = WordEmbedder()
    made.store.engine.dispose()
    event.listen(made.store.engine, "connect", lambda raw, _: raw.execute("PRAGMA synchronous=OFF"))
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with ChatServer(script().answer) as server, opened(tmp_path / "workspace", server) as workspace:
        files = [Source(uri=f"notes/{name}", name=name, data=words.encode()) for name, words in NOTES.items()]
        asyncio.run(workspace.add_sources(files, reader=Plain()))
    return tmp_path / "workspace"


async def answered(workspace: Workspace, **how: Any) -> Run:
    return [run async for run, _ in workspace.ask(QUESTION, mode=Mode.quick, **how)][-1]


def rows(workspace: Workspace) -> list[Any]:
    with workspace.store.read() as connection:
        return list(connection.execute(select(spending)))


def held(workspace: Workspace) -> tuple[int, float]:
    """Tokens and money that are spent, reserved or set aside."""
    found = [
        (row.tokens_in + row.tokens_out, row.money)
        if row.state == budgets.State.settled
        else (row.reserved_tokens, row.reserved_money)
        for row in rows(workspace)
    ]
    return sum(tokens for tokens, _ in found), sum(money for _, money in found)


@pytest.mark.parametrize(
    ("ceiling", "count"),
    [({"budget_day_tokens": 60_000}, 200), ({"budget_day_money": 0.2}, 60)],
    ids=["200 runs and tokens", "60 runs and money"],
)
async def test_many_runs_at_once_do_not_pass_what_a_person_may_spend_in_a_day(
    folder: Path, ceiling: dict[str, Any], count: int
):
    most: list[tuple[int, float]] = []
    with ChatServer(script().answer) as server, opened(folder, server, **ceiling) as workspace:

        async def one() -> Run:
            run = None
            async for run, step in workspace.ask(QUESTION, mode=Mode.quick):  # noqa: B007
                if isinstance(step, Consulted | Stopped):
                    most.append(held(workspace))
            assert run is not None
            return run

        runs = await asyncio.gather(*(one() for _ in range(count)))
        final = held(workspace)
        states = Counter(row.state for row in rows(workspace))
        spent = budgets.spent(workspace.store, workspace.principal.id, workspace.store.now()[:10])

    # What is reserved counts as spent, so nothing is passed at any time, not even by what is in flight.
    assert max(tokens for tokens, _ in most) <= ceiling.get("budget_day_tokens", 10**9)
    assert max(money for _, money in most) <= ceiling.get("budget_day_money", 10**9) + budgets.CENT
    assert not server.problems and states.keys() == {budgets.State.settled}  # nothing is left reserved or set aside
    assert spent.calls == sum(server.counts.values()) - server.counts[""] and final == (
        spent.tokens_in + spent.tokens_out,
        pytest.approx(spent.money),
    )

    # Every run has ended in an answer: those that came too late to be written are quoted, and say why they are partial.
    assert {run.kinds[-1] for run in runs} == {"Answered"}
    assert all(run.answer and run.answer.claims and run.answer.claims[0].words for run in runs)
    by_model = [run for run in runs if run.draft and run.draft.by != RULES]
    by_rule = [run for run in runs if run.draft and run.draft.by == RULES]
    assert len(by_model) > 5 and len(by_rule) > 20 and len(by_model) + len(by_rule) == count
    reason = "tokens" if "budget_day_tokens" in ceiling else "money"
    assert {run.answer.stopped for run in by_rule if run.answer} >= {reason}
    assert all(run.answer and run.answer.outcome is Outcome.answered for run in by_model if not _cut_short(run))
    assert all(run.answer and run.answer.outcome is Outcome.partial for run in runs if _cut_short(run))


def _cut_short(run: Run) -> bool:
    return run.stopped is not None and run.stopped.reason in {"tokens", "money"}


ASIDE = 4096 + 1500  # tokens of the draft, in a window of 8192


async def test_the_price_of_the_draft_is_set_aside_before_anything_is_asked(folder: Path):
    with ChatServer(script().answer) as server, opened(folder, server, budget_run_tokens=ASIDE + 700) as workspace:
        steps = workspace.ask(QUESTION, mode=Mode.quick, route=Route.research)
        await anext(steps)
        await anext(steps)  # the route was said: nobody was asked yet
        assert [(row.state, row.reserved_tokens) for row in rows(workspace)] == [(budgets.State.aside, ASIDE)]
        assert rows(workspace)[0].reserved_money == pytest.approx((4096 * 2 + 1500 * 8) / 1e6)
        run = [run async for run, _ in steps][-1]
        spent = budgets.spent_by_run(workspace.store, run.id)
    assert server.counts["write"] == 1 and server.counts["weigh"] == 0  # searching may not touch it, and writing may
    assert run.draft is not None and run.draft.by == "write@scripted"
    assert run.stopped is not None and run.stopped.reason == "tokens"
    assert run.answer is not None and run.answer.outcome is Outcome.partial
    assert run.answer.claims[0].text == "The tower of the lighthouse is 31 metres tall."
    assert spent.tokens_in + spent.tokens_out <= ASIDE + 700


async def test_where_even_the_draft_cannot_be_paid_for_the_answer_is_quoted(folder: Path):
    with ChatServer(script().answer) as server, opened(folder, server, budget_run_tokens=100) as workspace:
        run = await answered(workspace)
        assert rows(workspace) == []
    assert server.counts.keys() <= {""}  # the endpoint was asked what it can do, and nothing else
    assert run.draft is not None and run.draft.by == RULES
    assert run.answer is not None and run.answer.outcome is Outcome.partial and run.answer.claims[0].words == TALL


@pytest.mark.parametrize(
    ("ceiling", "reason"),
    [
        ({"budget_run_calls": 2}, "calls"),
        ({"budget_run_money": 0.0215}, "money"),
        ({"budget_run_tokens": ASIDE + 700}, "tokens"),
    ],
)
async def test_a_limit_of_a_run_is_an_outcome_and_is_named(folder: Path, ceiling: dict[str, Any], reason: str):
    with ChatServer(script().answer) as server, opened(folder, server, **ceiling) as workspace:
        run = await answered(workspace, route=Route.research)
        spent = budgets.spent_by_run(workspace.store, run.id)
    assert run.stopped is not None and run.stopped.reason == reason, run.stopped
    assert run.answer is not None and run.answer.outcome is Outcome.partial
    assert spent.calls <= ceiling.get("budget_run_calls", 99)
    assert spent.money <= ceiling.get("budget_run_money", 99)
