"""Where the heavy part of an ingestion runs: parsing, splitting and embedding.

None of it touches the store or the index, so it can be done anywhere, and again if it was lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from assay.core.types import Document, Passage
from assay.ingest.parsed import FileLimits, Parsed, Unreadable
from assay.ingest.pdf.ocr import OcrReader
from assay.ingest.sandbox.runner import Sandbox
from assay.ingest.split import split_passages
from assay.models.embedder import Embedder

BATCH = 512  # passages that are embedded and indexed together


class DocumentReader(Protocol):
    """Reads one file in isolation; `Sandbox` is the usual implementation."""

    async def read(self, data: Path | bytes, name: str) -> Parsed | Unreadable: ...


@dataclass(frozen=True, slots=True)
class IngestEngine:
    """What does the work, and how much of it is under way at the same time.

    embedder: its name
    batch: passages that are embedded together
    """

    reader: DocumentReader
    split: Callable[[Document], Awaitable[list[Passage]]]
    embedder: str
    embed: Callable[[Sequence[str]], Awaitable[np.ndarray]]
    files_at_once: int = 1
    batch: int = BATCH


@dataclass(frozen=True, slots=True)
class LocalWorkers:
    """Threads of this process and its parser processes. One file after another: the embedder uses all processor cores."""

    sandbox: Sandbox
    reader: DocumentReader

    @property
    def missing_guards(self) -> Sequence[str]:
        """Guards that parsers did not have so far."""
        return self.sandbox.missing

    async def check_guards(self) -> None:
        """Raise if the limits require guards that are missing. No file is read then, with or without this check."""
        await self.sandbox.check_guards()

    def engine(self, embedder: Embedder, size: int, overlap: int) -> IngestEngine:
        """size, overlap: of passages, in the embedder's tokens"""

        async def split(document: Document) -> list[Passage]:
            return await asyncio.to_thread(split_passages, document, embedder.tokens, size, overlap)

        return IngestEngine(self.reader, split, embedder.name, embedder.passages)


@asynccontextmanager
async def local_workers(
    limits: FileLimits, ocr_languages: str = "", reader: DocumentReader | None = None
) -> AsyncIterator[LocalWorkers]:
    """`reader` replaces the parsers."""
    with Sandbox(limits) as sandbox:
        yield LocalWorkers(sandbox, reader or reader_in(sandbox, ocr_languages))


def reader_in(sandbox: Sandbox, ocr_languages: str) -> DocumentReader:
    """The parsers in a sandbox, with OCR if languages are given."""
    return OcrReader(sandbox, ocr_languages) if ocr_languages else sandbox
