from __future__ import annotations

from pathlib import Path

import pytest
from older import older
from sqlalchemy import inspect

from assay.core.types import Usage
from assay.store.database import Store, open_store, version_of
from assay.store.runs import budgets
from assay.store.runs.budgets import BudgetQuantity, CeilingReached, Ceilings, CeilingScope, SpendingReservation
from assay.store.schema import VERSION

DAY = "2024-05-17"


@pytest.fixture
def store(tmp_path: Path):
    opened = open_store(tmp_path / "state.db", create=True)
    yield opened
    opened.close()


def reserve(
    store: Store,
    tokens: int = 100,
    money: float = 0.0,
    *,
    who: str = "ann",
    run: str = "r1",
    role: str = "weigh",
    day: str = DAY,
    seconds: float = 0.0,
    **most,
) -> int | BudgetQuantity:
    """The place, or what there is too little of."""
    made = budgets.reserve(store, who, run, role, "small", tokens, money, Ceilings(**most), day, seconds)
    return made.id if isinstance(made, SpendingReservation) else made.what


def used(tokens_in: int, tokens_out: int = 0, money: float = 0.0) -> Usage:
    return Usage(1, tokens_in, tokens_out, money, 0.5)


@pytest.mark.parametrize(
    ("most", "over"),
    [
        ({"run_calls": 2}, BudgetQuantity.calls),
        ({"run_tokens": 299}, BudgetQuantity.tokens),
        ({"run_money": 0.29}, BudgetQuantity.money),
        ({"day_calls": 2}, BudgetQuantity.calls),
        ({"day_tokens": 299}, BudgetQuantity.tokens),
        ({"day_money": 0.29}, BudgetQuantity.money),
        ({"all_tokens": 299}, BudgetQuantity.tokens),
        ({"all_money": 0.29}, BudgetQuantity.money),
    ],
)
def test_a_request_that_would_pass_a_ceiling_is_refused_and_the_ceiling_named(store, most, over):
    assert isinstance(reserve(store, 100, 0.1, **most), int)
    assert isinstance(reserve(store, 100, 0.1, **most), int)
    assert reserve(store, 100, 0.1, **most) is over


def test_a_ceiling_may_be_reached_exactly(store):
    most = {"run_calls": 3, "run_tokens": 300, "run_money": 0.3, "day_tokens": 300, "day_money": 0.3}
    most |= {"day_calls": 3, "all_tokens": 300, "all_money": 0.3}
    assert all(isinstance(reserve(store, 100, 0.1, **most), int) for _ in range(3))


def test_a_single_request_has_a_ceiling_of_its_own(store):
    assert reserve(store, 101, call_tokens=100) is BudgetQuantity.tokens
    assert isinstance(reserve(store, 100, call_tokens=100), int)


def test_without_ceilings_nothing_is_refused(store):
    assert isinstance(reserve(store, 10**12, 10.0**6), int)


def test_a_refused_request_leaves_no_trace(store):
    reserve(store, 101, run_tokens=100)
    assert budgets.spent_by_run(store, "r1") == Usage()


def test_the_ceiling_of_a_day_is_the_persons_over_all_runs_and_ends_with_the_day(store):
    assert isinstance(reserve(store, 80, run="r1", day_tokens=100), int)
    assert reserve(store, 80, run="r2", day_tokens=100) is BudgetQuantity.tokens
    assert isinstance(reserve(store, 80, run="r2", day_tokens=100, day="2024-05-18"), int)
    assert isinstance(reserve(store, 80, who="bob", run="r3", day_tokens=100), int)


def test_the_ceiling_for_all_together_counts_everybody_and_ends_with_the_day(store):
    assert isinstance(reserve(store, 80, who="ann", all_tokens=100), int)
    assert reserve(store, 80, who="bob", run="r2", all_tokens=100) is BudgetQuantity.tokens
    assert isinstance(reserve(store, 80, who="bob", run="r2", all_tokens=100, day="2024-05-18"), int)


@pytest.mark.parametrize(
    ("most", "words"),
    [
        ({"call_tokens": 99}, "100 tokens more would pass the 99 tokens that one request may take"),
        ({"run_calls": 1}, "one request more would pass the 1 requests that this run may take"),
        ({"day_money": 0.3}, "$0.2000 more would pass the $0.3000 that one person may use in a day"),
        ({"all_tokens": 1_500}, "1,450 tokens more would pass the 1,500 tokens that all together may use in a day"),
        ({"day_seconds": 3.0}, "of the 3 seconds of models' time that one person may use in a day too few are left"),
    ],
)
def test_the_words_say_which_ceiling_it_is(store, most, words):
    tokens = 1_450 if "all_tokens" in most else 100
    if "call_tokens" not in most:
        budgets.reserve(store, "ann", "r1", "weigh", "small", 100, 0.2, Ceilings(), DAY)
    over = budgets.reserve(store, "ann", "r1", "weigh", "small", tokens, 0.2, Ceilings(**most), DAY, 60.0)
    assert isinstance(over, CeilingReached) and budgets.describe_ceiling(over, tokens, 0.2) == words


def test_a_request_gets_a_part_of_the_seconds_that_a_person_has_left_and_writing_gets_all(store):
    def granted(run: str, role: str = "weigh") -> SpendingReservation | CeilingReached:
        return budgets.reserve(store, "ann", run, role, "small", 1, 0.0, Ceilings(day_seconds=100), DAY, 60.0)

    given = [granted(f"r{n}") for n in range(40)]
    seconds = [each.seconds for each in given if isinstance(each, SpendingReservation)]
    assert seconds[:2] == [25.0, 18.75] and len(seconds) == 12 and sum(seconds) < 100
    assert given[-1] == CeilingReached(BudgetQuantity.seconds, CeilingScope.day, 100)
    written = granted("r99", "write")
    assert isinstance(written, SpendingReservation) and sum(seconds) + written.seconds == pytest.approx(100)
    assert isinstance(granted("r100", "write"), CeilingReached)
    budgets.settle(store, given[0].id, used(1))  # it took half a second, and the rest is free again
    assert isinstance(granted("r101"), SpendingReservation)


def test_seconds_that_a_dead_process_had_reserved_go_on_counting(store):
    assert isinstance(reserve(store, 1, seconds=60.0, role="write", day_seconds=60.5), int)
    assert budgets.mark_lost(store, "r1") == 1
    assert reserve(store, 1, run="r2", seconds=60.0, role="write", day_seconds=60.5) is BudgetQuantity.seconds
    assert budgets.spent(store, "ann", DAY).seconds == 60.0


def test_where_nobody_counts_seconds_none_are_reserved(store):
    reserve(store, 1, seconds=60.0)
    assert budgets.spent(store, "ann", DAY).seconds == 0.0


def test_how_fast_a_model_is_is_told_by_its_latest_replies_to_the_same_person(store, monkeypatch):
    monkeypatch.setattr(budgets, "RECENT_REQUESTS", 3)
    for n in range(6):
        budgets.settle(store, reserve(store, run=f"r{n}"), used(n))
    budgets.settle(store, reserve(store, who="bob"), used(100))
    assert budgets.recent_usage(store, "small", "ann") == Usage(3, 3 + 4 + 5, 0, 0.0, 1.5)
    assert budgets.recent_usage(store, "another", "ann") == Usage()


def test_settling_puts_what_was_used_in_the_place_of_what_was_reserved(store):
    place = reserve(store, 100, 0.5, run_tokens=100)
    budgets.settle(store, place, used(20, 10, 0.1))
    assert budgets.spent_by_run(store, "r1") == Usage(1, 20, 10, 0.1, 0.5)
    assert isinstance(reserve(store, 70, run_tokens=100), int)
    assert reserve(store, 1, run_tokens=100) is BudgetQuantity.tokens


def test_a_usage_larger_than_what_was_reserved_is_kept_as_it_is(store):
    budgets.settle(store, reserve(store, 100), used(400, 100))
    assert budgets.spent(store, "ann", DAY) == Usage(1, 400, 100, 0.0, 0.5)
    assert reserve(store, 1, day_tokens=500) is BudgetQuantity.tokens


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
    assert budgets.mark_lost(store, "r1") == 1
    assert budgets.mark_lost(store, "r1") == 0
    assert budgets.spent_by_run(store, "r1") == Usage(2, 70, 0, 0.0, 0.5)
    assert reserve(store, 31, run="r1", run_tokens=100) is BudgetQuantity.tokens


def aside(store: Store, tokens: int, money: float = 0.0, *, run: str = "r1", day: str = DAY, **most) -> bool:
    return budgets.reserve_for_draft(store, "ann", run, tokens, money, Ceilings(**most), day)


def test_only_writing_may_use_what_its_run_has_set_aside(store):
    assert aside(store, 60, run_tokens=100, run_calls=3)
    assert reserve(store, 50, run_tokens=100) is BudgetQuantity.tokens
    assert isinstance(reserve(store, 40, run_tokens=100), int)
    assert isinstance(reserve(store, 60, role="write", run_tokens=100), int)
    assert reserve(store, 1, role="write", run_tokens=100) is BudgetQuantity.tokens


def test_a_call_is_set_aside_too(store):
    assert aside(store, 10, run_calls=2)
    assert isinstance(reserve(store, 1, run_calls=2), int)
    assert reserve(store, 1, run_calls=2) is BudgetQuantity.calls
    assert isinstance(reserve(store, 1, role="write", run_calls=2), int)


def test_writing_in_another_run_does_not_touch_what_is_set_aside(store):
    assert aside(store, 60, run="r1", day_tokens=100)
    assert reserve(store, 50, run="r2", role="write", day_tokens=100) is BudgetQuantity.tokens
    assert isinstance(reserve(store, 40, run="r2", role="write", day_tokens=100), int)
    assert isinstance(reserve(store, 60, run="r1", role="write", day_tokens=100), int)


def test_writing_that_is_refused_leaves_what_was_set_aside(store):
    assert aside(store, 60, run_tokens=100)
    assert reserve(store, 101, role="write", run_tokens=100) is BudgetQuantity.tokens
    assert reserve(store, 41, run_tokens=100) is BudgetQuantity.tokens


def test_what_is_left_of_what_was_set_aside_is_free_after_writing(store):
    assert aside(store, 60, run_tokens=100)
    budgets.settle(store, reserve(store, 50, role="write", run_tokens=100), used(20))
    assert isinstance(reserve(store, 80, run_tokens=100), int)


def test_setting_aside_again_takes_the_place_of_the_first(store):
    assert aside(store, 60, run_tokens=100)
    assert aside(store, 90, run_tokens=100, day="2024-05-18")
    assert reserve(store, 11, run_tokens=100) is BudgetQuantity.tokens
    assert isinstance(reserve(store, 100, run="r2", day_tokens=100), int), "the first day is free of it"


def test_nothing_is_set_aside_where_there_is_not_enough(store):
    assert isinstance(reserve(store, 50, run_tokens=100), int)
    assert not aside(store, 60, run_tokens=100)
    assert isinstance(reserve(store, 50, run_tokens=100), int)


def test_a_run_that_has_ended_gives_back_what_it_set_aside_and_it_was_never_spent(store):
    assert aside(store, 60, day_tokens=100)
    assert budgets.spent(store, "ann", DAY) == Usage()
    with store.write() as connection:
        budgets.release_draft(connection, "r1")
    assert isinstance(reserve(store, 100, run="r2", day_tokens=100), int)


def test_a_workspace_of_version_1_gets_the_same_table_as_a_new_one_after_a_backup(tmp_path: Path):
    fresh = open_store(tmp_path / "new.db", create=True)
    path = tmp_path / "state.db"
    older(path, 1).close()
    opened = open_store(path, create=False)
    assert version_of(opened) == VERSION
    assert [file.name for file in tmp_path.glob("*.bak")] == ["state-version-1.bak"], "one copy, whatever the steps"
    for look in ("get_columns", "get_indexes", "get_pk_constraint"):
        made, migrated = (getattr(inspect(each.engine), look)("spending") for each in (fresh, opened))
        assert str(made) == str(migrated)
    assert isinstance(reserve(opened), int)
