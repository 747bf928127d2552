"""Places of documents for tests: a folder, a bucket of moto, a WebDAV server and a directory of a web server. Each can be
changed behind Assay's back, and counts what is fetched of it."""

from __future__ import annotations

import functools
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol

import pytest
import s3_server

LOGIN = ("anna", "a secret: with a colon")
AGO = 3600.0  # seconds: files as they are found, not as somebody writes them


class Storage(Protocol):
    """What is at a place, and what was fetched of it: how often each file, by its name."""

    address: str
    allowed: str  # what the settings must name; empty for a folder
    logins: str
    fetched: Counter[str]

    def put(self, name: str, text: str) -> None: ...
    def delete(self, name: str) -> None: ...
    def rename(self, name: str, to: str) -> None: ...


class Files:
    """The files of a folder, which may be served in several ways. A change is as old as the test needs it: `ago` seconds."""

    def __init__(self, root: Path, address: str = "", logins: str = "") -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.root, self.address, self.allowed, self.logins = root, address or str(root), address, logins
        self.fetched: Counter[str] = Counter()
        self.ago = AGO
        self._ticks = 0

    def put(self, name: str, text: str) -> None:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        self._ticks += 1  # a server makes its tags of whole seconds
        then = time.time() - self.ago + (self._ticks if self.ago == AGO else 0)
        os.utime(file, (then, then))

    def delete(self, name: str) -> None:
        (self.root / name).unlink()

    def rename(self, name: str, to: str) -> None:
        (self.root / to).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).rename(self.root / to)


class Objects:
    """The objects of a bucket. moto does not tell what is fetched: the client is counted."""

    def __init__(self) -> None:
        self.address = self.allowed = s3_server.new_bucket().replace("/assay", "/minutes of 2024")
        self.logins = ""
        self.fetched: Counter[str] = Counter()

    def put(self, name: str, text: str) -> None:
        s3_server.put(f"{self.address}/{name}", text.encode())

    def delete(self, name: str) -> None:
        s3_server.delete(f"{self.address}/{name}")

    def rename(self, name: str, to: str) -> None:
        s3_server.copy(f"{self.address}/{name}", f"{self.address}/{to}")
        self.delete(name)


@contextmanager
def in_a_folder(root: Path, patch: pytest.MonkeyPatch) -> Iterator[Storage]:
    yield Files(root)


@contextmanager
def in_a_bucket(root: Path, patch: pytest.MonkeyPatch) -> Iterator[Storage]:
    from assay.ingest.places.bucket import Bucket

    made, fetch = Objects(), Bucket.fetch

    def counted(self: Bucket, name: str, into: Path) -> None:
        fetch(self, name, into)
        made.fetched[name] += 1  # what is gone by now was not fetched

    patch.setattr(Bucket, "fetch", counted)
    yield made


@contextmanager
def on_webdav(root: Path, patch: pytest.MonkeyPatch) -> Iterator[Storage]:
    wsgidav = pytest.importorskip("wsgidav.wsgidav_app", reason="the package wsgidav is not installed")
    from cheroot import wsgi

    held = root / "shared folder"
    held.mkdir(parents=True)
    config = {
        "provider_mapping": {"/": str(root)},
        "simple_dc": {"user_mapping": {"*": {LOGIN[0]: {"password": LOGIN[1]}}}},
        "verbose": 0,
        "logging": {"enable": False},
    }
    app = wsgidav.WsgiDAVApp(config)
    made = Files(held)

    def counted(environ: dict[str, Any], start: Callable[..., Any]) -> Any:
        name = environ["PATH_INFO"].encode("latin-1").decode().removeprefix("/shared folder/")

        def answered(status: str, *rest: Any) -> Any:
            if environ["REQUEST_METHOD"] == "GET" and status.startswith("200"):  # what is gone by now was not fetched
                made.fetched[name] += 1
            return start(status, *rest)

        return app(environ, answered)

    server = wsgi.Server(("127.0.0.1", 0), counted, numthreads=4)
    server.prepare()
    turning = threading.Thread(target=server.serve, daemon=True)
    turning.start()
    made.address = made.allowed = f"dav://127.0.0.1:{server.bind_addr[1]}/shared folder"
    made.logins = f"dav://127.0.0.1:{server.bind_addr[1]} {':'.join(LOGIN)}"
    try:
        yield made
    finally:
        server.stop()
        turning.join()


@contextmanager
def on_the_web(root: Path, patch: pytest.MonkeyPatch) -> Iterator[Storage]:
    pytest.importorskip("fsspec.implementations.http", reason="the packages fsspec and aiohttp are not installed")
    made = Files(root / "shared folder")

    class Counted(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            if not self.path.endswith("/"):
                made.fetched[self.path.removeprefix("/shared%20folder/")] += 1
            super().do_GET()

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Counted, directory=str(root)))
    turning = threading.Thread(target=server.serve_forever, daemon=True)
    turning.start()
    made.address = made.allowed = f"http://127.0.0.1:{server.server_address[1]}/shared folder"
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        turning.join()


STORAGES = (in_a_folder, in_a_bucket, on_webdav, on_the_web)
