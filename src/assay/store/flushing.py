"""Group commit: writes that were committed without waiting for the disk, and one wait for all of them.

The commits of a run change nothing outside the machine until something is shown or sent because of them. So they are made
without a flush, and whoever is about to show or send something waits for one, together with all others who do.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from assay.core.errors import StoreError

SETTLED = 0.1  # seconds after which a later write surely has a later time in the file system


class FileFlush:
    """Flushes of one file, which any process may write to. A flush covers all that was written before it began."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._next: Future[None] | None = None  # the flush that has not begun: whoever asks now waits for it
        self._worker: ThreadPoolExecutor | None = None
        self._flushed: int | None = None  # when the file had last been written to, as of the last flush
        self._failed: OSError | None = None  # what was lost then is not noticed by a later flush

    async def wait(self) -> None:
        """Return when all that was written before this call is on disk."""
        await asyncio.shield(asyncio.wrap_future(self._joined()))  # one who leaves cancels it for nobody else

    def now(self) -> None:
        """The same for a caller that cannot await."""
        try:
            written = self._path.stat().st_mtime_ns
            if written != self._flushed:
                began = time.time_ns()
                self._sync()
                self._flushed = written if began - written > SETTLED * 1e9 else None
        except FileNotFoundError:
            pass  # the last connection was closed, and everything is in the database
        except OSError as error:
            raise StoreError(f"The workspace could not be written to disk: {error.strerror}.") from error

    def _sync(self) -> None:
        if self._failed is not None:
            raise self._failed
        file = os.open(self._path, os.O_RDWR)
        try:
            sync_file(file)
        except OSError as error:
            self._failed = error
            raise
        finally:
            os.close(file)

    def close(self) -> None:
        if self._worker is not None:
            self._worker.shutdown()

    def _joined(self) -> Future[None]:
        with self._lock:
            if self._next is None:
                self._worker = self._worker or ThreadPoolExecutor(1, "assay-flush")
                self._next = self._worker.submit(self._begin)
            return self._next

    def _begin(self) -> None:
        with self._lock:
            self._next = None
        self.now()


sync_file = getattr(os, "fdatasync", os.fsync)  # not every system has both
