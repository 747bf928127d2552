"""An index is copied to another engine row by row, and a copy that stopped goes on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from assay.core.errors import StoreError
from assay.core.types import Passage, Row
from assay.index.factory import copy_index, index_digest
from assay.index.filters import EVERYTHING
from assay.index.lance.lance_index import open_index
from assay.index.lance.tables import Folder
from assay.index.memory_index import MemoryIndex


def row(at: int) -> Row:
    passage = Passage(f"p{at:02d}", "d", f"words {at}", 0, 7 + at, "A heading", at)
    return Row(passage, np.full(4, at, np.float32), "A lead", {"doc": "d", "year": str(at), "label": "x"})


class Counting(MemoryIndex):
    async def upsert(self, rows):
        self.written = getattr(self, "written", 0) + len(rows)
        await super().upsert(rows)


async def test_an_index_moves_between_engines_and_back_and_stays_the_same(tmp_path: Path):
    first, lance, last = MemoryIndex(), await open_index(Folder(tmp_path), "b", 4, create=True), MemoryIndex()
    await first.upsert([row(at) for at in range(20)])
    assert await copy_index(first, lance) == 20
    assert await copy_index(lance, last) == 20
    ids = await first.ids()
    assert await index_digest(last, ids) == await index_digest(first, ids)
    assert await last.count(EVERYTHING) == 20


async def test_a_copy_that_stopped_writes_only_what_is_missing_or_changed():
    source, target = MemoryIndex(), Counting()
    await source.upsert([row(at) for at in range(10)])
    await target.upsert([row(at) for at in range(6)])
    await source.upsert([Row(row(2).passage, np.ones(4, np.float32), "Another lead", {"doc": "d"})])
    target.written = 0
    assert await copy_index(source, target) == 10
    assert target.written == 5


async def test_a_copy_that_differs_is_refused():
    source, target = MemoryIndex(), MemoryIndex()
    await source.upsert([row(1)])
    await target.upsert([row(7)])
    with pytest.raises(StoreError, match="nothing was moved"):
        await copy_index(source, target)
