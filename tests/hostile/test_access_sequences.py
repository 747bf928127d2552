"""An attacker with the source, a name and a key of their own: whatever they ask for, in whatever order, over every route, MCP
tool, function and tool of the agent, no byte of a document that they may not read comes back. Access changes all the while, and
the index lags behind it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from attacker import furnished
from worlds import world

SEQUENCES = 10_000 if os.environ.get("ASSAY_SOAK") else 40
A_WORLD = 500  # sequences in one world: it is made once and used for many


@pytest.mark.long
@pytest.mark.timeout(3600)
async def test_no_byte_of_a_document_that_may_not_be_read_comes_back_over_any_sequence(tmp_path: Path):
    done = 0
    for seed in range(0, SEQUENCES, A_WORLD):
        async with world(tmp_path / f"workspace-{seed}", seed) as made:
            attack = await furnished(made, seed)
            for _ in range(min(A_WORLD, SEQUENCES - done)):
                await attack.sequence()
                done += 1
                assert not attack.leaks, attack.leaks[:3]
    assert done == SEQUENCES
