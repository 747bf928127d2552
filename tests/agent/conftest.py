"""A library for tests of tools; `plant` is one with something in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tool_contexts import ANN, BOB, PUMPS, SECRET, VALVES, Library

from assay.store.database import open_store


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(open_store(tmp_path / "state.db", create=True))


@pytest.fixture
def plant(library: Library) -> Library:
    """Ann's base, which Bob may read but for one document."""
    base = library.base("plant", ANN, "how the plant is run")
    library.grant(base.id, BOB)
    library.add(base, "pumps.txt", PUMPS, date="2025-05-20")
    library.add(base, "valves.md", VALVES, kind="markdown", date="2024-01-10")
    library.add(base, "contract-plans.txt", SECRET, label="board", date="2025-06-30")
    library.grant("board", ANN)
    return library
