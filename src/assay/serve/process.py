"""The server process: its socket, shutdown and logging; and the worker processes of one server, started with it, started
again when one dies, and ended with it however it ends."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, cast

import uvicorn
from fastapi import FastAPI

from assay.core.errors import UserError
from assay.core.printable import printable_name
from assay.serve.connections import connection_limits, limited_protocol
from assay.serve.state import Server

SHUTDOWN_SECONDS = 3  # seconds for pending responses once runs are parked
KEEP_ALIVE_SECONDS = (
    75  # longer than proxies keep a connection, so that none sends a request on one that is being closed
)


def collect_garbage_less_often() -> None:
    """For a process that serves or works: it holds many objects and leaves few cycles, and looking for those as often as
    Python does took a twentieth of its time."""
    gc.set_threshold(50_000, 20, 100)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises a one-line error if the address cannot be used."""
    try:
        made = socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=2048
        )
        # Inherited by connections. Without it a response waits 40 ms for the peer to acknowledge its first half.
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise UserError(f"Port {port} is taken. Choose another with --port, or stop what uses it.") from error
        raise UserError(f"Assay cannot listen at {host}:{port}: {error.strerror or error}.") from error


class ServerProcess(uvicorn.Server):
    """Serves until told to stop. Then runs are parked and streams closed first, so that nothing delays the shutdown."""

    def __init__(
        self, app: FastAPI, server: Server, *, access_log: bool = False, ready: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=access_log,
                lifespan="on",
                http=cast(Any, limited_protocol(connection_limits(server.workspace.settings, server.serving.proxies))),
                ws="none",
                proxy_headers=False,  # only the connection determines the peer address
                server_header=False,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=SHUTDOWN_SECONDS,
            )
        )
        self._assay = server
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for each in self.servers:
            each.close()
        parking = asyncio.ensure_future(self._assay.park())
        while not parking.done() and not self.force_exit:
            await asyncio.wait([parking], timeout=0.1)
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal shuts down gracefully, which is no failure; a second one stops at once."""
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True


class RedactingFormatter(logging.Formatter):
    """Logs the location and type of an error but not its message, which may contain text of documents or questions.
    A message is one line: names and paths in it cannot begin another."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = printable_name(record.message)
        return super().formatMessage(record)

    def formatException(
        self, ei: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
    ) -> str:
        kind, _, trace = ei
        return "".join(traceback.format_tb(trace)) + (kind.__qualname__ if kind else "")


def without_query(record: logging.LogRecord) -> bool:
    """Remove the query string from access log lines, so that search terms are not logged."""
    if isinstance(record.args, tuple) and len(record.args) == 5:
        client, method, path, *rest = record.args
        record.args = (client, method, str(path).partition("?")[0], *rest)
    return True


def log_to_terminal(*, access: bool) -> None:
    lines = logging.StreamHandler()
    lines.setFormatter(RedactingFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.getLogger().addHandler(lines)
    logging.getLogger().setLevel(logging.WARNING)
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # its messages are replaced by our own
    if access:
        logging.getLogger("uvicorn.access").setLevel(logging.INFO)
        logging.getLogger("uvicorn.access").addFilter(without_query)


log = logging.getLogger("assay.serve")

PAUSE = 1.0  # seconds until a worker that has died is started again
SECONDS = 20.0  # for a worker to park its runs


class WorkerProcesses:
    """A context: the workers run within. Each ends when its standard input does, so none outlives the server."""

    def __init__(self, count: int, workspace: Path, flags: Sequence[str] = ()) -> None:
        self._command = [sys.executable, "-m", "assay.cli.main", "worker", "--with-server", *flags]
        self._command += ["--workspace", str(workspace)]
        self._count = count
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=self._keep, name="assay-worker") for _ in range(count)]

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def _keep(self) -> None:
        """Keep one worker running until the server stops."""
        while not self._stopped.is_set():
            worker = subprocess.Popen(self._command, stdin=subprocess.PIPE)
            while worker.poll() is None and not self._stopped.wait(PAUSE):
                pass
            if self._stopped.is_set():
                _end(worker)
            else:
                log.error("a worker ended with exit code %s and is started again", worker.returncode)
                self._stopped.wait(PAUSE)


def _end(worker: subprocess.Popen[bytes]) -> None:
    if worker.stdin is not None:
        worker.stdin.close()
    try:
        worker.wait(SECONDS)
    except subprocess.TimeoutExpired:
        worker.kill()  # its work is carried on by the next one
        worker.wait()
