"""Work side by side, in order."""

from __future__ import annotations

import asyncio

import pytest

from assay.agent.context import run_in_order


async def test_results_come_in_the_order_of_the_work_and_only_so_much_is_begun_at_once():
    running, most = 0, 0

    async def work(number: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.002 * (5 - number % 5))  # later ones are done sooner
        running -= 1
        return number

    assert [each async for each in run_in_order((work(n) for n in range(20)), at_once=3)] == list(range(20))
    assert most == 3


async def test_what_fails_ends_the_rest():
    begun: list[int] = []

    async def work(number: int) -> int:
        begun.append(number)
        await asyncio.sleep(0.01 if number != 1 else 0)
        if number == 1:
            raise ValueError("no")
        return number

    with pytest.raises(ValueError, match="no"):
        async for _ in run_in_order((work(n) for n in range(50)), at_once=2):
            pass
    await asyncio.sleep(0.03)
    assert len(begun) < 5
