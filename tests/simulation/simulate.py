"""Simulate whole lives of a workspace, one seed after another.

    python tests/simulation/simulate.py --seconds 60              new seeds, for a minute
    python tests/simulation/simulate.py --seed 4711               one seed, again and exactly
    python tests/simulation/simulate.py --first 0 --seeds 20      these twenty

It stops at the first seed that fails and prints what failed, the commit, and the command that does the same again.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

HERE = Path(__file__).parent
for place in (HERE.parent, HERE.parent / "hostile"):
    if str(place) not in sys.path:
        sys.path.insert(0, str(place))

from filelock import FileLock  # noqa: E402

from assay.serve.live import LiveRuns  # noqa: E402
from assay.workspace.facade import open_workspace  # noqa: E402
from simulation.loop import Hung, Stuck, TooLong, process  # noqa: E402
from simulation.machine import ADDRESS, Faults, Machine  # noqa: E402
from simulation.model import MISBEHAVIOURS  # noqa: E402
from simulation.promises import Promises, witnessed  # noqa: E402
from simulation.world import PEOPLE, World  # noqa: E402

MEMORY = Path("/dev/shm")
MODES = ("safety", "liveness")
LASTS = {"safety": 180.0, "liveness": 90.0}  # seconds of simulated time in which people act
LOOKS = 20.0  # seconds between two looks
STEPS = 200_000  # of one simulation: something does not end
ONE_STEP = 15.0  # seconds of processor time
ALL_STEPS = 150.0  # seconds of processor time of one simulation, which takes about five
CLOCK = time.monotonic  # the real one


@dataclass(frozen=True)
class Outcome:
    seed: int
    mode: str
    lasts: float
    problems: tuple[str, ...]
    digest: str
    steps: int
    simulated: float
    real: float
    done: dict[str, int]
    trace: tuple[str, ...]


def simulate(
    seed: int, mode: str = "", lasts: float = 0.0, planted: Callable[[], AbstractContextManager[Any]] = nullcontext
) -> Outcome:
    """One seed, in the mode that it has or in the one given.

    lasts: seconds of simulated time in which people act and things go wrong; 0: those of the mode
    planted: a bug to be found
    """
    draws = Random(f"{seed} world")
    mode = mode or MODES[seed % 2]
    began = CLOCK()
    folder = (MEMORY if MEMORY.is_dir() else Path(tempfile.gettempdir())) / f"assay-simulation-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    own = folder / f"{seed}-{mode}"  # always the same, since paths are recorded
    with FileLock(folder / f"{seed}-{mode}.lock"):
        shutil.rmtree(own, ignore_errors=True)
        own.mkdir()
        machine = Machine(f"{seed} {mode}", own / "workspace", places=draws.choice((1, 2, 2, 3)), **settings_of(draws))
        try:
            with machine.installed(), watched(machine), planted():
                world = World(machine)
                try:
                    machine.loop.most_steps = STEPS
                    asyncio.set_event_loop(machine.loop)
                    machine.loop.run_until_complete(_lived(machine, world, draws, mode, lasts or LASTS[mode]))
                except (Stuck, TooLong) as error:
                    machine.problem(f"{type(error).__name__}: {error}")
        finally:
            shutil.rmtree(own, ignore_errors=True)
    return Outcome(
        seed,
        mode,
        lasts,
        tuple(machine.problems),
        machine.digest(),
        machine.loop.steps,
        machine.clock[0],
        CLOCK() - began,
        world.done,
        tuple(machine.trace),
    )


@contextmanager
def watched(machine: Machine) -> Iterator[None]:
    """One step of the loop, and all of them, have so much processor time, and no more: the loop cannot stop a step. In the
    main thread alone."""
    before, handler, began = -1, signal.getsignal(signal.SIGVTALRM), time.process_time()

    def look(*_: object) -> None:
        nonlocal before
        over = time.process_time() - began > ALL_STEPS
        if over or machine.loop.steps == before:
            machine.problem("it does not end" if over else f"a step of {process.get()} does not end")
            machine.loop.most_steps = 0  # the task of this step gets the error, the next step ends it all
            raise Hung
        before = machine.loop.steps

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGVTALRM, look)
    signal.setitimer(signal.ITIMER_VIRTUAL, ONE_STEP, ONE_STEP)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, handler)


def settings_of(draws: Random) -> dict[str, object]:
    return {
        "index": "memory",
        "llm_base_url": ADDRESS,
        "llm_model": "simulated",
        "llm_size": draws.choice(("large", "large", "small")),
        "llm_timeout": 20.0,
        "llm_concurrency": draws.choice((1, 4)),
        "budget_run_calls": draws.choice((3, 8, 30, 30)),
        "budget_run_seconds": draws.choice((10.0, 10.0, 30.0, 120.0)),
        "budget_day_calls": draws.choice((0, 0, 40)),
        "synthesis_calls": draws.choice((10, 60)),
        "synthesis_seconds": 300.0,
        "review_always": draws.random() < 0.15,
        "audit_minutes": 1.0,
        "serve_runs_per_person": 0,
    }


async def _lived(machine: Machine, world: World, draws: Random, mode: str, lasts: float) -> None:
    open_workspace(machine.folder, create=True, **machine.settings).close()
    workspace = machine.open()
    await world.furnish(workspace)
    promises = Promises(world, workspace)
    add = LiveRuns._add

    def shown(live: LiveRuns, own: object, active: object, run: object, event: object) -> None:
        witnessed(machine, world, promises, own, run)  # type: ignore[arg-type]
        add(live, own, active, run, event)  # type: ignore[arg-type]

    with patch.object(LiveRuns, "_add", shown):
        kinds = draws.sample(MISBEHAVIOURS, k=draws.randint(1, len(MISBEHAVIOURS)))
        machine.model.trouble, machine.model.kinds = draws.choice((0.0, 0.1, 0.5, 1.0)), tuple(kinds)
        machine.model.outage = draws.choice((0.0, 0.05, 0.4))
        machine.faults = Faults(
            disk=draws.choice((0.0, 0.0, 0.002, 0.02)),
            flush=draws.choice((0.0, 0.0, 0.002)),
            at_write=draws.choice((0.0, 0.001, 0.01)),
            kill_every=draws.choice((20.0, 60.0, 0.0)),
            stop_every=draws.choice((60.0, 0.0)),
        )
        for place in machine.places:
            machine.start(place)
        going = [asyncio.create_task(world.live(who)) for who in PEOPLE]
        going.append(asyncio.create_task(machine.mishaps()))
        until = machine.clock[0] + lasts
        if draws.random() < 0.25:
            going.append(asyncio.create_task(_moved(machine, draws.uniform(0, lasts))))
        while machine.clock[0] < until:
            await asyncio.sleep(LOOKS)
            promises.look()
        await _calm(machine, world, going)
        await promises.come_to_an_end()
        if mode == "liveness":
            await _reviewed(machine, world, promises)
        promises.at_the_end()
    workspace.close()


async def _moved(machine: Machine, when: float) -> None:
    await asyncio.sleep(when)
    await machine.move_originals(machine.folder.parent / "originals elsewhere")


async def _calm(machine: Machine, world: World, going: list[asyncio.Task[None]]) -> None:
    """Faults stop, and nobody asks for anything new. Whatever the model says, it goes on saying."""
    world.acting = False
    machine.faults = Faults()
    machine.model.outage = 0.0
    machine.note("calm")
    for own in machine.alive:
        if own.broken:
            machine.kill(own)  # it can write nothing any more: whoever runs it starts another
    await asyncio.wait(going)
    for task in going:
        task.result()


async def _reviewed(machine: Machine, world: World, promises: Promises) -> None:
    """What waits for a reviewer is decided, and ends too."""
    while await world.at(PEOPLE[0], world.decide_one):
        pass
    await promises.come_to_an_end()


def again(outcome: Outcome) -> str:
    lasts = f" --lasts {outcome.lasts:g}" if outcome.lasts else ""
    return f"python tests/simulation/simulate.py --seed {outcome.seed} --mode {outcome.mode}{lasts}"


def report(outcome: Outcome) -> str:
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=HERE).stdout.strip()
    lines = [f"seed {outcome.seed}, {outcome.mode}, commit {commit or 'unknown'}: {len(outcome.problems)} problems"]
    lines += [f"  {each}" for each in outcome.problems[:10]]
    return "\n".join([*lines, f"the same again: {again(outcome)}"])


def begin_anew() -> None:
    """Begin the program again with the order of sets that every replay has: it is part of the order of things."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, *sys.argv])


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seed", type=int, help="this one alone, with its trace in the file --trace names")
    options.add_argument("--mode", choices=MODES, default="", help="instead of the one that the seed has")
    options.add_argument("--lasts", type=float, default=0.0, help="seconds of simulated time in which things go wrong")
    options.add_argument("--seconds", type=float, default=60.0)
    options.add_argument("--seeds", type=int, default=0, help="this many, however long they take")
    options.add_argument("--first", type=int, default=None)
    options.add_argument("--trace", type=Path)
    options.add_argument("--keep-going", action="store_true", help="also after a seed that fails")
    given = options.parse_args()
    begin_anew()
    logging.disable(logging.CRITICAL)
    began, failed, count = CLOCK(), 0, 0
    seed = given.seed if given.seed is not None else given.first
    seed = Random().randrange(10**9) if seed is None else seed
    while True:
        outcome = simulate(seed, given.mode, given.lasts)
        count += 1
        if given.trace:
            given.trace.write_text("\n".join(outcome.trace))
        took = f"{outcome.steps} steps, {outcome.simulated:.0f} s in {outcome.real:.1f} s"
        print(f"seed {seed} {outcome.mode} {outcome.digest} {took}", outcome.done, flush=True)
        if outcome.problems:
            failed += 1
            print(report(outcome), flush=True)
            if not given.keep_going:
                return 1
        over = count >= given.seeds if given.seeds else CLOCK() - began > given.seconds
        if given.seed is not None or over:
            break
        seed += 1
    print(f"{count} seeds in {CLOCK() - began:.0f} s, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
