"""What every `Blobs` must do: keep the original bytes of documents by their digest."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from s3_server import new_bucket

from assay.core.errors import Missing, StoreError, UserError
from assay.store.blobs import Blobs, copy_blobs, open_blobs, part_file


def in_the_workspace(folder: Path) -> Blobs:
    return open_blobs("", folder)


def in_a_folder(folder: Path) -> Blobs:
    return open_blobs(f"{folder}/elsewhere", folder)


def in_a_bucket(folder: Path) -> Blobs:
    return open_blobs(new_bucket(), folder)


PLACES: tuple[Any, ...] = (in_the_workspace, in_a_folder, pytest.param(in_a_bucket, marks=pytest.mark.long))


@pytest.fixture(params=PLACES, ids=lambda place: place.__name__)
def place(request: pytest.FixtureRequest) -> Callable[[Path], Blobs]:
    return request.param


@pytest.fixture
def blobs(place: Callable[[Path], Blobs], tmp_path: Path) -> Blobs:
    return place(tmp_path)


def keep(blobs: Blobs, data: bytes) -> str:
    digest = hashlib.sha256(data).hexdigest()
    with part_file(blobs.scratch) as (copy, file):
        file.write(data)
        file.close()
        blobs.put(digest, copy)
    return digest


def read(blobs: Blobs, digest: str) -> bytes:
    with blobs.as_file(digest) as path:
        return path.read_bytes()


def test_what_is_kept_is_read_and_gone_when_it_is_deleted(blobs: Blobs):
    first, second = keep(blobs, b"some bytes"), keep(blobs, b"")
    assert keep(blobs, b"some bytes") == first
    assert list(blobs.digests()) == sorted((first, second))
    assert blobs.has(first) and read(blobs, first) == b"some bytes" and read(blobs, second) == b""
    blobs.delete(first)
    blobs.delete(first)
    assert not blobs.has(first) and list(blobs.digests()) == [second]
    with pytest.raises(Missing), blobs.as_file(first):
        pass


def test_nothing_is_there_at_first_and_nothing_is_left_lying(blobs: Blobs):
    assert not blobs.has("") and not blobs.has("0" * 64) and list(blobs.digests()) == []
    digest = keep(blobs, b"x" * 3_000_000)
    assert read(blobs, digest) == b"x" * 3_000_000
    assert not list(blobs.scratch.glob("*.part"))


def test_a_place_is_tried_and_keeps_nothing_of_it(blobs: Blobs):
    assert blobs.check() == () and not blobs.keeps_deleted()
    assert list(blobs.digests()) == []


def test_originals_move_and_a_move_that_stopped_goes_on(blobs: Blobs, tmp_path: Path):
    source = open_blobs("", tmp_path / "source")
    kept = [keep(source, f"document {n}".encode()) for n in range(4)]
    keep(blobs, b"document 0")
    with part_file(blobs.scratch) as (copy, file):  # a damaged copy
        file.write(b"half")
        file.close()
        blobs.put(kept[1], copy)
    assert copy_blobs(source, blobs, kept) == copy_blobs(source, blobs, kept) == 4
    assert [read(blobs, digest) for digest in kept] == [f"document {n}".encode() for n in range(4)]


def test_an_original_that_has_changed_is_not_moved(blobs: Blobs, tmp_path: Path):
    source = open_blobs("", tmp_path / "source")
    digest = keep(source, b"as it was")
    (tmp_path / "source" / "originals" / digest[:2] / digest).write_bytes(b"as it is")
    with pytest.raises(StoreError, match="nothing was moved"):
        copy_blobs(source, blobs, [digest])


def test_other_files_in_the_folder_are_not_originals(tmp_path: Path):
    blobs = open_blobs(str(tmp_path), tmp_path)
    (tmp_path / "de").mkdir()
    (tmp_path / "de" / "readme.txt").write_text("Mine.")
    assert list(blobs.digests()) == []


def test_a_place_that_cannot_be_used_is_told(tmp_path: Path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(StoreError, match="Originals cannot be kept"):
        open_blobs(f"{tmp_path}/file", tmp_path).check()
    with pytest.raises(UserError, match="keys belong in the environment"):
        open_blobs("s3://key:secret@bucket", tmp_path)


@pytest.mark.long
def test_a_bucket_that_keeps_versions_is_named(tmp_path: Path):
    blobs = open_blobs(new_bucket(versioned=True), tmp_path)
    assert blobs.keeps_deleted() and "keeps old versions" in blobs.check()[0]
