"""Processing of the files of one job: their progress, cancellable reading, and error messages."""

from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import Callable, Coroutine
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from assay.core.access import Base
from assay.core.errors import AssayError, UserError
from assay.core.types import UPLOAD
from assay.ingest.parsed import Parsed, Unreadable, file_limits
from assay.ingest.pdf import ocr
from assay.ingest.pipeline import Progress
from assay.ingest.sandbox.runner import Sandbox
from assay.ingest.sources import SourceFile
from assay.ingest.workers import DocumentReader
from assay.workspace.facade import Workspace
from assay.workspace.stored import Job, JobFile, Uploads, documents, jobs

T = TypeVar("T")

FULL = "The disk is full. Free some space, then send the files again."
BROKEN = "Assay broke down while it read these files; the log says where."
PATIENCE = 5.0  # seconds to wait for another process that writes to the same base


class JobStopped(Exception):
    """The job was cancelled, or the server is closing."""


@dataclass
class RunningJob:
    """A running job: the progress since it was last saved."""

    job: Job
    base: str  # id of the target base
    left: dict[str, list[int]] = field(default_factory=dict)  # unfinished files, by their future location
    task: asyncio.Task[None] | None = None
    adding: asyncio.Task[None] | None = None
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: bool = False
    parked: bool = False  # it stops before the next file, because somebody else waits; it goes on later
    reading: bool = False  # a file is being parsed, which would begin again from the start
    progressed: bool = False  # in this turn: a file has ended, or passages were embedded that will not be again
    passages: int = 0
    began: float = field(default_factory=time.monotonic)
    ended: list[JobFile] = field(default_factory=list)

    def hear(self, progress: Progress) -> None:
        """Called by the pipeline; does not write to the store."""
        self.passages = max(self.passages, self.job.passages + progress.passages)
        self.progressed = self.progressed or progress.embedded > 0 or progress.report is not None
        file_report = progress.report
        if file_report is None or file_report.path not in self.left:
            return
        numbers = self.left[file_report.path]
        report = {
            "status": file_report.status,
            "why": file_report.why,
            "title": file_report.title,
            "pages": file_report.pages,
        }
        self.ended.append(
            JobFile(
                numbers.pop(0), file_report.path, 0, file_report.outcome, {**report, "passages": file_report.passages}
            )
        )
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

    @property
    def stop(self) -> asyncio.Event:
        return self.work.stop

    async def read(self, data: Path | bytes, name: str) -> Parsed | Unreadable:
        if self.work.parked:
            self.stop.set()
            raise JobStopped
        self.work.reading = True
        reading = asyncio.ensure_future(self.reader.read(data, name))
        stopping = asyncio.ensure_future(self.stop.wait())
        try:
            await asyncio.wait([reading, stopping], return_when=asyncio.FIRST_COMPLETED)
            if self.stop.is_set():
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


async def read(workspace: Workspace, work: RunningJob, uploads: Uploads) -> None:
    """Process the remaining files of a job. Each is fetched when its turn comes."""
    job, settings = work.job, workspace.settings
    await asyncio.to_thread(writable_base, workspace, job.base)
    files = await asyncio.to_thread(jobs.files, workspace.store, job.id)
    with ExitStack() as held:
        folder = held.enter_context(uploads.reading(job.id))
        sources: list[SourceFile] = []
        for each in files:
            if not each.outcome:
                fetch = partial(uploads.fetch, job.id, each.n, folder)
                sources.append(SourceFile(UPLOAD + each.name, Path(each.name).name, folder / str(each.n), fetch=fetch))
                work.left.setdefault(sources[-1].uri, []).append(each.n)
        sandbox = held.enter_context(closing(Sandbox(limits=file_limits(settings))))
        reader = ocr.OcrReader(sandbox, settings.ocr_languages) if settings.ocr else sandbox
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
    begun = [entry for entry in documents.pending(workspace.store, base) if entry.uri in work.left]
    documents.remove(workspace.store, [entry.id for entry in begun], base)
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
