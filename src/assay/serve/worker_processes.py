"""The worker processes of one server: started with it, started again when one dies, and ended with it however it ends."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

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
