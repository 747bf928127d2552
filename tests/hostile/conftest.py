"""Workspaces for runs under duress: filled once, and opened by whoever needs them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from hostile_runs import PLAIN, POISONED, small_workspace, stocked

from assay.workspace.facade import Workspace


@pytest.fixture(scope="session")
def _plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return asyncio.run(stocked(tmp_path_factory.mktemp("plain"), PLAIN))


@pytest.fixture(scope="session")
def _poisoned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return asyncio.run(stocked(tmp_path_factory.mktemp("poisoned"), POISONED))


@pytest.fixture
def small(_plain: Path) -> Iterator[Workspace]:
    """Three short documents. Runs of other tests may be in it as well."""
    with small_workspace(_plain) as opened:
        yield opened


@pytest.fixture
def poisoned(_poisoned: Path) -> Iterator[Workspace]:
    """The same three, and two that tell whoever reads them what to do."""
    with small_workspace(_poisoned) as opened:
        yield opened
