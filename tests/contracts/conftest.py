"""For contract suites: one well-behaved endpoint that speaks chat, embeddings and rerank, and no proxy before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from post_server import Reply, as_json, post_server


def reply_to(body: dict[str, Any], _: int) -> Reply:
    if "messages" in body:
        message = {"role": "assistant", "content": "Hello."}
        usage = {"prompt_tokens": 7, "completion_tokens": 3}
        return as_json({"model": "m", "choices": [{"finish_reason": "stop", "message": message}], "usage": usage})
    if "input" in body:
        rows = [[1.0 + text.count("a"), 1.0 + text.count("e"), 1.0 + len(text)] for text in body["input"]]
        return as_json({"data": [{"index": place, "embedding": row} for place, row in enumerate(rows)]})
    return as_json(
        {"results": [{"index": i, "relevance_score": len(text)} for i, text in enumerate(body["documents"])]}
    )


@pytest.fixture(scope="session")
def endpoint_url() -> Iterator[str]:
    with post_server(reply_to) as server:
        yield f"{server.url}/v1"


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
