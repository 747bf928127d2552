"""Chooses the index engine that the setting `index` names. No module outside this package imports an engine.

A new engine is a folder in this package and one entry in `ENGINES`; `tests/contracts/test_index.py` checks it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from assay.core.errors import UserError
from assay.core.settings import Settings
from assay.index.protocol import IndexEngine


def index_engine(settings: Settings, workspace: Path) -> IndexEngine:
    """The engine for the indexes of the workspace in this folder. Nothing is loaded or opened yet."""
    build = ENGINES.get(settings.index)
    if build is None:
        raise UserError(f"There is no index engine {settings.index!r}. Set `index` to one of: {', '.join(ENGINES)}.")
    return build(workspace)


def _lance(workspace: Path) -> IndexEngine:
    from assay.index.lance.lance_engine import LanceEngine

    return LanceEngine(workspace)


def _memory(workspace: Path) -> IndexEngine:
    from assay.index.memory.memory_engine import MemoryEngine

    return MemoryEngine(workspace)


ENGINES: Mapping[str, Callable[[Path], IndexEngine]] = {"lance": _lance, "memory": _memory}
