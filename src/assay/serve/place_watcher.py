"""Watches the places that administrators chose, as long as the settings allow them: one process of a server each, in the
background loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from assay.core.access import Base, Principal
from assay.core.errors import AssayError
from assay.ingest.places import allows
from assay.serve.background import BackgroundLoop
from assay.workspace.facade import Workspace
from assay.workspace.stored import GROUP, Watch, this_process
from assay.workspace.types import Synced

log = logging.getLogger("assay.serve")

LOOK = 3.0  # seconds between two looks at what is to be watched
BROKEN = "It broke down; the log says where."
NOT_ALLOWED = "It is not in the setting `sources_allowed` any more, so it is not read."


class PlaceWatcher:
    """One per process."""

    def __init__(self, background: BackgroundLoop, process: str = "") -> None:
        self._background = background
        self._process = process or this_process()
        self._closing = False
        self._tasks: dict[str, asyncio.Task[None]] = {}  # by watch; changed only in the background loop

    async def keep(self, workspace: Workspace) -> None:
        """Watch what is to be watched and nobody else watches, and nothing else."""
        await self._background.run(self._keep(workspace))

    async def close(self) -> None:
        self._closing = True
        await self._background.run(self._end(set(self._tasks)))

    async def end_all(self, workspace: Workspace, base: Base) -> None:
        """Watch nothing for this base any more."""
        for watch in await asyncio.to_thread(workspace.watches.listing):
            if watch.base == base.id:
                await asyncio.to_thread(workspace.watches.end, watch.id)
        await self.keep(workspace)

    async def _keep(self, workspace: Workspace) -> None:
        for id in [id for id, task in self._tasks.items() if task.done()]:
            del self._tasks[id]
        wanted: dict[str, tuple[Watch, Base]] = {}
        bases = {base.id: base for base in await asyncio.to_thread(workspace.watches.bases)}
        for watch in await asyncio.to_thread(workspace.watches.listing):
            if not allows(workspace.settings.sources_allowed, watch.place):
                if watch.problem != NOT_ALLOWED:
                    await asyncio.to_thread(workspace.watches.note, watch.id, problem=NOT_ALLOWED)
            elif (
                not self._closing
                and watch.base in bases
                and await asyncio.to_thread(workspace.watches.claim, watch.id, self._process)
            ):
                wanted[watch.id] = watch, bases[watch.base]
        await self._end(self._tasks.keys() - wanted.keys())
        for id in wanted.keys() - self._tasks.keys():
            self._tasks[id] = asyncio.create_task(self._follow(workspace, *wanted[id]))

    async def _end(self, ids: set[str]) -> None:
        tasks = [self._tasks.pop(id) for id in ids]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self, workspace: Workspace, watch: Watch, base: Base) -> None:
        """Until it is cancelled."""
        own, loop = workspace.for_principal(owner_of(base)), asyncio.get_running_loop()

        def tell(what: Synced | AssayError) -> None:
            if isinstance(what, AssayError):
                log.warning("%s could not be read: %s", watch.place, what)
                loop.run_in_executor(None, _noted, workspace, watch.id, {"problem": str(what)})
                return
            changed = bool(what.removed or (what.report and what.report.files))
            found = {"files": what.files, "problem": "", "changed": changed}
            loop.run_in_executor(None, _noted, workspace, watch.id, found)

        try:
            await own.documents.watch(watch.place, base.id, tell=tell)
        except Exception as error:
            log.error("watching %s broke down", watch.place, exc_info=error)
            problem = str(error) if isinstance(error, AssayError) else BROKEN
            await asyncio.to_thread(_noted, workspace, watch.id, {"problem": problem})
        finally:
            await asyncio.shield(asyncio.to_thread(workspace.watches.release, watch.id, self._process))


def _noted(workspace: Workspace, watch: str, found: Mapping[str, Any]) -> None:
    try:
        workspace.watches.note(watch, **found)
    except AssayError as error:
        log.warning("what watching came to could not be written down: %s", error)


def owner_of(base: Base) -> Principal:
    """Who the files of a place are read for: the owner of the base, or a member of the group that owns it."""
    group = base.owner.removeprefix(GROUP)
    return Principal(base.owner, frozenset({group} if group != base.owner else ()))
