"""Nothing is delivered that a person had to approve and did not, whatever is tried: a model that forges verdicts and
approvals, processes that die between any two writes, stale and replayed approvals, one's own, lapsed ones, access taken away,
documents removed, two processes at once."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from gated import Attack, World

from assay.core.errors import AssayError
from assay.core.events import Answered, AwaitingReview, Event, Failed, Reviewed

SOAK = bool(os.environ.get("ASSAY_SOAK"))
SCHEDULES = 5000 if SOAK else 48
STEPS = 10
TOGETHER = 8  # schedules on one file: what waits of the others is there too


@dataclass
class Tally:
    delivered: int = 0
    acts: int = 0
    refused: int = 0
    wrong: list[str] = field(default_factory=list)


async def attacked(folder: Path, seeds: Iterable[int]) -> Tally:
    """What came of these schedules."""
    tally, world = Tally(), None
    for n, seed in enumerate(seeds):
        if world is None or n % TOGETHER == 0:
            world = World(folder / str(seed))
        attack = Attack(world, random.Random(seed))
        attack.begin()
        await attack.go(STEPS)
        tally.wrong += [f"schedule {seed}: {each}" for each in attack.faults()]
        if isinstance((told := attack.events())[-1], Answered):
            tally.delivered += 1
            tally.wrong += [] if await read_again(attack, told) else [f"schedule {seed}: it was delivered again"]
        tally.acts += attack.tried
        tally.refused += attack.refused
        if n % TOGETHER == TOGETHER - 1:
            world.close()
    return tally


async def read_again(attack: Attack, told: list[Event]) -> bool:
    """Whether a delivered answer stays what it is, whoever carries the run on or delivers once more."""
    await attack.carry(lives=99)
    with pytest.raises(AssayError):
        attack.deliver()
    return attack.events() == told


@pytest.mark.long
@pytest.mark.timeout(7200 if SOAK else 120)
async def test_nothing_is_delivered_without_the_approval_it_needs_in_any_schedule(tmp_path: Path):
    tally = await attacked(tmp_path, range(SCHEDULES))
    assert not tally.wrong, "\n".join(tally.wrong[:20])
    assert tally.delivered > SCHEDULES / 20, "an attack on a gate that nobody passes shows nothing"
    assert tally.refused > SCHEDULES, "an attack that is never refused is none"


async def test_an_answer_that_needs_nobody_waits_for_nobody(tmp_path: Path):
    world = World(tmp_path)
    for seed in range(4):
        attack = Attack(world, random.Random(seed))
        attack.begin(free=True)
        await attack.carry(lives=99)
        assert not any(isinstance(each, AwaitingReview | Reviewed | Failed) for each in attack.events())
        assert isinstance(attack.events()[-1], Answered)
    world.close()
