"""The writer lease: one process at a time fills a knowledge base.

A file lock, which the system frees if the writer dies. Where machines share the state on a database server, also an advisory
lock of that server, which it frees when the writer's connection ends: no clock and no deadline are involved.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from assay.core.errors import UserError

if TYPE_CHECKING:
    from sqlalchemy import Engine

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


@asynccontextmanager
async def database_lease(address: str, key: str, patience: float) -> AsyncIterator[None]:
    """Hold the lock of this name on the database server. UserError if it is not free after `patience` seconds."""
    from assay.store.database import plain_errors
    from assay.store.postgres import lock_number

    number, began = lock_number(key), time.monotonic()
    with plain_errors():
        connection = index_database(address).connect().execution_options(isolation_level="AUTOCOMMIT")
    try:
        with plain_errors():
            while not connection.exec_driver_sql(f"SELECT pg_try_advisory_lock({number})").scalar():
                if time.monotonic() - began >= patience:
                    raise still_writing(patience)
                await asyncio.sleep(0.1)
        try:
            yield
        finally:
            with plain_errors():
                connection.exec_driver_sql(f"SELECT pg_advisory_unlock({number})")
    finally:
        connection.close()


@asynccontextmanager
async def shared_lease(path: Path, database: str, key: str, patience: float) -> AsyncIterator[None]:
    """Hold the lock file, which backup, migration and erase take; with the address of a database also its lock."""
    async with AsyncExitStack() as held:
        await held.enter_async_context(file_lease(path, patience))
        if database:
            await held.enter_async_context(database_lease(database, key, patience))
        yield


@lru_cache(maxsize=4)
def index_database(address: str) -> Engine:
    from assay.store.database import engine_for

    return engine_for(address).execution_options(assay_unlocked=True)
