"""What labelled collections need: their lines of JSON, a reader for documents that are text already, and an embedder that
only knows words."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from assay.core.codec import digest
from assay.core.errors import UserError
from assay.ingest.parsed import Parsed, Status, Unreadable
from assay.ingest.pipeline import Progress
from assay.language.terms import content_terms

T = TypeVar("T")


def json_lines(file: Path, parse: Callable[[Any, int], T], wanted: str) -> list[T]:
    """What `parse` makes of each line and its number. A line that it cannot read is named, with what is `wanted` there."""
    if not file.is_file():
        raise UserError(f"There is no file {str(file)!r}.")
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise UserError(f"{str(file)!r} is not UTF-8.") from error
    found: list[T] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                found.append(parse(json.loads(line), number))
            except (ValueError, KeyError, TypeError, AttributeError, IndexError):
                raise UserError(f"{file.name}, line {number} is not {wanted}.") from None
    return found


def progress_lines(report: Callable[[str], None], before: str = "") -> Callable[[Progress], None]:
    """Says how many documents were added, every five seconds."""
    last = 0.0

    def say(progress: Progress) -> None:
        nonlocal last
        if progress.seconds - last > 5:
            last = progress.seconds
            report(f"{before}{progress.files} of {progress.of} documents, {progress.passages} passages")

    return say


class PlainTextReader:
    """A reader for documents that are text already."""

    async def read(self, data: Path | bytes, name: str) -> Parsed | Unreadable:
        item = json.loads(data) if isinstance(data, bytes) else {}
        if not item.get("text", "").strip():
            return Unreadable(Status.empty, "The document has no text.")
        return Parsed(text=item["text"], kind="text", title=item["title"], language="en")


class WordEmbedder:
    """Each stem has a random direction; a text's vector is the normalised sum of its stems' directions."""

    name = "words/64"
    dim = 64
    window = 256

    def __init__(self) -> None:
        self.embedded = 0  # number of passages embedded, to observe cache hits

    def tokens(self, text: str) -> int:
        return len(text.split()) + 2

    async def passages(self, texts: Sequence[str]) -> np.ndarray:
        self.embedded += len(texts)
        return await self.queries(texts)

    async def queries(self, texts: Sequence[str]) -> np.ndarray:
        return np.stack([_direction(text) for text in texts]) if texts else np.zeros((0, self.dim), np.float32)


def _direction(text: str) -> np.ndarray:
    total = np.full(WordEmbedder.dim, 1e-6)
    for term in content_terms(text):
        total += np.random.default_rng(int(digest(term)[:8], 16)).standard_normal(WordEmbedder.dim)
    return (total / np.linalg.norm(total)).astype(np.float32)
