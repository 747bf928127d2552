"""Parsers run in limited child processes: a document can crash one, fill it or take it over, and harm nothing else.

The parent hands over bytes and gets back a `Parsed`, or an `Unreadable` that says what to do. A process serves many
files, and is replaced after a failure and after a while.
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
from assay.ingest.parsed import Limits, Parsed, Status, Unreadable
from assay.ingest.pdf.box import Box
from assay.ingest.sandbox.child import CRASHED, Child, Request, package_root

READER = "assay.ingest.formats.detect:read"
FILES_PER_PROCESS = 200  # a fresh process now and then: leaks end, and no document has a neighbour for ever
T = TypeVar("T")


class Sandbox:
    """A few parser processes. `read` may be awaited from any event loop; `read_now` is for threads."""

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        workers: int = 1,
        reader: str = READER,
        path: tuple[str, ...] = (),
    ) -> None:
        self.limits = limits or Limits()
        self._setting = {"limits": to_json(self.limits), "reader": reader, "path": [*path, package_root()]}
        # The threads live as long as the jail: a child is told to die with the thread that started it.
        self._threads = ThreadPoolExecutor(max(1, workers), thread_name_prefix="jail")
        self._lock = threading.Lock()
        self._idle: list[Child] = []
        self._busy: set[Child] = set()
        self._closed = False

    async def read(self, data: Path | bytes, name: str = "") -> Parsed | Unreadable:
        """The document in a file or in bytes; `name` tells formats apart that look alike."""
        return await self._apart(lambda job: self._read(job, data, name))

    def read_now(self, source: Path | bytes, name: str = "") -> Parsed | Unreadable:
        return self._threads.submit(self._read, Job(), source, name).result()

    async def boxes(self, source: Path | bytes, start: int, end: int) -> list[Box] | Unreadable:
        """Where a span of a PDF's text stands on its pages."""
        request = Request("boxes", {"name": "", "start": start, "end": end})
        return await self._apart(
            lambda job: self._ask(job, source, request, lambda found, _: from_json(list[Box], found))
        )

    async def pages(self, source: Path | bytes) -> int | Unreadable:
        """How many pages a PDF has."""
        request = Request("pages", {"name": ""})
        return await self._apart(lambda job: self._ask(job, source, request, lambda found, _: int(found)))

    async def picture(self, source: Path | bytes, page: int, scale: float = 2.0) -> bytes | Unreadable:
        """A page of a PDF as a PNG."""
        request = Request("picture", {"name": "", "page": page, "scale": scale})
        return await self._apart(lambda job: self._ask(job, source, request, lambda _, blob: blob))

    async def told(self, request: Request, take: Callable[[Any, bytes], T]) -> T | Unreadable:
        """The answer to a request that comes without bytes: it names a file, which the process opens itself."""
        return await self._apart(lambda job: self._ask(job, b"", request, take))

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

    async def _apart(self, work: Callable[[Job], T]) -> T:
        job = Job()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work, job)
        except asyncio.CancelledError:
            job.cancel()
            raise

    def _read(self, job: Job, source: Path | bytes, name: str) -> Parsed | Unreadable:
        name = name or (source.name if isinstance(source, Path) else "")
        return self._ask(job, source, Request("read", {"name": name}), lambda found, _: checked(found, self.limits))

    def _ask(self, job: Job, source: Path | bytes, request: Request, take: Callable[[Any, bytes], T]) -> T | Unreadable:
        data = source if isinstance(source, bytes) else load(source, self.limits)
        if isinstance(data, Unreadable):
            return data
        if len(data) > self.limits.bytes:
            return too_large(len(data), self.limits)
        child = self._child()
        try:
            job.begin(child)
            answer = child.ask(request, data, 2 * self.limits.seconds)
            if isinstance(answer, Unreadable):
                return answer
            try:
                return take(answer[0].get("found"), answer[1])
            except (ValueError, TypeError, KeyError, RecursionError):
                child.kill()  # it answers in a way no parser does
                return Unreadable(Status.crashed, CRASHED)
        finally:
            job.end()
            self._give_back(child)

    def _child(self) -> Child:
        with self._lock:
            if self._closed:
                raise RuntimeError("the jail is closed")
            child = self._idle.pop() if self._idle else Child(self._setting)
            self._busy.add(child)
            return child

    def _give_back(self, child: Child) -> None:
        with self._lock:
            self._busy.discard(child)
            if child.alive and child.served < FILES_PER_PROCESS and not self._closed:
                self._idle.append(child)
                return
        child.end()


class Job:
    """What can be called off: the child that is working on it, if any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._cancelled = False

    def begin(self, child: Child) -> None:
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


def limits_here() -> list[str]:
    """What a parser's process cannot be kept from on this system; empty where every guard holds."""
    child = Child({"limits": to_json(Limits()), "reader": READER, "path": [package_root()]})
    try:
        child.start()
        return list(child.missing) if child.alive else ["parsers cannot be started in a process of their own"]
    finally:
        child.end()


def load(path: Path, limits: Limits) -> bytes | Unreadable:
    """A file's bytes; never waits on a pipe or a device."""
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
            return too_large(known.st_size, limits)
        try:
            return file.read(limits.bytes + 1)
        except OSError as problem:
            return Unreadable(Status.unreadable, f"It cannot be read ({problem.strerror}); check the disk it is on.")


def too_large(size: int, limits: Limits) -> Unreadable:
    why = f"It has {size:,} bytes, more than the limit of {limits.bytes:,}; split it or raise the limit on bytes."
    return Unreadable(Status.too_large, why)


def checked(found: Any, limits: Limits) -> Parsed:
    """A `Parsed` whose offsets hold: the process that wrote it may be in a document's hands."""
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
    return parsed
