"""Runs in progress: each continues in the background loop regardless of clients, and authorised clients can follow
it from any event on.

The record is the stream: a client that lags behind reads from the store at its own pace. Only the newest events of a
run are buffered in memory, once for all clients.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, cast

from assay.core.access import Principal
from assay.core.errors import AssayError, StoreError, UserError
from assay.core.events import Event, Failed
from assay.core.run import Run
from assay.serve.background import BackgroundLoop
from assay.serve.frames import EventFrame, build_frame, stored_frames
from assay.serve.run_schemas import RunState
from assay.store.database import Store
from assay.store.runs import budgets, records, reviews, underway, visibility
from assay.store.runs.underway import ListedRun, is_elsewhere, this_process
from assay.workspace.facade import Workspace

log = logging.getLogger("assay.serve")

BUFFERED_FRAMES = 64  # buffered events of an active run
READ_BATCH = 16  # events per read from the store for one client: this many are held for a client that does not read
HEARTBEAT = 15.0  # seconds of silence before a heartbeat
POLL = 0.5  # seconds between two reads of a run that another process works on, if nobody tells of its changes
LOOK = 5.0  # the same if somebody does: only a change that was missed waits as long
STOPPING = 10.0  # seconds to wait for another process to stop a run
CANCELLED = "cancelled"  # the error of a run stopped by its asker
STOPPED = "Stopped by the person who asked."
REMOVED = "removed"  # the error of a run whose asker is no longer a member
GONE = "The person who asked was removed."

Steps = AsyncIterator[tuple[Run, Event]]


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


class LiveRuns:
    """The runs of this process. Methods are called from the serving loop; the work runs in the background loop. A process
    that does not work on runs itself (`works`) records what it was asked for and leaves the rest to those that do."""

    def __init__(
        self,
        background: BackgroundLoop,
        present: Callable[[Principal], Principal | None] = lambda principal: principal,
        process: str = "",
        *,
        works: bool = True,
        most: int | None = None,
        hears: Callable[[], bool] = lambda: False,
        has_room: Callable[[], None] = lambda: None,
    ) -> None:
        self._background = background
        self._present = present  # the current state of a user, whose groups may change during a run; None if removed
        self._process = process or this_process()
        self._works = works
        self._most = most  # runs that are worked on here at once; None: no limit
        self._hears = hears  # whether this process is told of others' changes
        self._has_room = has_room  # called in the serving loop when a run has ended
        self._listed: dict[str, str] = {}  # run → who: all runs in progress anywhere, as of the last look
        self._seen: int | None = None  # the latest record as of the last look
        self._takes = False  # runs that nobody works on are taken up when they are noticed
        self._under: dict[str, ActiveRun] = {}
        self._due: dict[str, Principal] = {}  # runs interrupted with an earlier server, until resumed
        self._watchers: dict[str, set[asyncio.Event]] = {}
        self._lock = threading.Lock()
        self._serving: asyncio.AbstractEventLoop | None = None
        self.closing = False  # no new work is accepted
        self._closed = False  # all work has stopped

    def serve_on(self, loop: asyncio.AbstractEventLoop) -> None:
        """Set the loop that clients wait on."""
        self._serving = loop

    # Running

    async def begin(self, workspace: Workspace, steps: Steps) -> Run:
        """Start a run and return it once its first event is on disk; it continues when the client leaves."""
        return await self._background.run(self._begin(workspace, steps))

    async def _begin(self, workspace: Workspace, steps: Steps) -> Run:
        self._open()
        run, event = await anext(steps)
        underway.begin(workspace.store, run.id, workspace.principal, self._process if self._works else "")
        if not self._works:
            await cast(AsyncGenerator[Any], steps).aclose()
            with self._lock:
                self._listed[run.id] = workspace.principal.id
            return run
        own = ActiveRun(run.id, workspace.principal.id, run)
        self._add(workspace, own, run, event)
        with self._lock:
            self._under[run.id] = own
        self._start(workspace, own, steps)
        return run

    def _open(self) -> None:
        if self.closing:
            raise StoreError("The server is closing. Try again in a moment.")

    def _start(self, workspace: Workspace, own: ActiveRun, steps: Steps) -> None:
        """Start the task of a listed run. There is no await between listing it and this, so that a listed run always
        has a task."""
        own.task = asyncio.ensure_future(self._carry(workspace, own, steps))
        own.parked = self.closing  # the server began to shut down meanwhile: the next one resumes it
        if own.parked:
            asyncio.get_running_loop().call_soon(own.task.cancel)

    async def resume(self, workspace: Workspace, run_id: str, choice: str = "", words: str = "") -> None:
        """Resume a run that waits, failed or was interrupted. Raises before any change if that is not possible."""
        await self._background.run(self._resume(workspace, run_id, choice, words))

    async def _resume(
        self, workspace: Workspace, run_id: str, choice: str = "", words: str = "", *, if_due: bool = False
    ) -> None:
        # No await before the run is active: of two concurrent requests the second finds it so.
        self._open()
        run = workspace.questions.run(run_id)  # raises if the user has no such run
        if if_due and run_id not in self._due:
            return  # already stopped or resumed by someone else
        if run_id in self._under:
            raise UserError(f"Run {run_id} is under way already.")
        if run.delivered:
            raise UserError(f"Run {run_id} is delivered: there is nothing to carry on.")
        if run.held:
            raise UserError(f"Run {run_id} waits for a reviewer: there is nothing to carry on before that.")
        if run.rejected:
            raise UserError(f"Run {run_id} was rejected in review; it cannot be carried on. Ask again.")
        workspace.questions.check_choice(run, choice, words)  # raises if the choice is invalid
        underway.begin(workspace.store, run_id, workspace.principal, self._process)
        own = ActiveRun(run_id, workspace.principal.id, run)
        with self._lock:
            self._under[run_id] = own
            self._due.pop(run_id, None)
        steps = workspace.resume(run_id, choice, words)
        if self._works:
            self._start(workspace, own, steps)
        else:
            await self._hand_over(workspace, own, steps)

    async def _hand_over(self, workspace: Workspace, own: ActiveRun, steps: Steps) -> None:
        """Record that a run is resumed, with the choice, and leave the rest to a process that works on runs."""
        try:
            if own.run.waiting or own.run.failed:
                await anext(steps)
            await cast(AsyncGenerator[Any], steps).aclose()
        except AssayError:
            self._ended(workspace, own)
            raise
        else:
            self._released(workspace, own)
        finally:
            with self._lock:
                self._under.pop(own.id, None)
                self._listed[own.id] = own.who

    async def go_on(self, workspace: Workspace, run_id: str) -> None:
        """Resume a run after a reviewer's decision, as its asker; it may still be about to stop."""
        await self._background.run(self._go_on(workspace, run_id))

    async def _go_on(self, workspace: Workspace, run_id: str) -> None:
        own = self._under.get(run_id)
        if own is not None and own.task is not None:
            await asyncio.wait([own.task])
        try:
            await self._resume(workspace, run_id)
        except UserError:
            if not (underway.is_listed(workspace.store, run_id) or workspace.questions.run(run_id).delivered):
                raise  # otherwise another process has noticed the decision first

    async def _carry(self, workspace: Workspace, own: ActiveRun, steps: Steps) -> None:
        try:
            async for run, event in steps:
                own.run = run
                now = self._present(workspace.principal)
                if now is None:
                    await cast(AsyncGenerator[Any], steps).aclose()
                    self._failed(workspace, own, REMOVED, GONE)
                    break
                workspace.principal = now
                self._add(workspace, own, run, event)
        except asyncio.CancelledError:
            if not own.parked:
                self._failed(workspace, own, CANCELLED, STOPPED)
        except StoreError as error:
            log.error("run %s: %s", own.id, error)
            if not self._elsewhere(workspace, own):
                self._failed(workspace, own, type(error).__name__, str(error))
        except AssayError as error:
            self._failed(workspace, own, type(error).__name__, str(error))
        except Exception as error:
            log.exception("run %s broke down", own.id)
            self._failed(workspace, own, type(error).__name__, "Assay broke down; the log says where.")
        finally:
            if own.run.delivered or not (own.parked or own.run.held):  # a held run continues after the decision
                self._ended(workspace, own)
            else:
                self._released(workspace, own)
            with self._lock:
                self._under.pop(own.id, None)
            self._wake(own.id)
            if self._serving is not None:
                self._serving.call_soon_threadsafe(self._has_room)

    def _ended(self, workspace: Workspace, own: ActiveRun) -> None:
        try:
            underway.end(workspace.store, own.id, self._process)
        except AssayError as error:  # the next server finds it listed and nothing left to do
            log.error("the end of run %s could not be noted: %s", own.id, error)

    def _released(self, workspace: Workspace, own: ActiveRun) -> None:
        try:
            underway.release(workspace.store, self._process, [own.id])
        except AssayError as error:  # its lease runs out by itself
            log.error("run %s could not be released: %s", own.id, error)

    @staticmethod
    def _elsewhere(workspace: Workspace, own: ActiveRun) -> bool:
        """Whether another process, such as a terminal, runs it: then its end is not recorded here."""
        try:
            return len(workspace.questions.run(own.id).events) > len(own.run.events)
        except StoreError:
            own.parked = True  # nothing can be recorded now: it stays listed and is taken up again
            return True
        except AssayError:
            return True

    def _failed(self, workspace: Workspace, own: ActiveRun, error: str, detail: str) -> None:
        """Record the failure of a run, after the events that were recorded but not yet sent."""
        try:
            budgets.mark_lost(workspace.store, own.id)  # requests in flight may have been charged
            owner = records.owner(workspace.store, own.id)  # runs of a removed person are under another name
            if owner != workspace.principal.id:
                workspace = workspace.for_principal(Principal(owner))
            run = workspace.questions.run(own.id)
            at_rest = run.delivered or run.failed or run.waiting or run.held or run.rejected
            if not at_rest:  # a pending question to the user stays open
                workspace.questions.record(run, Failed(error, detail))
        except AssayError:
            log.exception("the ending of run %s could not be recorded", own.id)

    def _add(self, workspace: Workspace, own: ActiveRun, run: Run, event: Event) -> None:
        """Buffer the event for clients. It is already on disk: without clients, or for new ones, it is read from
        there."""
        if own.id not in self._watchers:
            with self._lock:
                own.frames.clear()  # buffered frames must be contiguous
            return
        seq = len(run.events) - 1
        at, watched = records.recorded_at(workspace.store, own.id, seq), workspace.reviews.may_be_needed(own.id)
        frame = build_frame(workspace, seq, at, event, own.titles, watched=watched)
        with self._lock:
            own.frames.append(frame)
        self._wake(own.id)

    async def cancel(self, workspace: Workspace, run_id: str) -> None:
        """Stop a run now, wherever it is worked on. It is recorded as stopped and can be resumed."""
        if not await self._background.run(self._cancel(workspace, run_id)):
            await self._until_unlisted(workspace.store, run_id)

    async def _cancel(self, workspace: Workspace, run_id: str) -> bool:
        """Whether the run has stopped; if not, the process that works on it was asked to stop it."""
        own = self._under.get(run_id)
        if own is None or own.task is None or own.who != workspace.principal.id:
            return self._let_be(workspace, run_id)
        await asyncio.sleep(0)  # a task cancelled before its first step would never run its cleanup
        own.task.cancel()
        await asyncio.wait([own.task])
        return True

    def _let_be(self, workspace: Workspace, run_id: str) -> bool:
        """A run that is not active needs no stopping; one that was due to be resumed no longer is."""
        run = workspace.questions.run(run_id)  # raises if the user has no such run
        with self._lock:
            due = self._due.pop(run_id, None)
        at_rest = run.delivered or run.failed or run.waiting or run.held or run.rejected
        if due is None and (at_rest or not underway.request_stop(workspace.store, run_id, self._process)):
            return bool(at_rest)
        own = ActiveRun(run_id, workspace.principal.id, run)
        self._failed(workspace, own, CANCELLED, STOPPED)
        self._ended(workspace, own)
        self._wake(run_id)
        return True

    async def _until_unlisted(self, store: Store, run_id: str) -> None:
        """Wait until no process works on a run, but not for long: it stops in any case."""
        with self._watching(run_id) as woken, suppress(TimeoutError):
            async with asyncio.timeout(STOPPING):
                while await asyncio.to_thread(underway.is_listed, store, run_id):
                    with suppress(TimeoutError):
                        await asyncio.wait_for(woken.wait(), POLL)
                    woken.clear()

    def under_way(self, run_id: str) -> bool:
        """Whether a run is active here or about to be."""
        with self._lock:
            return run_id in self._under or run_id in self._due

    def under_way_anywhere(self, store: Store, run_id: str) -> bool:
        """Whether a run is active here or at another process, or about to be. Reads the store, so call it in a thread."""
        return self.under_way(run_id) or (not self.closing and underway.is_listed(store, run_id))

    def count_for(self, who: str) -> int:
        """The number of active runs of a user, here and, as of the last look, at other processes."""
        with self._lock:
            elsewhere = sum(asker == who for run, asker in self._listed.items() if run not in self._under)
            return elsewhere + sum(own.who == who for own in self._under.values())

    def expect(self, store: Store, *, alone: bool = True) -> None:
        """Load the runs interrupted with an earlier server before serving requests, so that their clients are not
        told that they have ended. A process that is not alone takes them up later, and shares them with the others."""
        if not self._works:
            return
        decided = {run: Principal(who) for run, who in reviews.undelivered(store)}
        with self._lock:
            self._due = decided | (underway.claim(store, self._process) if alone else {})

    async def take_up(self, store: Store, for_principal: Callable[[Principal], Workspace]) -> int:
        """Resume those runs, each as its asker. What cannot be resumed now stays due."""
        taken, self._takes = 0, self._works
        listed = await asyncio.to_thread(underway.listing, store) if self._due else []
        stops = {each.run for each in listed if each.stop}
        for run_id, principal in list(self._due.items()):
            if self.closing:
                break  # the rest is left to the next server
            try:
                workspace = await asyncio.to_thread(for_principal, principal)
                if run_id in stops:
                    await self._background.run(self._cancel(workspace, run_id))
                    continue
                await self._background.run(self._resume(workspace, run_id, if_due=True))
                taken += 1
            except StoreError as error:  # the state cannot be used now: it stays due
                if not self.closing:
                    log.error("run %s is not taken up yet: %s", run_id, error)
            except AssayError as error:  # already delivered or waiting when the last server died, or erased since
                log.info("run %s was not taken up again: %s", run_id, error)
                with self._lock:
                    self._due.pop(run_id, None)
                    left = run_id not in self._under
                if left:
                    await asyncio.to_thread(underway.end, store, run_id, self._process)
                self._wake(run_id)
        return taken

    async def renew_leases(self, store: Store) -> None:
        """Renew the leases of the runs here. One that another process has taken up since is let go."""
        with self._lock:
            here = {*self._under, *self._due}
        lost = await asyncio.to_thread(underway.renew, store, self._process, here) if here else set[str]()
        await self._background.run(self._let_go(lost))

    async def _let_go(self, lost: set[str]) -> None:
        for run_id in lost:
            with self._lock:
                own = self._under.get(run_id)
                self._due.pop(run_id, None)
            if own is not None and own.task is not None:
                own.parked = True
                own.task.cancel()

    async def take_over(self, store: Store, for_principal: Callable[[Principal], Workspace]) -> int:
        """Take up the runs that no process works on, as far as there is room. Returns their number."""
        taken = 0
        while not self.closing:
            with self._lock:
                here = {*self._under, *self._due}
            if self._most is not None and len(here) >= self._most:
                break
            # One at a time, so that several processes share them.
            claimed = await asyncio.to_thread(underway.claim, store, self._process, here, 1)
            if not claimed:
                break
            with self._lock:
                self._due |= claimed
            taken += await self.take_up(store, for_principal)
        return taken

    async def look(self, store: Store, for_principal: Callable[[Principal], Workspace]) -> set[str]:
        """See what other processes have done: wake the clients that follow their runs, stop runs here that somebody wants
        stopped there, and take up those that nobody works on. Returns the runs with new records."""
        listed, now, (self._seen, grown) = await asyncio.to_thread(self._read, store)
        with self._lock:
            ended = self._listed.keys() - {each.run for each in listed}
            self._listed = {each.run: each.principal.id for each in listed}
            here = {*self._under, *self._due}
        for run_id in grown | ended:
            self._woken(run_id)
        if stops := [each.run for each in listed if each.stop and each.process == self._process]:
            await self._background.run(self._stop(stops))
        free = (each for each in listed if each.run not in here and not is_elsewhere(each, self._process, now))
        if self._takes and any(free):
            await self.take_over(store, for_principal)
        return grown

    def _read(self, store: Store) -> tuple[list[ListedRun], str, tuple[int, set[str]]]:
        grown = records.runs_after(store, self._seen)
        return underway.listing(store), store.now(), grown

    async def _stop(self, runs: list[str]) -> None:
        for run_id in runs:
            own = self._under.get(run_id)
            if own is not None and own.task is not None and not own.stopping:
                own.stopping = True
                await asyncio.sleep(0)
                own.task.cancel()

    async def park(self, grace: float) -> None:
        """Shut down: runs get a grace period, the rest stop where they are and stay listed. Clients are
        disconnected."""
        self.closing = True
        await self._background.run(self._park(grace))
        self._closed = True
        for run_id in list(self._watchers):
            self._woken(run_id)

    async def _park(self, grace: float) -> None:
        with self._lock:
            under = [own for own in self._under.values() if own.task is not None]
        tasks = {own.task: own for own in under if own.task is not None}
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=grace)
            for task in late:
                tasks[task].parked = True
                task.cancel()
            if late:
                await asyncio.wait(late)

    # Following

    def _wake(self, run_id: str) -> None:
        if self._serving is not None and run_id in self._watchers:
            self._serving.call_soon_threadsafe(self._woken, run_id)

    def _woken(self, run_id: str) -> None:
        for each in self._watchers.get(run_id, ()):
            each.set()

    async def follow(self, workspace: Workspace, run_id: str, after: int = -1) -> AsyncIterator[EventFrame | None]:
        """The events of a run after this one: each once, in order, as they occur, until it ends or the server
        closes. None is a heartbeat. The final state is in the store."""
        silent = 0.0
        with self._watching(run_id) as woken:
            while True:
                woken.clear()
                closed = self._closed
                here, ongoing, frames = await asyncio.to_thread(self._after, workspace, run_id, after)
                for frame in frames:
                    yield frame
                    after = frame.seq
                if len(frames) >= READ_BATCH:
                    continue  # there may be more
                if closed or not ongoing:
                    return
                pause = HEARTBEAT if here else LOOK if self._hears() else POLL
                try:
                    await asyncio.wait_for(woken.wait(), pause)
                    silent = 0.0
                except TimeoutError:
                    silent += pause
                    if silent >= HEARTBEAT:
                        silent = 0.0
                        yield None

    @contextmanager
    def _watching(self, run_id: str) -> Iterator[asyncio.Event]:
        """An event that is set whenever something has happened to a run."""
        woken = asyncio.Event()
        self._watchers.setdefault(run_id, set()).add(woken)
        try:
            yield woken
        finally:
            own = self._watchers.get(run_id, set())
            own.discard(woken)
            if not own:
                self._watchers.pop(run_id, None)

    def _after(self, workspace: Workspace, run_id: str, after: int) -> tuple[bool, bool, list[EventFrame]]:
        """Whether a run is active here and whether anywhere, both as of before the reading, so that fewer frames than a batch
        from a run that is not are its last; and its frames after this one."""
        here = self.under_way(run_id)
        ongoing = here or self.under_way_anywhere(workspace.store, run_id)
        frames = self._at_hand(run_id, workspace.principal.id, after)
        if frames is None or (frames and self._closed_to(workspace, run_id)):
            self._as_now(workspace)
            frames = stored_frames(workspace, run_id, after, READ_BATCH)
        return here, ongoing, frames

    def _as_now(self, workspace: Workspace) -> None:
        """Refresh the user's access, since a stream may last for hours. A removed user reads nothing."""
        workspace.principal = self._present(workspace.principal) or Principal("")

    def _closed_to(self, workspace: Workspace, run_id: str) -> bool:
        """Whether a run mentions something that this user may no longer read: then the buffer would show too much."""
        self._as_now(workspace)
        return visibility.hidden_since(workspace.store, run_id, workspace.scope()) is not None

    def _at_hand(self, run_id: str, who: str, after: int) -> list[EventFrame] | None:
        """The buffered frames after this one, or None if they are incomplete and the store must be read."""
        with self._lock:
            own = self._under.get(run_id)
            if own is None or own.who != who:
                return None
            frames = list(own.frames)
        if frames and frames[0].seq <= after + 1:
            return [frame for frame in frames if frame.seq > after]
        return None


def run_state(run: Run, under_way: bool) -> RunState:
    if run.delivered:
        return RunState.delivered
    if under_way:
        return RunState.running
    if run.waiting:
        return RunState.waiting
    if run.held:
        return RunState.held
    if run.rejected:
        return RunState.rejected
    if run.failed:
        return RunState.cancelled if run.failed.error == CANCELLED else RunState.failed
    return RunState.parked
