"""A backup as an attack: what was taken back since does not come to life with it, and nobody reads more than on that day."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from notes import filled, opened

from assay.core.access import LOCAL, Principal
from assay.governance.backup import restore
from assay.store.access import grants, members, tokens
from assay.store.runs import records
from assay.workspace.facade import Workspace

PASSWORD = "a lamp on the pier"
NOTES = {"secret.txt": "The keeper is paid eleven crowns.", "open.txt": "The lamp room is red."}


@pytest.fixture(autouse=True)
def _quick() -> Iterator[None]:
    with patch.object(members, "COST", 2**10):  # time is not what is tested
        yield


def seen(workspace: Workspace, who: str) -> set[str]:
    return {entry.name for entry in workspace.for_principal(Principal(who)).documents.listing()}


@pytest.fixture
async def archive(tmp_path: Path) -> tuple[Path, str, str]:
    """A backup of a workspace of two people, and the key and session of one; `reader` reads one of the two notes."""
    await filled(tmp_path / "workspace", NOTES)
    with opened(tmp_path / "workspace") as workspace:
        for name in ("reader", "stranger"):
            members.add(workspace.store, name, password=PASSWORD)
        key = tokens.new_key(workspace.store, "reader")
        session, _ = tokens.begin_session(workspace.store, "reader", 3600)
        grants.share(workspace.store, workspace.scope().bases[0], "user:reader")
        (secret,) = workspace.documents.named("secret.txt", workspace.scope())
        await workspace.people.share_document(secret.id, "user:reader", False)
        workspace.records.backup(tmp_path / "all.tar.gz")
        members.set_password(workspace.store, "reader", "another one, later")
    return tmp_path / "all.tar.gz", key, session


async def test_what_was_taken_back_after_a_backup_is_not_alive_after_it_is_restored(
    archive: tuple[Path, str, str], tmp_path: Path
):
    file, key, session = archive
    assert restore(file, tmp_path / "again") == 2
    with opened(tmp_path / "again") as workspace:
        assert tokens.member_with_key(workspace.store, key) is None
        assert tokens.find_session(workspace.store, session) is None
        assert members.check_password(workspace.store, "reader", PASSWORD) is None
        told = [event for _, event in records.workspace_log(workspace.store)]
        assert sum(getattr(each, "detail", "") == "ended when a backup was restored" for each in told) == 2


async def test_credentials_come_back_where_that_is_said(archive: tuple[Path, str, str], tmp_path: Path):
    file, key, _ = archive
    assert restore(file, tmp_path / "again", keep_credentials=True) == 0
    with opened(tmp_path / "again") as workspace:
        assert tokens.member_with_key(workspace.store, key) is not None
        assert members.check_password(workspace.store, "reader", PASSWORD) is not None


async def test_nobody_reads_more_in_a_restored_workspace_than_when_it_was_backed_up(
    archive: tuple[Path, str, str], tmp_path: Path
):
    restore(archive[0], tmp_path / "again")
    with opened(tmp_path / "again") as workspace:
        assert (seen(workspace, "reader"), seen(workspace, "stranger")) == ({"open.txt"}, set())
        assert seen(workspace, LOCAL.id) == set(NOTES)
        found = await workspace.for_principal(Principal("reader")).search("keeper paid crowns")
        assert not any("crowns" in hit.passage.text for hit in found)
