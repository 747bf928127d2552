"""Parser processes, as controlled by their parent: start, request, timeout, reaping.

On Linux a `ParserProcess` only imports parsers; for each file it forks a process that restricts itself, so that no two
files ever share one. Elsewhere the process itself is restricted, and reads one file after another. Every request gets an
answer, whatever happens to a process: the result, or a status with the reason.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from assay.core.codec import from_json
from assay.ingest.parsed import Status, Unreadable

STARTUP_SECONDS = 60.0
ENDING_SECONDS = 5.0
FILES_PER_PROCESS = 200  # where files share a process: bounds memory leaks
FORKS = sys.platform.startswith("linux")
WITHOUT: tuple[str, ...] = ()  # guards that parsers treat as missing, for tests
BOOT = "import sys, json; sys.path[:0] = json.loads(sys.argv[1])['path']; from assay.ingest.sandbox.worker import main; main()"
MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes
T = TypeVar("T")


class ParserProcess:
    """A parser process, started at the first request."""

    def __init__(self, setting: dict[str, Any]) -> None:
        self._setting = setting | {"without": list(WITHOUT)}
        self._memory = int(setting["limits"]["memory"])
        self._require = bool(setting["limits"].get("require_guards"))
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._streams: tuple[BinaryIO, BinaryIO] | None = None  # from and to the process that reads the file
        self._inherited_memory = 0
        self._timed_out = False
        self._killed = False
        self.key = ""  # of the file that the process has
        self.served = 0
        self.retired = False  # no further request goes to it
        self.missing: tuple[str, ...] = ()

    @property
    def reusable(self) -> bool:
        alive = self._process is not None and not self._killed and self._process.poll() is None
        return alive and not self.retired and (FORKS or self.served < FILES_PER_PROCESS)

    def ask(
        self,
        task: str,
        arguments: dict[str, Any],
        load: Callable[[], bytes | Unreadable],
        seconds: float,
        *,
        key: str = "",
        modules: Sequence[str] = (),
        threads: bool = False,
    ) -> tuple[dict[str, Any], bytes] | Unreadable:
        """Send one request about the file that `load` returns, and wait for the answer. Every failure becomes a status.

        Requests with the same key may go to one process, which gets the bytes once; an empty key asks for a new process.
        """
        known = bool(key) and key == self.key and self._streams is not None
        data = b"" if known else load()
        if isinstance(data, Unreadable):
            return data
        if not known and not self.start_file(modules, threads=threads):
            return Unreadable(Status.crashed, NOT_STARTED)
        if self._require and self.missing:  # no byte of the file has been sent
            self.end()
            return Unreadable(Status.unreadable, unguarded(self.missing))
        self.served += 1
        self.key = key
        message = {"task": task, "with": arguments, "same": known}
        try:
            answer = self._within(seconds, lambda: self._exchange(message, data))
            if answer is None:
                return self._failure()
            if answer[0].get("last"):
                self._drop()
            return from_json(Unreadable, answer[0]["refused"]) if "refused" in answer[0] else answer
        except (ProtocolError, ValueError):
            self.kill()
            return Unreadable(Status.crashed, CRASHED)

    def start_file(self, modules: Sequence[str] = (), *, threads: bool = False) -> bool:
        """Whether there is a restricted process that has no file yet. It imports `modules` before it is forked, and may start
        `threads` only if it is told so."""
        try:
            ready = self._within(STARTUP_SECONDS, lambda: self._start(modules, threads))
        except ProtocolError:
            ready = None
        if ready is None:
            self.end()
            return False
        self.missing = tuple(str(what) for what in ready.get("missing", ()))
        return True

    def kill(self) -> None:
        """Kill the process and those it forked. Safe to call from another thread while `ask` waits."""
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
        if FORKS and not self._killed:
            self._within(ENDING_SECONDS, self._drop)  # the process that forked it reaps it
        self.kill()
        self._close_streams()
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            self._reap()

    def _start(self, modules: Sequence[str], threads: bool) -> dict[str, Any] | None:
        if self._process is None and not self._killed:
            self._process = self._spawn()
            if not FORKS:
                self._streams = cast(BinaryIO, self._process.stdout), cast(BinaryIO, self._process.stdin)
                return self._greeting()
        if not FORKS:
            return {"missing": self.missing}
        self._drop()
        own, theirs = socket.socketpair()
        with own, theirs:
            head = json.dumps({"load": list(modules), "threads": threads}).encode()
            socket.send_fds(cast(socket.socket, self._control), [head], [theirs.fileno()])
            self._streams = cast(BinaryIO, own.makefile("rb")), cast(BinaryIO, own.makefile("wb"))
        return self._greeting()

    def _spawn(self) -> subprocess.Popen[bytes]:
        self._inherited_memory = _peak_memory_here()
        theirs: socket.socket | None = None
        if FORKS:
            self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        stream = subprocess.DEVNULL if theirs else subprocess.PIPE
        with theirs or contextlib.nullcontext():
            setting = self._setting | {"control": theirs.fileno() if theirs else None}
            return subprocess.Popen(
                [sys.executable, "-I", "-B", "-X", "utf8", "-c", BOOT, json.dumps(setting)],
                stdin=stream,
                stdout=stream,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()] if theirs else (),
                start_new_session=True,
                cwd=Path(sys.executable).anchor,
                env=_environment(),
            )

    def _greeting(self) -> dict[str, Any] | None:
        greeting = receive(cast("tuple[BinaryIO, BinaryIO]", self._streams)[0])
        return greeting[0] if greeting else None

    def _within(self, seconds: float, exchange: Callable[[], T]) -> T | None:
        """Run `exchange`. On timeout the process is killed, which closes its streams and ends the exchange."""
        clock = threading.Timer(seconds, self._kill_late)
        clock.daemon = True
        clock.start()
        try:
            return exchange()
        except (OSError, ValueError):
            return None  # the stream is closed; the exit status says why
        finally:
            clock.cancel()

    def _kill_late(self) -> None:
        self._timed_out = True
        self.kill()

    def _exchange(self, message: dict[str, Any], data: bytes) -> tuple[dict[str, Any], bytes] | None:
        incoming, outgoing = cast("tuple[BinaryIO, BinaryIO]", self._streams)
        send(outgoing, message, data)
        return receive(incoming)

    def _failure(self) -> Unreadable:
        code, peak_memory = self._drop()
        if self._timed_out or code == -getattr(signal, "SIGXCPU", 0):
            return Unreadable(Status.too_slow, TOO_SLOW)
        if code == -9 and self._killed:
            return Unreadable(Status.crashed, "Reading was called off; add the file again.")
        # The system counts the memory of the process that forked it as its own.
        if code == -9 or peak_memory > max(0.5 * self._memory, self._inherited_memory):
            return Unreadable(Status.out_of_memory, OUT_OF_MEMORY)
        return Unreadable(Status.crashed, CRASHED)

    def _drop(self) -> tuple[int, int]:
        """End the process that has the file. Its exit status and peak memory."""
        self.key = ""
        if not FORKS:
            return self._reap()
        if self._streams is None:
            return 0, 0
        self._close_streams()
        try:
            control = cast(socket.socket, self._control)
            control.send(b"end")
            code, peak, self._inherited_memory = json.loads(control.recv(1000))
            return code, peak
        except (OSError, ValueError):  # the process that forks is gone, and with it those that it forked
            cast("subprocess.Popen[bytes]", self._process).kill()
            return self._reap()

    def _close_streams(self) -> None:
        for stream in self._streams or ():
            with contextlib.suppress(OSError):
                stream.close()
        self._streams = None

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
        self._close_streams()
        self._killed = True
        return code, most


CRASHED = (
    "The parser broke down on it, as it does on damaged or hostile files; open it and save it again, or leave it out."
)
NOT_STARTED = "No process could be started to read it in; run `assay doctor`, which says what is wrong."
TOO_SLOW = "Reading it took longer than the limit allows; split it, or raise the limit on seconds."
OUT_OF_MEMORY = "Reading it takes more memory than the limit allows; split it, or raise the limit on memory."


def describe_missing(missing: Sequence[str]) -> list[str]:
    """One sentence for the user if guards are missing."""
    listed = "; ".join(missing)
    return [f"The process that reads files is not fully closed off on this system: {listed}."] if missing else []


def unguarded(missing: Sequence[str]) -> str:
    """Why no file is read."""
    return (
        "The setting `sandbox` requires every guard for reading files, and on this system something is missing: "
        f"{'; '.join(missing)}. Use a system that has it (in a container, allow user namespaces and Landlock), or set "
        '`sandbox = "available"`.'
    )


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


HEAD = struct.Struct(">IQ")
LARGEST_JSON = 400_000_000  # the maximum text of a document, as JSON
LARGEST_BLOB = 300_000_000


class ProtocolError(Exception):
    """The received bytes are not a message."""


def send(stream: BinaryIO, message: Any, blob: bytes = b"") -> None:
    body = json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass")
    stream.write(HEAD.pack(len(body), len(blob)))
    stream.write(body)
    stream.write(blob)
    stream.flush()


def receive(stream: BinaryIO) -> tuple[dict[str, Any], bytes] | None:
    """The next message, or None at the end of the stream."""
    head = stream.read(HEAD.size)
    if not head:
        return None
    if len(head) < HEAD.size:
        raise ProtocolError("cut short")
    size, blob_size = HEAD.unpack(head)
    if size > LARGEST_JSON or blob_size > LARGEST_BLOB:
        raise ProtocolError("too large")
    body, blob = stream.read(size), stream.read(blob_size)
    if len(body) < size or len(blob) < blob_size:
        raise ProtocolError("cut short")
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as problem:
        raise ProtocolError("not JSON") from problem
    if not isinstance(message, dict):
        raise ProtocolError("not an object")
    return message, blob
