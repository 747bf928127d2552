"""Pages of originals as pictures and places, for people who read: a few parser processes stay warm between requests, within
the same limits as any other, and keep the file that was looked at last open."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from assay.core.codec import from_json
from assay.ingest.parsed import Limits, Unreadable
from assay.ingest.pdf.box import Box
from assay.ingest.sandbox.child import Request
from assay.ingest.sandbox.runner import Sandbox

AT_ONCE = 2  # pages that are drawn at the same time; the others wait


@dataclass
class Kept:
    """A jail, and how many wait for an answer from it. One that is retired ends with the last of them."""

    sandbox: Sandbox
    users: int = 0
    retired: bool = False


class Turning:
    """Holds the processes: some draw, one looks for places, so that neither waits for the other. They start when the first
    page is asked for; `rest` ends them, and the next page starts others."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._kept: dict[str, Kept] = {}
        self._lock = threading.Lock()

    async def picture(self, original: Path, page: int, width: int) -> bytes | Unreadable:
        """A page of a PDF, counted from 1, as a PNG so many pixels wide."""
        request = Request("turned", {"path": str(original), "page": page, "width": width})
        async with self._awake("draw", AT_ONCE) as sandbox:
            return await sandbox.told(request, lambda _, blob: blob)

    async def boxes(
        self, original: Path, start: int, end: int, words: str = "", pages: Sequence[int] = ()
    ) -> list[Box] | Unreadable:
        """Where a span of a PDF's text stands on its pages. With the span's own words, and the offsets at which pages begin,
        only the pages around it have to be read."""
        about = {"start": start, "end": end, "words": words, "pages": list(pages)}
        async with self._awake("find") as sandbox:
            return await sandbox.told(
                Request("found", {"path": str(original), **about}), lambda found, _: from_json(list[Box], found)
            )

    @asynccontextmanager
    async def _awake(self, task: str, workers: int = 1) -> AsyncIterator[Sandbox]:
        with self._lock:
            kept = self._kept.setdefault(task, Kept(Sandbox(self._limits, workers=workers)))
            kept.users += 1
        try:
            yield kept.sandbox
        finally:
            with self._lock:
                kept.users -= 1
                over = kept.retired and not kept.users
            if over:
                await asyncio.to_thread(kept.sandbox.close)

    def rest(self) -> None:
        """Let go of what is open, as soon as nobody waits for it. Blocks for a moment, while processes end."""
        with self._lock:
            retired, self._kept = list(self._kept.values()), {}
            for each in retired:
                each.retired = True
            idle = [each for each in retired if not each.users]
        for each in idle:
            each.sandbox.close()
