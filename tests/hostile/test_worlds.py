"""Two worlds that differ only in knowledge bases that their reader may not know of: what others keep, ask and do there. To the
reader both are the same, to the last byte of every reply."""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
import pytest
from attacker import Attack, furnished
from worlds import DESK, EDITOR, SECRET, World, asked, world

from assay.core.errors import UserError
from assay.core.events import Mode
from assay.serve import mcp_tools
from assay.store.access import grants
from assay.workspace.types import AskOptions

PAIRS = 2_000 if os.environ.get("ASSAY_SOAK") else 15
A_WORLD = 250  # pairs of sequences in one pair of worlds
PASSING = {"date"}
# A key is new each time; a bundle proves the place of a run in the chain of everybody's records, and a report, like a forecast,
# tells how fast one's own earlier runs were by a real clock.
RANDOM = ("POST /api/keys", "/bundle", "/forecast")


class Other:
    """What happens in one of the two worlds alone, behind the reader's back."""

    def __init__(self, made: World, seed: int) -> None:
        self.made, self.random = made, random.Random(f"behind {seed}")  # not the numbers that ids are made of
        self.bases: list[str] = []

    async def does_something(self) -> None:
        clock, seen = self.made.clock, self.made.as_(self.random.choice([EDITOR, DESK]))
        clock.hidden, moment = self.random, clock.seconds
        try:
            with suppress(UserError):  # what is not theirs to change they try as well
                await self.random.choice([self.fills, self.asks, self.shares, self.empties])(seen)
        finally:
            clock.hidden, clock.seconds = None, moment  # the hour is the same in both worlds

    async def fills(self, seen: Any) -> None:
        """A base; perhaps under the name of one that the reader has."""
        name = self.random.choice(["own", "archive", f"base {len(self.bases)}"])
        for _ in range(self.random.randint(1, 2)):
            await self.made.fill(seen.principal, name, SECRET, f"hidden{self.random.randrange(10**6)}n")
        self.bases.append(name)

    async def asks(self, seen: Any) -> None:
        """In bases that the reader does not see: what is asked of shared ones is nobody's business either."""
        if self.random.random() < 0.5:
            await asked(seen, mode=Mode.quick)
        else:
            async for _ in seen.chat(
                "How tall is it?", "", AskOptions(model=False, mode=Mode.quick, today="2026-03-01")
            ):
                pass

    async def shares(self, seen: Any) -> None:
        own = [base for base in seen.scope().bases if seen.principal.owns(base) and base.name != "shared"]
        if own:
            grants.share(seen.store, self.random.choice(own), self.random.choice(["user:writer", "group:elsewhere"]))

    async def empties(self, seen: Any) -> None:
        own = [base for base in seen.scope().bases if base.owner == seen.principal.id and base.name not in KEPT]
        if own:
            await seen.records.erase_base(self.random.choice(own).name)


KEPT = ("shared", "private")


def told(reply: httpx.Response) -> tuple[int, list[tuple[str, str]], bytes]:
    headers = [(name, value) for name, value in reply.headers.multi_items() if name not in PASSING]
    return reply.status_code, headers, reply.content


@asynccontextmanager
async def two(folder: Path, seed: int) -> AsyncIterator[tuple[Attack, Attack, Other]]:
    async with AsyncExitStack() as both:
        one, other = [await both.enter_async_context(world(folder / name, seed)) for name in ("one", "other")]
        behind = Other(other, seed)
        for _ in range(3):
            await behind.does_something()
        first, second = await furnished(one, seed), await furnished(other, seed)
        assert first.runs == second.runs and first.threads == second.threads
        yield first, second, behind


@pytest.mark.long
@pytest.mark.timeout(3600)
async def test_what_happens_in_knowledge_bases_of_others_changes_no_byte_of_any_reply(tmp_path: Path):
    done, compared, fine = 0, 0, 0
    with patch.object(mcp_tools, "new_mark", lambda: "mark"):
        for seed in range(0, PAIRS, A_WORLD):
            async with two(tmp_path / str(seed), seed) as (one, other, behind):
                for _ in range(min(A_WORLD, PAIRS - done)):
                    if behind.random.random() < 0.15:
                        await behind.does_something()
                    for _ in range(one.random.randint(3, 6)):
                        method, place, more = one.request()
                        if any(each in f"{method} {place}" for each in RANDOM):
                            continue
                        replies = []
                        for each in (one, other):
                            each.made.clock.seconds = 10_000 + compared
                            replies.append(told(await each.made.ask(method, place, **more)))
                            await each.made.rest()
                        assert replies[0] == replies[1], (method, place, more)
                        compared += 1
                        fine += replies[0][0] < 300
                    done += 1
    assert done == PAIRS and fine > compared / 5, (done, compared, fine)
