"""A person who reads in the browser, and whose browser complains of nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def _plain_environment() -> Iterator[None]:
    """What lasts for a whole file sees no settings of whoever runs it, either."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("ASSAY_") and name != "ASSAY_CACHE_DIR"]:
            patch.delenv(name)
        yield


@pytest.fixture
def reads(browser: Any) -> Iterator[Callable[..., Any]]:
    """`reads(desk)` is somebody new at that desk; in the end their browser has complained of nothing."""
    from browser_session import Reader

    readers: list[Any] = []

    def sit(at: Any, **context: Any) -> Any:
        readers.append(Reader(browser, at if isinstance(at, str) else at.url, **context))
        return readers[-1]

    yield sit
    for reader in readers:
        reader.leaves()
