"""A thread with an event loop of its own. Whatever waits for models, disks or the index is done there, so that the loop that
serves people is never held up by it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")

STOP_SECONDS = 5.0  # seconds to wait for the last thread when it stops
THREADS = 32  # for what a loop waits for in a thread: mostly disks


def enlarge_thread_pool(loop: asyncio.AbstractEventLoop) -> None:
    """Enough threads that one long reading does not keep short ones waiting; by default there are four more than cores."""
    loop.set_default_executor(ThreadPoolExecutor(THREADS, thread_name_prefix="assay"))


class BackgroundLoop:
    """Started once, stopped once. `do` is called from any event loop and waits there without blocking it."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._turn, name="assay-engine", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _turn(self) -> None:
        asyncio.set_event_loop(self.loop)
        enlarge_thread_pool(self.loop)
        self.loop.run_forever()
        self.loop.run_until_complete(self._let_go())
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()

    @staticmethod
    async def _let_go() -> None:
        """Whatever is still being done when the engine stops is stopped in good order."""
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What the work comes to. Who stops waiting for it stops the work."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.loop))

    def stop(self) -> None:
        if self._thread.is_alive():
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join(timeout=STOP_SECONDS)

    @property
    def stuck(self) -> bool:
        """Whether something is still being done that cannot be stopped: a very large text that is being split, perhaps."""
        return self._thread.is_alive()
