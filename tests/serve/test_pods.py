"""The pods of `deploy/kubernetes.yaml` as processes: each has an empty folder of its own, and all share a database and a
bucket."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import forked
import httpx
import pytest
import yaml
from postgres_server import new_database
from s3_server import content, new_bucket
from sending import job, send
from serving import followed, until
from test_restart import free_port

MANIFESTS = Path(__file__).parents[2] / "deploy" / "kubernetes.yaml"
HOST = "assay.example"


def manifest(kind: str, name: str) -> dict[str, Any]:
    found = yaml.safe_load_all(MANIFESTS.read_text(encoding="utf-8"))
    return next(each for each in found if (each["kind"], each["metadata"]["name"]) == (kind, name))


def command(deployment: str, places: Mapping[str, str]) -> list[str]:
    (container,) = manifest("Deployment", deployment)["spec"]["template"]["spec"]["containers"]
    return [places.get(word, word) for word in container["args"]]


@contextmanager
def pod(words: list[str], environment: Mapping[str, str], folder: Path) -> Iterator[forked.Process]:
    folder.mkdir(mode=0o700)
    with (folder.parent / f"{folder.name}.log").open("w") as log:
        started = forked.Process(
            [sys.executable, "-m", "assay.cli.main", *words],
            env={**environment, "ASSAY_WORKSPACE": str(folder)},
            stdout=log.fileno(),
            stderr=log.fileno(),
        )
        try:
            yield started
        finally:
            started.terminate()
            started.wait(60)


def is_ready(client: httpx.Client) -> bool:
    try:
        return client.get("/ready").status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.kill
@pytest.mark.timeout(300)
def test_pods_with_folders_of_their_own_read_what_is_sent_and_answer(tmp_path: Path):
    bucket, heartbeat = new_bucket(), tmp_path / "working"
    settings = manifest("ConfigMap", "assay")["data"] | {
        "ASSAY_STATE": new_database(),
        "ASSAY_BLOBS": f"{bucket}/originals",
        "ASSAY_AUDIT_KEY": str(tmp_path / "audit.key"),
        "ASSAY_CACHE_DIR": os.environ.get("ASSAY_CACHE_DIR", str(tmp_path / "cache")),
        "AWS_REGION": os.environ["AWS_REGION"],
    }
    environment = os.environ | settings
    ports = free_port(), free_port()
    servers = [
        [*command("assay-serve", {"0.0.0.0": "127.0.0.1", "$(PROXY)": "127.0.0.1"}), "--port", str(port)]
        for port in ports
    ]
    first, second = (httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60.0) for port in ports)
    for client in (first, second):
        client.headers["host"] = HOST
    with (
        pod(command("assay-worker", {"/tmp/working": str(heartbeat)}), environment, tmp_path / "worker"),
        pod(servers[0], environment, tmp_path / "server-1"),
    ):
        until(lambda: is_ready(first), 120)
        with pod(servers[1], environment, tmp_path / "server-2"):
            for words in (["user", "add", "ann", "--admin", "--no-password"], ["key", "add", "ann"]):
                done = forked.run(
                    [sys.executable, "-m", "assay.cli.main", *words],
                    env={**environment, "ASSAY_WORKSPACE": str(tmp_path / "server-1")},
                    text=True,
                )
                assert done.returncode == 0, done.stderr
            key = done.stdout.split()[-1]
            until(lambda: is_ready(second) and heartbeat.exists(), 120)
            for client in (first, second):
                client.headers["authorization"] = f"Bearer {key}"
            upload = send(first, [("ferry.txt", b"The ferry to Dunmere leaves at noon.")]).json()["id"]
            until(lambda: job(second, upload)["state"] == "done", 60)
            assert b"Dunmere" in content(bucket)
            run = second.post("/api/runs", json={"question": "When does the ferry to Dunmere leave?"}).json()["run"]
            assert followed(first, run)[-1].event == "end"
            assert "noon" in first.get(f"/api/runs/{run}").text
