"""An event loop with a clock of its own, for tests of what happens "in time". Mark them `@pytest.mark.fake_clock`.

Time stands still while anything is running, and jumps to the next timer when everything waits. So a timeout of a minute
strikes at once, and no timeout strikes early, however busy the machine is. The test and the servers it talks to must share
the loop (`async with ChatServer(…)`): work in other processes takes no time on this clock.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

DELIVERY = 0.002  # real seconds for bytes on their way through 127.0.0.1
FARTHEST = 7200.0  # timers beyond this (keep-alive) are never jumped to


class _JumpingSelector(selectors.DefaultSelector):
    """Waits for events as usual, but instead of waiting for a timer it moves the clock."""

    loop: FakeClockLoop

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is not None and timeout <= 0:
            return super().select(0)
        if timeout is None or timeout > FARTHEST or self.loop.threads:
            return super().select(None)
        if found := super().select(DELIVERY):
            return found
        self.loop.now += timeout
        return []


class FakeClockLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.now = 1000.0
        self.threads = 0  # pieces of work in threads that are not done
        selector = _JumpingSelector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.now

    def run_in_executor(self, executor: Executor | None, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        self.threads += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._thread_done)
        return future

    def _thread_done(self, _: object) -> None:
        self.threads -= 1
