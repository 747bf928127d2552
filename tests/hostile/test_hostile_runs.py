"""Models that mean no good, and documents that tell a model what to do: whatever is said, what Assay promises holds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from rigs import LETTER, NOTICE, asked, door, kept, of, secret, sound, typed_end, within

from assay.agent.limits import ROUNDS
from assay.agent.toolbox import TOOLS
from assay.events import Answered, Consulted, Decided, Mode, Planned, Route, Routed, Stopped, StopReason, ToolRan
from assay.run import Run
from assay.testing import (
    AlwaysContinue,
    AtRandom,
    ChatServer,
    InventsKeys,
    Obedient,
    SameCall,
    UnknownTools,
)
from assay.workspace import Workspace

QUESTION = "What was found when the Varn dam was inspected?"
LEVELS = {"native tools": (), "a schema": ("tools",), "text alone": ("tools", "schema", "json")}
MODELS: dict[str, Callable[[], Any]] = {
    **{f"at random {seed}": lambda seed=seed: AtRandom(seed) for seed in range(6)},
    "always continues": AlwaysContinue,
    "the same call": SameCall,
    "unknown tools": UnknownTools,
    "invents keys": InventsKeys,
    "obedient": Obedient,
}


async def run(opened: Workspace, model: Any, lacks=(), mode: Mode = Mode.balanced, **settings: Any):
    with ChatServer(model.answer, lacks=lacks) as server:
        place = door(opened, server.url, probed=None, **settings)
        ended = await asked(place, QUESTION, mode)
        assert not server.problems, server.problems
        return ended, server

@pytest.mark.parametrize("name", MODELS)
async def test_x(poisoned: Workspace, name: str):
    for level, lacks in LEVELS.items():
        ended, server = await run(poisoned, MODELS[name](), lacks)
        r = ended.run
        print(name, level, f"{ended.seconds:.2f}", dict(server.counts), r.kinds[-1], r.rounds, r.stopped and r.stopped.reason, r.answer and r.answer.outcome)
        if r.answer:
            for c in r.answer.claims: print("    ", c.words, [e.flagged for e in r.evidence if e.key in c.cites], bool(c.quote))
        print("   ", typed_end(ended), kept(ended, poisoned), secret(ended), sound(r, poisoned), within(r, poisoned, 5))
        if r.failed: print(r.failed)
