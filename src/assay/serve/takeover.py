"""Taking up runs that another process has left: those interrupted with an earlier server, and those that nobody works on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from assay.core.access import Principal
from assay.core.errors import AssayError, StoreError
from assay.serve.live import LiveRuns
from assay.workspace.facade import Workspace
from assay.workspace.stored import ListedRun, is_elsewhere, records, reviews, underway

log = logging.getLogger("assay.serve")

WorkspaceFor = Callable[[Principal], Workspace]


class RunTakeover:
    """One per process. Called from the serving loop."""

    def __init__(self, live: LiveRuns, most: int | None = None) -> None:
        self._live, self._runs, self._process = live, live.runs, live.process
        self._most = most  # runs that are worked on here at once; None: no limit
        self._seen: int | None = None  # the latest record as of the last look
        self._takes = False  # runs that nobody works on are taken up when they are noticed

    def expect(self, every: Workspace, *, alone: bool = True) -> None:
        """Load the runs interrupted with an earlier server before serving requests, so that their clients are not
        told that they have ended. A process that is not alone takes them up later, and shares them with the others."""
        if not self._live.works:
            return
        decided = {run: Principal(who) for run, who in reviews.undelivered(every.store)}
        with self._runs.lock:
            self._runs.due = decided | (underway.claim(every.store, self._process) if alone else {})

    async def take_up(self, every: Workspace, for_principal: WorkspaceFor) -> int:
        """Resume those runs, each as its asker. What cannot be resumed now stays due."""
        taken, self._takes = 0, self._live.works
        listed = await asyncio.to_thread(underway.listing, every.store) if self._runs.due else []
        stops = {each.run for each in listed if each.stop}
        for run_id, principal in list(self._runs.due.items()):
            if self._runs.closing:
                break  # the rest is left to the next server
            try:
                workspace = await asyncio.to_thread(for_principal, principal)
                if run_id in stops:
                    await self._live.stop_here(workspace, run_id)
                    continue
                await self._live.resume(workspace, run_id, if_due=True)
                taken += 1
            except StoreError as error:  # the state cannot be used now: it stays due
                if not self._runs.closing:
                    log.error("run %s is not taken up yet: %s", run_id, error)
            except AssayError as error:  # already delivered or waiting when the last server died, or erased since
                log.info("run %s was not taken up again: %s", run_id, error)
                self._runs.no_longer_due(run_id)
                if run_id not in self._runs.active:
                    await asyncio.to_thread(underway.end, every.store, run_id, self._process)
                self._runs.watchers.wake(run_id)
        return taken

    async def take_over(self, every: Workspace, for_principal: WorkspaceFor) -> int:
        """Take up the runs that no process works on, as far as there is room. Returns their number."""
        taken = 0
        while not self._runs.closing:
            here = self._runs.here()
            if self._most is not None and len(here) >= self._most:
                break
            # One at a time, so that several processes share them.
            claimed = await asyncio.to_thread(underway.claim, every.store, self._process, here, 1)
            if not claimed:
                break
            with self._runs.lock:
                self._runs.due |= claimed
            taken += await self.take_up(every, for_principal)
        return taken

    async def renew_leases(self, every: Workspace) -> None:
        """Renew the leases of the runs here. One that another process has taken up since is let go."""
        here = self._runs.here()
        lost = await asyncio.to_thread(underway.renew, every.store, self._process, here) if here else set[str]()
        await self._live.let_go(lost)

    async def look(self, every: Workspace, for_principal: WorkspaceFor) -> set[str]:
        """See what other processes have done: wake the clients that follow their runs, stop runs here that somebody wants
        stopped there, and take up those that nobody works on. Returns the runs with new records."""
        (self._seen, grown), listed, now = await asyncio.to_thread(self._read, every)
        with self._runs.lock:
            ended = self._runs.listed.keys() - {each.run for each in listed}
            self._runs.listed = {each.run: each.principal.id for each in listed}
        here = self._runs.here()
        self._runs.watchers.wake_here(grown | ended)
        if stops := [each.run for each in listed if each.stop and each.process == self._process]:
            await self._live.stop(stops)
        free = (each for each in listed if each.run not in here and not is_elsewhere(each, self._process, now))
        if self._takes and any(free):
            await self.take_over(every, for_principal)
        return grown

    def _read(self, every: Workspace) -> tuple[tuple[int, set[str]], list[ListedRun], str]:
        return records.runs_after(every.store, self._seen), underway.listing(every.store), every.store.now()
