"""What a process does beside requests: carry on what an earlier process left unfinished, keep the leases of what is worked on
here, notice what other processes do, seal the record, and tell of waiting reviews. `assay serve` does it beside HTTP,
`assay worker` without."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from assay.core.errors import AssayError
from assay.core.events import WORKSPACE
from assay.governance.audit.retention import erase_old
from assay.governance.audit.witness import audit_context, erasure_signer, seal
from assay.serve.place_watcher import LOOK
from assay.serve.state import Server
from assay.workspace.facade import Workspace
from assay.workspace.stored import LEASE

log = logging.getLogger("assay.serve")

RENEWAL = LEASE / 3
TIDY = 300.0  # seconds between two looks for what should be deleted or optimised
DAY = 86_400.0  # seconds between two retention checks
SERVER = "the server"  # the actor of those erasures
POLL = 0.5  # seconds between two looks while nobody tells of others' writes


async def work(server: Server) -> None:
    """Until it is cancelled."""
    async with asyncio.TaskGroup() as tasks:
        if server.shared:
            tasks.create_task(_notice(server))
        tasks.create_task(_carry_on(server))
        tasks.create_task(_tidy(server))
        if server.works:
            tasks.create_task(_watch(server))


async def _carry_on(server: Server) -> None:
    """Load the heavy components, resume what an earlier process left unfinished, and renew leases from then on."""
    await server.load()
    if server.works:
        try:
            await server.live.take_up(server.workspace, server.current_workspace)
        except Exception as error:  # uploaded files are still processed
            log.error("not every run could be taken up", exc_info=error)
        await server.worker.take_up(server.current_workspace)
        server.changed.set()  # from here on what nobody works on is taken up when it is noticed
    while not server.runs.closing:
        await asyncio.sleep(RENEWAL)
        try:
            await server.live.renew_leases(server.workspace)
            await server.worker.renew()
            await server.live.take_up(server.workspace, server.current_workspace)
            if server.works:  # what was let go here, or is anybody's
                await server.live.take_over(server.workspace, server.current_workspace)
        except AssayError as error:
            log.error("leases could not be renewed: %s", error)
        server.changed.set()  # also without word from others: a process that has died writes nothing


async def _tidy(server: Server) -> None:
    """From time to time delete received files that no job needs, and optimise search indexes, so that many small writes do
    not slow down searches."""
    while not server.runs.closing:
        await server.worker.sweep()
        await asyncio.sleep(TIDY)
        try:
            if server.works:
                await server.workspace.documents.tidy_indexes()
        except AssayError as error:
            log.error("an index could not be optimised: %s", error)


async def _watch(server: Server) -> None:
    """Watch the places that were chosen, here or at another process."""
    while not server.runs.closing:
        try:
            await server.watcher.keep(server.workspace)
        except AssayError as error:
            log.error("what is to be watched could not be read: %s", error)
        await asyncio.sleep(LOOK)


async def _notice(server: Server) -> None:
    """Look whenever another process has written, and often while that is not told."""
    while not server.runs.closing:
        with suppress(TimeoutError):
            await asyncio.wait_for(server.changed.wait(), None if server.hears() else POLL)
        server.changed.clear()
        try:
            grown = await server.live.look(server.workspace, server.current_workspace)
            if WORKSPACE in grown:
                await asyncio.to_thread(server.read_settings)
            await server.worker.look()
        except AssayError as error:
            log.error("what other processes have done could not be read: %s", error)


async def work_until(server: Server, stopped: asyncio.Event) -> None:
    """Work without serving requests, until told to stop; then runs end or are parked, as when a server stops."""
    await server.start()
    working = asyncio.create_task(work(server))
    stopping = asyncio.create_task(stopped.wait())
    try:
        await asyncio.wait([working, stopping], return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
    finally:
        stopping.cancel()
        working.cancel()
        await server.stop()


LOOKS = 2.0  # seconds between two polls
LONGEST = 300.0  # maximum seconds between two retries
WEBHOOK_SECONDS = 10.0  # timeout of one message


async def notify_reviewers(workspace: Workspace) -> None:
    """Run until cancelled. Pending notifications are in the store, so that none is lost with the process."""
    pause = LOOKS
    while workspace.settings.review_webhook:
        await asyncio.sleep(pause)
        try:
            await workspace.reviews.notify(WEBHOOK_SECONDS)
            pause = LOOKS
        except AssayError as error:
            pause = min(pause * 2, LONGEST)
            log.warning("nobody could be told of a review: %s", error)
        except Exception:
            pause = LONGEST
            log.exception("telling of reviews broke down")


@asynccontextmanager
async def sealing(server: Server) -> AsyncIterator[None]:
    """While the server runs, and once more after it stopped: seal new records, and erase those past retention."""
    minutes = server.workspace.settings.audit_minutes
    tasks = [
        asyncio.create_task(_every(minutes * 60, lambda: seal_now(server), at_once=False)),
        asyncio.create_task(_every(DAY, lambda: erase_now(server), at_once=True)),
    ]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await asyncio.to_thread(_tried, lambda: seal_now(server))


async def _every(seconds: float, work: Callable[[], None], *, at_once: bool) -> None:
    if not at_once:
        await asyncio.sleep(seconds)
    while True:
        await asyncio.to_thread(_tried, work)
        await asyncio.sleep(seconds)


def _tried(work: Callable[[], None]) -> None:
    """An unavailable second location or a full disk must not stop the server."""
    try:
        work()
    except AssayError as error:
        log.error("audit: %s", error)
    except Exception as error:
        log.error("audit: it broke down", exc_info=error)


def seal_now(server: Server) -> None:
    opened = server.workspace
    seal(audit_context(opened.store, opened.path, opened.settings))


def erase_now(server: Server) -> None:
    opened = server.workspace
    sign = erasure_signer(opened.path, opened.settings)
    gone = erase_old(opened.store, opened.settings.retention_days, SERVER, sign)
    if gone.payloads:
        log.warning("erased what %s runs recorded before %s", gone.runs, gone.before[:10])
