"""Ingestion on a Ray cluster of two nodes, on the loopback address: the same as in this process, whichever worker is killed."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from post_server import Reply, as_json, post_server

import assay
from assay.core.errors import UserError
from assay.evaluate.plain_text import WordEmbedder
from assay.ingest import ray_workers as on_ray
from assay.ingest.parsed import FileLimits
from assay.ingest.pipeline import Progress
from assay.store import facts
from assay.workspace.facade import Workspace, open_workspace

BOUNDED = {"num_cpus": 1, "object_store_memory": 80_000_000, "include_dashboard": False, "node_ip_address": "127.0.0.1"}
ENVIRONMENT = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled", on_ray.ON_LOOPBACK: "0"}
PATIENCE = 200.0  # seconds that a worker waits for the other node, and a test for a command


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A cluster of two nodes with one processor each, and this process connected to it."""
    folder = tempfile.mkdtemp(prefix="ray", dir="/tmp")  # the paths of its sockets must be short
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        patch.setenv("PYTHONPATH", str(Path(assay.__file__).parents[1]))
        patch.setenv("RAY_TMPDIR", folder)
        Path(folder, "ray").mkdir()  # where Ray writes the address of a cluster; it does not make the folder
        ray = pytest.importorskip("ray", reason="needs ray (pip install 'assay[ray]')")
        from ray.cluster_utils import Cluster

        started = Cluster()
        try:
            for _ in range(2):
                add_node(started, folder)
            ray.init(started.address, log_to_driver=False)
            yield started
        finally:
            ray.shutdown()
            started.shutdown()
            shutil.rmtree(folder, ignore_errors=True)


def add_node(cluster: Any, folder: str) -> None:
    try:
        cluster.add_node(**BOUNDED, temp_dir=folder)
    except Exception as error:
        if "timed out during startup" in str(error):  # Ray waits 30 seconds, which cannot be set
            pytest.skip("the machine is too busy for Ray to start in 30 seconds")
        raise


@pytest.fixture
def address(cluster: Any) -> str:
    return cluster.address


@pytest.fixture
def folder(tmp_path: Path, corpus: Path) -> Path:
    """Documents of several formats, two with the same content, and some that cannot be read."""
    place = tmp_path / "documents"
    place.mkdir()
    for name in ("alarm-handling-procedure.docx", "records-retention-policy.pdf", "suppliers.xlsx", "reservoirs.html"):
        shutil.copy(corpus / name, place)
    shutil.copy(corpus / "reservoirs.html", place / "same-reservoirs.html")
    shutil.copy(corpus / "field-notes-to-follow.txt", place / "empty.txt")
    (place / "broken.pdf").write_bytes((corpus / "records-retention-policy.pdf").read_bytes()[:900])
    (place / "large.txt").write_text("Too large. " * 100_000)
    (place / "valves.txt").write_text(" ".join(f"Valve {n} was tested in Orlen on day {n}." for n in range(2700)))
    return place


def opened(place: Path, embedder: WordEmbedder | None = None, **settings: Any) -> Workspace:
    workspace = open_workspace(place, create=True, file_max_megabytes=1, **settings)
    workspace.embedder = embedder or WordEmbedder()
    return workspace


def contents(workspace: Workspace) -> tuple[dict[str, Any], list[Any]]:
    """What is known of each file, and the rows of the index; without the random ids of documents."""
    entries = {
        entry.name: (entry.state, entry.status, entry.why, entry.title, entry.pages, entry.characters, entry.passages)
        for entry in workspace.documents.listing()
    }

    async def rows() -> list[Any]:
        index = await workspace.context.index(workspace.scope().named("default"))
        return await index.rows(await index.ids())

    found = sorted(
        (
            Path(str(row.fields["source"])).name,
            row.passage.start,
            row.passage.end,
            row.passage.text,
            row.passage.heading,
            row.lead,
            str(row.fields["title"]),
            row.vector.tobytes(),
        )
        for row in asyncio.run(rows())
    )
    return entries, found


def outcomes(report: Any) -> dict[str, tuple[str, str, int]]:
    return {Path(file.path).name: (file.status, file.outcome, file.passages) for file in report.files}


@pytest.fixture
def by_itself(folder: Path, tmp_path: Path) -> tuple[dict[str, Any], dict[str, Any], list[Any]]:
    """What this process makes of the folder."""
    with opened(tmp_path / "local") as workspace:
        report = asyncio.run(workspace.add([folder]))
        return outcomes(report), *contents(workspace)


def on_both_nodes(marks: Path) -> Callable[..., Any]:
    """Reads a file once a worker of each node wants to read one."""

    def read(*given: Any) -> Any:
        import ray

        (marks / ray.get_runtime_context().get_node_id()).touch()
        until = time.monotonic() + PATIENCE
        while len(list(marks.iterdir())) < 2:
            assert time.monotonic() < until, "the other node had nothing to read"
            time.sleep(0.05)
        return on_ray.read_file(*given)

    return read


@pytest.mark.long
def test_two_nodes_make_the_same_as_this_process(
    address: str, folder: Path, by_itself: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    marks = tmp_path / "nodes"
    marks.mkdir()
    monkeypatch.setattr(on_ray, "read_file", on_both_nodes(marks))
    with opened(tmp_path / "on-ray", ingest_engine="ray", ray_address=address) as workspace:
        report = asyncio.run(workspace.add([folder]))
        assert (outcomes(report), *contents(workspace)) == by_itself
        assert workspace.embedder.embedded == 0, "passages were embedded here, not by workers"
        again = asyncio.run(workspace.add([folder]))
        assert again.embedded == 0 and {file.outcome for file in again.files if file.status == "read"} == {
            "unchanged", "duplicate"
        }  # fmt: skip


def dying_embedder(at: Callable[[str], None]) -> WordEmbedder:
    class Dying(WordEmbedder):
        def tokens(self, text: str) -> int:
            at("splitting")
            return super().tokens(text)

        async def passages(self, texts: Any) -> Any:
            found = await super().passages(texts)
            at("embedded")
            return found

    return Dying()


def killed_once(marks: Path, here: int) -> Callable[[str], None]:
    """Kills the worker that first comes to a point."""

    def at(point: str) -> None:
        if os.getpid() == here:
            return
        try:
            (marks / point).open("x").close()
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)

    return at


@pytest.mark.long
@pytest.mark.kill
def test_a_worker_killed_while_it_parses_splits_or_embeds_changes_nothing(
    address: str, folder: Path, by_itself: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    marks = tmp_path / "killed"
    marks.mkdir()
    at = killed_once(marks, os.getpid())

    def read(*given: Any) -> Any:
        found = on_ray.read_file(*given)
        at("parsed")
        return found

    monkeypatch.setattr(on_ray, "read_file", read)
    with opened(tmp_path / "on-ray", dying_embedder(at), ingest_engine="ray", ray_address=address) as workspace:
        report = asyncio.run(workspace.add([folder]))
        assert sorted(mark.name for mark in marks.iterdir()) == ["embedded", "parsed", "splitting"]
        assert (outcomes(report), *contents(workspace)) == by_itself


@pytest.mark.long
def test_an_add_that_was_stopped_is_carried_on(address: str, folder: Path, by_itself: Any, tmp_path: Path):
    class Stopped(Exception):
        pass

    first: list[Progress] = []

    def stop(progress: Progress) -> None:
        first.append(progress)
        if progress.embedded:
            raise Stopped

    with opened(tmp_path / "on-ray", ingest_engine="ray", ray_address=address) as workspace:
        with pytest.raises(Stopped):
            asyncio.run(workspace.add([folder], say=stop))
        report = asyncio.run(workspace.add([folder]))
        assert contents(workspace) == by_itself[1:]
        assert first[-1].embedded and report.embedded + first[-1].embedded == len(by_itself[2])


@pytest.mark.long
def test_the_same_error_of_an_embedder_as_in_this_process(address: str, tmp_path: Path):
    class Refusing(WordEmbedder):
        async def passages(self, texts: Any) -> Any:
            raise UserError("The embedder refuses.")

    (tmp_path / "note.txt").write_text("A note about the kettle.")
    with (
        opened(tmp_path / "on-ray", Refusing(), ingest_engine="ray", ray_address=address) as workspace,
        pytest.raises(UserError, match=r"^The embedder refuses\.$"),
    ):
        asyncio.run(workspace.add([tmp_path / "note.txt"]))


def working_on(task: str, cluster: Any) -> list[int]:
    """The processes of the cluster's workers that run a task of this name."""
    raylets = {each.process.pid for node in cluster.list_all_nodes() for each in node.all_processes["raylet"]}
    found: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            if parent in raylets and (process / "cmdline").read_bytes().startswith(f"ray::{task}".encode()):
                found.append(int(process.name))
    return found


@pytest.mark.long
@pytest.mark.kill
def test_the_command_prints_its_report_though_a_worker_is_killed_while_it_waits_for_the_embedder(
    cluster: Any, folder: Path, tmp_path: Path
):
    killed: list[int] = []

    def vectors(body: Any, _: int) -> Reply:
        for worker in working_on("embed_passages", cluster)[: 1 - len(killed)]:
            killed.append(worker)
            os.kill(worker, signal.SIGKILL)
        texts = enumerate(body["input"])
        return as_json({"data": [{"index": i, "embedding": [1.0 + text.count("a"), 1.0, 2.0]} for i, text in texts]})

    with post_server(vectors) as endpoint:
        ran = add_by_command(folder / "valves.txt", tmp_path / "workspace", cluster.address, f"{endpoint.url}/v1")
    assert ran.returncode == 0, ran.stderr
    report = json.loads(ran.stdout)
    assert len(killed) == 1 and report["readable"] == 1 and report["embedded"] == report["passages"] > 64


def add_by_command(file: Path, workspace: Path, address: str, embedder: str) -> subprocess.CompletedProcess[str]:
    given = {"ASSAY_EMBEDDER": embedder, "ASSAY_EMBEDDER_MODEL": "letters", "ASSAY_RAY_ADDRESS": address}
    command = [sys.executable, "-m", "assay.cli.main", "add", str(file), "--engine", "ray", "--json"]
    return subprocess.run(
        [*command, "--workspace", str(workspace)],
        env={**os.environ, **ENVIRONMENT, **given},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def test_without_ray_it_is_said_how_to_install_it_and_nothing_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "ray", None)
    (tmp_path / "note.txt").write_text("A note about the kettle.")
    with opened(tmp_path / "on-ray", ingest_engine="ray") as workspace:
        with pytest.raises(UserError, match=r"pip install 'assay\[ray\]'"):
            asyncio.run(workspace.add([tmp_path / "note.txt"]))
        assert not workspace.documents.listing() and not workspace.scope().bases


@pytest.mark.parametrize("given", ["127.0.0.1:1", "127.0.0.1", "ray://127.0.0.1:10001"])
def test_an_address_that_leads_nowhere_is_named(given: str):
    with pytest.raises(UserError, match=given):
        on_ray.check_reachable(given)


def test_files_go_to_a_cluster_on_other_machines_only_after_consent(tmp_path: Path):
    with opened(tmp_path / "workspace") as workspace:
        with pytest.raises(UserError, match=r"assay config agree 10\.0\.0\.5"):
            workspace.context.check_cluster_consent("10.0.0.5")
        facts.agree(workspace.store, "10.0.0.5")
        workspace.context.check_cluster_consent("10.0.0.5")


def test_a_worker_of_another_version_or_with_another_model_is_refused():
    with pytest.raises(UserError, match="same version on every node"):
        on_ray.embed_passages("0.0.1", on_ray.EmbedderCopy("", b""), ["a"])
    with pytest.raises(UserError, match="same model on every node"):
        on_ray.embed_passages(assay.__version__, on_ray.EmbedderCopy("other", pickle.dumps(WordEmbedder())), ["a"])


@pytest.mark.parametrize(("there", "said"), [({"CPU": 2.0}, "the Ray cluster has 0 GPUs"), ({}, "no processor")])
def test_what_the_cluster_does_not_have_is_said_before_a_task_waits_for_it(there: dict[str, float], said: str):
    ray = SimpleNamespace(cloudpickle=pickle, cluster_resources=lambda: there)
    workers = on_ray.RayWorkers(ray, FileLimits(), ocr_languages="", embedder_gpus=0.5)
    with pytest.raises(UserError, match=said):
        workers.engine(WordEmbedder(), 200, 40)
