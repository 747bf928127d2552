"""Being told when something changes in a folder. Of other places nobody tells; they are looked at from time to time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path, PurePath

from assay.ingest.places import Place
from assay.ingest.places.folder import Folder
from assay.ingest.sources import is_passed_over

log = logging.getLogger("assay.ingest")

TOGETHER = 500  # milliseconds in which changes are told together
AGAIN = 10.0  # seconds until a folder that could not be watched is tried again


@asynccontextmanager
async def told_of_changes(place: Place, workspace: Path) -> AsyncIterator[asyncio.Event]:
    """An event that is set whenever something has changed. What Assay writes to its workspace there does not count."""
    changed = asyncio.Event()
    if not isinstance(place, Folder):
        yield changed
        return
    listening = asyncio.create_task(_listen(place.root, workspace, changed))
    try:
        yield changed
    finally:
        listening.cancel()
        with suppress(asyncio.CancelledError):
            await listening


async def _listen(root: Path, workspace: Path, changed: asyncio.Event) -> None:
    from watchfiles import Change, awatch

    workspace = await asyncio.to_thread(workspace.resolve)

    def counts(_: Change, path: str) -> bool:
        name = PurePath(path)
        return not name.is_relative_to(workspace) and not (
            name.is_relative_to(root) and is_passed_over(name.relative_to(root))
        )

    while True:
        try:
            async for _ in awatch(root, watch_filter=counts, debounce=TOGETHER, step=TOGETHER // 5):
                changed.set()
        except (OSError, RuntimeError) as error:  # it is not there, or the system watches too much already
            log.warning("changes in %s are not told (%s); it is looked at from time to time", root, error)
        await asyncio.sleep(AGAIN)
        changed.set()
