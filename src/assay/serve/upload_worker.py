"""Processes upload jobs: one at a time for each person and each base, in the background loop, regardless of clients. Where more
people wait than there are places, they take turns: a job that has had its turn is parked before its next file. The store is
the source of truth: a process holds a lease on each job that it works on, and another resumes those of one that has died."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from assay.core.access import Base, Principal
from assay.core.errors import AssayError, StoreError, UserError
from assay.core.types import UPLOAD
from assay.ingest.parsed import Parsed, Unreadable, file_limits
from assay.ingest.pdf import ocr
from assay.ingest.pipeline import Progress
from assay.ingest.sandbox.runner import Sandbox
from assay.ingest.sources import SourceFile
from assay.ingest.workers import DocumentReader
from assay.serve.background import BackgroundLoop
from assay.serve.run_registry import Watchers
from assay.workspace.facade import Workspace
from assay.workspace.stored import (
    CANCELLED,
    DONE,
    FAILED,
    Job,
    JobFile,
    Uploads,
    is_elsewhere,
    this_process,
)

log = logging.getLogger("assay.serve")

JOBS_AT_ONCE = 3
TURN = 20.0  # seconds after which a job makes room for another person's, at its next file
PACE = 0.4  # seconds between two progress checks
SOON = 2.0  # seconds for a stopped job to end on its own before it is cancelled
PAUSE = 30.0  # seconds until a retry after the start or end of a job could not be saved: the disk may be full
HEARTBEAT = 15.0
POLL = 1.0  # seconds between two looks at a job that another process works on, if nobody tells of its changes
# Seconds without a change after which files that belong to no job are no longer arriving at another server. A server puts them
# in a bucket a few at a time, each within minutes, and then records the job.
ARRIVAL = 3600.0

WorkspaceForPrincipal = Callable[[Principal], Workspace]


class UploadWorker:
    """One per process. Methods are called from the serving loop, the work runs in the background loop. Before `take_up`, and
    in a process that only serves requests, jobs are left to others."""

    def __init__(
        self,
        background: BackgroundLoop,
        workspace: Workspace,
        process: str = "",
        *,
        shared: bool = False,
        hears: Callable[[], bool] = lambda: False,
    ) -> None:
        self.background = background
        self._workspace = workspace
        self._process = process or this_process()
        self._shared = shared  # other processes use the workspace too
        self._hears = hears  # whether this process is told of their changes
        self._for_principal: WorkspaceForPrincipal | None = None
        self._works: dict[str, RunningJob] = {}  # by job; changed only in the background loop
        self._turns: dict[str, float] = {}  # when a person's last turn ended
        self._lock = threading.Lock()
        self._arriving: set[str] = set()
        self.watchers = Watchers()
        self.closing = False

    @property
    def uploads(self) -> Uploads:
        return self._workspace.context.uploads

    @contextlib.asynccontextmanager
    async def arrival(self, job: str) -> AsyncIterator[Path]:
        """A folder for the files of a job, which are kept until the job has ended; deleted if something fails before it has
        begun."""
        with self._lock:
            self._arriving.add(job)
        try:
            yield await asyncio.to_thread(self.uploads.receiving, job)
        except BaseException:
            await self._discard(job)
            raise
        finally:
            with self._lock:
                self._arriving.discard(job)

    async def begin(self, job: str, principal: Principal, base: str, files: list[JobFile]) -> None:
        """Keep the files that have arrived, then record the job. From now on they are read, whoever leaves or dies."""
        await asyncio.to_thread(self.uploads.keep, job)
        await asyncio.to_thread(self._workspace.jobs.begin, job, principal, base, files)

    async def sweep(self) -> None:
        """Delete files that belong to no job: a process was killed during an upload, or before its cleanup."""
        try:
            for stray in await asyncio.to_thread(self._strays):
                await self._discard(stray)
        except AssayError as error:
            log.warning("received files that no job needs could not be looked for: %s", error)

    def _strays(self) -> set[str]:
        patience = time.time() - ARRIVAL if self._shared else float("inf")
        there = {job for job, changed in self.uploads.jobs().items() if changed < patience}
        with self._lock:
            arriving = set(self._arriving)  # read before the store: uploads complete by then are stored
        return there - arriving - self._workspace.jobs.going() if there else set()

    async def _discard(self, job: str) -> None:
        """Delete the files of a job. Those that cannot be deleted now are swept later."""
        try:
            await asyncio.to_thread(self.uploads.delete, job)
        except StoreError as error:
            log.warning("the files of job %s could not be deleted: %s", job, error)

    async def take_up(self, for_principal: WorkspaceForPrincipal) -> None:
        """Start processing uploads, waiting ones first. `for_principal` returns the workspace scoped to a user."""
        self._for_principal = for_principal
        await self.wake()

    async def wake(self) -> None:
        """Check for new jobs. Waits for no job."""
        if self._for_principal is not None:
            await self.background.run(self._begin())

    async def _begin(self) -> None:
        """Start as many jobs as allowed: first those of people whose turn was longest ago, never two of one person or base."""
        for job, base in await asyncio.to_thread(self._waiting):
            if self.closing or len(self._works) >= JOBS_AT_ONCE:
                return
            if self._may_start(job, base):
                work = self._works[job.id] = RunningJob(job, base, passages=job.passages)
                work.task = asyncio.ensure_future(self._do(work))

    def _may_start(self, job: Job, base: str) -> bool:
        return all(base != work.base and job.who != work.job.who for work in self._works.values())

    def _waiting(self) -> list[tuple[Job, str]]:
        """The unfinished jobs that no other process works on, without those of a person or base that one works for."""
        unfinished = self._unfinished()
        elsewhere = self._elsewhere(unfinished)
        people, bases = {job.who for job, _ in elsewhere}, {base for _, base in elsewhere}
        return [(job, base) for job, base in unfinished if job.who not in people and base not in bases]

    def _unfinished(self) -> list[tuple[Job, str]]:
        unfinished = self._workspace.jobs.unfinished()  # the oldest first
        unfinished.sort(key=lambda job: self._turns.get(job.who, 0.0))
        return [(job, self._base_of(job)) for job in unfinished]

    def _elsewhere(self, unfinished: list[tuple[Job, str]]) -> list[tuple[Job, str]]:
        """Those of the jobs that other processes work on."""
        now = self._workspace.store.now()
        return [(job, base) for job, base in unfinished if is_elsewhere(job, self._process, now)]

    def _base_of(self, job: Job) -> str:
        """The id of the job's base: its name is user-specific, and others may use the same one."""
        for_principal = self._for_principal or self._workspace.for_principal
        try:
            return for_principal(job.principal).scope().named(job.base).id
        except AssayError:
            return f"{job.who}/{job.base}"  # deleted or no longer accessible: the job will report it

    async def _do(self, work: RunningJob) -> None:
        """Process one job. Its end is always recorded, and the next one starts."""
        job, jobs = work.job, self._workspace.jobs
        try:
            if await asyncio.to_thread(jobs.start, job.id, self._process):
                state, error = await self._ended(work)
                if state:
                    await asyncio.to_thread(jobs.end, job.id, state, error, self._process)
                    if job.id not in await asyncio.to_thread(jobs.going):  # otherwise another process has it now
                        await self._discard(job.id)
                elif work.parked:
                    await asyncio.to_thread(jobs.park, job.id, self._process)
                else:
                    await asyncio.to_thread(jobs.release, job.id, self._process)
        except AssayError:
            log.exception("the ending of job %s could not be written down", job.id)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(work.stop.wait(), PAUSE)
        finally:
            self._works.pop(job.id, None)
            self._turns[job.who] = time.monotonic()
            self.watchers.wake(job.id)
            if not self.closing:
                await self._begin()

    async def _ended(self, work: RunningJob) -> tuple[str, str]:
        """The final state of the job; empty if it is left to the next server."""
        try:
            assert self._for_principal is not None
            workspace = await asyncio.to_thread(
                self._for_principal, work.job.principal
            )  # with their current access, not that of the upload
            work.adding = asyncio.ensure_future(read_files(workspace, work, self.uploads))
            await self._watched(work, work.adding)
            if work.cancelled and work.left:
                await asyncio.to_thread(discard_unfinished, workspace, work)
        except Exception as error:
            log.warning("job %s failed", work.job.id, exc_info=error)
            return FAILED, describe_failure(error)
        if work.stop.is_set() and work.left:
            return (CANCELLED, "") if work.cancelled else ("", "")
        return DONE, ""

    async def _watched(self, work: RunningJob, adding: asyncio.Task[None]) -> None:
        """Wait for the files to be processed, and save the progress periodically. A stop is no failure."""
        passages, at = 0, work.seconds
        while True:
            await asyncio.wait([adding], timeout=PACE)
            if work.ended or work.passages != passages or work.seconds - at > SOON or adding.done():
                passages, at, ended, work.ended = work.passages, work.seconds, work.ended, []
                await asyncio.to_thread(
                    self._workspace.jobs.note, work.job.id, work.passages, work.seconds, ended, self._process
                )
                self.watchers.wake(work.job.id)
            if adding.done():
                break
            await self._take_turns(work, adding)
        error = asyncio.CancelledError() if adding.cancelled() else adding.exception()
        if error is not None and not (work.stop.is_set() and is_stopped(error)):
            raise error

    async def _take_turns(self, work: RunningJob, adding: asyncio.Task[None]) -> None:
        """Park a job that has had its turn if somebody else waits for a place. What it has embedded so far is kept."""
        late = time.monotonic() - work.began > TURN and work.progressed
        if late and not work.parked and len(self._works) >= JOBS_AT_ONCE:
            waiting = await asyncio.to_thread(self._waiting)
            people = {job.who for job, base in waiting if self._may_start(job, base)}
            work.parked = sum(each.parked for each in self._works.values()) < len(people)
        if work.parked and not work.reading:
            work.stop.set()
            adding.cancel()

    async def cancel(self, job: Job) -> None:
        """Stop a job now. Files that are already searchable stay, the others are dropped."""
        if job.going:
            await self.background.run(self._cancel(job))

    async def _cancel(self, job: Job) -> None:
        work = self._works.get(job.id)
        if work is not None:
            work.cancelled = True
            await self._stop([work])
            return
        await asyncio.to_thread(self._workspace.jobs.end, job.id, CANCELLED)  # noticed by whoever works on it
        if not is_elsewhere(job, self._process, self._workspace.store.now()):
            await self._discard(job.id)
        self.watchers.wake(job.id)

    async def _stop(self, works: list[RunningJob]) -> None:
        for work in works:
            work.stop.set()
        tasks = {work.task: work for work in works if work.task is not None}
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=SOON)
        for task in late:  # it is in a long operation, such as embedding a book
            if (adding := tasks[task].adding) is not None:
                adding.cancel()
        if late:
            await asyncio.wait(late)

    async def cancel_all(self, base: Base) -> None:
        """Stop all jobs that write to this base."""
        for job, filled in await asyncio.to_thread(self._unfinished):
            if filled == base.id:
                await self.cancel(job)

    async def fills(self, base: Base) -> bool:
        """Whether files are being added to this base now, here or by another process."""
        here = any(work.base == base.id for work in list(self._works.values()))
        unfinished = [] if here else await asyncio.to_thread(self._unfinished)
        return here or any(filled == base.id for _, filled in self._elsewhere(unfinished))

    async def close(self) -> None:
        """Shut down: processing stops where it is, and jobs stay listed."""
        self.closing = True
        await self.background.run(self._stop(list(self._works.values())))
        self.watchers.wake_here(list(self.watchers.waiting))

    async def look(self) -> None:
        """See what other processes have done: stop jobs here that were cancelled there, take up those that nobody works on,
        and wake the clients that follow any."""
        if self._works:
            await self.background.run(self._let_go())
        await self.wake()
        self.watchers.wake_here(list(self.watchers.waiting))

    async def renew(self) -> None:
        """Renew the leases of the jobs here."""
        here = [job for job, work in list(self._works.items()) if work.adding is not None]
        if here:
            await asyncio.to_thread(self._workspace.jobs.renew, self._process, here)

    async def _let_go(self) -> None:
        """Stop the jobs here that were cancelled, or that another process has taken up."""
        here = {job: work for job, work in self._works.items() if work.adding is not None and not work.stop.is_set()}
        jobs = self._workspace.jobs
        lost = here.keys() - await asyncio.to_thread(jobs.held, self._process) if here else set[str]()
        going = await asyncio.to_thread(jobs.going) if lost else set[str]()
        for job in lost:
            here[job].cancelled = job not in going
            here[job].stop.set()

    async def follow(self, job: str, who: str) -> AsyncIterator[Job | None]:
        """The job on every change, until it ends or the server closes; None is a heartbeat."""
        last: Job | None = None
        with self.watchers.watching(job) as woken:
            while True:
                woken.clear()
                now = await asyncio.to_thread(self._workspace.jobs.get, job, who)
                if now != last:
                    yield now
                    last = now
                if self.closing or not now.going:
                    return
                try:
                    await asyncio.wait_for(woken.wait(), POLL if self._shared and not self._hears() else HEARTBEAT)
                except TimeoutError:
                    yield None


T = TypeVar("T")

FULL = "The disk is full. Free some space, then send the files again."
BROKEN = "Assay broke down while it read these files; the log says where."
READING = "reading"  # the status of a file from when it is opened until it can be asked about
PATIENCE = 5.0  # seconds to wait for another process that writes to the same base


class JobStopped(Exception):
    """The job was cancelled, or the server is closing."""


@dataclass
class RunningJob:
    """A running job: the progress since it was last saved."""

    job: Job
    base: str  # id of the target base
    left: dict[str, list[int]] = field(default_factory=dict)  # unfinished files, by their future location
    again: dict[int, dict[str, Any]] = field(
        default_factory=dict
    )  # files that are read once more, with OCR: where they belong
    task: asyncio.Task[None] | None = None
    adding: asyncio.Task[None] | None = None
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: bool = False
    parked: bool = False  # it stops before the next file, because somebody else waits; it goes on later
    reading: bool = False  # a file is being parsed, which would begin again from the start
    progressed: bool = False  # in this turn: a file has ended, or passages were embedded that will not be again
    passages: int = 0
    began: float = field(default_factory=time.monotonic)
    ended: list[JobFile] = field(default_factory=list)  # or begun

    def begin(self, name: str) -> None:
        """The next file of this name is read from now on."""
        uri = next((uri for uri in self.left if Path(uri.removeprefix(UPLOAD)).name == name), "")
        if uri:
            number = self.left[uri][0]
            self.ended.append(JobFile(number, uri, 0, "", {**self.again.get(number, {}), "status": READING}))

    def hear(self, progress: Progress) -> None:
        """Called by the pipeline; does not write to the store."""
        self.passages = max(self.passages, self.job.passages + progress.passages)
        self.progressed = self.progressed or progress.embedded > 0 or progress.report is not None
        file_report = progress.report
        if file_report is None or file_report.path not in self.left:
            return
        numbers = self.left[file_report.path]
        report = {name: getattr(file_report, name) for name in ("status", "why", "title", "pages", "passages")}
        self.ended.append(JobFile(numbers.pop(0), file_report.path, 0, file_report.outcome, report))
        if not numbers:
            del self.left[file_report.path]

    @property
    def seconds(self) -> float:
        return round(self.job.seconds + time.monotonic() - self.began, 3)


@dataclass(frozen=True, slots=True)
class StoppableReader:
    """A reader that stops at once when told to, and a job that is parked before its next file: files are left unchanged."""

    reader: DocumentReader
    work: RunningJob

    async def read(self, data: Path | bytes, name: str) -> Parsed | Unreadable:
        stop = self.work.stop
        if self.work.parked:
            stop.set()
            raise JobStopped
        self.work.reading = True
        self.work.begin(name)
        reading = asyncio.ensure_future(self.reader.read(data, name))
        stopping = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait([reading, stopping], return_when=asyncio.FIRST_COMPLETED)
            if stop.is_set():
                raise JobStopped
            return reading.result()
        finally:
            self.work.reading = False
            stopping.cancel()
            reading.cancel()


def writable_base(workspace: Workspace, name: str) -> Base:
    """The base of that name, if it exists and this user may write to it."""
    base = workspace.scope().named(name)
    if not workspace.principal.owns(base):
        raise UserError(f"The knowledge base {base.name!r} is not yours to change.")
    return base


async def change_base(workspace: Workspace, base: Base, change: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Change what is in a base, in a thread with its own loop: work on the index must not block other work. Raises if another
    process writes to the base: that may take an hour, and a response does not wait that long."""

    async def changed() -> T:
        async with workspace.context.writer_lock(base, PATIENCE):
            pass
        return await change()

    return await asyncio.to_thread(asyncio.run, changed())


async def read_files(workspace: Workspace, work: RunningJob, uploads: Uploads) -> None:
    """Process the remaining files of a job. Each is fetched when its turn comes."""
    job, settings = work.job, workspace.settings
    await asyncio.to_thread(writable_base, workspace, job.base)
    files = await asyncio.to_thread(workspace.jobs.files, job.id)
    with ExitStack() as held:
        folder = held.enter_context(uploads.reading(job.id))
        sources: list[SourceFile] = []
        for each in files:
            if not each.outcome:
                fetch = partial(uploads.fetch, job.id, each.n, folder)
                uri, name = str(each.report.get("uri") or UPLOAD + each.name), Path(each.name).name
                if each.report.get("ocr"):
                    work.again[each.n] = {"uri": uri, "ocr": True}
                sources.append(SourceFile(uri, name, folder / str(each.n), fetch=fetch))
                work.left.setdefault(sources[-1].uri, []).append(each.n)
        sandbox = held.enter_context(closing(Sandbox(limits=file_limits(settings))))
        asked = settings.ocr or bool(work.again)
        reader = ocr.OcrReader(sandbox, settings.ocr_languages) if asked else sandbox
        try:
            await workspace.documents.add_sources(
                sources, job.base, say=work.hear, reader=StoppableReader(reader, work)
            )
        finally:
            await asyncio.to_thread(held.close)


def discard_unfinished(workspace: Workspace, work: RunningJob) -> None:
    """Discard documents that were cancelled before becoming searchable; their previous versions stay."""
    from assay.ingest.pipeline import forget_originals

    base = writable_base(workspace, work.job.base)
    begun = [entry for entry in workspace.documents.pending(base) if entry.uri in work.left]
    workspace.documents.forget([entry.id for entry in begun], base)
    forget_originals(workspace.store, workspace.context.blobs, workspace.path, {entry.digest for entry in begun})


def causes(error: BaseException) -> list[BaseException]:
    """The underlying errors, without the exception groups of the pipeline's stages."""
    if isinstance(error, BaseExceptionGroup):
        return [cause for each in error.exceptions for cause in causes(each)]
    return [error]


def is_stopped(error: BaseException) -> bool:
    return all(isinstance(each, JobStopped | asyncio.CancelledError) for each in causes(error))


def describe_failure(error: BaseException) -> str:
    """The error message for the uploader."""
    for each in causes(error):
        if isinstance(each, AssayError):
            return str(each)
        if isinstance(each, OSError) and each.errno in {errno.ENOSPC, errno.EDQUOT}:
            return FULL
    return BROKEN
