"""What the bundled models make of a text, made once for all the processes that run tests, and kept for the next run.

The same samples and notes are embedded and read in hundreds of tests, and to do so is most of what they cost. The numbers
are the models' own. Tests of the models themselves go without (`PLAIN`).
"""

from __future__ import annotations

import hashlib
import pickle
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from assay.models.local import bundled
from assay.models.local.bundled import BertAnswers, BundledEmbedder

PLAIN = ("tests/models/", "tests/contracts/")  # where the models are what is tested
VARIABLE = "TESTS_READ_ONCE"  # the file, for processes that the tests start
_embed, _readings = BundledEmbedder.embed, BertAnswers.readings


def models() -> str:
    """Changes whenever the models or the code that runs them do."""
    code = b"".join(file.read_bytes() for file in sorted(Path(bundled.__file__).parent.glob("*.py")))
    return hashlib.sha256(code + bundled.DIGEST.encode() + BertAnswers().name.encode()).hexdigest()[:16]


def install(file: Path) -> None:
    with closing(sqlite3.connect(file, timeout=60)) as known:
        known.execute("create table if not exists known (key blob primary key, made blob) without rowid")

    def embed(self: BundledEmbedder, texts: Sequence[str]) -> np.ndarray:
        made = _made(file, "vector", texts, lambda missing: list(_embed(self, missing)))
        return np.array(made, np.float32).reshape(len(texts), self.dim)

    def readings(self: BertAnswers, question: str, texts: Sequence[str]) -> list[Any]:
        return _made(file, f"{self.name} {question}", texts, lambda missing: _readings(self, question, missing))

    BundledEmbedder.embed, BertAnswers.readings = embed, readings  # pyright: ignore[reportAttributeAccessIssue]


def remove() -> None:
    BundledEmbedder.embed, BertAnswers.readings = _embed, _readings


def _made(file: Path, what: str, texts: Sequence[str], make: Callable[[list[str]], list[Any]]) -> list[Any]:
    keys = [hashlib.sha256(f"{what}\n{text}".encode("utf-8", "surrogatepass")).digest() for text in texts]
    try:
        with closing(sqlite3.connect(file, timeout=60)) as known, known:
            found = {key: _get(known, key) for key in keys}
            missing = {key: text for key, text in zip(keys, texts, strict=True) if found[key] is None}
            if missing:
                new = dict(zip(missing, make(list(missing.values())), strict=True))
                rows = [(key, pickle.dumps(each)) for key, each in new.items()]
                known.executemany("insert or ignore into known values (?, ?)", rows)
                found |= new
    except sqlite3.Error:  # a full disk, or a folder that is gone, is another test's subject
        return make(list(texts))
    return [found[key] for key in keys]


def _get(known: sqlite3.Connection, key: bytes) -> Any:
    row = known.execute("select made from known where key = ?", (key,)).fetchone()
    return None if row is None else pickle.loads(row[0])
