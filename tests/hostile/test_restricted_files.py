"""A file with an access list of its own: whatever happens to the file, nobody who is not on the list reads it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from notes import Plain
from older_schema import BEFORE_LEASES

from assay.core.access import LOCAL, Principal
from assay.core.errors import UserError
from assay.evaluate.plain_text import WordEmbedder
from assay.ingest.sources import find_sources
from assay.store.access import document_access, grants, members
from assay.workspace.facade import DEFAULT_BASE, Workspace, open_workspace

READER, FRIEND = Principal("reader"), Principal("friend")
SECRET = "The keeper of Carrow Point is paid eleven crowns.\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "secret.txt").write_text(SECRET)
    (folder / "open.txt").write_text("The lamp room is painted red.\n")
    return folder


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Workspace]:
    with open_workspace(tmp_path / "workspace", create=True) as made:
        made.embedder = WordEmbedder()
        yield made


async def sync(opened: Workspace, files: Path) -> None:
    await opened.documents.sync(files)


def seen(opened: Workspace, who: Principal = READER) -> set[str]:
    return {entry.name for entry in opened.for_principal(who).documents.listing()}


async def found(opened: Workspace, words: str, who: Principal = READER) -> bool:
    return any(words in hit.passage.text for hit in await opened.for_principal(who).search("keeper crowns paid lamp"))


async def restricted(opened: Workspace, files: Path) -> None:
    """Both files are in a base that the reader reads, except the secret one."""
    await sync(opened, files)
    base = opened.scope().named(DEFAULT_BASE)
    grants.share(opened.store, base, "user:reader")
    (secret,) = opened.documents.named("secret.txt", opened.scope())
    await opened.people.share_document(secret.id, "user:reader", False)
    assert seen(opened) == {"open.txt"}


async def test_a_restricted_file_that_was_missing_at_one_sync_is_still_restricted_when_it_is_back(
    opened: Workspace, files: Path
):
    await restricted(opened, files)
    (files / "secret.txt").unlink()
    await sync(opened, files)
    assert {entry.name for entry in opened.documents.listing()} == {"open.txt"}
    (files / "secret.txt").write_text(SECRET)
    await sync(opened, files)
    assert {entry.name for entry in opened.documents.listing()} == {"open.txt", "secret.txt"}
    assert seen(opened) == {"open.txt"} and not await found(opened, "eleven crowns")
    assert await found(opened, "eleven crowns", LOCAL)


@pytest.mark.long
async def test_a_restricted_file_that_comes_back_under_another_name_is_still_restricted(opened: Workspace, files: Path):
    await restricted(opened, files)
    (files / "secret.txt").unlink()
    await sync(opened, files)
    (files / "copy.txt").write_text(SECRET)
    report, _ = await opened.documents.sync(files)
    assert seen(opened) == {"open.txt"} and not await found(opened, "eleven crowns")
    assert await found(opened, "eleven crowns", LOCAL)
    (told,) = [each.why for each in report.files if each.path.endswith("copy.txt")]
    assert "Only those on its access list may read it" in told
    (copy,) = opened.documents.named("copy.txt", opened.scope())
    await opened.people.reset_document_access(copy.id)
    assert seen(opened) == {"open.txt", "copy.txt"}, "the owner decides"
    (files / "copy.txt").write_text(SECRET + "More.\n")
    await sync(opened, files)
    (files / "copy.txt").write_text(SECRET)
    await sync(opened, files)
    assert seen(opened) == {"open.txt", "copy.txt"}, "and is not overruled later"


async def test_of_two_lists_the_shorter_holds_when_removed_content_comes_to_a_restricted_place(
    opened: Workspace, files: Path
):
    await restricted(opened, files)
    base = opened.scope().named(DEFAULT_BASE)
    (files / "secret.txt").unlink()
    await sync(opened, files)
    (files / "copy.txt").write_text(SECRET)
    copied = find_sources([files / "copy.txt"])
    document_access.restrict(opened.store, base, [each.uri for each in copied], ["user:reader"], LOCAL.id)
    await sync(opened, files)
    assert seen(opened) == {"open.txt"}, "not on the list of the removed document"


async def test_a_file_that_is_renamed_over_a_restricted_one_takes_over_its_list_and_so_does_the_next_version(
    opened: Workspace, files: Path
):
    await restricted(opened, files)
    (files / "open.txt").rename(files / "secret.txt")
    await sync(opened, files)
    assert {entry.name for entry in opened.documents.listing()} == {"secret.txt"} and seen(opened) == set()
    (files / "secret.txt").write_text(SECRET + "And paid monthly.\n")
    await sync(opened, files)
    assert {entry.name for entry in opened.documents.listing()} == {"secret.txt"}
    assert seen(opened) == set() and not await found(opened, "eleven crowns")


async def test_a_restricted_file_keeps_its_list_wherever_it_is_moved_and_its_old_place_too(
    opened: Workspace, files: Path
):
    await restricted(opened, files)
    (files / "secret.txt").rename(files / "harmless.txt")
    report, _ = await opened.documents.sync(files)
    assert any("Only those on its access list" in file.why for file in report.files)
    assert seen(opened) == {"open.txt"} and not await found(opened, "eleven crowns")
    (moved,) = opened.documents.named("harmless.txt", opened.scope())
    await opened.people.share_document(moved.id, "user:reader", True)
    (files / "secret.txt").write_text("Another secret of the keeper.\n")
    await sync(opened, files)
    assert seen(opened) == {"open.txt", "harmless.txt"}, "two lists: the one at the old place was not widened"


async def test_of_two_restricted_files_the_one_that_is_moved_over_the_other_is_read_by_nobody_new(
    opened: Workspace, files: Path
):
    await restricted(opened, files)
    base = opened.scope().named(DEFAULT_BASE)
    grants.share(opened.store, base, "user:friend")
    (secret,) = opened.documents.named("secret.txt", opened.scope())
    (other,) = opened.documents.named("open.txt", opened.scope())
    await opened.people.share_document(secret.id, "user:friend", True)
    await opened.people.share_document(other.id, "user:friend", False)
    assert seen(opened) == {"open.txt"} and seen(opened, FRIEND) == {"secret.txt"}
    (files / "secret.txt").rename(files / "open.txt")
    await sync(opened, files)
    assert {entry.name for entry in opened.documents.listing()} == {"open.txt"}
    assert seen(opened) == set() and seen(opened, FRIEND) == set()


async def test_only_for_restricts_a_file_before_anybody_could_have_read_it(opened: Workspace, files: Path):
    base = grants.create_base(opened.store, DEFAULT_BASE, LOCAL)
    grants.share(opened.store, base, "user:reader")
    members.add(opened.store, "friend")

    class Looking(Plain):
        async def read(self, data: Path | bytes, name: str):
            assert document_access.label_at(opened.store, base, str((files / name).resolve())) != base.id
            return await super().read(data, name)

    await opened.documents.add_sources(find_sources([files / "secret.txt"]), only_for=["user:friend"], reader=Looking())
    await opened.add([files / "open.txt"])
    assert seen(opened) == {"open.txt"} and seen(opened, FRIEND) == {"secret.txt"}
    (files / "secret.txt").write_text("A new version.\n")
    await sync(opened, files)
    assert seen(opened) == {"open.txt"} and seen(opened, FRIEND) == {"secret.txt"}
    await opened.add([files / "secret.txt"], only_for=["group:nobody"])
    assert seen(opened, FRIEND) == set(), "a file that is there already is restricted too"
    with pytest.raises(UserError, match="user:NAME or group:NAME"):
        await opened.add([files / "open.txt"], only_for=["friend"])


async def test_who_restricts_a_copy_of_what_others_may_read_is_told_that_it_changes_nothing(
    opened: Workspace, files: Path
):
    await opened.add([files / "open.txt"])
    (files / "copy.txt").write_text((files / "open.txt").read_text())
    report = await opened.add([files / "copy.txt"], only_for=["user:friend"])
    assert "changes nothing" in report.files[0].why


async def test_a_deleted_base_leaves_no_list_behind(opened: Workspace, files: Path):
    await restricted(opened, files)
    await opened.records.erase_base(DEFAULT_BASE)
    with opened.store.read() as connection:
        assert not connection.exec_driver_sql("SELECT * FROM lists").all()
        assert not connection.exec_driver_sql("SELECT * FROM grants").all()


async def test_lists_that_documents_had_before_lists_belonged_to_places_are_kept(opened: Workspace, files: Path):
    await restricted(opened, files)
    with opened.store.write() as connection:
        for statement in (
            "DROP TABLE lists",
            "DROP TABLE acceptances",
            *BEFORE_LEASES,
            "UPDATE facts SET value = '6' WHERE name = 'version'",
        ):
            connection.exec_driver_sql(statement)
    with open_workspace(opened.path) as again:
        again.embedder = WordEmbedder()
        assert seen(again) == {"open.txt"}
        (files / "secret.txt").unlink()
        await sync(again, files)
        (files / "secret.txt").write_text(SECRET)
        await sync(again, files)
        assert seen(again) == {"open.txt"}
