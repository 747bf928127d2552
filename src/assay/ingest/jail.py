"""Parsers run in limited child processes: a document can crash one, fill it or take it over, and harm nothing else.

The parent hands over bytes and gets back a `Parsed`, or an `Unreadable` that says what to do. A process serves many
files, and is replaced after a failure and after a while.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from assay.codec import from_json, to_json
from assay.ingest import wire
from assay.ingest.parsed import Limits, Parsed, Status, Unreadable
from assay.ingest.pdf_box import Box

READER = "assay.ingest.read:read"
FILES_PER_PROCESS = 200  # a fresh process now and then: leaks end, and no document has a neighbour for ever
STARTUP_SECONDS = 60.0
BOOT = "import sys, json; sys.path[:0] = json.loads(sys.argv[1])['path']; from assay.ingest.worker import main; main()"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Request:
    """What the child is to do with the bytes."""

    task: str
    arguments: dict[str, Any]


class Jail:
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
        self._setting = {"limits": to_json(self.limits), "reader": reader, "path": [*path, _package_root()]}
        # The threads live as long as the jail: a child is told to die with the thread that started it.
        self._threads = ThreadPoolExecutor(max(1, workers), thread_name_prefix="jail")
        self._lock = threading.Lock()
        self._idle: list[Child] = []
        self._busy: set[Child] = set()
        self._closed = False

    async def read(self, source: Path | bytes, name: str = "") -> Parsed | Unreadable:
        """The document in a file or in bytes; `name` tells formats apart that look alike."""
        return await self._apart(lambda job: self._read(job, source, name))

    def read_now(self, source: Path | bytes, name: str = "") -> Parsed | Unreadable:
        return self._threads.submit(self._read, Job(), source, name).result()

    async def boxes(self, source: Path | bytes, start: int, end: int) -> list[Box] | Unreadable:
        """Where a span of a PDF's text stands on its pages."""
        request = Request("boxes", {"name": "", "start": start, "end": end})
        return await self._apart(lambda job: self._ask(job, source, request, lambda found, _: from_json(list[Box], found)))

    async def picture(self, source: Path | bytes, page: int, scale: float = 2.0) -> bytes | Unreadable:
        """A page of a PDF as a PNG."""
        request = Request("picture", {"name": "", "page": page, "scale": scale})
        return await self._apart(lambda job: self._ask(job, source, request, lambda _, blob: blob))

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

    def __enter__(self) -> Jail:
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

    def _ask(
        self, job: Job, source: Path | bytes, request: Request, take: Callable[[Any, bytes], T]
    ) -> T | Unreadable:
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


class Child:
    """One parser process, started when it is first asked."""

    def __init__(self, setting: dict[str, Any]) -> None:
        self._setting = setting
        self._memory = int(setting["limits"]["memory"])
        self._process: subprocess.Popen[bytes] | None = None
        self._timed_out = False
        self._killed = False
        self.served = 0
        self.missing: tuple[str, ...] = ()

    @property
    def alive(self) -> bool:
        return self._process is not None and not self._killed and self._process.poll() is None

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-B", "-X", "utf8", "-c", BOOT, json.dumps(self._setting)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            close_fds=True,
            start_new_session=True,
            cwd=Path(sys.executable).anchor,
            env=_environment(),
        )
        ready = self._timed(STARTUP_SECONDS, lambda: wire.receive(self._out))
        if isinstance(ready, tuple):
            self.missing = tuple(str(what) for what in ready[0].get("missing", ()))

    def ask(self, request: Request, data: bytes, seconds: float) -> tuple[dict[str, Any], bytes] | Unreadable:
        """Send one request and wait for its answer; whatever goes wrong is a status."""
        if self._process is None and not self._killed:
            self.start()
        self.served += 1
        try:
            answer = self._timed(seconds, lambda: self._exchange(request, data))
        except wire.Garbled:
            self.kill()
            return Unreadable(Status.crashed, CRASHED)
        if answer is None:
            return self._ending()
        message, blob = answer
        if message.get("last"):
            self.kill()
        if "refused" not in message:
            return message, blob
        try:
            return from_json(Unreadable, message["refused"])
        except ValueError:
            self.kill()
            return Unreadable(Status.crashed, CRASHED)

    def kill(self) -> None:
        """End the process and whatever it started. May be called from another thread while `ask` waits."""
        self._killed = True
        process = self._process
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()

    def end(self) -> None:
        """Kill it and leave nothing behind. Only for the thread that owns it."""
        self.kill()
        if self._process is not None:
            self._reap()

    def _timed(self, seconds: float, talk: Callable[[], T]) -> T | None:
        """Talk to the process, which is killed when the time is up: its pipes then close and the talk ends."""
        clock = threading.Timer(seconds, self._too_late)
        clock.daemon = True
        clock.start()
        try:
            return talk()
        except (OSError, ValueError):
            return None  # the pipe is closed; how the process ended says why
        finally:
            clock.cancel()

    def _too_late(self) -> None:
        self._timed_out = True
        self.kill()

    def _exchange(self, request: Request, data: bytes) -> tuple[dict[str, Any], bytes] | None:
        process = cast("subprocess.Popen[bytes]", self._process)
        wire.send(cast(BinaryIO, process.stdin), {"task": request.task, "with": request.arguments}, data)
        return wire.receive(self._out)

    @property
    def _out(self) -> BinaryIO:
        process = cast("subprocess.Popen[bytes]", self._process)
        return cast(BinaryIO, process.stdout)

    def _ending(self) -> Unreadable:
        code, most_memory = self._reap()
        if self._timed_out or code == -getattr(signal, "SIGXCPU", 0):
            return Unreadable(Status.too_slow, TOO_SLOW)
        if code == -9 and self._killed:
            return Unreadable(Status.crashed, "Reading was called off; add the file again.")
        if code == -9 or most_memory > 0.5 * self._memory:
            return Unreadable(Status.out_of_memory, OUT_OF_MEMORY)
        return Unreadable(Status.crashed, CRASHED)

    def _reap(self) -> tuple[int, int]:
        """How the process ended, and the most memory it held."""
        process = cast("subprocess.Popen[bytes]", self._process)
        most = 0
        if hasattr(os, "wait4") and process.returncode is None:
            with contextlib.suppress(ChildProcessError):
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                most = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        code = process.wait()
        for stream in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                cast(BinaryIO, stream).close()
        self._killed = True
        return code, most


CRASHED = "The parser broke down on it, as it does on damaged or hostile files; open it and save it again, or leave it out."
TOO_SLOW = "Reading it took longer than the limit allows; split it, or raise the limit on seconds."
OUT_OF_MEMORY = "Reading it takes more memory than the limit allows; split it, or raise the limit on memory."


def limits_here() -> list[str]:
    """What a parser's process cannot be kept from on this system; empty where every guard holds."""
    child = Child({"limits": to_json(Limits()), "reader": READER, "path": [_package_root()]})
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
        return Unreadable(Status.unreadable, f"It cannot be opened ({problem.strerror}); check its name and permissions.")
    with os.fdopen(handle, "rb") as file:
        known = os.fstat(handle)
        if not stat.S_ISREG(known.st_mode):
            return Unreadable(Status.unreadable, "It is not a file but a folder, pipe or device; name a file.")
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
        and all(before <= after <= size for before, after in zip(pages, pages[1:], strict=False))
        and all(0 <= start <= end <= size for start, end in spans)
    )
    if not sound:
        raise ValueError("offsets that point outside the text")
    return parsed


def _package_root() -> str:
    return str(Path(__file__).resolve().parents[2])


def _environment() -> dict[str, str]:
    """Nothing of the parent's settings or secrets; one thread, since a process is one file's at a time."""
    kept = {name: os.environ[name] for name in ("SYSTEMROOT", "LD_LIBRARY_PATH", "TZ") if name in os.environ}
    return kept | {"LC_ALL": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}
