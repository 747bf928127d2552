"""With `blobs` in a bucket, received files wait there: machines share no folder, and nothing is left when a job has ended."""

from __future__ import annotations

import asyncio
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from postgres_server import new_database
from s3_server import content, keys, new_bucket
from sending import job, listed, send
from serving import Served, served, until, working
from team import team
from test_two_servers import NORTH, SOUTH

from assay.core.errors import UserError
from assay.serve import upload_worker
from assay.serve.upload_worker import StoppableReader
from assay.store import jobs
from assay.store.blobs import open_uploads
from assay.workspace.facade import open_workspace

pytestmark = [pytest.mark.long, pytest.mark.timeout(120)]
WORDS = b"The keeper of Dunmere counts the ferries."


@dataclass(frozen=True)
class Machines:
    """Two folders with the same settings."""

    north: Path
    south: Path
    blobs: str

    @property
    def waiting(self) -> list[str]:
        return keys(f"{self.blobs}/uploads/")

    def copies(self) -> list[Path]:
        """Received files on one of the machines."""
        return [file for place in (self.north, self.south) for file in (place / "uploads").rglob("*") if file.is_file()]


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machines:
    bucket = new_bucket()
    monkeypatch.setenv("ASSAY_STATE", new_database())
    monkeypatch.setenv("ASSAY_INDEX", f"lance:{bucket}/index")
    monkeypatch.setenv("ASSAY_BLOBS", f"{bucket}/originals")
    made = Machines(tmp_path / "north", tmp_path / "south", f"{bucket}/originals")
    for folder in (made.north, made.south):
        open_workspace(folder, create=True).close()
    return made


def test_files_received_at_one_machine_are_read_at_another(machines: Machines):
    with served(machines.north, process=NORTH, works=False) as at, at.client() as client:
        sent = send(client, [("../../etc/Dunmere.txt", WORDS), ("lamps.txt", b"About lamps."), ("bad.pdf", b"no")])
        name = sent.json()["id"]
        prefix = machines.blobs.removeprefix("s3://").partition("/")[2]
        assert machines.waiting == [f"{prefix}/uploads/{name}/{number}" for number in range(3)]
        assert machines.copies() == [] and job(client, name)["state"] == "waiting"
        with working(machines.south, process=SOUTH):
            until(lambda: job(client, name)["state"] == "done", 60)
            until(lambda: machines.waiting == [])
        assert [each["outcome"] for each in job(client, name)["reports"]] == ["added", "added", "failed"]
        (found,) = listed(client, q="Dunmere.txt")
        assert client.get(f"/api/documents/{found['id']}/original").content == WORDS
        assert client.post("/api/search", json={"query": "Dunmere ferries"}).json()["hits"]
    assert machines.copies() == []


def test_an_upload_that_is_stopped_leaves_no_object(machines: Machines, monkeypatch: pytest.MonkeyPatch):
    reading, real = threading.Event(), StoppableReader.read

    async def never(self: StoppableReader, data: Path | bytes, name: str) -> Any:
        reading.set()
        await self.work.stop.wait()
        return await real(self, data, name)

    monkeypatch.setattr(StoppableReader, "read", never)
    with served(machines.north, process=NORTH, works=False) as at, at.client() as client:
        waits = send(client, [("a.txt", WORDS)]).json()["id"]
        assert client.post(f"/api/jobs/{waits}/cancel").json()["state"] == "cancelled"
        assert machines.waiting == []
        name = send(client, [("a.txt", WORDS), ("b.txt", b"Never fetched.")]).json()["id"]
        with working(machines.south, process=SOUTH):
            until(reading.is_set)
            assert len(machines.copies()) == 1, "a file is fetched when its turn comes"
            assert client.post(f"/api/jobs/{name}/cancel").json()["state"] == "cancelled"
            until(lambda: machines.waiting == machines.copies() == [])
        assert listed(client) == [] and WORDS not in content(machines.blobs)


def test_files_of_a_job_that_was_never_recorded_are_deleted_when_they_cannot_be_arriving_any_more(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
):
    uploads = open_uploads(machines.blobs, machines.north)
    (uploads.receiving("jdead") / "0").write_bytes(WORDS)
    uploads.keep("jdead")  # and the server was killed
    with served(machines.north, process=NORTH, works=False) as at, at.client() as client:
        name = send(client, [("a.txt", WORDS)]).json()["id"]
        asyncio.run(at.server.worker.sweep())
        assert len(machines.waiting) == 2, "it may be arriving"
        monkeypatch.setattr(upload_worker, "ARRIVAL", -60.0)
        asyncio.run(at.server.worker.sweep())
        assert [key.split("/")[-2] for key in machines.waiting] == [name]


@pytest.fixture
def alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Served, str]]:
    """One server, with the state in a file, that leaves uploads waiting; and where it keeps them."""
    blobs = new_bucket()
    with served(folder, works=False, shared=True, blobs=blobs) as at:
        yield at, blobs


def test_a_base_that_is_erased_takes_what_waits_for_it_along(alone: tuple[Served, str]):
    at, blobs = alone
    with at.client() as client:
        client.post("/api/bases", json={"name": "gone"})
        send(client, [("a.txt", WORDS)], "gone")
        kept = send(client, [("b.txt", b"For another one.")]).json()["id"]
    asyncio.run(at.server.workspace.records.erase_base("gone"))  # as a command beside the server does
    assert [key.split("/")[-2] for key in keys(f"{blobs}/uploads/")] == [kept]


def test_a_person_who_is_erased_takes_what_waits_along(folder: Path):
    blobs = new_bucket()
    with team(folder, works=False, shared=True, blobs=blobs) as people:
        with people.as_("editor") as editor, people.as_("reader") as reader:
            send(editor, [("a.txt", WORDS)])
            kept = send(reader, [("b.txt", b"Another person's.")]).json()["id"]
        asyncio.run(people.at.server.workspace.records.erase_person("editor", with_documents=True))
    assert [key.split("/")[-2] for key in keys(f"{blobs}/uploads/")] == [kept]


def test_who_has_no_room_left_puts_nothing_into_the_bucket(folder: Path):
    blobs = new_bucket()
    with served(folder, blobs=blobs, serve_megabytes_per_person=1, file_max_megabytes=1) as at, at.client() as client:
        assert send(client, [("a.txt", b" " * 1_200_000)]).status_code == 413
        assert keys(f"{blobs}/uploads/") == [] and client.get("/api/jobs").json() == []


def test_a_storage_that_cannot_be_used_is_told_and_nothing_is_kept(folder: Path):
    new_bucket()  # the storage is there, this bucket is not
    with served(folder, blobs="s3://nothing-of-this-name/assay") as at, at.client() as client:
        reply = send(client, [("a.txt", WORDS)])
        assert reply.status_code == 503 and "cannot be used" in reply.json()["detail"]
        assert client.get("/api/jobs").json() == [] and not any(at.server.worker.uploads.folder.iterdir())


def test_a_backup_has_what_waits_and_originals_are_not_moved_meanwhile(alone: tuple[Served, str], tmp_path: Path):
    at, _ = alone
    with at.client() as client:
        name = send(client, [("a.txt", WORDS)]).json()["id"]
    workspace = at.server.workspace
    workspace.records.backup(tmp_path / "all.tar.gz")
    with tarfile.open(tmp_path / "all.tar.gz") as archive:
        (file,) = [each for each in archive.getmembers() if each.name.startswith("uploads/")]
        packed = archive.extractfile(file)
        assert packed is not None and (file.name, packed.read()) == (f"uploads/{name}/0", WORDS)
    with pytest.raises(UserError, match="Uploads wait to be read"):
        workspace.records.copy_originals("")
    jobs.end(workspace.store, name, jobs.CANCELLED)
    assert workspace.records.copy_originals("") == 0
