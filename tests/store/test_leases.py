from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from postgres_server import new_database
from sqlalchemy import create_engine

from assay.core.access import Principal
from assay.core.errors import UserError
from assay.core.events import Asked, AwaitingReview, Narrowed
from assay.core.types import Answer, Outcome
from assay.store import database, jobs
from assay.store.database import Store, open_store
from assay.store.jobs import JobFile
from assay.store.postgres import ServerClock
from assay.store.runs import records, underway
from assay.store.runs.underway import this_process

ANN = Principal("ann", frozenset({"pilots"}))
ONE, OTHER = "north 1", "south 1"  # processes of two machines


class Clock:
    seconds = 0

    def __call__(self) -> str:
        return f"2026-01-01T00:{self.seconds // 60:02}:{self.seconds % 60:02}.000Z"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock):
    opened = replace(open_store(tmp_path / "state.db", create=True), now=clock)
    yield opened
    opened.close()


def begun(store: Store, process: str) -> str:
    run = records.begin(store, ANN.id)
    underway.begin(store, run, ANN, process)
    return run


def test_a_run_that_a_process_works_on_is_claimed_by_no_other(store: Store):
    run = begun(store, ONE)
    assert underway.claim(store, OTHER) == {}
    with pytest.raises(UserError, match="another process"):
        underway.begin(store, run, ANN, OTHER)
    underway.end(store, run, OTHER)
    assert underway.is_listed(store, run)


def test_a_lease_that_is_not_renewed_runs_out_and_one_other_process_takes_the_run(store: Store, clock: Clock):
    run = begun(store, ONE)
    clock.seconds = 29
    assert underway.renew(store, ONE, [run]) == set()
    clock.seconds = 58
    assert underway.claim(store, OTHER) == {}
    clock.seconds = 59
    assert underway.claim(store, OTHER) == {run: ANN}
    assert underway.claim(store, "west 1") == {}
    assert underway.renew(store, ONE, [run]) == {run}, "who comes back learns that it has lost the run"


def test_a_stop_that_is_asked_for_while_a_process_takes_a_run_up_is_kept(store: Store):
    run = begun(store, "")
    underway.claim(store, ONE)
    assert not underway.request_stop(store, run, OTHER)
    underway.begin(store, run, ANN, ONE)
    assert [each.stop for each in underway.listing(store)] == [True]
    underway.release(store, ONE, [run])
    underway.begin(store, run, ANN, ONE)  # somebody resumes it later
    assert [each.stop for each in underway.listing(store)] == [False]


def test_a_process_that_lost_a_run_does_not_end_it_though_who_took_it_up_has_died(store: Store, clock: Clock):
    run = begun(store, ONE)
    clock.seconds = 30
    underway.claim(store, OTHER)
    clock.seconds = 60
    underway.end(store, run, ONE)
    assert underway.claim(store, "west 1") == {run: ANN}


def test_a_run_that_a_process_lets_go_can_be_taken_up_at_once(store: Store):
    run = begun(store, ONE)
    underway.release(store, OTHER, [run])
    assert underway.claim(store, OTHER) == {}
    underway.release(store, ONE, [run])
    assert underway.claim(store, OTHER) == {run: ANN}


def test_a_process_that_died_on_this_machine_is_noticed_at_once(store: Store):
    died = subprocess.Popen([sys.executable, "-c", ""])
    died.wait()
    here = this_process().rpartition(" ")[0]
    run = begun(store, f"{here} {died.pid}")
    assert underway.claim(store, ONE) == {run: ANN}


def test_a_process_goes_on_with_what_it_left_under_its_own_name(store: Store):
    run = begun(store, ONE)
    assert underway.claim(store, ONE, [run]) == {} and underway.claim(store, ONE) == {run: ANN}


def test_a_run_is_stopped_by_the_process_that_works_on_it_or_by_whoever_asks_if_there_is_none(store: Store):
    run = begun(store, ONE)
    assert not underway.request_stop(store, run, OTHER)
    assert [(each.process, each.stop) for each in underway.listing(store)] == [(ONE, True)]
    underway.release(store, ONE, [run])
    assert underway.request_stop(store, run, OTHER)
    assert [each.process for each in underway.listing(store)] == [OTHER]
    underway.end(store, run, OTHER)
    with pytest.raises(UserError, match="not under way"):
        underway.request_stop(store, run, ONE)


def test_several_processes_share_the_runs_that_wait(store: Store):
    runs = {begun(store, "") for _ in range(3)}
    first, second = underway.claim(store, ONE, most=1), underway.claim(store, OTHER, most=1)
    assert len(first) == len(second) == 1 and not first.keys() & second.keys()
    assert underway.claim(store, OTHER, second).keys() == runs - first.keys() - second.keys()


def test_a_job_is_read_by_one_process_until_its_lease_runs_out(store: Store, clock: Clock):
    jobs.begin(store, "j1", ANN, "default", [JobFile(0, "a.txt", 1)])
    assert jobs.start(store, "j1", ONE) and not jobs.start(store, "j1", OTHER)
    clock.seconds = 29
    jobs.renew(store, ONE, ["j1"])
    clock.seconds = 58
    assert not jobs.start(store, "j1", OTHER)
    clock.seconds = 59
    assert jobs.start(store, "j1", OTHER) and jobs.held(store, OTHER) == {"j1"}
    jobs.note(store, "j1", 5, 1.0, [JobFile(0, "a.txt", 1, "added")], ONE)
    jobs.end(store, "j1", jobs.DONE, process=ONE)
    [job] = jobs.unfinished(store)
    assert (job.state, job.done, job.passages) == (jobs.RUNNING, 0, 0), "what the first one says no longer counts"
    jobs.end(store, "j1", jobs.CANCELLED)
    assert jobs.held(store, OTHER) == set()


@pytest.mark.long
def test_on_a_server_leases_go_by_its_clock_whatever_this_machine_thinks():
    address = new_database()
    right, ticks = open_store(address, create=True), [1000.0]
    wrong = replace(right, now=ServerClock(right.engine, lambda: ticks[0]))
    run = begun(right, ONE)
    assert underway.claim(wrong, OTHER) == {}
    first = datetime.fromisoformat(wrong.now())
    assert abs(first - datetime.fromisoformat(right.now())) < timedelta(seconds=10)
    ticks[0] += 29  # goes on by itself
    assert datetime.fromisoformat(wrong.now()) - first == timedelta(seconds=29)
    ticks[0] += 3600  # however long it slept, it reads the clock again before it takes a lease
    assert underway.claim(wrong, OTHER) == {}
    assert underway.is_listed(right, run)
    right.close()


def test_no_clock_of_this_machine_is_asked_where_the_state_is_on_a_server():
    engine = create_engine("postgresql+psycopg://nobody@127.0.0.1:9/none")
    assert isinstance(database._clock(engine), ServerClock)


def test_a_run_that_no_longer_waits_for_a_reviewer_is_taken_up_when_its_process_dies(store: Store, clock: Clock):
    run = begun(store, ONE)
    waits = AwaitingReview(Answer("How tall?", (), Outcome.abstained), "a seal", ("high stakes",))
    for place, event in enumerate((Asked("How tall?", ANN.id, "2026-01-01"), waits)):
        records.append(store, run, place, event)
    clock.seconds = 60
    assert underway.claim(store, OTHER) == {}, "it continues after the decision"
    records.append(store, run, 2, Narrowed(1))
    assert underway.claim(store, OTHER) == {run: ANN}
