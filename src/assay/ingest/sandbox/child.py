"""One parser process, seen from the parent: started, asked, timed, and read off when it ends.

Whatever the process does, asking it gives an answer: what it found, or a status that says why there is nothing.
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
class Request:
    """What the child is to do with the bytes."""

    task: str
    arguments: dict[str, Any]


class Child:
    """One parser process, started when it is first asked."""

    def __init__(self, setting: dict[str, Any]) -> None:
        self._setting = setting
        self._memory = int(setting["limits"]["memory"])
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
            ready = self._timed(STARTUP_SECONDS, lambda: protocol.receive(self._out))
        except protocol.Garbled:
            ready = None
        self.started = isinstance(ready, tuple)
        if isinstance(ready, tuple):
            self.missing = tuple(str(what) for what in ready[0].get("missing", ()))

    def ask(self, request: Request, data: bytes, seconds: float) -> tuple[dict[str, Any], bytes] | Unreadable:
        """Send one request and wait for its answer; whatever goes wrong is a status."""
        if self._process is None and not self._killed:
            self.start()
            if not self.started:
                self.end()
                return Unreadable(Status.crashed, NOT_STARTED)
        self.served += 1
        try:
            answer = self._timed(seconds, lambda: self._exchange(request, data))
        except protocol.Garbled:
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
        protocol.send(cast(BinaryIO, process.stdin), {"task": request.task, "with": request.arguments}, data)
        return protocol.receive(self._out)

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


CRASHED = (
    "The parser broke down on it, as it does on damaged or hostile files; open it and save it again, or leave it out."
)
NOT_STARTED = "No process could be started to read it in; run `assay doctor`, which says what is wrong."
TOO_SLOW = "Reading it took longer than the limit allows; split it, or raise the limit on seconds."
OUT_OF_MEMORY = "Reading it takes more memory than the limit allows; split it, or raise the limit on memory."


def package_root() -> str:
    return str(Path(__file__).resolve().parents[3])


def _environment() -> dict[str, str]:
    """Nothing of the parent's settings or secrets; one thread, since a process is one file's at a time."""
    kept = {name: os.environ[name] for name in ("SYSTEMROOT", "LD_LIBRARY_PATH", "TZ") if name in os.environ}
    return kept | {"LC_ALL": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}
