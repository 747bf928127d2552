"""What a Ray worker does: parse, split, embed. Bytes or plain data in, plain data out; no workspace is needed.

A worker process keeps its parsers and its embedder for the tasks that follow.
"""

from __future__ import annotations

import asyncio
import functools
import pickle
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assay import __version__
from assay.core.errors import UserError
from assay.core.types import Document, Passage
from assay.ingest.engine import DocumentReader, reader_in
from assay.ingest.parsed import FileLimits, Parsed, Unreadable
from assay.ingest.sandbox import runner
from assay.ingest.split import split_passages
from assay.models.embedder import Embedder


@dataclass(frozen=True, slots=True)
class EmbedderCopy:
    """An embedder on its way to other processes. `name` must be that of the copy, or vectors would not be comparable."""

    name: str
    pickled: bytes


def read_file(version: str, limits: FileLimits, ocr_languages: str, data: bytes, name: str) -> Parsed | Unreadable:
    _check_version(version)
    return asyncio.run(_reader(limits, ocr_languages).read(data, name))


def split_document(version: str, embedder: EmbedderCopy, size: int, overlap: int, document: Document) -> list[Passage]:
    _check_version(version)
    return split_passages(document, _embedder(embedder).tokens, size, overlap)


def embed_passages(version: str, embedder: EmbedderCopy, texts: Sequence[str]) -> np.ndarray:
    _check_version(version)
    return asyncio.run(_embedder(embedder).passages(texts))


def missing_guards(version: str) -> list[str]:
    _check_version(version)
    return runner.missing_guards()


def _check_version(version: str) -> None:
    if version != __version__:
        raise UserError(
            f"A Ray worker has Assay {__version__}, and this is {version}: install the same version on every node."
        )


@functools.lru_cache(1)
def _reader(limits: FileLimits, ocr_languages: str) -> DocumentReader:
    return reader_in(runner.Sandbox(limits), ocr_languages)  # its processes end with this one


@functools.lru_cache(1)
def _embedder(copy: EmbedderCopy) -> Embedder:
    embedder: Embedder = pickle.loads(copy.pickled)
    if embedder.name != copy.name:
        raise UserError(
            f"The embedder of a Ray worker is {embedder.name!r} and not {copy.name!r}: put the same model on every node."
        )
    return embedder
