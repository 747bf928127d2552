"""Renders page images of originals and locates citations on them. A few sandboxed processes stay warm between requests
and keep their file open.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from assay.ingest.parsed import FileLimits, PageBox, Unreadable
from assay.ingest.sandbox.runner import Sandbox

AT_ONCE = 2  # pages rendered concurrently


@dataclass
class SharedSandbox:
    """A sandbox and the number of its users. A retired one is closed when the last user is done."""

    sandbox: Sandbox
    users: int = 0
    retired: bool = False


class PageImages:
    """Owns the processes: some render pages, one locates spans, so that neither waits for the other. They start with the first
    request; `rest` ends them, and the next request starts new ones.
    """

    def __init__(self, limits: FileLimits) -> None:
        self._limits = limits
        self._sandboxes: dict[str, SharedSandbox] = {}
        self._lock = threading.Lock()

    async def page_image(self, original: Path, page: int, width: int, owner: str = "") -> bytes | Unreadable:
        """A page of a PDF, counted from 1, as a PNG `width` pixels wide. Each owner's files have processes of their own."""
        async with self._awake("draw", AT_ONCE) as sandbox:
            return await sandbox.page_image(original, page, width=width, owner=owner)

    async def boxes(
        self, original: Path, start: int, end: int, words: str = "", pages: Sequence[int] = (), owner: str = ""
    ) -> list[PageBox] | Unreadable:
        async with self._awake("find") as sandbox:
            return await sandbox.boxes(original, start, end, words, pages, owner)

    @asynccontextmanager
    async def _awake(self, task: str, workers: int = 1) -> AsyncIterator[Sandbox]:
        with self._lock:
            shared = self._sandboxes.setdefault(task, SharedSandbox(Sandbox(self._limits, workers=workers)))
            shared.users += 1
        try:
            yield shared.sandbox
        finally:
            with self._lock:
                shared.users -= 1
                over = shared.retired and not shared.users
            if over:
                await asyncio.to_thread(shared.sandbox.close)

    def rest(self) -> None:
        """Close each sandbox as soon as it has no users. Blocks while processes end."""
        with self._lock:
            retired, self._sandboxes = list(self._sandboxes.values()), {}
            for each in retired:
                each.retired = True
            idle = [each for each in retired if not each.users]
        for each in idle:
            each.sandbox.close()
