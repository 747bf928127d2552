"""Runs parsers in restricted child processes, so that a hostile document can harm nothing but its own process.

The parent sends bytes and gets a `Parsed`, or an `Unreadable` that says what to do. A process reads many files; it is
replaced after a failure and after `FILES_PER_PROCESS` files.
"""

from __future__ import annotations

import asyncio
import os
import stat
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from assay.core.codec import from_json, to_json
from assay.core.tables import check_tables
from assay.ingest.parsed import FileLimits, PageBox, Parsed, Status, Unreadable
from assay.ingest.sandbox.process import CRASHED, ParserProcess, ParserRequest, package_root

READER = "assay.ingest.formats.detect:read"
FILES_PER_PROCESS = 200  # bounds memory leaks and how long documents share a process
T = TypeVar("T")


class Sandbox:
    """A pool of parser processes. `read` may be awaited from any event loop; `read_now` is for threads."""

    def __init__(
        self,
        limits: FileLimits | None = None,
        *,
        workers: int = 1,
        reader: str = READER,
        path: tuple[str, ...] = (),
    ) -> None:
        self.limits = limits or FileLimits()
        self._setting = {"limits": to_json(self.limits), "reader": reader, "path": [*path, package_root()]}
        # The threads live as long as the sandbox, because a process dies with the thread that started it.
        self._threads = ThreadPoolExecutor(max(1, workers), thread_name_prefix="sandbox")
        self._lock = threading.Lock()
        self._idle: list[ParserProcess] = []
        self._busy: set[ParserProcess] = set()
        self._closed = False

    async def read(self, data: Path | bytes, name: str = "") -> Parsed | Unreadable:
        """The document in a file or in bytes; `name` helps to detect the format."""
        return await self._in_thread(lambda job: self._read(job, data, name))

    def read_now(self, source: Path | bytes, name: str = "") -> Parsed | Unreadable:
        return self._threads.submit(self._read, ParserJob(), source, name).result()

    async def boxes(self, source: Path | bytes, start: int, end: int) -> list[PageBox] | Unreadable:
        """The boxes of a span of a PDF's text on its pages."""
        request = ParserRequest("boxes", {"name": "", "start": start, "end": end})
        return await self._in_thread(
            lambda job: self._ask(job, source, request, lambda found, _: from_json(list[PageBox], found))
        )

    async def page_count(self, source: Path | bytes) -> int | Unreadable:
        """The number of pages of a PDF."""
        request = ParserRequest("pages", {"name": ""})
        return await self._in_thread(lambda job: self._ask(job, source, request, lambda found, _: int(found)))

    async def page_image(self, source: Path | bytes, page: int, scale: float = 2.0) -> bytes | Unreadable:
        """A page of a PDF as a PNG."""
        request = ParserRequest("page_image", {"name": "", "page": page, "scale": scale})
        return await self._in_thread(lambda job: self._ask(job, source, request, lambda _, blob: blob))

    async def ask(self, request: ParserRequest, take: Callable[[Any, bytes], T]) -> T | Unreadable:
        """The answer to a request without bytes: it names a file, which the process opens itself."""
        return await self._in_thread(lambda job: self._ask(job, b"", request, take))

    def close(self) -> None:
        with self._lock:
            self._closed = True
            children = [*self._idle, *self._busy]
            self._idle.clear()
        for child in children:
            child.kill()
        self._threads.shutdown(wait=True, cancel_futures=True)
        for child in children:
            child.end()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def _in_thread(self, work: Callable[[ParserJob], T]) -> T:
        job = ParserJob()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work, job)
        except asyncio.CancelledError:
            job.cancel()
            raise

    def _read(self, job: ParserJob, source: Path | bytes, name: str) -> Parsed | Unreadable:
        name = name or (source.name if isinstance(source, Path) else "")
        return self._ask(
            job, source, ParserRequest("read", {"name": name}), lambda found, _: validate_parsed(found, self.limits)
        )

    def _ask(
        self, job: ParserJob, source: Path | bytes, request: ParserRequest, take: Callable[[Any, bytes], T]
    ) -> T | Unreadable:
        data = source if isinstance(source, bytes) else load_file(source, self.limits)
        if isinstance(data, Unreadable):
            return data
        if len(data) > self.limits.bytes:
            return Unreadable(Status.too_large, self.limits.describe_excess(len(data)))
        child = self._acquire()
        try:
            job.begin(child)
            answer = child.ask(request, data, 2 * self.limits.seconds)
            if isinstance(answer, Unreadable):
                return answer
            try:
                return take(answer[0].get("found"), answer[1])
            except (ValueError, TypeError, KeyError, RecursionError):
                child.kill()  # an invalid answer: no genuine parser sends it
                return Unreadable(Status.crashed, CRASHED)
        finally:
            job.end()
            self._release(child)

    def _acquire(self) -> ParserProcess:
        with self._lock:
            if self._closed:
                raise RuntimeError("the sandbox is closed")
            child = self._idle.pop() if self._idle else ParserProcess(self._setting)
            self._busy.add(child)
            return child

    def _release(self, child: ParserProcess) -> None:
        with self._lock:
            self._busy.discard(child)
            if child.alive and child.served < FILES_PER_PROCESS and not self._closed:
                self._idle.append(child)
                return
        child.end()


class ParserJob:
    """A request that is cancelled by killing the process that works on it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: ParserProcess | None = None
        self._cancelled = False

    def begin(self, child: ParserProcess) -> None:
        with self._lock:
            self._child = child
            if self._cancelled:
                child.kill()

    def end(self) -> None:
        with self._lock:
            self._child = None

    def cancel(self) -> None:
        with self._lock:
            self._cancelled = True
            if self._child is not None:
                self._child.kill()


def missing_guards() -> list[str]:
    """The guards that are missing on this system; empty if there are none."""
    child = ParserProcess({"limits": to_json(FileLimits()), "reader": READER, "path": [package_root()]})
    try:
        child.start()
        return list(child.missing) if child.alive else ["parsers cannot be started in a process of their own"]
    finally:
        child.end()


def load_file(path: Path, limits: FileLimits) -> bytes | Unreadable:
    """The bytes of a regular file; never blocks on a pipe or a device."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as problem:
        return Unreadable(
            Status.unreadable, f"It cannot be opened ({problem.strerror}); check its name and permissions."
        )
    known = os.fstat(handle)
    if not stat.S_ISREG(known.st_mode):
        os.close(handle)
        return Unreadable(Status.unreadable, "It is not a file but a folder, pipe or device; name a file.")
    with os.fdopen(handle, "rb") as file:
        if known.st_size > limits.bytes:
            return Unreadable(Status.too_large, limits.describe_excess(known.st_size))
        try:
            return file.read(limits.bytes + 1)
        except OSError as problem:
            return Unreadable(Status.unreadable, f"It cannot be read ({problem.strerror}); check the disk it is on.")


def validate_parsed(found: Any, limits: FileLimits) -> Parsed:
    """A `Parsed` with valid offsets. The process that sent it may be compromised by a document."""
    parsed = from_json(Parsed, found)
    size = len(parsed.text)
    pages = parsed.pages
    spans = [(section.start, section.end) for section in parsed.sections] + [parsed.abstract or (0, size)]
    sound = (
        bool(parsed.text.strip())
        and size <= limits.characters
        and 0 < len(pages) <= limits.pages
        and pages[0] == 0
        and all(before <= after <= size for before, after in pairwise(pages))
        and all(0 <= start <= end <= size for start, end in spans)
    )
    if not sound:
        raise ValueError("offsets that point outside the text")
    check_tables(parsed.tables, size)
    return parsed
