"""A thread with its own event loop. Work that waits for models, disks or the index runs there, so that it never
blocks the loop that serves requests."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

T = TypeVar("T")
P = ParamSpec("P")
S = TypeVar("S", bound="InBackground")


class InBackground(Protocol):
    background: BackgroundLoop


STOP_SECONDS = 5.0  # seconds to wait for the thread to stop
THREADS = 32  # threads for blocking calls of a loop, mostly disk access


def enlarge_thread_pool(loop: asyncio.AbstractEventLoop) -> None:
    """Provide enough threads that a long read does not delay short ones; the default is cores + 4."""
    loop.set_default_executor(ThreadPoolExecutor(THREADS, thread_name_prefix="assay"))


class BackgroundLoop:
    """Started once, stopped once. `run` can be called from any event loop and waits there without blocking it."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._turn, name="assay-background", daemon=True)

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
        """Cancel all remaining tasks when the loop stops, and wait for them."""
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on this loop and return its result. Cancelling the caller cancels the work."""
        if asyncio.get_running_loop() is self.loop:
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.loop))

    def stop(self) -> None:
        if self._thread.is_alive():
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join(timeout=STOP_SECONDS)

    @property
    def stuck(self) -> bool:
        """Whether work that cannot be cancelled is still running, such as splitting a very large text."""
        return self._thread.is_alive()


def in_background(
    method: Callable[Concatenate[S, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """A method that runs on the background loop of its object, wherever it is called."""

    @wraps(method)
    async def elsewhere(self: S, *given: P.args, **named: P.kwargs) -> T:
        return await self.background.run(method(self, *given, **named))

    return elsewhere
