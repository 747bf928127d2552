"""In-memory cache of page images and text positions, keyed by knowledge base and source, so that repeated requests do not
wait. Access is checked before the cache is used. The same file in two bases is drawn twice: how fast a page comes does not
tell whether somebody else has it."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from assay.core.errors import Missing
from assay.ingest.parsed import FileLimits, PageBox, Unreadable
from assay.ingest.sandbox.runner import Box, PageImages
from assay.workspace.stored import Blobs

MAX_IMAGE_BYTES = 64_000_000  # bytes of cached images
MAX_SPANS = 5_000  # cached spans
IDLE_SECONDS = 300.0  # seconds after which open files are closed


class PageImageCache:
    """One per server, used on the serving loop. Entries are keyed by base and digest of the original."""

    def __init__(self, limits: FileLimits) -> None:
        self._page_images = PageImages(limits)
        self._pictures: OrderedDict[tuple[str, str, int, int, Box | None], bytes] = OrderedDict()
        self._boxes: OrderedDict[tuple[str, str, int, int], tuple[PageBox, ...]] = OrderedDict()
        self._size = 0
        self._made: dict[Any, asyncio.Task[Any]] = {}
        self._rest: asyncio.TimerHandle | None = None

    async def picture(
        self, base: str, digest: str, originals: Blobs, page: int, width: int, box: Box | None = None
    ) -> bytes:
        """A page, or a part of it, as a PNG. Concurrent requests for the same one share one rendering."""
        key = (base, digest, page, width, box)
        if (found := self._pictures.get(key)) is not None:
            self._pictures.move_to_end(key)
            return found
        images = self._page_images
        made = await self._once(
            ("picture", *key), originals, digest, lambda file: images.page_image(file, page, width, base, box)
        )
        if isinstance(made, Unreadable):
            raise Missing(f"Page {page} cannot be shown. {made.why}")
        if key not in self._pictures:
            self._pictures[key] = made
            self._size += len(made)
        while self._size > MAX_IMAGE_BYTES:
            self._size -= len(self._pictures.popitem(last=False)[1])
        return made

    async def boxes(
        self, base: str, digest: str, originals: Blobs, start: int, end: int, words: str, pages: Sequence[int]
    ) -> tuple[PageBox, ...]:
        """The boxes of a span with this text; empty if they cannot be determined."""
        key = (base, digest, start, end)
        if (found := self._boxes.get(key)) is not None:
            self._boxes.move_to_end(key)
            return found
        images = self._page_images
        made = await self._once(
            ("boxes", *key), originals, digest, lambda file: images.boxes(file, start, end, words, pages, base)
        )
        if isinstance(made, Unreadable):
            return ()
        self._boxes[key] = tuple(made)
        while len(self._boxes) > MAX_SPANS:
            self._boxes.popitem(last=False)
        return self._boxes.get(key, ())

    async def _once(self, key: Any, originals: Blobs, digest: str, make: Callable[[Path], Awaitable[Any]]) -> Any:
        self._stir()
        if key not in self._made:
            task = self._made[key] = asyncio.ensure_future(_made(originals, digest, make))
            task.add_done_callback(lambda _: self._made.pop(key, None))
        return await asyncio.shield(self._made[key])  # cancelling one request does not cancel it for the others

    def _stir(self) -> None:
        if self._rest is not None:
            self._rest.cancel()
        loop = asyncio.get_running_loop()
        self._rest = loop.call_later(IDLE_SECONDS, lambda: loop.run_in_executor(None, self._page_images.rest))

    async def forget(self) -> None:
        """Clear the cache and close open files: something was removed."""
        self._pictures.clear()
        self._boxes.clear()
        self._size = 0
        await asyncio.to_thread(self._page_images.rest)

    async def close(self) -> None:
        if self._rest is not None:
            self._rest.cancel()
        await self.forget()


async def _made(originals: Blobs, digest: str, make: Callable[[Path], Awaitable[Any]]) -> Any:
    """What is made of a file with the original; where originals are in a bucket, it is fetched."""
    held = originals.as_file(digest)
    path = await asyncio.to_thread(held.__enter__)
    try:
        return await make(path)
    finally:
        await asyncio.to_thread(held.__exit__, None, None, None)
