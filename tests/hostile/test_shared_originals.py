"""Two workspaces whose settings name one place for originals: neither reads, backs up or deletes what is the other's."""

from __future__ import annotations

import asyncio
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from notes import Plain, opened
from s3_server import new_bucket
from typer.testing import CliRunner

from assay.cli.main import app
from assay.core.errors import UserError
from assay.core.settings import write_settings
from assay.governance.backup import restore
from assay.ingest.sources import SourceFile
from assay.store.blobs import Blobs, copy_blobs, open_blobs, open_uploads
from assay.workspace.facade import Workspace, open_workspace

PLACES: tuple[Any, ...] = (
    pytest.param(lambda folder: f"{folder}/shared", id="folder"),
    pytest.param(lambda folder: new_bucket(), id="bucket", marks=pytest.mark.long),
)


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    named: Callable[[Path], str] = request.param
    return named(tmp_path)


async def add(workspace: Workspace, **texts: str) -> None:
    sources = [SourceFile(uri=f"notes/{name}", name=name, data=words.encode()) for name, words in texts.items()]
    await workspace.documents.add_sources(sources, reader=Plain())


def unmarked(blobs: Blobs) -> None:
    """As an earlier version left a place."""
    blobs.release()
    assert blobs.read_mark() == ""


def workspace_in(folder: Path, place: str = "") -> Workspace:
    open_workspace(folder, create=True).close()
    write_settings(folder, {"blobs": place})
    return opened(folder)


async def test_a_place_that_is_anothers_is_refused_and_stays_as_it_is(tmp_path: Path, place: str):
    with workspace_in(tmp_path / "a", place) as a, workspace_in(tmp_path / "b", place) as b:
        await add(a, pay="The keeper is paid eleven crowns.")
        before = list(a.context.blobs.digests())
        with pytest.raises(UserError, match="belongs to another workspace"):
            await add(b, lamp="The lamp room is red.")
        with pytest.raises(UserError, match="belongs to another workspace"):
            b.context.blobs.delete(before[0])
        with pytest.raises(UserError, match="belongs to another workspace"):
            b.context.blobs.check()
        assert b.records.backup(tmp_path / "b.tar.gz")
        with tarfile.open(tmp_path / "b.tar.gz") as archive:
            assert not [name for name in archive.getnames() if before[0] in name]
        assert list(a.context.blobs.digests()) == before


async def test_workspaces_that_share_a_place_already_are_told_and_move_apart(tmp_path: Path, place: str):
    shared = open_blobs(place, tmp_path)  # nobody is asked, as with an earlier version
    for name, own in (("a", "The keeper is paid eleven crowns."), ("b", "The lamp room is red.")):
        with workspace_in(tmp_path / name) as each:
            await add(each, both="Known to both.", own=own)
            copy_blobs(each.context.blobs, shared, each.context.blobs.digests())
    before = list(shared.digests())
    assert len(before) == 3
    with workspace_in(tmp_path / "a", place) as a, workspace_in(tmp_path / "b", place) as b:
        for each in (a, b):
            with pytest.raises(UserError, match=r"has originals of no document of this workspace \(1\)"):
                await add(each, more="The pier is long.")
        gone = await b.records.erase(b.documents.listing(), b.scope())
        assert not gone.whole, "its originals may be another's"
        assert a.records.copy_originals(f"{tmp_path}/own") == 2 and a.records.drop_originals() == 3
        assert list(shared.digests()) == before
    with workspace_in(tmp_path / "a", f"{tmp_path}/own") as a:
        await add(a, more="The pier is long.")
        assert a.records.missing_originals() == []


def test_doctor_says_which_originals_are_missing(tmp_path: Path, place: str):
    with workspace_in(tmp_path / "a", place) as a:
        asyncio.run(add(a, pay="The keeper is paid eleven crowns.", lamp="The lamp room is red."))
        assert a.records.missing_originals() == []
        a.context.blobs.delete(next(a.context.blobs.digests()))
        (missing,) = a.records.missing_originals()
    told = CliRunner().invoke(app, ["doctor", "--workspace", str(tmp_path / "a"), "--json"])
    assert told.exit_code == 1 and f"1 are missing, of {missing}" in told.stdout


async def test_a_restored_backup_has_no_right_to_the_place_of_the_workspace_it_was_made_of(tmp_path: Path, place: str):
    with workspace_in(tmp_path / "a", place) as a:
        await add(a, pay="The keeper is paid eleven crowns.")
        a.records.backup(tmp_path / "all.tar.gz")
        restore(tmp_path / "all.tar.gz", tmp_path / "again")
        with workspace_in(tmp_path / "again") as again:
            (digest,) = again.context.blobs.digests()
            with pytest.raises(UserError, match="belongs to another workspace"):
                again.records.copy_originals(place)
        with workspace_in(tmp_path / "again", place) as again:
            assert again.records.drop_originals() == 1
        assert a.context.blobs.has(digest)


async def test_the_folder_of_another_workspace_is_no_place(tmp_path: Path):
    with workspace_in(tmp_path / "a") as a:
        await add(a, pay="The keeper is paid eleven crowns.")
        with workspace_in(tmp_path / "b", f"{tmp_path}/a/originals") as b:
            for mark in ("marked", "unmarked"):
                with pytest.raises(UserError, match="another workspace"):
                    await add(b, lamp="The lamp room is red.")
                if mark == "marked":
                    unmarked(a.context.blobs)


@pytest.mark.long
async def test_uploads_that_wait_in_the_bucket_of_another_are_not_taken_for_strays(tmp_path: Path):
    place = new_bucket()
    with workspace_in(tmp_path / "a") as a, workspace_in(tmp_path / "b") as b:
        theirs, ours = (open_uploads(place, each.path, each.context.owner) for each in (a, b))
        (theirs.receiving("j1") / "0").write_bytes(b"It waits to be read.")
        theirs.keep("j1")
        with pytest.raises(UserError, match="belongs to another workspace"):
            ours.jobs()
        with pytest.raises(UserError, match="belongs to another workspace"):
            ours.delete("j1")
        assert list(theirs.jobs()) == ["j1"]
