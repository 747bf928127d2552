"""One parser process, as controlled by its parent: start, request, timeout, reaping.

Every request gets an answer, whatever happens to the process: the result, or a status with the reason.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from assay.core.codec import from_json
from assay.ingest.parsed import Status, Unreadable
from assay.ingest.sandbox import protocol

STARTUP_SECONDS = 60.0
BOOT = "import sys, json; sys.path[:0] = json.loads(sys.argv[1])['path']; from assay.ingest.sandbox.worker import main; main()"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ParserRequest:
    """A task for the parser process and its arguments; the bytes are sent separately."""

    task: str
    arguments: dict[str, Any]


MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes


class ParserProcess:
    """A parser process, started at the first request."""

    def __init__(self, setting: dict[str, Any]) -> None:
        self._setting = setting
        self._memory = int(setting["limits"]["memory"])
        self._inherited_memory = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._timed_out = False
        self._killed = False
        self.served = 0
        self.started = False
        self.missing: tuple[str, ...] = ()

    @property
    def alive(self) -> bool:
        return self._process is not None and not self._killed and self._process.poll() is None

    def start(self) -> None:
        self._inherited_memory = _peak_memory_here()
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
        try:
            ready = self._within(STARTUP_SECONDS, lambda: protocol.receive(self._out))
        except protocol.ProtocolError:
            ready = None
        self.started = isinstance(ready, tuple)
        if isinstance(ready, tuple):
            self.missing = tuple(str(what) for what in ready[0].get("missing", ()))

    def ask(self, request: ParserRequest, data: bytes, seconds: float) -> tuple[dict[str, Any], bytes] | Unreadable:
        """Send one request and wait for the answer. Every failure becomes a status."""
        if self._process is None and not self._killed:
            self.start()
            if not self.started:
                self.end()
                return Unreadable(Status.crashed, NOT_STARTED)
        self.served += 1
        try:
            answer = self._within(seconds, lambda: self._exchange(request, data))
        except protocol.ProtocolError:
            self.kill()
            return Unreadable(Status.crashed, CRASHED)
        if answer is None:
            return self._failure()
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
        """Kill the process and its children. Safe to call from another thread while `ask` waits."""
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
        """Kill the process and release its resources. Only for the thread that owns it."""
        self.kill()
        if self._process is not None:
            self._reap()

    def _within(self, seconds: float, exchange: Callable[[], T]) -> T | None:
        """Run `exchange`. On timeout the process is killed, which closes its pipes and ends the exchange."""
        clock = threading.Timer(seconds, self._kill_late)
        clock.daemon = True
        clock.start()
        try:
            return exchange()
        except (OSError, ValueError):
            return None  # the pipe is closed; the exit status says why
        finally:
            clock.cancel()

    def _kill_late(self) -> None:
        self._timed_out = True
        self.kill()

    def _exchange(self, request: ParserRequest, data: bytes) -> tuple[dict[str, Any], bytes] | None:
        process = cast("subprocess.Popen[bytes]", self._process)
        protocol.send(cast(BinaryIO, process.stdin), {"task": request.task, "with": request.arguments}, data)
        return protocol.receive(self._out)

    @property
    def _out(self) -> BinaryIO:
        process = cast("subprocess.Popen[bytes]", self._process)
        return cast(BinaryIO, process.stdout)

    def _failure(self) -> Unreadable:
        code, peak_memory = self._reap()
        if self._timed_out or code == -getattr(signal, "SIGXCPU", 0):
            return Unreadable(Status.too_slow, TOO_SLOW)
        if code == -9 and self._killed:
            return Unreadable(Status.crashed, "Reading was called off; add the file again.")
        # The system counts the parent's peak at the fork as the child's own.
        if code == -9 or peak_memory > max(0.5 * self._memory, self._inherited_memory):
            return Unreadable(Status.out_of_memory, OUT_OF_MEMORY)
        return Unreadable(Status.crashed, CRASHED)

    def _reap(self) -> tuple[int, int]:
        """The exit status of the process and its peak memory."""
        process = cast("subprocess.Popen[bytes]", self._process)
        most = 0
        if hasattr(os, "wait4") and process.returncode is None:
            with contextlib.suppress(ChildProcessError):
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                most = usage.ru_maxrss * MAXRSS_UNIT
        code = process.wait()
        for stream in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                cast(BinaryIO, stream).close()
        self._killed = True
        return code, most


CRASHED = (
    "The parser broke down on it, as it does on damaged or hostile files; open it and save it again, or leave it out."
)
NOT_STARTED = "No process could be started to read it in; run `assay doctor`, which says what is wrong."
TOO_SLOW = "Reading it took longer than the limit allows; split it, or raise the limit on seconds."
OUT_OF_MEMORY = "Reading it takes more memory than the limit allows; split it, or raise the limit on memory."


def package_root() -> str:
    return str(Path(__file__).resolve().parents[3])


def _environment() -> dict[str, str]:
    """The child's environment: no settings or secrets of the parent; one thread, because a process reads one file at a time."""
    kept = {name: os.environ[name] for name in ("SYSTEMROOT", "LD_LIBRARY_PATH", "TZ") if name in os.environ}
    return kept | {"LC_ALL": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}


def _peak_memory_here() -> int:
    """The peak memory of this process in bytes; 0 where the system does not tell."""
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * MAXRSS_UNIT
