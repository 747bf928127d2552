"""An event loop in simulated time, on which several processes run side by side in one thread.

Work belongs to the process in whose context it was started. Within a process it goes on in the order of asyncio; which process
is next, and how long work in a thread takes, is drawn from the seed. A process that is killed is never continued: nothing of it
runs any more, not even what should run at its end. Time passes only while everything waits.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from itertools import count
from random import Random
from typing import Any

NOBODY = "people"  # whoever is no process of the simulation: those who ask
process: ContextVar[str] = ContextVar("process", default=NOBODY)
SLOWEST_THREAD = 0.02  # seconds


class Killed(BaseException):
    """The process is dead. No handler of an error runs for it."""


class Stuck(Exception):
    """Nothing is left to do, and what should end has not ended."""


class TooLong(Exception):
    """More work than any run needs."""


class Hung(BaseException):
    """One step goes on without an end."""


class _Task(asyncio.Task[Any]):
    """A task whose place in a set does not depend on its address."""

    _numbers = count()

    def __init__(self, *given: Any, **named: Any) -> None:
        self._number = next(self._numbers)
        super().__init__(*given, **named)

    def __hash__(self) -> int:
        return self._number

    __eq__ = object.__eq__


class SimulatedLoop(asyncio.BaseEventLoop):
    """`clock` holds the time, which a loop in a thread of a process (`inner`) shares with the loop that it was started from."""

    def __init__(
        self, random: Random, clock: list[float], most_steps: float = float("inf"), *, inner: bool = False
    ) -> None:
        super().__init__()
        self.inner = inner
        self.random, self.clock, self.most_steps = random, clock, most_steps
        self.steps = 0
        self.over = False
        self.before_step: Callable[[], None] = lambda: None
        self.tasks: dict[str, list[asyncio.Task[Any]]] = {}  # kept, so that no task of the dead is cleaned up
        self._queues: dict[str, deque[asyncio.Handle]] = {}
        self._dead: set[str] = set()
        self._order = count()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        _Task._numbers = count()
        self.set_task_factory(self._new_task)

    def time(self) -> float:
        return self.clock[0]

    # --- what asyncio asks of a loop --------------------------------------------------------------------------------

    def _new_task(self, loop: Any, work: Coroutine[Any, Any, Any], context: Context | None = None) -> asyncio.Task[Any]:
        context = context or copy_context()
        task = _Task(work, loop=self, context=context)
        self.tasks.setdefault(context.get(process, NOBODY), []).append(task)
        return task

    def _call_soon(self, callback: Any, args: Any, context: Context | None) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._put(handle)
        return handle

    def call_at(self, when: float, callback: Any, *args: Any, context: Context | None = None) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._order), timer))
        return timer

    def call_soon_threadsafe(self, callback: Any, *args: Any, context: Context | None = None) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """Work in a thread is done at once, at some later moment. Cancelling its future does not stop it."""
        future = self.create_future()

        def work() -> None:
            outer = asyncio.events._get_running_loop()
            asyncio.events._set_running_loop(None)
            try:
                result, error = func(*args), None
            except Killed as killed:
                if not self.inner:
                    return
                result, error = None, killed  # whoever runs the loop of a thread to its end dies too
            except BaseException as raised:
                result, error = None, raised
            finally:
                asyncio.events._set_running_loop(outer)
            if not future.done():
                future.set_exception(error) if error is not None else future.set_result(result)

        self.call_later(self.random.uniform(0, SLOWEST_THREAD), work)
        return future

    def set_default_executor(self, executor: Any) -> None:
        pass

    def _asyncgen_finalizer_hook(self, agen: Any) -> None:
        if not self.over:
            super()._asyncgen_finalizer_hook(agen)  # type: ignore[misc]

    def _timer_handle_cancelled(self, handle: Any) -> None:
        pass

    def _process_events(self, events: Any) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    # --- the order of things ----------------------------------------------------------------------------------------

    def _put(self, handle: asyncio.Handle) -> None:
        owner = handle._context.get(process, NOBODY)  # type: ignore[attr-defined]
        if owner not in self._dead:
            self._queues.setdefault(owner, deque()).append(handle)

    def kill(self, name: str) -> None:
        """From now on nothing of this process runs."""
        self._dead.add(name)
        self._queues.pop(name, None)

    def forget(self) -> None:
        """Let go of all that was still to be done, for good."""
        self.over = True
        self._queues.clear()
        self._timers.clear()

    def _run_once(self) -> None:
        while self._timers and (self._timers[0][0] <= self.clock[0] or self._timers[0][2].cancelled()):
            timer = heapq.heappop(self._timers)[2]
            if not timer.cancelled():
                self._put(timer)
        ready = [name for name, queue in self._queues.items() if queue]
        if not ready:
            if self._stopping:
                return
            while self._timers and self._timers[0][2].cancelled():
                heapq.heappop(self._timers)
            if not self._timers:
                raise Stuck("everything waits, and nothing will happen any more")
            self.clock[0] = max(self.clock[0], self._timers[0][0])
            return
        self.steps += 1
        if self.steps > self.most_steps:
            raise TooLong(f"more than {self.most_steps:,.0f} steps")
        name = self.random.choice(ready) if len(ready) > 1 else ready[0]
        handle = self._queues[name].popleft()
        if not handle.cancelled():
            handle._run()
            self.before_step()
