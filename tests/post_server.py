"""A server on 127.0.0.1 that takes POST requests of JSON, keeps them, and answers each as it is told."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = tuple[int, dict[str, str], bytes]  # status, headers, content
Behaviour = Callable[[Any, int], Reply]  # from the body of a request and its number, from 1


@dataclass
class PostServer:
    """Requests as they came, and how to answer the next."""

    behaviour: Behaviour
    url: str = ""
    paths: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)  # names in lower case
    contents: list[bytes] = field(default_factory=list)

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(content) for content in self.contents]


def as_json(body: object, status: int = 200, **headers: str) -> Reply:
    return status, {"Content-Type": "application/json", **headers}, json.dumps(body).encode()


@contextmanager
def post_server(behaviour: Behaviour) -> Iterator[PostServer]:
    made, lock = PostServer(behaviour), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received = self.rfile.read(int(self.headers["Content-Length"]))
            with lock:
                made.paths.append(self.path)
                made.headers.append({name.lower(): value for name, value in self.headers.items()})
                made.contents.append(received)
                number = len(made.contents)
            status, headers, content = made.behaviour(json.loads(received), number)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    made.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
