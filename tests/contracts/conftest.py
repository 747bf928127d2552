"""For contract suites: one well-behaved endpoint that speaks chat, embeddings and rerank, and no proxy before it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


def reply_to(path: str, body: dict[str, Any]) -> dict[str, Any]:
    if path.endswith("/chat/completions"):
        message = {"role": "assistant", "content": "Hello."}
        usage = {"prompt_tokens": 7, "completion_tokens": 3}
        return {"model": "m", "choices": [{"finish_reason": "stop", "message": message}], "usage": usage}
    if path.endswith("/embeddings"):
        rows = [[1.0 + text.count("a"), 1.0 + text.count("e"), 1.0 + len(text)] for text in body["input"]]
        return {"data": [{"index": place, "embedding": row} for place, row in enumerate(rows)]}
    return {"results": [{"index": i, "relevance_score": len(text)} for i, text in enumerate(body["documents"])]}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        content = json.dumps(reply_to(self.path, body)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="session")
def endpoint_url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
