"""A thread with its own event loop. Work that waits for models, disks or the index runs there, so that it never
blocks the loop that serves requests."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import Counter, deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

T = TypeVar("T")
P = ParamSpec("P")
S = TypeVar("S", bound="InBackground")


class InBackground(Protocol):
    background: BackgroundLoop


STOP_SECONDS = 5.0  # seconds to wait for the thread to stop
THREADS = 32  # threads for blocking calls of a loop, mostly disk access


TURNS = max(1, (os.cpu_count() or 2) // 2)  # threads that one person's runs take at a time
asks: ContextVar[str] = ContextVar("asks", default="")  # the person whose run is worked on


class SharedThreads(ThreadPoolExecutor):
    """Threads in which the runs of one person share their turns, however many they are: others' never wait behind them."""

    def __init__(self, turns: int = TURNS) -> None:
        super().__init__(THREADS, thread_name_prefix="assay")
        self._turns = turns
        self._taken: Counter[str] = Counter()
        self._waiting: dict[str, deque[tuple[Future[Any], Callable[[], Any]]]] = {}
        self._lock = threading.Lock()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        if not (who := asks.get()):
            return super().submit(fn, *args, **kwargs)
        turn: Future[T] = Future()
        with self._lock:
            self._waiting.setdefault(who, deque()).append((turn, partial(fn, *args, **kwargs)))
        self._begin(who)
        return turn

    def _begin(self, who: str) -> None:
        """Begin what this person waits for, as far as they have turns left. What was cancelled meanwhile takes none."""
        with self._lock:
            waiting = self._waiting.get(who, deque())
            while waiting and self._taken[who] < self._turns:
                turn, work = waiting.popleft()
                if turn.set_running_or_notify_cancel():
                    self._taken[who] += 1
                    super().submit(self._work, who, turn, work)
            if not waiting:
                self._waiting.pop(who, None)

    def _work(self, who: str, turn: Future[Any], work: Callable[[], Any]) -> None:
        try:
            turn.set_result(work())
        except BaseException as error:
            turn.set_exception(error)
        with self._lock:
            self._taken[who] -= 1
            if not self._taken[who]:
                del self._taken[who]
        self._begin(who)


def enlarge_thread_pool(loop: asyncio.AbstractEventLoop) -> None:
    """Provide enough threads that a long read does not delay short ones; the default is cores + 4."""
    loop.set_default_executor(SharedThreads())


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

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine on this loop. Nobody waits for it."""
        asyncio.run_coroutine_threadsafe(work, self.loop)

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
