"""Bugs to be found: each is put into Assay for a simulation, which must find it within ten minutes.

python tests/simulation/planted.py                 all of them, with the seed and the seconds that each took
python tests/simulation/planted.py "a lost event"
"""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parent.parent))

from assay.agent.loop import Step
from assay.agent.steps import check
from assay.answer import compose
from assay.core.errors import AssayError
from assay.core.events import Answered, Failed, Planned
from assay.core.run import Run
from assay.serve import upload_worker
from assay.serve.live import LiveRuns
from assay.store.access import grants
from assay.store.runs import budgets, records, underway
from assay.workspace.services import ask, documents
from assay.workspace.services.records import Records
from simulation.loop import process
from simulation.simulate import CLOCK, begin_anew, simulate

PATIENCE = 600.0  # seconds
BUGS: dict[str, Callable[[], AbstractContextManager[Any]]] = {}


def bug(name: str) -> Callable[[Callable[[], Iterator[None]]], None]:
    def keep(planted: Callable[[], Iterator[None]]) -> None:
        BUGS[name] = contextmanager(planted)

    return keep


@bug("a lost event")
def _() -> Iterator[None]:
    """One that is shown and not recorded."""
    record = ask.record

    def forgets(context: Any, run: Run, event: Any, store: Any = None) -> Run:
        return run.then(event) if isinstance(event, Planned) else record(context, run, event, store)

    with patch.object(ask, "record", forgets):
        yield


@bug("a lease that never runs out")
def _() -> Iterator[None]:
    with patch.object(underway, "LEASE", 1e8):
        yield


@bug("a step that records nothing")
def _() -> Iterator[None]:
    async def nothing(run: Run, context: Any) -> AsyncIterator[Any]:
        for event in ():
            yield event

    with patch.object(Step.SUFFICIENCY, "_value_", nothing):
        yield


@bug("one request more than the budget")
def _() -> Iterator[None]:
    reached = budgets._ceiling_reached

    def late(connection: Any, who: str, run: str, tokens: int, money: float, ceilings: Any, day: str, own_aside: bool):
        more = replace(
            ceilings, run_calls=ceilings.run_calls + 1, day_calls=ceilings.day_calls and ceilings.day_calls + 1
        )
        return reached(connection, who, run, tokens, money, more, day, own_aside)

    with patch.object(budgets, "_ceiling_reached", late):
        yield


@bug("access that is remembered after it was withdrawn")
def _() -> Iterator[None]:
    scope_of, known = grants.scope_of, {}

    def remembered(store: Any, principal: Any) -> Any:
        return known.setdefault((process.get(), principal), scope_of(store, principal))

    with patch.object(grants, "scope_of", remembered):
        yield


@bug("a claim that is delivered though it did not hold")
def _() -> Iterator[None]:
    """Two guards fail at once: neither the loop nor the delivery minds the verdict."""
    with ExitStack() as patches:
        patches.enter_context(patch.object(Run, "unsupported", property(lambda run: ())))
        patches.enter_context(patch.object(compose, "find_fault", lambda *_: ""))
        yield


@bug("an answer that is delivered without a review")
def _() -> Iterator[None]:
    with ExitStack() as patches:
        patches.enter_context(patch.object(check, "release", lambda run, context, answer: Answered(answer)))
        patches.enter_context(patch.object(records.reviews, "deliver", lambda *_: None))
        yield


@bug("a parked run that nobody takes up")
def _() -> Iterator[None]:
    async def never(*_: Any) -> int:
        return 0

    with patch.object(LiveRuns, "take_over", never):
        yield


@bug("a deadline that is never looked at")
def _() -> Iterator[None]:
    with patch.object(ask, "_clock", lambda context, run, seconds: lambda: seconds):
        yield


@bug("an erasure that leaves files")
def _() -> Iterator[None]:
    with patch.object(Records, "_erase_files", lambda *_: ((), True)):
        yield


@bug("a sync that forgets a file")
def _() -> Iterator[None]:
    find = documents.find_sources
    with patch.object(documents, "find_sources", lambda roots: find(roots)[:-1]):
        yield


@bug("an upload that is done before its files are read")
def _() -> Iterator[None]:
    async def forgets(*_: Any) -> None:
        pass

    with patch.object(upload_worker, "read_files", forgets):
        yield


@bug("a step that never ends")
def _() -> Iterator[None]:
    async def endless(run: Run, context: Any) -> AsyncIterator[Any]:
        while run:
            context.current(run)
        yield

    with patch.object(Step.GATHER, "_value_", endless):
        yield


@bug("a failure that cannot be recorded and is forgotten")
def _() -> Iterator[None]:
    """As it was until the simulation found it."""

    def failed(live: LiveRuns, workspace: Any, own: Any, error: str, detail: str) -> None:
        try:
            run = workspace.questions.run(own.id)
            if not (run.delivered or run.failed or run.waiting or run.held or run.rejected):
                workspace.questions.record(run, Failed(error, detail))
        except AssayError:
            pass

    with patch.object(LiveRuns, "_failed", failed):
        yield


def found(name: str) -> tuple[int, float, str]:
    """The seed that finds a bug, the seconds until then, and what it says. The seed is -1 if it was not found."""
    began, seed = CLOCK(), 0
    while CLOCK() - began < PATIENCE:
        outcome = simulate(seed, planted=BUGS[name])
        if outcome.problems:
            return seed, CLOCK() - began, outcome.problems[0]
        seed += 1
    return -1, PATIENCE, "not found"


def main() -> int:
    begin_anew()
    logging.disable(logging.CRITICAL)
    missed = 0
    for name in sys.argv[1:] or BUGS:
        seed, seconds, words = found(name)
        missed += seed < 0
        print(f"{name}: seed {seed}, {seconds:.0f} s: {words}", flush=True)
    return missed


if __name__ == "__main__":
    sys.exit(main())
