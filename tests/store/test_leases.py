from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from assay.core.access import Principal
from assay.core.errors import UserError
from assay.store.database import Store, open_store
from assay.store.runs import records, underway

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


def test_a_run_that_a_process_lets_go_can_be_taken_up_at_once(store: Store):
    run = begun(store, ONE)
    underway.release(store, OTHER, [run])
    assert underway.claim(store, OTHER) == {}
    underway.release(store, ONE, [run])
    assert underway.claim(store, OTHER) == {run: ANN}


def test_a_process_that_died_on_this_machine_is_noticed_at_once(store: Store):
    died = subprocess.Popen([sys.executable, "-c", ""])
    died.wait()
    here = underway.this_process().rpartition(" ")[0]
    run = begun(store, f"{here} {died.pid}")
    assert underway.claim(store, ONE) == {run: ANN}


def test_a_process_goes_on_with_what_it_left_under_its_own_name(store: Store):
    run = begun(store, ONE)
    assert underway.claim(store, ONE, [run]) == {} and underway.claim(store, ONE) == {run: ANN}
