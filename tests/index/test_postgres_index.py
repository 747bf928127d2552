"""What the graph of PostgreSQL, which large tables use, must not lose."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from postgres_server import new_database

from assay.core.errors import UserError
from assay.core.types import Passage, Row
from assay.index.filters import EVERYTHING, Eq
from assay.index.postgres_index import PostgresEngine, require_recent

DIM, ROWS, RARE = 16, 3_000, 60


@pytest.mark.long
async def test_a_filter_that_keeps_few_rows_of_a_large_table_still_finds_the_nearest_of_them(tmp_path: Path):
    chance = np.random.default_rng(3)
    vectors = chance.standard_normal((ROWS, DIM)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    index = replace(await PostgresEngine(tmp_path, new_database()).open("large", DIM, create=True), exact_limit=1_000)
    kinds = ["rare" if number % (ROWS // RARE) == 0 else "common" for number in range(ROWS)]
    await index.upsert([row(number, vectors[number], kinds[number]) for number in range(ROWS)])
    query = chance.standard_normal(DIM).astype(np.float32)
    before = [hit.passage.id for hit in await index.dense(query, 20, Eq("label", "rare"))]
    await index.optimise()
    assert await index._has_graph()
    found = [hit.passage.id for hit in await index.dense(query, 20, Eq("label", "rare"))]
    near = {f"p{place:04}" for place in np.argsort(-(vectors @ query))[:100]}
    most = {hit.passage.id for hit in await index.dense(query, 100, EVERYTHING)}
    assert len(found) == 20 and len(set(found) & set(before)) >= 18
    assert len(most) == 100 and len(most & near) >= 90


def row(number: int, vector: np.ndarray, label: str) -> Row:
    text = f"passage number {number}"
    return Row(Passage(f"p{number:04}", "d", text, 0, len(text)), vector, "d", {"doc": "d", "label": label})


@pytest.mark.parametrize(("version", "is_old"), [("0.7.4", True), ("0.8.0", False), ("0.10.1", False), ("1.0", False)])
def test_a_server_that_would_lose_rows_is_refused(version: str, is_old: bool):
    if is_old:
        with pytest.raises(UserError, match=r"pgvector 0\.7\.4. Assay needs 0\.8"):
            require_recent(version)
    else:
        require_recent(version)
