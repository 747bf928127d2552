"""The writer lease: one process at a time fills a knowledge base. A file lock, which the system frees if the writer dies."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from assay.core.errors import UserError

log = logging.getLogger(__name__)


def lease_path(workspace: Path, base_id: str) -> Path:
    """The lock file of a knowledge base. Backup and erase take it too, so that nothing is added meanwhile."""
    return workspace / f".{base_id}.lock"


def still_writing(patience: float) -> UserError:
    return UserError(
        f"Another process has been writing to this knowledge base for {patience:.0f} s. "
        "Wait until it has finished, or stop it, and try again."
    )


@asynccontextmanager
async def file_lease(path: Path, patience: float, notice: float = 5.0) -> AsyncIterator[None]:
    """Hold the lock in `path`. UserError if another process has not released it after `patience` seconds."""
    from filelock import FileLock, Timeout

    path.parent.mkdir(parents=True, exist_ok=True)
    lock, began, warned = FileLock(path), time.monotonic(), False  # a new object: a shared one would be re-entrant
    while True:
        try:
            lock.acquire(blocking=False)  # non-blocking, so it may run on the event loop and be cancelled
            break
        except Timeout:
            waited = time.monotonic() - began
            if waited >= patience:
                raise still_writing(patience) from None
            if waited >= notice and not warned:
                log.warning("waiting for another process that is writing to this knowledge base")
                warned = True
            await asyncio.sleep(0.05)
    try:
        yield
    finally:
        lock.release()
