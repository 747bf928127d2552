"""What every `Uploads` must do: keep received files until their job has ended, where each worker can read them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from s3_server import keys, new_bucket, put

from assay.store.blobs import PIECE, Uploads, open_uploads

LARGE = bytes(range(256)) * (PIECE // 256) * 6  # more than one part of an object
Machines = tuple[Uploads, Uploads]  # that receives, that reads


def in_the_workspace(place: Path) -> Machines:
    """Two processes that share the folder."""
    return open_uploads("", place), open_uploads(f"{place}/originals", place)


def in_a_bucket(place: Path) -> Machines:
    """Two machines with folders of their own."""
    bucket = new_bucket()
    return open_uploads(bucket, place / "north"), open_uploads(f"{bucket}/", place / "south")


PLACES: tuple[Any, ...] = (in_the_workspace, pytest.param(in_a_bucket, marks=pytest.mark.long))


@pytest.fixture(params=PLACES, ids=lambda place: place.__name__)
def machines(request: pytest.FixtureRequest, tmp_path: Path) -> Machines:
    place: Callable[[Path], Machines] = request.param
    return place(tmp_path)


def receive(uploads: Uploads, job: str, *files: bytes) -> None:
    folder = uploads.receiving(job)
    for number, data in enumerate(files):
        (folder / str(number)).write_bytes(data)
    uploads.keep(job)


def read(uploads: Uploads, job: str, number: int) -> bytes:
    with uploads.reading(job) as folder:
        uploads.fetch(job, number, folder)
        return (folder / str(number)).read_bytes()


def test_what_is_received_at_one_place_is_read_at_another_until_it_is_deleted(machines: Machines):
    north, south = machines
    receive(north, "j1", b"first", LARGE, b"")
    receive(north, "j12", b"another job")
    assert [read(south, "j1", number) for number in range(3)] == [b"first", LARGE, b""]
    south.delete("j1")
    south.delete("j1")
    with pytest.raises(FileNotFoundError):
        read(north, "j1", 0)
    assert read(south, "j12", 0) == b"another job"


def test_jobs_with_files_are_listed_with_the_time_of_their_last_change(machines: Machines):
    north, south = machines
    began = time.time() - 2  # a storage may tell whole seconds
    assert south.jobs() == {}
    receive(north, "j1", b"first")
    arriving = north.receiving("j2")  # a process was killed while its files arrived
    (arriving / "0").write_bytes(b"half of")
    assert north.jobs().keys() == {"j1", "j2"} and "j1" in south.jobs()
    assert all(began < changed <= time.time() + 2 for changed in north.jobs().values())
    north.delete("j1")
    north.delete("j2")
    assert north.jobs() == south.jobs() == {} and not arriving.exists()


@pytest.mark.long
def test_with_a_bucket_no_machine_keeps_a_copy_and_one_that_a_killed_process_left_is_found(tmp_path: Path):
    north, south = in_a_bucket(tmp_path)
    receive(north, "j1", b"first")
    assert not any(north.folder.iterdir())
    assert read(south, "j1", 0) == b"first" and not any(south.folder.iterdir())
    left = south.reading("j1")
    south.fetch("j1", 0, left.__enter__())
    north.delete("j1")
    assert north.jobs() == {} and south.jobs().keys() == {"j1"}
    south.delete("j1")
    assert not any(south.folder.iterdir())


@pytest.mark.long
def test_other_objects_in_the_bucket_are_no_uploads(tmp_path: Path):
    bucket = new_bucket()
    for name in ("uploads/letters/0", "uploads/j1/readme", "uploads/j1", "other/uploads/j1/0"):
        put(f"{bucket}/{name}", b"not Assay's")
    uploads = open_uploads(bucket, tmp_path)
    assert uploads.jobs() == {}
    receive(uploads, "j1", b"first")
    uploads.delete("j1")
    assert len(keys(bucket)) == 4
