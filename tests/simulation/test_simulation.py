"""A few short simulations, and that a seed is played again exactly. `make simulate SECONDS=…` plays many."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator

import pytest

from simulation.planted import BUGS
from simulation.simulate import MODES, report, simulate


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Thousands of errors are provoked here. What other tests left in memory is not looked through again for each process
    that dies."""
    gc.collect()
    gc.freeze()
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6))
def test_nothing_is_lost_leaked_or_left_undone(seed: int):
    outcome = simulate(seed, MODES[seed % 2], lasts=40.0)
    assert not outcome.problems, report(outcome)
    assert outcome.done, "people did something"


def test_a_seed_is_played_again_exactly():
    first, second = simulate(1, "safety", lasts=10.0), simulate(1, "safety", lasts=10.0)
    assert first.trace == second.trace and first.digest == second.digest


def test_a_planted_bug_is_found_and_told_with_the_command_that_plays_it_again():
    outcome = simulate(0, "safety", lasts=20.0, planted=BUGS["a lost event"])
    assert any("was shown and is not recorded" in each for each in outcome.problems)
    told = report(outcome)
    assert "--seed 0 --mode safety --lasts 20" in told and "commit " in told
