"""A Milvus server for tests: one for each test process, from the package `milvus`, or the one that TEST_MILVUS=http://HOST:PORT
names.

The package is not among those that tests install (`pip install milvus==2.3.5`): it has no build for Linux on aarch64, and its
server listens on all interfaces of the machine.
"""

from __future__ import annotations

import atexit
import functools
import os
import tempfile
from pathlib import Path

import pytest


@functools.cache
def milvus_address() -> str:
    pytest.importorskip("pymilvus", reason="the package pymilvus is not installed")
    if given := os.environ.get("TEST_MILVUS"):
        return given
    package = pytest.importorskip(
        "milvus", reason="the package milvus is not installed (`pip install milvus==2.3.5`, not for aarch64)"
    )

    folder = Path(tempfile.mkdtemp(prefix="assay-milvus-"))
    first = 20_000 + os.getpid() % 1000 * 20  # test processes that start together must not find the same free ports

    class Server(package.MilvusServer):
        def get_milvus_executable_path(self) -> str:
            """Servers on one machine need lock files and ports of etcd of their own."""
            binary = Path(super().get_milvus_executable_path())
            named = binary.with_name("milvus-named")
            named.write_text(
                f'#!/bin/sh\nETCD_CONFIG_PATH={folder}/etcd.yaml exec {binary} "$@" -alias assay-{os.getpid()}\n'
            )
            named.chmod(0o700)
            return str(named)

    server = Server(package.MilvusServerConfig(data_dir=str(folder)))
    for name in server.config_keys:
        if name.endswith("_port"):
            server.config.set(name, first)
    server.webservice_port = first + 15
    clients, peers = (f"http://127.0.0.1:{first + at}" for at in (16, 17))
    (folder / "etcd.yaml").write_text(
        f"name: default\nlisten-client-urls: {clients}\nadvertise-client-urls: {clients}\n"
        f"listen-peer-urls: {peers}\ninitial-advertise-peer-urls: {peers}\ninitial-cluster: default={peers}\n"
    )
    atexit.register(lambda: (server.stop(), server.cleanup()))
    server.start()
    return f"http://{server.server_address}:{server.listen_port}"
