from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from older import older, with_a_run
from sqlalchemy import func, inspect, select

from assay.core.access import Scope
from assay.core.errors import UserError
from assay.core.events import Asked
from assay.governance.backup import backup, restore
from assay.store import threads
from assay.store.database import Store, engine_for, open_store, version_of
from assay.store.runs import records
from assay.store.schema import VERSION, runs
from assay.store.schema import turns as turns_table

ASKED = Asked("Why is the harbour closed?", "ann", "2026-01-01")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path / "state.db", create=True)
    ticks = count()
    yield replace(opened, now=lambda: f"2026-01-01T00:00:{next(ticks):02}.000Z")
    opened.close()


def asked(store: Store, who: str = "ann") -> str:
    run = records.begin(store, who)
    records.append(store, run, 0, ASKED)
    return run


def with_ids(store: Store, *ids: str) -> Store:
    return replace(store, new_id=iter(ids).__next__)


# --- turns ----------------------------------------------------------------------------------------------------------


def test_a_thread_begins_without_turns_and_is_found_again_as_it_was_made(store: Store):
    made = threads.begin(store, "ann", "Why is the harbour closed?")
    assert made.id.startswith("t") and len(made.id) == 17
    assert threads.named(store, made.id, "ann") == made
    assert (made.title, made.created, made.turns) == ("Why is the harbour closed?", made.updated, 0)
    assert threads.turns(store, made.id, "ann") == []


def test_turns_are_numbered_from_1_and_come_back_in_order(store: Store):
    thread = threads.begin(store, "ann", "Why?").id
    several = [asked(store) for _ in range(12)]
    assert [threads.add(store, thread, "ann", run) for run in several] == list(range(1, 13))
    assert threads.turns(store, thread, "ann") == several
    assert threads.named(store, thread, "ann").turns == 12


def test_threads_count_their_turns_apart(store: Store):
    one, other = (threads.begin(store, "ann", title).id for title in ("One?", "Other?"))
    first, second = asked(store), asked(store)
    assert threads.add(store, one, "ann", first) == 1
    assert threads.add(store, other, "ann", second) == 1
    assert (threads.turns(store, one, "ann"), threads.turns(store, other, "ann")) == ([first], [second])


def test_a_run_that_is_a_turn_already_keeps_its_number(store: Store):
    thread = threads.begin(store, "ann", "Why?").id
    first, second = asked(store), asked(store)
    threads.add(store, thread, "ann", first)
    threads.add(store, thread, "ann", second)
    assert threads.add(store, thread, "ann", first) == 1
    assert threads.turns(store, thread, "ann") == [first, second]


def test_a_turn_is_a_run_of_the_same_person(store: Store):
    thread = threads.begin(store, "ann", "Why?").id
    for run in (asked(store, "bob"), "r0000"):
        with pytest.raises(UserError, match="There is no run called"):
            threads.add(store, thread, "ann", run)
    assert threads.turns(store, thread, "ann") == []


# --- lists ----------------------------------------------------------------------------------------------------------


def test_threads_are_listed_newest_first_and_a_turn_makes_one_newer(store: Store):
    ids = [threads.begin(store, "ann", title).id for title in ("One?", "Two?", "Three?")]
    assert [each.title for each in threads.listing(store, "ann")] == ["Three?", "Two?", "One?"]
    threads.add(store, ids[0], "ann", asked(store))
    listed = threads.listing(store, "ann")
    assert [(each.title, each.turns) for each in listed] == [("One?", 1), ("Three?", 0), ("Two?", 0)]
    assert listed[0].updated > listed[0].created
    assert [each.title for each in threads.listing(store, "ann", limit=2)] == ["One?", "Three?"]


def test_a_list_shows_a_persons_own_threads_alone(store: Store):
    threads.begin(store, "ann", "Mine?")
    threads.begin(store, "bob", "Theirs?")
    assert [each.title for each in threads.listing(store, "ann")] == ["Mine?"]
    assert threads.listing(store, "eve") == []


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ("  Why is\nthe harbour\t closed?\r\n", "Why is the harbour closed?"),
        ("Why\x1b[31m is\u202e it?", "Why is it?"),
        ("w" * 80, "w" * 80),
        ("w" * 81, "w" * 79 + "…"),
        ("", ""),
    ],
)
def test_a_title_is_one_line_of_at_most_80_characters(store: Store, words: str, title: str):
    assert threads.begin(store, "ann", words).title == title
    assert threads.listing(store, "ann")[0].title == title


# --- names ----------------------------------------------------------------------------------------------------------


def test_the_beginning_of_an_id_is_enough_from_four_characters_on(store: Store):
    store = with_ids(store, "abc1", "abc2", "xyz0")
    for title in ("One?", "Two?", "Three?"):
        threads.begin(store, "ann", title)
    assert threads.named(store, "txyz", "ann").title == "Three?"
    assert threads.named(store, "tabc2", "ann").title == "Two?"
    for name in ("txy", "t", "", "xyz0", "TXYZ", "tx%0", "txyz01", "____"):
        with pytest.raises(UserError, match="There is no thread called"):
            threads.named(store, name, "ann")


def test_a_beginning_that_fits_several_threads_asks_for_more(store: Store):
    store = with_ids(store, "abc1", "abc2")
    for title in ("One?", "Two?"):
        threads.begin(store, "ann", title)
    with pytest.raises(UserError, match="Several threads begin with 'tabc'"):
        threads.named(store, "tabc", "ann")


def test_a_whole_id_is_that_thread_even_where_another_begins_so(store: Store):
    store = with_ids(store, "abc", "abcd", "z")
    for title in ("Short?", "Long?", "Shortest?"):
        threads.begin(store, "ann", title)
    assert threads.named(store, "tabc", "ann").title == "Short?"
    assert threads.named(store, "tz", "ann").title == "Shortest?"


def test_a_strangers_thread_does_not_make_a_beginning_fit_several(store: Store):
    store = with_ids(store, "abc1", "abc2")
    threads.begin(store, "ann", "Mine?")
    threads.begin(store, "bob", "Theirs?")
    assert threads.named(store, "tabc", "ann").title == "Mine?"


TOUCHES: dict[str, Callable[[Store, str, str], object]] = {
    "named": threads.named,
    "turns": threads.turns,
    "add": lambda store, thread, who: threads.add(store, thread, who, asked(store, who)),
    "rename": lambda store, thread, who: threads.rename(store, thread, who, "Taken over"),
    "forget": threads.forget,
}


@pytest.mark.parametrize("touch", TOUCHES)
def test_a_strangers_thread_does_not_exist_and_stays_as_it_was(store: Store, touch: str):
    made = threads.begin(store, "bob", "Theirs?")
    run = asked(store, "bob")
    threads.add(store, made.id, "bob", run)
    before = threads.named(store, made.id, "bob")
    missing = made.id[::-1]
    lines: list[str] = []
    for name in (made.id, made.id[:6], missing):
        with pytest.raises(UserError) as error:
            TOUCHES[touch](store, name, "ann")
        lines.append(str(error.value).replace(repr(name), "?"))
    assert set(lines) == {"There is no thread called ?. `assay chat --list` shows them."}
    assert threads.named(store, made.id, "bob") == before
    assert threads.turns(store, made.id, "bob") == [run]


# --- changing -------------------------------------------------------------------------------------------------------


def test_a_thread_can_be_renamed_and_keeps_its_place(store: Store):
    first = threads.begin(store, "ann", "One?")
    threads.begin(store, "ann", "Two?")
    threads.rename(store, first.id[:8], "ann", " The harbour\nin winter ")
    assert [each.title for each in threads.listing(store, "ann")] == ["Two?", "The harbour in winter"]
    assert threads.named(store, first.id, "ann") == replace(first, title="The harbour in winter")


def test_a_thread_cannot_be_renamed_to_nothing(store: Store):
    made = threads.begin(store, "ann", "One?")
    with pytest.raises(UserError, match="cannot be empty"):
        threads.rename(store, made.id, "ann", " \n\u200b")
    assert threads.named(store, made.id, "ann") == made


def test_forgetting_a_thread_keeps_its_runs_and_the_other_threads(store: Store):
    kept, gone = (threads.begin(store, "ann", title) for title in ("Kept?", "Gone?"))
    stays, run = asked(store), asked(store)
    threads.add(store, kept.id, "ann", stays)
    threads.add(store, gone.id, "ann", run)
    threads.forget(store, gone.id, "ann")
    with pytest.raises(UserError, match="There is no thread called"):
        threads.turns(store, gone.id, "ann")
    assert [each.title for each in threads.listing(store, "ann")] == ["Kept?"]
    assert threads.turns(store, kept.id, "ann") == [stays]
    assert records.events_of(store, run, "ann", lambda *_: ("", ""), Scope("ann", (), frozenset())) == [ASKED]
    assert list(records.faults(store, run)) == []
    with store.read() as connection:
        assert connection.scalar(select(func.count()).select_from(turns_table)) == 1


# --- many at once ---------------------------------------------------------------------------------------------------


def _add_some(path: Path, thread: str, together: Any, added: Any) -> None:
    opened = open_store(path, create=False)
    several = [asked(opened) for _ in range(15)]
    together.wait(60)
    added.put([(threads.add(opened, thread, "ann", run), run) for run in several])
    opened.close()


@pytest.mark.long
def test_processes_that_add_at_once_each_get_a_number_and_none_is_lost(store: Store, tmp_path: Path):
    thread = threads.begin(store, "ann", "Why?").id
    spawn = multiprocessing.get_context("spawn")
    together, added = spawn.Barrier(2), spawn.SimpleQueue()
    place = tmp_path / "state.db"
    workers = [spawn.Process(target=_add_some, args=(place, thread, together, added)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    numbered = sorted(each for _ in workers for each in added.get())
    assert [n for n, _ in numbered] == list(range(1, 31))
    assert threads.turns(store, thread, "ann") == [run for _, run in numbered]


# --- the workspace --------------------------------------------------------------------------------------------------


def of_version_2(path: Path) -> str:
    """A workspace as it was before there were threads, with a run in it."""
    old = older(path, 2)
    run = with_a_run(old, ASKED, "ann")
    old.close()
    return run


def test_a_workspace_of_version_2_is_brought_up_to_date_after_a_backup_and_keeps_its_runs(tmp_path: Path):
    path = tmp_path / "state.db"
    run = of_version_2(path)
    opened = open_store(path, create=False)
    assert version_of(opened) == VERSION
    assert records.events_of(opened, run, "ann", lambda *_: ("", ""), Scope("ann", (), frozenset())) == [ASKED]
    assert threads.listing(opened, "ann") == []
    thread = threads.begin(opened, "ann", "Why?").id
    assert threads.add(opened, thread, "ann", run) == 1
    opened.close()
    kept = Store(engine_for(tmp_path / "state-version-2.bak"))
    assert version_of(kept) == 2
    with kept.read() as connection:
        assert connection.scalar(select(runs.c.id)) == run
    kept.close()


def test_a_workspace_of_version_2_gets_the_same_tables_as_a_new_one(tmp_path: Path):
    fresh = open_store(tmp_path / "new.db", create=True)
    of_version_2(tmp_path / "state.db")
    migrated = open_store(tmp_path / "state.db", create=False)
    looks = ("get_columns", "get_indexes", "get_pk_constraint", "get_foreign_keys", "get_unique_constraints")
    for table in ("threads", "turns"):
        for look in looks:
            new, old = (getattr(inspect(each.engine), look)(table) for each in (fresh, migrated))
            assert str(new) == str(old), (table, look)


def test_threads_travel_with_a_backup(tmp_path: Path):
    folder = tmp_path / "one"
    folder.mkdir()
    first = open_store(folder / "state.db", create=True)
    thread, run = threads.begin(first, "ann", "Why?"), asked(first)
    threads.add(first, thread.id, "ann", run)
    backup(folder, first, tmp_path / "one.tar.gz")
    first.close()
    restore(tmp_path / "one.tar.gz", tmp_path / "two")
    second = open_store(tmp_path / "two" / "state.db", create=False)
    assert [each.title for each in threads.listing(second, "ann")] == ["Why?"]
    assert threads.turns(second, thread.id, "ann") == [run]
