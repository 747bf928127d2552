"""Runs parsers in restricted child processes, so that a hostile document can harm nothing but its own process.

The parent sends bytes and gets a `Parsed`, or an `Unreadable` that says what to do. No path is ever sent.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import socket
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from assay.core.codec import digest, from_json, to_json
from assay.core.errors import UserError
from assay.core.figures import check_figures
from assay.core.formats import format_of_suffix
from assay.core.tables import check_tables
from assay.ingest.parsed import FileLimits, PageBox, Parsed, Status, Unreadable
from assay.ingest.sandbox import process
from assay.ingest.sandbox.process import CRASHED, ParserProcess, package_root, unguarded
from assay.ingest.scan import SeenPage, check_scan

READER = "assay.ingest.formats.detect:read"
# Imported or called before a process is forked, since each file has its own. Parsers import some of these when they need them.
FOR_ALL = "assay.ingest.formats.detect:rehearse", "html", "importlib.readers"
FOR_PDF = ("assay.ingest.pdf.reader",)
FOR_OCR = (*FOR_PDF, "assay.ingest.pdf.recognise")
NO_PROCESS = "parsers cannot be started in a process of their own"
PROBE_SECONDS = 30.0
DRAWN_AT_ONCE = 2  # pages
T = TypeVar("T")
Box = tuple[float, float, float, float]


class Sandbox:
    """A pool of parser processes. `read` may be awaited from any event loop; `read_now` is for threads."""

    def __init__(
        self, limits: FileLimits | None = None, *, workers: int = 1, reader: str = READER, path: tuple[str, ...] = ()
    ) -> None:
        self.limits = limits or FileLimits()
        self._setting = {"limits": to_json(self.limits), "reader": reader, "path": [*path, package_root()]}
        # The threads live as long as the sandbox, because a process dies with the thread that started it.
        self._threads = ThreadPoolExecutor(max(1, workers), thread_name_prefix="sandbox")
        self._lock = threading.Lock()
        self._idle: list[ParserProcess] = []
        self._busy: set[ParserProcess] = set()
        self._closed = False
        self.missing: tuple[str, ...] = ()  # guards that the processes so far did not have

    async def check_guards(self) -> None:
        """Raise if the limits require guards that are missing. No file is read then, with or without this check."""
        if self.limits.require_guards and (missing := await self._in_thread(self._start_one)):
            raise UserError(unguarded(missing))

    async def read(self, data: Path | bytes, name: str = "") -> Parsed | Unreadable:
        """The document in a file or in bytes; `name` helps to detect the format."""
        return await self._in_thread(lambda job: self._read(job, data, name))

    def read_now(self, source: Path | bytes, name: str = "") -> Parsed | Unreadable:
        return self._threads.submit(self._read, ParserJob(), source, name).result()

    async def boxes(
        self,
        source: Path | bytes,
        start: int,
        end: int,
        words: str = "",
        pages: Sequence[int] = (),
        owner: str = "",
        mixed: bool = False,
    ) -> list[PageBox] | Unreadable:
        """The boxes of a span of a PDF's text on its pages. With its own words and the page offsets, only the pages around it
        have to be read. The process that has the file is asked again, for the same owner only. `mixed`: OCR read some pages."""
        span = {"start": start, "end": end, "words": words, "pages": list(pages), "mixed": mixed}
        return await self._in_thread(
            lambda job: self._ask(job, source, "boxes", span, lambda found, _: from_json(list[PageBox], found), owner)
        )

    async def pictures(self, source: Path | bytes) -> list[int] | Unreadable:
        """The pages of a PDF, counted from 1, that are pictures of text."""
        return await self._in_thread(
            lambda job: self._ask(job, source, "pictures", {}, lambda found, _: from_json(list[int], found))
        )

    async def recognise(self, source: Path | bytes, page: int) -> SeenPage | Unreadable:
        """What OCR sees on a page, counted from 1, in a process that may start threads."""
        return await self._in_thread(
            lambda job: self._ask(job, source, "recognise", {"page": page}, lambda found, _: from_json(SeenPage, found))
        )

    async def read_seen(self, source: Path | bytes, name: str, seen: Sequence[SeenPage]) -> Parsed | Unreadable:
        """The document, with what OCR saw on some of its pages."""
        given = {"name": name, "seen": [to_json(each) for each in seen]}
        return await self._in_thread(
            lambda job: self._ask(job, source, "read_seen", given, lambda found, _: validate_parsed(found, self.limits))
        )

    async def page_image(
        self,
        source: Path | bytes,
        page: int,
        *,
        scale: float = 0.0,
        width: int = 0,
        owner: str = "",
        box: Box | None = None,
    ) -> bytes | Unreadable:
        """A page of a PDF, counted from 1, or the part of it in a box, as a PNG: `width` pixels wide, or with `scale` pixels
        per point."""
        which = {"page": page, "scale": scale, "width": width} | ({"box": box} if box else {})
        return await self._in_thread(
            lambda job: self._ask(job, source, "page_image", which, lambda _, blob: blob, owner)
        )

    def rest(self) -> None:
        """End the idle processes, and the others as soon as they are done; the next request starts new ones."""
        with self._lock:
            idle, self._idle = self._idle, []
            for child in self._busy:
                child.retired = True
        for child in idle:
            child.end()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, busy = list(self._idle), list(self._busy)
            self._idle.clear()
        for child in idle:  # before the threads end, and with them what they started
            child.end()
        for child in busy:
            child.kill()
        self._threads.shutdown(wait=True, cancel_futures=True)
        for child in busy:
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
            with self._lock:
                job.cancelled = True
                if job.child is not None:
                    job.child.kill()
            raise

    def _start_one(self, job: ParserJob) -> Sequence[str]:
        with self._process(job, "") as child:
            return child.missing if child.start_file() else (NO_PROCESS,)

    def _read(self, job: ParserJob, source: Path | bytes, name: str) -> Parsed | Unreadable:
        name = name or (source.name if isinstance(source, Path) else "")
        return self._ask(job, source, "read", {"name": name}, lambda found, _: validate_parsed(found, self.limits))

    def _ask(
        self,
        job: ParserJob,
        source: Path | bytes,
        task: str,
        arguments: dict[str, Any],
        take: Callable[[Any, bytes], T],
        owner: str = "",
    ) -> T | Unreadable:
        reads, ocr = task in {"read", "read_seen"}, task == "recognise"  # to read, always in a new process
        key = "" if reads else f"{owner}:{source if isinstance(source, Path) else digest(source)}"
        key = f"{task} {key}" if ocr else key
        modules = _modules(arguments["name"]) if reads else FOR_OCR if ocr else FOR_PDF
        with self._process(job, key) as child:
            load = partial(load_source, source, self.limits)
            answer = child.ask(task, arguments, load, 2 * self.limits.seconds, key=key, modules=modules, threads=ocr)
            if isinstance(answer, Unreadable):
                return answer
            try:
                return take(answer[0].get("found"), answer[1])
            except (ValueError, TypeError, KeyError, RecursionError):
                child.kill()  # an invalid answer: no genuine parser sends it
                return Unreadable(Status.crashed, CRASHED)

    @contextmanager
    def _process(self, job: ParserJob, key: str) -> Iterator[ParserProcess]:
        """An idle process, preferably the one that has the file; idle again afterwards, if it can be."""
        with self._lock:
            if self._closed:
                raise RuntimeError("the sandbox is closed")
            self._idle.sort(key=lambda each: bool(key) and each.key == key)
            child = job.child = self._idle.pop() if self._idle else ParserProcess(self._setting)
            self._busy.add(child)
            if job.cancelled:
                child.kill()
        try:
            yield child
        finally:
            with self._lock:
                job.child = None
                self._busy.discard(child)
                self.missing = child.missing or self.missing
                kept = child.reusable and not self._closed
                self._idle += [child] if kept else []
            if not kept:
                child.end()


class PageImages:
    """Draws pages of originals and locates citations on them. Processes of their own locate, so that neither waits for the
    other. They stay warm between requests, with their file open, until `rest`. Each owner's files have their own."""

    def __init__(self, limits: FileLimits) -> None:
        self._drawing, self._locating = Sandbox(limits, workers=DRAWN_AT_ONCE), Sandbox(limits)

    async def page_image(
        self, original: Path, page: int, width: int, owner: str = "", box: Box | None = None
    ) -> bytes | Unreadable:
        return await self._drawing.page_image(original, page, width=width, owner=owner, box=box)

    async def boxes(
        self, original: Path, start: int, end: int, words: str = "", pages: Sequence[int] = (), owner: str = ""
    ) -> list[PageBox] | Unreadable:
        return await self._locating.boxes(original, start, end, words, pages, owner)

    def rest(self) -> None:
        self._drawing.rest()
        self._locating.rest()


@dataclass(slots=True)
class ParserJob:
    """A request that is cancelled by killing the process that works on it."""

    child: ParserProcess | None = None
    cancelled: bool = False


def missing_guards() -> list[str]:
    """The guards that are missing on this system; empty if there are none."""
    with Sandbox() as sandbox:
        return list(sandbox._threads.submit(sandbox._start_one, ParserJob()).result())


def try_guards() -> tuple[list[str], dict[str, str]]:
    """The guards that are missing, and what a parser attempted: how each attempt was refused, empty if it was not."""
    child = ParserProcess({"limits": to_json(FileLimits()), "reader": READER, "path": [package_root()]})
    here = ctypes.create_string_buffer(b"a secret")
    try:
        if not process.FORKS:  # what is attempted is made of Linux's own calls
            return (list(child.missing) if child.start_file() else [NO_PROCESS]), {}
        with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as server:
            for name in ("secret", "writable", "old"):
                (Path(folder) / name).write_text(name)
            paths = {"secret": f"{folder}/secret", "writable": f"{folder}/writable", "folder": folder}
            numbers = {"parent": os.getpid(), "address": ctypes.addressof(here), "port": server.getsockname()[1]}
            answer = child.ask("probe", paths | numbers, lambda: b"", PROBE_SECONDS)
        if isinstance(answer, Unreadable):
            return [NO_PROCESS], {}
        return list(child.missing), {str(name): str(how) for name, how in answer[0]["found"].items()}
    finally:
        child.end()


def _modules(name: str) -> tuple[str, ...]:
    """What the parser of a file with this name imports."""
    named = format_of_suffix(name)
    return (*FOR_ALL, named.parser.partition(":")[0], *named.libraries) if named else FOR_ALL


def load_source(source: Path | bytes, limits: FileLimits) -> bytes | Unreadable:
    data = source if isinstance(source, bytes) else load_file(source, limits)
    if isinstance(data, bytes) and len(data) > limits.bytes:
        return Unreadable(Status.too_large, limits.describe_excess(len(data)))
    return data


def load_file(path: Path, limits: FileLimits) -> bytes | Unreadable:
    """The bytes of a regular file; never blocks on a pipe or a device."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as problem:
        why = f"It cannot be opened ({problem.strerror}); check its name and permissions."
        return Unreadable(Status.unreadable, why)
    try:
        known = os.fstat(handle)
        if not stat.S_ISREG(known.st_mode):
            return Unreadable(Status.unreadable, "It is not a file but a folder, pipe or device; name a file.")
        if known.st_size > limits.bytes:
            return Unreadable(Status.too_large, limits.describe_excess(known.st_size))
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read(limits.bytes + 1)
    except OSError as problem:
        return Unreadable(Status.unreadable, f"It cannot be read ({problem.strerror}); check the disk it is on.")
    finally:
        os.close(handle)


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
    check_scan(parsed.scan, size, len(pages))
    check_figures(parsed.figures, size, len(pages))
    return parsed
