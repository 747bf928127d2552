"""Reads what was sent: one job of a base after the other, a few bases side by side, in the engine and whoever watches. The
rows in the store are the truth, so that a server that starts takes up what another was cut off from."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from assay.core.access import Base, Principal
from assay.core.errors import AssayError
from assay.serve.engine import BackgroundLoop
from assay.serve.uploading import ingest_job
from assay.serve.uploading.ingest_job import RunningJob
from assay.store import jobs
from assay.store.jobs import CANCELLED, DONE, FAILED, Job
from assay.workspace.facade import Workspace

log = logging.getLogger("assay.serve")

UPLOADS = "uploads"  # the folder in a workspace where files wait to be read
BASES_AT_ONCE = 2
PACE = 0.4  # seconds between two looks at how far a job is
SOON = 2.0  # seconds in which a job that is stopped ends by itself; otherwise it is broken off
PAUSE = 30.0  # seconds until a job is tried again whose beginning or end could not be written down: a disk may be full
HEARTBEAT = 15.0

WorkspaceForPrincipal = Callable[[Principal], Workspace]


class UploadWorker:
    """One per server. Methods are called from the loop that serves, the work is in the engine."""

    def __init__(self, engine: BackgroundLoop, workspace: Workspace) -> None:
        self._engine = engine
        self._workspace = workspace
        self._for_principal: WorkspaceForPrincipal | None = None
        self._works: dict[str, RunningJob] = {}  # by job; only the engine changes it
        self._lock = threading.Lock()
        self._arriving: set[str] = set()
        self._serving: asyncio.AbstractEventLoop | None = None
        self._watchers: dict[str, set[asyncio.Event]] = {}
        self.closing = False

    @property
    def folder(self) -> Path:
        return self._workspace.path / UPLOADS

    # What arrives

    @contextlib.asynccontextmanager
    async def arrival(self, job: str) -> AsyncIterator[Path]:
        """A folder for the files of a job, there until the job has ended; gone with everything in it, if something fails
        before the job is written down."""
        place = self.folder / job
        with self._lock:
            self._arriving.add(job)
        try:
            await asyncio.to_thread(place.mkdir, 0o700, True)
            yield place
        except BaseException:
            await asyncio.to_thread(shutil.rmtree, place, True)
            raise
        finally:
            with self._lock:
                self._arriving.discard(job)

    def sweep(self) -> None:
        """Take away folders that no job knows of: a process was killed while files arrived, or before it had tidied up."""
        if not self.folder.is_dir():
            return
        there = {each.name for each in self.folder.iterdir()}
        with self._lock:
            arriving = set(self._arriving)  # asked before the store: what has arrived by then is written down
        for stray in there - arriving - jobs.going(self._workspace.store):
            shutil.rmtree(self.folder / stray, ignore_errors=True)

    # Doing

    async def take_up(self, for_principal: WorkspaceForPrincipal) -> None:
        """Start reading uploads, those that are waiting first. `for_principal` gives the workspace as a person may use it."""
        self._serving = asyncio.get_running_loop()
        self._for_principal = for_principal
        await asyncio.to_thread(self.sweep)
        await self.wake()

    async def wake(self) -> None:
        """There may be something to do. Waits for no job."""
        if self._for_principal is not None:
            await self._engine.run(self._begin())

    async def _begin(self) -> None:
        """Start as many jobs as may go on now, the oldest first, and never two of one base."""
        waiting = await asyncio.to_thread(self._waiting)
        for job, base in waiting:
            filled = {work.base for work in self._works.values()}
            if self.closing or len(filled) >= BASES_AT_ONCE:
                return
            if base not in filled and job.id not in self._works:
                work = self._works[job.id] = RunningJob(job, base, passages=job.passages)
                work.task = asyncio.ensure_future(self._do(work))

    def _waiting(self) -> list[tuple[Job, str]]:
        return [(job, self._base_of(job)) for job in jobs.unfinished(self._workspace.store)]

    def _base_of(self, job: Job) -> str:
        """The base that a job fills, by its id: its name is what one person calls it, and others may call theirs so."""
        for_principal = self._for_principal or self._workspace.for_principal
        try:
            return for_principal(job.principal).scope().named(job.base).id
        except AssayError:
            return f"{job.who}/{job.base}"  # gone, or not theirs any more: the job will say so

    async def _do(self, work: RunningJob) -> None:
        """One job from beginning to end. However it ends, that is written down, and the next one begins."""
        job, store = work.job, self._workspace.store
        try:
            if await asyncio.to_thread(jobs.start, store, job.id):
                state, error = await self._ended(work)
                if state:
                    await asyncio.to_thread(jobs.end, store, job.id, state, error)
                    await asyncio.to_thread(shutil.rmtree, self.folder / job.id, True)
        except AssayError:
            log.exception("the ending of job %s could not be written down", job.id)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(work.stop.wait(), PAUSE)
        finally:
            self._works.pop(job.id, None)
            self._wake(job.id)
            if not self.closing:
                await self._begin()

    async def _ended(self, work: RunningJob) -> tuple[str, str]:
        """How the job ended; no state where it is left for the server that starts next."""
        try:
            assert self._for_principal is not None
            workspace = await asyncio.to_thread(
                self._for_principal, work.job.principal
            )  # as they may now, not when they sent it
            work.adding = asyncio.ensure_future(ingest_job.read(workspace, work, self.folder / work.job.id))
            await self._watched(work, work.adding)
            if work.cancelled and work.left:
                await asyncio.to_thread(ingest_job.discard_unfinished, workspace, work)
        except Exception as error:
            log.warning("job %s failed", work.job.id, exc_info=error)
            return FAILED, ingest_job.describe_failure(error)
        if work.stop.is_set() and work.left:
            return (CANCELLED, "") if work.cancelled else ("", "")
        return DONE, ""

    async def _watched(self, work: RunningJob, adding: asyncio.Task[None]) -> None:
        """Wait for the files to be read, and write down now and then how far that is. That it was stopped is no failure."""
        passages, at = 0, work.seconds
        while True:
            await asyncio.wait([adding], timeout=PACE)
            if work.ended or work.passages != passages or work.seconds - at > SOON or adding.done():
                passages, at, ended, work.ended = work.passages, work.seconds, work.ended, []
                await asyncio.to_thread(
                    jobs.note, self._workspace.store, work.job.id, work.passages, work.seconds, ended
                )
                self._wake(work.job.id)
            if adding.done():
                break
        error = asyncio.CancelledError() if adding.cancelled() else adding.exception()
        if error is not None and not (work.stop.is_set() and ingest_job.is_stopped(error)):
            raise error

    # Stopping

    async def cancel(self, job: Job) -> None:
        """Stop a job now. Files that can be found already stay, the others are left out."""
        if job.going:
            await self._engine.run(self._cancel(job))

    async def _cancel(self, job: Job) -> None:
        work = self._works.get(job.id)
        if work is not None:
            work.cancelled = True
            await self._stop([work])
            return
        await asyncio.to_thread(jobs.end, self._workspace.store, job.id, CANCELLED)
        await asyncio.to_thread(shutil.rmtree, self.folder / job.id, True)
        self._wake(job.id)

    async def _stop(self, works: list[RunningJob]) -> None:
        for work in works:
            work.stop.set()
        tasks = {work.task: work for work in works if work.task is not None}
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=SOON)
        for task in late:  # it is in the middle of something long, such as embedding a book
            if (adding := tasks[task].adding) is not None:
                adding.cancel()
        if late:
            await asyncio.wait(late)

    async def cancel_all(self, base: Base) -> None:
        """Stop everything that fills this base."""
        for job, filled in await asyncio.to_thread(self._waiting):
            if filled == base.id:
                await self.cancel(job)

    def fills(self, base: Base) -> bool:
        """Whether files are being read into this base now."""
        return any(work.base == base.id for work in list(self._works.values()))

    async def close(self) -> None:
        """No more work: what is being read stops where it is, and stays listed."""
        self.closing = True
        await self._engine.run(self._stop(list(self._works.values())))
        for job in list(self._watchers):
            self._woken(job)

    # Watching

    def _wake(self, job: str) -> None:
        if self._serving is not None and job in self._watchers:
            self._serving.call_soon_threadsafe(self._woken, job)

    def _woken(self, job: str) -> None:
        for each in self._watchers.get(job, ()):
            each.set()

    async def follow(self, job: str, who: str) -> AsyncIterator[Job | None]:
        """The job whenever something has changed, until it ends or the server closes; nothing for a sign of life."""
        store, woken = self._workspace.store, asyncio.Event()
        self._watchers.setdefault(job, set()).add(woken)
        last: Job | None = None
        try:
            while True:
                woken.clear()
                now = await asyncio.to_thread(jobs.get, store, job, who)
                if now != last:
                    yield now
                    last = now
                if self.closing or not now.going:
                    return
                try:
                    await asyncio.wait_for(woken.wait(), HEARTBEAT)
                except TimeoutError:
                    yield None
        finally:
            own = self._watchers.get(job, set())
            own.discard(woken)
            if not own:
                self._watchers.pop(job, None)
