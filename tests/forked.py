"""`python …` in a process of its own, without loading everything anew for each: one process has loaded the program, before
it has any thread, and runs each command line that it is sent in a fork of itself.

    done = forked.run([sys.executable, "-m", "assay.cli.main", "sources"], cwd=folder, env=environment)
    process = forked.Process([sys.executable, "-m", "assay.cli.main", "serve"])

The arguments, environment, folder, standard streams, signals and exit code are as of any process. What only counts while an
interpreter starts (its own variables, what is loaded beneath it) is not, and starts one: see `STARTS`.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

STARTS = ("PYTHON", "LC_", "LANG", "LD_", "OMP_", "OPENVINO_")  # variables that are read when a process starts
LOADED = (
    "anyio._backends._asyncio",
    "assay.agent.loop",
    "assay.workspace.services.ask",
    "assay.workspace.services.questions",
    "assay.cli.add",
    "assay.cli.ask",
    "assay.cli.main",
    "assay.workspace.services.records",
    "assay.index.lance.lance_index",
    "assay.ingest.sandbox.runner",
    "assay.ingest.pipeline",
    "assay.models.endpoint",
    "assay.models.local.bundled",
    "assay.workspace.services.reviews",
    "assay.synthesis.pipeline",
    "assay.workspace.services.syntheses",
    "assay.workspace.facade",
    "httpcore",
    "httpx",
    "numpy.random",
    "sqlalchemy.dialects.sqlite",
)
AT_NEED = {
    "serve": ("assay.serve.app", "assay.serve.process"),
    "worker": ("assay.serve.housekeeping", "assay.serve.process"),
    "mcp": ("assay.serve.mcp_tools",),
}
PIPE, DEVNULL, STDOUT = subprocess.PIPE, subprocess.DEVNULL, subprocess.STDOUT


class Process:
    """What `subprocess.Popen` is, as far as the tests need it."""

    def __init__(
        self,
        args: Sequence[str | Path],
        *,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
        text: bool = False,
    ) -> None:
        self.args = list(map(str, args))
        self.returncode: int | None = None
        self.stdin: Any = None
        self.stdout: Any = None
        self.stderr: Any = None
        given = dict(os.environ if env is None else env)
        theirs: list[int] = []
        for number, wish in enumerate((stdin, stdout, stderr)):
            theirs.append(self._stream(number, wish, text, theirs))
        self._says, says = socket.socketpair()
        head = json.dumps({"args": self.args[1:], "cwd": str(cwd or Path.cwd()), "env": given}).encode()
        if _starting(given) != _starting(None):
            raise ValueError("this wants an interpreter that starts")
        with _lock:
            wire = _wire()
            socket.send_fds(wire, [len(head).to_bytes(8, "big")], [*theirs, says.fileno()])
            wire.sendall(head)
        says.close()
        for handle in theirs:
            os.close(handle)
        self.pid = int.from_bytes(_exactly(self._says, 8), "big")

    def _stream(self, number: int, wish: int | None, text: bool, before: list[int]) -> int:
        if wish == PIPE:
            reads, writes = os.pipe()
            own, theirs = (writes, reads) if number == 0 else (reads, writes)
            mode, encoding = ("w" if number == 0 else "r") + ("" if text else "b"), "utf-8" if text else None
            stream = os.fdopen(own, mode, buffering=1 if text else -1, encoding=encoding)
            setattr(self, ("stdin", "stdout", "stderr")[number], stream)
            return theirs
        if wish == DEVNULL:
            return os.open(os.devnull, os.O_RDWR)
        return os.dup(before[1] if wish == STDOUT else number if wish is None else wish)

    def poll(self) -> int | None:
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return code

    def _ended(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._says], [], [], timeout)[0]:
            self.returncode = int.from_bytes(_exactly(self._says, 8), "big", signed=True)
            self._says.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def communicate(self, input: Any = None, timeout: float | None = None) -> tuple[Any, Any]:
        said: list[Any] = [None, None]

        def take(place: int, stream: IO[Any]) -> None:
            said[place] = stream.read()
            stream.close()

        readers = [
            threading.Thread(target=take, args=(place, stream), daemon=True)
            for place, stream in enumerate((self.stdout, self.stderr))
            if stream is not None and not stream.closed
        ]
        for reader in readers:
            reader.start()
        if self.stdin is not None and not self.stdin.closed:
            with contextlib.suppress(BrokenPipeError), self.stdin:
                if input:
                    self.stdin.write(input)
        self.wait(timeout)
        for reader in readers:
            reader.join(timeout)
        return said[0], said[1]

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        self.wait()


def run(
    args: Sequence[str | Path],
    *,
    input: Any = None,
    timeout: float = 110,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    text: bool = False,
) -> subprocess.CompletedProcess[Any]:
    """What `subprocess.run` is with `capture_output`; with `input` None the standard input is that of the tests."""
    if _starting(env) != _starting(None):
        return subprocess.run(args, input=input, capture_output=True, timeout=timeout, cwd=cwd, env=env, text=text)
    process = Process(
        args, cwd=cwd, env=env, stdin=None if input is None else PIPE, stdout=PIPE, stderr=PIPE, text=text
    )
    try:
        out, err = process.communicate(input, timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return subprocess.CompletedProcess(process.args, process.wait(), out, err)


# --- the process that has everything loaded, seen from the tests -----------------------------------------------------

_lock = threading.Lock()
_loaded: list[tuple[subprocess.Popen[bytes], socket.socket]] = []


def _starting(env: Mapping[str, str] | None) -> dict[str, str]:
    return {name: value for name, value in (os.environ if env is None else env).items() if name.startswith(STARTS)}


def _wire() -> socket.socket:
    """Where command lines are sent."""
    if not _loaded:
        own, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        _loaded.append((process, own))
    return _loaded[0][1]


@atexit.register
def close() -> None:
    """The process ends; what it has forked is left to whoever asked for it."""
    while _loaded:
        process, wire = _loaded.pop()
        wire.close()
        process.wait()


def _exactly(wire: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = wire.recv(size - len(data))
        if not more:
            raise EOFError("the process that has everything loaded is gone")
        data += more
    return data


# --- and seen from itself --------------------------------------------------------------------------------------------


def _serve(wire: socket.socket) -> dict[str, Any]:
    """Forks for each command line, and says how each ended. Returns in the fork, with the command line."""
    running: dict[int, tuple[int, socket.socket]] = {}
    waits = select.poll()
    waits.register(wire, select.POLLIN)
    while True:
        for handle, _ in waits.poll():
            if handle == wire.fileno():
                size, fds, _, _ = socket.recv_fds(wire, 8, 4)
                if not size:
                    os._exit(0)
                head = json.loads(_exactly(wire, int.from_bytes(size + _exactly(wire, 8 - len(size)), "big")))
                for word in head["args"]:
                    _load(AT_NEED.get(word, ()))
                gc.freeze()  # what is loaded here stays shared
                ends, lives = os.pipe()  # closed when the fork ends, however it ends
                pid = os.fork()
                if pid == 0:
                    for place, given in enumerate(fds[:3]):
                        os.dup2(given, place)
                    for given in (*fds, ends, wire.detach(), *running):
                        os.close(given)
                    for _, says in running.values():
                        says.close()
                    return head
                says = socket.socket(fileno=fds[3])
                says.sendall(pid.to_bytes(8, "big"))
                for given in (*fds[:3], lives):
                    os.close(given)
                running[ends] = pid, says
                waits.register(ends, select.POLLIN)
            else:
                pid, says = running.pop(handle)
                waits.unregister(handle)
                os.close(handle)
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                with says, contextlib.suppress(OSError):  # nobody may want to know any more
                    says.sendall(code.to_bytes(8, "big", signed=True))


def _load(names: Sequence[str]) -> None:
    for name in names:
        importlib.import_module(name)


def _become(head: dict[str, Any]) -> NoReturn:
    """What the interpreter does with its arguments, and in the end, but that nothing is taken apart piece by piece."""
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)
    os.environ.clear()
    os.environ.update(head["env"])
    os.chdir(head["cwd"])
    code = 0
    try:
        _execute(head["args"])
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue]  waits for threads that are no daemons
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError, ValueError):  # nobody reads any more
        sys.stdout.flush()
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(code & 0xFF)


def _execute(args: list[str]) -> None:
    match args:
        case ["-m", module, *rest]:
            sys.argv, sys.path[0] = [module, *rest], str(Path.cwd())
            sys.modules.pop(module, None)
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case ["-c", code, *rest]:
            sys.argv, sys.path[0] = ["-c", *rest], str(Path.cwd())
            exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
        case [script, *rest]:
            sys.argv, sys.path[0] = [script, *rest], str(Path(script).resolve().parent)
            runpy.run_path(script, run_name="__main__")
        case _:
            raise ValueError("there is nothing to run")


def _main() -> NoReturn:
    from assay.index.lance.tables import load_lancedb

    load_lancedb()
    _load(LOADED)
    if file := os.environ.get("TESTS_READ_ONCE"):
        import read_once

        read_once.install(Path(file))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # lancedb warns of forks; here nothing of it has been used before one
        head = _serve(socket.socket(fileno=int(sys.argv[1])))
    _become(head)


if __name__ == "__main__":
    _main()
