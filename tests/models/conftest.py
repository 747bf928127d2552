"""For tests of what speaks HTTP: a server in the test's own event loop, and no proxy between."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from loopback import Loopback


@pytest_asyncio.fixture
async def loopback() -> AsyncIterator[Loopback]:
    made = Loopback()
    await made.start()
    yield made
    await made.stop()


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
