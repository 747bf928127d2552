"""Which runs are in progress, and which clients wait for news of one. Used from the serving loop, the background loop and
threads."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from assay.core.access import Principal
from assay.core.run import Run
from assay.models.http import Retries
from assay.workspace.facade import Workspace

BUFFERED_FRAMES = 64  # buffered events of an active run


@dataclass(frozen=True, slots=True)
class EventFrame:
    """One event as sent: `body` is an `EventView` as JSON."""

    seq: int
    kind: str
    body: str


@dataclass
class ActiveRun:
    """A run in progress."""

    id: str
    who: str
    run: Run
    task: asyncio.Task[None] | None = None
    frames: deque[EventFrame] = field(default_factory=lambda: deque(maxlen=BUFFERED_FRAMES))
    titles: dict[str, str] = field(default_factory=dict)
    parked: bool = False  # stopped with the server: stays listed, to be resumed by the next server
    stopping: bool = False  # on request of another process
    retries: Retries = field(default_factory=Retries)


class Watchers:
    """Clients that wait for news of something, by its id. They wait on the serving loop; news comes from anywhere."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None  # the serving loop
        self.waiting: dict[str, set[asyncio.Event]] = {}

    @contextmanager
    def watching(self, id: str) -> Iterator[asyncio.Event]:
        """An event that is set whenever something has happened."""
        woken = asyncio.Event()
        self.waiting.setdefault(id, set()).add(woken)
        try:
            yield woken
        finally:
            own = self.waiting.get(id, set())
            own.discard(woken)
            if not own:
                self.waiting.pop(id, None)

    def wake(self, id: str) -> None:
        """From any thread."""
        if id in self.waiting:
            self.call(lambda: self.wake_here([id]))

    def wake_here(self, ids: Iterable[str]) -> None:
        """On the serving loop."""
        for id in ids:
            for each in self.waiting.get(id, ()):
                each.set()

    def call(self, work: Callable[[], None]) -> None:
        if self.loop is not None:
            self.loop.call_soon_threadsafe(work)


class RunRegistry:
    """The runs that are worked on here, those that are due to be resumed here, and, as of the last look, all in progress."""

    def __init__(self) -> None:
        self.active: dict[str, ActiveRun] = {}
        self.due: dict[str, Principal] = {}  # interrupted with an earlier server, until resumed
        self.listed: dict[str, str] = {}  # run → who, of all processes
        self.watchers = Watchers()
        self.lock = threading.Lock()
        self.closing = False  # no new work is accepted
        self.closed = False  # all work has stopped

    def trouble(self, run_id: str, who: str) -> str:
        """What is said of requests of a run that are sent again here."""
        with self.lock:
            own = self.active.get(run_id)
        return own.retries.line if own is not None and own.who == who else ""

    def here(self) -> set[str]:
        """The runs that are active here or about to be."""
        with self.lock:
            return {*self.active, *self.due}

    def under_way(self, run_id: str) -> bool:
        with self.lock:
            return run_id in self.active or run_id in self.due

    def under_way_anywhere(self, workspace: Workspace, run_id: str) -> bool:
        """The same for all processes. Reads the store, so call it in a thread."""
        return self.under_way(run_id) or (not self.closing and workspace.underway.is_listed(run_id))

    def count_for(self, who: str) -> int:
        """The number of active runs of a user, here and, as of the last look, at other processes."""
        with self.lock:
            elsewhere = sum(asker == who for run, asker in self.listed.items() if run not in self.active)
            return elsewhere + sum(own.who == who for own in self.active.values())

    def enter(self, own: ActiveRun) -> None:
        with self.lock:
            self.active[own.id] = own
            self.due.pop(own.id, None)

    def leave(self, own: ActiveRun, *, handed_over: bool = False) -> None:
        with self.lock:
            self.active.pop(own.id, None)
            if handed_over:
                self.listed[own.id] = own.who

    def no_longer_due(self, run_id: str) -> Principal | None:
        with self.lock:
            return self.due.pop(run_id, None)
