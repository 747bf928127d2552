"""Runs in progress: each continues in the background loop regardless of clients. Those that another process has left are taken
up: interrupted with an earlier server, or worked on by nobody."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import suppress
from typing import Any, cast

from assay.core.access import Principal
from assay.core.errors import AssayError, CarriedOn, StoreError, Unwritable, UserError
from assay.core.events import Event, Failed
from assay.core.run import Run
from assay.governance.reviewing import shows_statements
from assay.models.http import Retries, watched
from assay.serve.background import BackgroundLoop, asks, in_background
from assay.serve.run_registry import ActiveRun, RunRegistry
from assay.serve.run_views import CANCELLED
from assay.serve.stream import build_frame
from assay.workspace.facade import Workspace
from assay.workspace.stored import ListedRun, is_elsewhere, this_process
from assay.workspace.types import Steps

log = logging.getLogger("assay.serve")

POLL = 0.5  # seconds between two looks whether another process has stopped a run
STOPPING = 10.0  # seconds to wait for another process to stop a run
STOPPED = "Stopped by the person who asked."
REMOVED = "removed"  # the error of a run whose asker is no longer a member
GONE = "The person who asked was removed."

WorkspaceFor = Callable[[Principal], Workspace]


class LiveRuns:
    """The work on runs in this process, on the background loop. A process that does not work on runs itself (`works`) records
    what it was asked for and leaves the rest to those that do."""

    def __init__(
        self,
        background: BackgroundLoop,
        present: Callable[[Principal], Principal | None],
        process: str,
        *,
        works: bool,
        most: int | None,
        has_room: Callable[[], None],
    ) -> None:
        self.background, self.works, self.process = background, works, process or this_process()
        self.runs = RunRegistry()
        self._present = present  # the current state of a user, whose groups may change during a run; None if removed
        self._most = most  # runs that are worked on here at once; None: no limit
        self._has_room = has_room  # called in the serving loop when a run has ended
        self._seen: int | None = None  # the latest record as of the last look
        self._takes = False  # runs that nobody works on are taken up when they are noticed

    @in_background
    async def begin(self, workspace: Workspace, steps: Steps) -> Run:
        """Start a run and return it once its first event is on disk; it continues when the client leaves."""
        self._open()
        run, event = await anext(steps)
        workspace.underway.begin(run.id, workspace.principal, self.process if self.works else "")
        own = ActiveRun(run.id, workspace.principal.id, run)
        if not self.works:
            await cast(AsyncGenerator[Any], steps).aclose()
            self.runs.leave(own, handed_over=True)
            return run
        self._add(workspace, own, run, event)
        self.runs.enter(own)
        self._start(workspace, own, steps)
        return run

    def _open(self) -> None:
        if self.runs.closing:
            raise StoreError("The server is closing. Try again in a moment.")

    def _start(self, workspace: Workspace, own: ActiveRun, steps: Steps) -> None:
        """Start the task of a listed run. There is no await between listing it and this, so that a listed run always
        has a task."""
        own.task = asyncio.ensure_future(self._carry(workspace, own, steps))
        own.parked = self.runs.closing  # the server began to shut down meanwhile: the next one resumes it
        if own.parked:
            asyncio.get_running_loop().call_soon(own.task.cancel)

    @in_background
    async def resume(
        self, workspace: Workspace, run_id: str, choice: str = "", words: str = "", *, if_due: bool = False
    ) -> None:
        """Resume a run that waits, failed or was interrupted. Raises before any change if that is not possible."""
        # No await before the run is active: of two concurrent requests the second finds it so.
        self._open()
        run = workspace.questions.run(run_id)  # raises if the user has no such run
        if if_due and run_id not in self.runs.due:
            return  # already stopped or resumed by someone else
        if run_id in self.runs.active:
            raise UserError(f"Run {run_id} is under way already.")
        if run.delivered:
            raise UserError(f"Run {run_id} is delivered: there is nothing to carry on.")
        if run.held:
            raise UserError(f"Run {run_id} waits for a reviewer: there is nothing to carry on before that.")
        if run.rejected:
            raise UserError(f"Run {run_id} was rejected in review; it cannot be carried on. Ask again.")
        workspace.questions.check_choice(run, choice, words)  # raises if the choice is invalid
        workspace.underway.begin(run_id, workspace.principal, self.process)
        own = ActiveRun(run_id, workspace.principal.id, run)
        self.runs.enter(own)
        steps = workspace.resume(run_id, choice, words)
        if self.works:
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
            self._let_off(workspace, own)
            raise
        else:
            self._let_off(workspace, own, ended=False)
        finally:
            self.runs.leave(own, handed_over=True)

    @in_background
    async def go_on(self, workspace: Workspace, run_id: str) -> None:
        """Resume a run after a reviewer's decision, as its asker; it may still be about to stop."""
        own = self.runs.active.get(run_id)
        if own is not None and own.task is not None:
            await asyncio.wait([own.task])
        try:
            await self.resume(workspace, run_id)
        except UserError:
            if not (workspace.underway.is_listed(run_id) or workspace.questions.run(run_id).delivered):
                raise  # otherwise another process has noticed the decision first

    async def _carry(self, workspace: Workspace, own: ActiveRun, steps: Steps) -> None:
        asks.set(own.who)
        own.retries = Retries(lambda: self.runs.watchers.wake(own.id))
        watched.set(own.retries)
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
            if not self._elsewhere(workspace, own, error):
                self._failed(workspace, own, type(error).__name__, str(error))
        except AssayError as error:
            self._failed(workspace, own, type(error).__name__, str(error))
        except Exception as error:
            log.exception("run %s broke down", own.id)
            self._failed(workspace, own, type(error).__name__, "Assay broke down; the log says where.")
        finally:
            goes_on = own.parked or own.run.held  # a held run continues after the decision
            self._let_off(workspace, own, ended=own.run.delivered or not goes_on)
            self.runs.leave(own)
            self.runs.watchers.wake(own.id)
            self.runs.watchers.call(self._has_room)

    def _let_off(self, workspace: Workspace, own: ActiveRun, *, ended: bool = True) -> None:
        """Note that a run has ended, or that this process works on it no longer."""
        try:
            if ended:
                workspace.underway.end(own.id, self.process)
            else:
                workspace.underway.release(self.process, [own.id])
        except AssayError as error:  # the next server finds it listed and nothing left to do; or its lease runs out
            log.error("the end of run %s could not be noted: %s", own.id, error)

    def _elsewhere(self, workspace: Workspace, own: ActiveRun, error: StoreError) -> bool:
        """Whether another process, such as a terminal, runs it: then its end is not recorded here. That there are more records
        than events shown does not say so: replies are recorded as they come."""
        try:
            workspace.questions.run(own.id)
            holder = next((each.process for each in workspace.underway.listing() if each.run == own.id), self.process)
            return isinstance(error, CarriedOn) or holder not in ("", self.process)
        except StoreError:
            own.parked = True  # nothing can be recorded now: it stays listed and is taken up again
            return True
        except AssayError:
            return True

    def _failed(self, workspace: Workspace, own: ActiveRun, error: str, detail: str) -> None:
        """Record the failure of a run, after the events that were recorded but not yet sent."""
        try:
            workspace.questions.mark_lost(own.id)  # requests in flight may have been charged
            owner = workspace.questions.owner(own.id)  # runs of a removed person are under another name
            if owner != workspace.principal.id:
                workspace = workspace.for_principal(Principal(owner))
            run = workspace.questions.run(own.id)
            at_rest = run.delivered or run.failed or run.waiting or run.held or run.rejected
            if not at_rest:  # a pending question to the user stays open
                workspace.questions.record(run, Failed(error, detail))
        except AssayError as problem:
            # What cannot be written now stays listed and is taken up again. What is refused (it was rejected, and its asker
            # may not see that) would be refused for ever.
            own.parked = own.parked or isinstance(problem, StoreError | Unwritable)
            log.exception("the ending of run %s could not be recorded", own.id)

    def _add(self, workspace: Workspace, own: ActiveRun, run: Run, event: Event) -> None:
        """Buffer the event for clients. It is already on disk: without clients, or for new ones, it is read from
        there."""
        if own.id not in self.runs.watchers.waiting:
            with self.runs.lock:
                own.frames.clear()  # buffered frames must be contiguous
            return
        seq = len(run.events) - 1
        at, watched = workspace.questions.recorded_at(own.id, seq), workspace.reviews.may_be_needed(own.id)
        hides = not run.delivered and shows_statements(run.asked)
        frame = build_frame(workspace, seq, at, event, own.titles, watched=watched, hides=hides)
        with self.runs.lock:
            own.frames.append(frame)
        self.runs.watchers.wake(own.id)

    async def cancel(self, workspace: Workspace, run_id: str) -> None:
        """Stop a run now, wherever it is worked on. It is recorded as stopped and can be resumed."""
        if not await self.stop_here(workspace, run_id):
            await self._until_unlisted(workspace, run_id)

    @in_background
    async def stop_here(self, workspace: Workspace, run_id: str) -> bool:
        """Whether the run has stopped; if not, the process that works on it was asked to stop it."""
        own = self.runs.active.get(run_id)
        if own is None or own.task is None or own.who != workspace.principal.id:
            return self._let_be(workspace, run_id)
        await asyncio.sleep(0)  # a task cancelled before its first step would never run its cleanup
        own.task.cancel()
        await asyncio.wait([own.task])
        return True

    def _let_be(self, workspace: Workspace, run_id: str) -> bool:
        """A run that is not active needs no stopping; one that was due to be resumed no longer is."""
        run = workspace.questions.run(run_id)  # raises if the user has no such run
        due = self.runs.no_longer_due(run_id)
        at_rest = run.delivered or run.failed or run.waiting or run.held or run.rejected
        if due is None and (at_rest or not workspace.underway.request_stop(run_id, self.process)):
            return bool(at_rest)
        own = ActiveRun(run_id, workspace.principal.id, run)
        self._failed(workspace, own, CANCELLED, STOPPED)
        self._let_off(workspace, own, ended=not own.parked)
        self.runs.watchers.wake(run_id)
        return True

    async def _until_unlisted(self, workspace: Workspace, run_id: str) -> None:
        """Wait until no process works on a run, but not for long: it stops in any case."""
        with self.runs.watchers.watching(run_id) as woken, suppress(TimeoutError):
            async with asyncio.timeout(STOPPING):
                while await asyncio.to_thread(workspace.underway.is_listed, run_id):
                    with suppress(TimeoutError):
                        await asyncio.wait_for(woken.wait(), POLL)
                    woken.clear()

    @in_background
    async def let_go(self, lost: Collection[str]) -> None:
        """Stop working on runs that another process has taken up."""
        for run_id in lost:
            own = self.runs.active.get(run_id)
            self.runs.no_longer_due(run_id)
            if own is not None and own.task is not None:
                own.parked = True
                own.task.cancel()

    @in_background
    async def stop(self, runs: Collection[str]) -> None:
        """Stop runs on request of another process."""
        for run_id in runs:
            own = self.runs.active.get(run_id)
            if own is not None and own.task is not None and not own.stopping:
                own.stopping = True
                await asyncio.sleep(0)
                own.task.cancel()

    async def park(self, grace: float) -> None:
        """Shut down: runs get a grace period, the rest stop where they are and stay listed. Clients are
        disconnected."""
        self.runs.closing = True
        await self._park(grace)
        self.runs.closed = True
        self.runs.watchers.wake_here(list(self.runs.watchers.waiting))

    @in_background
    async def _park(self, grace: float) -> None:
        with self.runs.lock:
            tasks = {own.task: own for own in self.runs.active.values() if own.task is not None}
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=grace)
            for task in late:
                tasks[task].parked = True
                task.cancel()
            if late:
                await asyncio.wait(late)

    # Runs of other processes. These are called from the serving loop.

    def expect(self, every: Workspace, *, alone: bool = True) -> None:
        """Load the runs interrupted with an earlier server before serving requests, so that their clients are not
        told that they have ended. A process that is not alone takes them up later, and shares them with the others."""
        if not self.works:
            return
        decided = {run: Principal(who) for run, who in every.reviews.undelivered()}
        with self.runs.lock:
            self.runs.due = decided | (every.underway.claim(self.process) if alone else {})

    async def take_up(self, every: Workspace, for_principal: WorkspaceFor) -> int:
        """Resume those runs, each as its asker. What cannot be resumed now stays due."""
        taken, self._takes = 0, self.works
        listed = await asyncio.to_thread(every.underway.listing) if self.runs.due else []
        stops = {each.run for each in listed if each.stop}
        for run_id, principal in list(self.runs.due.items()):
            if self.runs.closing:
                break  # the rest is left to the next server
            try:
                workspace = await asyncio.to_thread(for_principal, principal)
                if run_id in stops:
                    await self.stop_here(workspace, run_id)
                    continue
                await self.resume(workspace, run_id, if_due=True)
                taken += 1
            except (StoreError, Unwritable) as error:  # the state cannot be used now: it stays due
                if not self.runs.closing:
                    log.error("run %s is not taken up yet: %s", run_id, error)
            except AssayError as error:  # already delivered or waiting when the last server died, or erased since
                log.info("run %s was not taken up again: %s", run_id, error)
                self.runs.no_longer_due(run_id)
                if run_id not in self.runs.active:
                    await asyncio.to_thread(every.underway.end, run_id, self.process)
                self.runs.watchers.wake(run_id)
        return taken

    async def take_over(self, every: Workspace, for_principal: WorkspaceFor) -> int:
        """Take up the runs that no process works on, as far as there is room. Returns their number."""
        taken = 0
        while not self.runs.closing:
            here = self.runs.here()
            if self._most is not None and len(here) >= self._most:
                break
            # One at a time, so that several processes share them.
            claimed = await asyncio.to_thread(every.underway.claim, self.process, here, 1)
            if not claimed:
                break
            with self.runs.lock:
                self.runs.due |= claimed
            taken += await self.take_up(every, for_principal)
        return taken

    async def renew_leases(self, every: Workspace) -> None:
        """Renew the leases of the runs here. One that another process has taken up since is let go."""
        here = self.runs.here()
        lost = await asyncio.to_thread(every.underway.renew, self.process, here) if here else set[str]()
        await self.let_go(lost)

    async def look(self, every: Workspace, for_principal: WorkspaceFor) -> set[str]:
        """See what other processes have done: wake the clients that follow their runs, stop runs here that somebody wants
        stopped there, and take up those that nobody works on. Returns the runs with new records."""
        (self._seen, grown), listed, now = await asyncio.to_thread(self._read, every)
        with self.runs.lock:
            ended = self.runs.listed.keys() - {each.run for each in listed}
            self.runs.listed = {each.run: each.principal.id for each in listed}
        here = self.runs.here()
        self.runs.watchers.wake_here(grown | ended)
        if stops := [each.run for each in listed if each.stop and each.process == self.process]:
            await self.stop(stops)
        free = (each for each in listed if each.run not in here and not is_elsewhere(each, self.process, now))
        if self._takes and any(free):
            await self.take_over(every, for_principal)
        return grown

    def _read(self, every: Workspace) -> tuple[tuple[int, set[str]], list[ListedRun], str]:
        return every.questions.runs_after(self._seen), every.underway.listing(), every.store.now()
