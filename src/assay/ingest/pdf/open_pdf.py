"""A PDF that stays open inside the sandbox, so that a file is parsed once for many page images and citations."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pypdfium2 as pdfium

from assay.ingest.parsed import FileLimits, PageBox, Refused, Status
from assay.ingest.pdf import reader

ENOUGH = 12  # pages; in longer documents only those around a span are read
AROUND = 2  # pages before and after it
SLACK = 300  # characters by which the start of a page may differ: a running head and foot
MOST_ALIKE = 100
MOST_PIXELS = 12_000_000  # of an image: a page of the maximum width, and four times as high


@dataclass(slots=True)
class OpenPdf:
    """The file of the last request. Its process keeps the bytes, so the same file is the same object."""

    data: bytes = b""
    document: pdfium.PdfDocument | None = None
    reading: reader.PdfReading | None = None
    limits: FileLimits = field(default_factory=FileLimits)

    def opened(self, data: bytes) -> pdfium.PdfDocument:
        if self.document is None or self.data is not data:
            self.close()
            self.document, self.data = reader.open_document(data), data
        return self.document

    def close(self) -> None:
        if self.document is not None:
            self.document.close()
        self.data, self.document, self.reading = b"", None, None

    def page_image(self, data: bytes, page: int, width: int) -> bytes:
        """A page, counted from 1, as a PNG of this width, or narrower if it would have too many pixels."""
        document = self.opened(data)
        if not 1 <= page <= len(document):
            raise Refused(Status.unreadable, f"It has {len(document)} pages; there is no page {page}.")
        shown = document[page - 1]
        try:
            across, down = (max(size, 1.0) for size in shown.get_size())
            scale = min(width / across, (MOST_PIXELS / (across * down)) ** 0.5)
            pixels = shown.render(scale=cast(Any, scale), rev_byteorder=True, prefer_bgrx=False).to_numpy()
            return reader.encode_png(np.ascontiguousarray(pixels[:, :, :3]))
        finally:
            shown.close()

    def boxes(self, data: bytes, start: int, end: int, words: str, pages: list[int]) -> list[PageBox]:
        """The boxes of a span of the text. To avoid parsing a whole book, only the pages around the span are read first;
        the result is used if the same words are at the same position there.
        """
        self.opened(data)
        if self.reading is None and words and len(pages) > ENOUGH:
            first, last = bisect_right(pages, start) - 1, bisect_right(pages, end - 1) - 1
            around = reader.read(self.data, self.limits, only=range(first - AROUND, last + AROUND + 1))
            at = _place(around.built.text, words, around.built.pages[first], start - pages[first])
            if at is not None:
                found = reader.find_boxes(self.data, at, at + len(words), reading=around)
                if found and all(first < box.page <= last + 1 for box in found):
                    return found
        if self.reading is None:
            self.reading = reader.read(self.data, self.limits)
        return reader.find_boxes(self.data, start, end, reading=self.reading)


def _place(text: str, words: str, page: int, offset: int) -> int | None:
    """Where `words` occur exactly `offset` characters into the page, or their only occurrence, if within `SLACK` of
    that; else None. The rest of the page may differ slightly, for example by a line at its head.
    """
    at, found = text.find(words, page), list[int]()
    while at != -1 and len(found) < MOST_ALIKE:
        found.append(at)
        at = text.find(words, at + 1)
    near = sorted((abs(each - page - offset), each) for each in found)
    if not near or near[0][0] > SLACK or (len(near) > 1 and near[0][0] == near[1][0]):
        return None
    return near[0][1] if near[0][0] == 0 or len(near) == 1 else None
