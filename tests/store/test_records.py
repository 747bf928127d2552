from __future__ import annotations

from pathlib import Path

import pytest
from older import older, with_a_run
from sqlalchemy import delete, text, update

from assay.core.access import Scope
from assay.core.codec import START, linked
from assay.core.errors import StoreError, UserError
from assay.core.events import WORKSPACE, Answered, Asked, Erased, Routed
from assay.core.events import Route as Way
from assay.core.types import Answer, Outcome
from assay.store.database import Store, open_store
from assay.store.runs import records
from assay.store.schema import payloads
from assay.store.schema import records as table

NOWHERE = Scope("local", (), frozenset())
EVENTS = (
    Asked("Why?", "local", "2026-01-01"),
    Routed(Way.research, "no model"),
    Answered(Answer("Why?", (), Outcome.abstained)),
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "state.db", create=True)


@pytest.fixture
def run(store: Store) -> str:
    run = records.begin(store, "local")
    for seq, event in enumerate(EVENTS):
        records.append(store, run, seq, event)
    return run


def no_texts(*_: object) -> tuple[str, str]:
    return "", ""


def test_a_run_is_read_back_as_it_was_recorded(store: Store, run: str):
    assert tuple(records.events_of(store, run, "local", no_texts, NOWHERE)) == EVENTS
    assert list(records.faults(store, run)) == []


def test_somebody_elses_run_and_a_run_that_never_was_look_the_same(store: Store, run: str):
    with pytest.raises(UserError) as theirs:
        records.chain(store, run, "somebody")
    with pytest.raises(UserError) as nobodys:
        records.chain(store, run[::-1], "somebody")
    assert str(theirs.value).replace(run, "?") == str(nobodys.value).replace(run[::-1], "?")


def test_a_place_that_is_taken_is_refused(store: Store, run: str):
    with pytest.raises(StoreError, match="elsewhere"):
        records.append(store, run, 1, EVENTS[1])


def test_a_changed_payload_is_found(store: Store, run: str):
    with store.write() as connection:
        connection.execute(update(payloads).where(payloads.c.seq == 1).values(body='{"route":"direct"}'))
    assert list(records.faults(store, run)) == ["the payload of record 1 was changed"]


def test_an_erased_payload_leaves_the_chain_whole_where_a_note_says_that_it_was_erased(store: Store, run: str):
    with store.write() as connection:
        connection.execute(delete(payloads).where(payloads.c.seq == 1))
    missing = "the payload of record 1 is missing, and nothing on record says that it was erased"
    assert list(records.faults(store, run)) == [missing]
    with store.write() as connection:
        records.note(connection, store, Erased("with a document", "local", ("d1",), {run: (1,)}))
    assert list(records.faults(store, run)) == []


@pytest.mark.parametrize("column", ["at", "kind", "digest", "prev"])
def test_a_changed_record_is_found(store: Store, run: str, column: str):
    with store.write() as connection:
        connection.execute(update(table).where(table.c.seq == 1).values({column: "forged"}))
    assert any("record 1" in fault for fault in records.faults(store, run))


def test_a_removed_record_is_found(store: Store, run: str):
    with store.write() as connection:
        connection.execute(text("PRAGMA foreign_keys=OFF"))
        connection.execute(delete(table).where(table.c.seq == 1))
    assert list(records.faults(store, run)) == ["record 1 is missing"]


def test_all_records_of_the_workspace_form_one_chain(store: Store, run: str):
    other = records.begin(store, "somebody")
    records.append(store, other, 0, EVENTS[0])
    with store.read() as connection:
        rows = connection.execute(table.select().order_by(table.c.n)).all()
    assert [(row.run, row.seq, row.n) for row in rows] == [(run, 0, 1), (run, 1, 2), (run, 2, 3), (other, 0, 4)]
    before = START
    for row in rows:
        assert row.link == linked(row.n, row.hash, before)
        before = row.link


def test_nothing_can_follow_an_answer(store: Store, run: str):
    with pytest.raises(StoreError, match="delivered"):
        records.append(store, run, 3, EVENTS[2])


def test_a_run_that_was_cut_off_after_it_was_delivered_is_found(store: Store, run: str):
    with store.write() as connection:
        connection.execute(delete(payloads).where(payloads.c.seq == 2))
        connection.execute(delete(table).where(table.c.seq == 2))
    assert list(records.faults(store, run)) == ["record 2 and what came after it are cut off (the run was delivered)"]


def test_what_was_erased_before_that_was_noted_is_noted_when_the_workspace_is_brought_up_to_date(tmp_path: Path):
    old = older(tmp_path / "state.db", 3)
    gone, kept = with_a_run(old, EVENTS[0], "local"), with_a_run(old, EVENTS[0], "local")
    with old.write() as connection:
        connection.exec_driver_sql("DELETE FROM payloads WHERE run = ?", (gone,))
    old.close()
    store = open_store(tmp_path / "state.db", create=False)
    assert [*records.faults(store, gone), *records.faults(store, kept), *records.faults(store, WORKSPACE)] == []
    with store.write() as connection:
        connection.exec_driver_sql("DELETE FROM payloads WHERE run = ?", (kept,))
        records.note(connection, store, Erased("another", "local"))
    assert "nothing on record says" in next(records.faults(store, kept))
    assert list(records.faults(store, WORKSPACE)) == []
