"""A workspace with a few notes, and a real server over it: `with serve(model) as at:`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest
from doubles import ChatServer
from notes import filled
from serving import NOTES, Served, served


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    """A workspace with a few notes in it."""
    await filled(tmp_path / "workspace", NOTES)
    return tmp_path / "workspace"


@pytest.fixture
def serve(folder: Path) -> Callable[..., AbstractContextManager[Served]]:
    """A server over those notes."""

    def over(model: ChatServer | None = None, **more: Any) -> AbstractContextManager[Served]:
        return served(folder, model, **more)

    return over


@pytest.fixture
def at(folder: Path) -> Iterator[Served]:
    with served(folder) as there:
        yield there


@pytest.fixture
def client(at: Served) -> Iterator[httpx.Client]:
    with at.client() as made:
        yield made
