from __future__ import annotations

import asyncio
import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from older import older
from sqlalchemy import inspect

from assay.store import budgets
from assay.store.budgets import Ceilings, Over
from assay.store.open import Store, open_store, version_of
from assay.store.schema import VERSION
from assay.types import Usage

DAY = "2024-05-17"


@pytest.fixture
def store(tmp_path: Path):
    opened = open_store(tmp_path / "state.db", create=True)
    yield opened
    opened.close()


def reserve(
    store: Store, tokens: int = 100, money: float = 0.0, *, run: str = "r1", role: str = "weigh", day: str = DAY, **most
) -> int | Over:
    return budgets.reserve(store, "ann", run, role, "small", tokens, money, Ceilings(**most), day)


def used(tokens_in: int, tokens_out: int = 0, money: float = 0.0) -> Usage:
    return Usage(1, tokens_in, tokens_out, money, 0.5)


@pytest.mark.parametrize(
    ("most", "over"),
    [
        ({"run_calls": 2}, Over.calls),
        ({"run_tokens": 299}, Over.tokens),
        ({"run_money": 0.29}, Over.money),
        ({"day_tokens": 299}, Over.tokens),
        ({"day_money": 0.29}, Over.money),
    ],
)
def test_a_request_that_would_pass_a_ceiling_is_refused_and_the_ceiling_named(store, most, over):
    assert isinstance(reserve(store, 100, 0.1, **most), int)
    assert isinstance(reserve(store, 100, 0.1, **most), int)
    assert reserve(store, 100, 0.1, **most) is over


def test_a_ceiling_may_be_reached_exactly(store):
    most = {"run_calls": 3, "run_tokens": 300, "run_money": 0.3, "day_tokens": 300, "day_money": 0.3}
    assert all(isinstance(reserve(store, 100, 0.1, **most), int) for _ in range(3))


def test_a_single_request_has_a_ceiling_of_its_own(store):
    assert reserve(store, 101, call_tokens=100) is Over.tokens
    assert isinstance(reserve(store, 100, call_tokens=100), int)


def test_without_ceilings_nothing_is_refused(store):
    assert isinstance(reserve(store, 10**12, 10.0**6), int)


def test_a_refused_request_leaves_no_trace(store):
    reserve(store, 101, run_tokens=100)
    assert budgets.spent_by_run(store, "r1") == Usage()


def test_the_ceiling_of_a_day_is_the_persons_over_all_runs_and_ends_with_the_day(store):
    assert isinstance(reserve(store, 80, run="r1", day_tokens=100), int)
    assert reserve(store, 80, run="r2", day_tokens=100) is Over.tokens
    assert isinstance(reserve(store, 80, run="r2", day_tokens=100, day="2024-05-18"), int)
    other = budgets.reserve(store, "bob", "r3", "weigh", "small", 80, 0.0, Ceilings(day_tokens=100), DAY)
    assert isinstance(other, int)


def test_settling_puts_what_was_used_in_the_place_of_what_was_reserved(store):
    place = reserve(store, 100, 0.5, run_tokens=100)
    budgets.settle(store, place, used(20, 10, 0.1))
    assert budgets.spent_by_run(store, "r1") == Usage(1, 20, 10, 0.1, 0.5)
    assert isinstance(reserve(store, 70, run_tokens=100), int)
    assert reserve(store, 1, run_tokens=100) is Over.tokens


def test_a_usage_larger_than_what_was_reserved_is_kept_as_it_is(store):
    budgets.settle(store, reserve(store, 100), used(400, 100))
    assert budgets.spent(store, "ann", DAY) == Usage(1, 400, 100, 0.0, 0.5)
    assert reserve(store, 1, day_tokens=500) is Over.tokens


def test_a_request_that_never_left_costs_nothing(store):
    budgets.release(store, reserve(store, 100))
    assert budgets.spent_by_run(store, "r1") == Usage()


def test_what_was_settled_cannot_be_released(store):
    place = reserve(store, 100)
    budgets.settle(store, place, used(50))
    budgets.release(store, place)
    assert budgets.spent_by_run(store, "r1").tokens_in == 50


def test_what_a_dead_process_had_reserved_is_lost_and_goes_on_counting(store):
    reserve(store, 60, run="r1")
    reserve(store, 60, run="r2")
    budgets.settle(store, reserve(store, 10, run="r1"), used(10))
    assert budgets.lost(store, "r1") == 1
    assert budgets.lost(store, "r1") == 0
    assert budgets.spent_by_run(store, "r1") == Usage(2, 70, 0, 0.0, 0.5)
    assert reserve(store, 31, run="r1", run_tokens=100) is Over.tokens


def aside(store: Store, tokens: int, money: float = 0.0, *, run: str = "r1", day: str = DAY, **most) -> bool:
    return budgets.set_aside(store, "ann", run, tokens, money, Ceilings(**most), day)


def test_only_writing_may_use_what_its_run_has_set_aside(store):
    assert aside(store, 60, run_tokens=100, run_calls=3)
    assert reserve(store, 50, run_tokens=100) is Over.tokens
    assert isinstance(reserve(store, 40, run_tokens=100), int)
    assert isinstance(reserve(store, 60, role="write", run_tokens=100), int)
    assert reserve(store, 1, role="write", run_tokens=100) is Over.tokens


def test_a_call_is_set_aside_too(store):
    assert aside(store, 10, run_calls=2)
    assert isinstance(reserve(store, 1, run_calls=2), int)
    assert reserve(store, 1, run_calls=2) is Over.calls
    assert isinstance(reserve(store, 1, role="write", run_calls=2), int)


def test_writing_in_another_run_does_not_touch_what_is_set_aside(store):
    assert aside(store, 60, run="r1", day_tokens=100)
    assert reserve(store, 50, run="r2", role="write", day_tokens=100) is Over.tokens
    assert isinstance(reserve(store, 40, run="r2", role="write", day_tokens=100), int)
    assert isinstance(reserve(store, 60, run="r1", role="write", day_tokens=100), int)


def test_writing_that_is_refused_leaves_what_was_set_aside(store):
    assert aside(store, 60, run_tokens=100)
    assert reserve(store, 101, role="write", run_tokens=100) is Over.tokens
    assert reserve(store, 41, run_tokens=100) is Over.tokens


def test_what_is_left_of_what_was_set_aside_is_free_after_writing(store):
    assert aside(store, 60, run_tokens=100)
    budgets.settle(store, reserve(store, 50, role="write", run_tokens=100), used(20))
    assert isinstance(reserve(store, 80, run_tokens=100), int)


def test_setting_aside_again_takes_the_place_of_the_first(store):
    assert aside(store, 60, run_tokens=100)
    assert aside(store, 90, run_tokens=100, day="2024-05-18")
    assert reserve(store, 11, run_tokens=100) is Over.tokens
    assert isinstance(reserve(store, 100, run="r2", day_tokens=100), int), "the first day is free of it"


def test_nothing_is_set_aside_where_there_is_not_enough(store):
    assert isinstance(reserve(store, 50, run_tokens=100), int)
    assert not aside(store, 60, run_tokens=100)
    assert isinstance(reserve(store, 50, run_tokens=100), int)


def test_a_run_that_has_ended_gives_back_what_it_set_aside_and_it_was_never_spent(store):
    assert aside(store, 60, day_tokens=100)
    assert budgets.spent(store, "ann", DAY) == Usage()
    budgets.give_back(store, "r1")
    assert isinstance(reserve(store, 100, run="r2", day_tokens=100), int)


def test_a_workspace_of_version_1_gets_the_same_table_as_a_new_one_after_a_backup(tmp_path: Path):
    fresh = open_store(tmp_path / "new.db", create=True)
    path = tmp_path / "state.db"
    older(path, 1).close()
    opened = open_store(path, create=False)
    assert version_of(opened) == VERSION
    assert (tmp_path / "state-version-1.bak").exists()
    for look in ("get_columns", "get_indexes", "get_pk_constraint"):
        made, migrated = (getattr(inspect(each.engine), look)("spending") for each in (fresh, opened))
        assert str(made) == str(migrated)
    assert isinstance(reserve(opened), int)


# --- many at once ---------------------------------------------------------------------------------------------------

CEILING = 20_000


def _overspend(store: Store) -> int:
    total = budgets.spent(store, "ann", DAY)
    return total.tokens_in + total.tokens_out


async def test_200_runs_at_once_never_pass_a_persons_day(store):
    highest = 0
    done = refused = 0

    async def one(n: int) -> None:
        nonlocal highest, done, refused
        for call in range(3):
            place = reserve(store, 100 + n % 50, run=f"r{n}", day_tokens=CEILING)
            if isinstance(place, Over):
                refused += 1
                return
            await asyncio.sleep(0)
            highest = max(highest, _overspend(store))
            if (n + call) % 7:
                budgets.settle(store, place, used(40 + n % 50))
                done += 1

    await asyncio.gather(*(one(n) for n in range(200)))
    assert done and refused
    assert CEILING - 150 < highest <= CEILING


def _spend(path: str, process: int, highest) -> None:
    store = open_store(Path(path), create=False)

    def one(n: int) -> None:
        place = reserve(store, 150, run=f"p{process}r{n}", day_tokens=CEILING)
        if not isinstance(place, Over):
            with highest.get_lock():
                highest.value = max(highest.value, _overspend(store))
            if n % 3:
                budgets.settle(store, place, used(120))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(one, range(100)))
    store.close()


def test_two_processes_with_threads_never_pass_a_persons_day(tmp_path: Path):
    path = tmp_path / "state.db"
    open_store(path, create=True).close()
    spawn = multiprocessing.get_context("spawn")
    highest = spawn.Value("q", 0)
    workers = [spawn.Process(target=_spend, args=(str(path), n, highest)) for n in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    assert CEILING - 150 < highest.value <= CEILING
