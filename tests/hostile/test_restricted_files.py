"""A file with an access list of its own: whatever happens to the file, nobody who is not on the list reads it."""

from __future__ import annotations

from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path

import pytest
from notes import Plain
from older_schema import BEFORE_LEASES

from assay.core.access import LOCAL, Principal
from assay.core.errors import Missing, UserError
from assay.evaluate.plain_text import WordEmbedder
from assay.governance.audit.verify import verify
from assay.ingest.formats import detect
from assay.ingest.parsed import FileLimits, Parsed, Refused, Unreadable
from assay.ingest.sources import find_sources
from assay.store import place_lists
from assay.store.access import document_access, grants, members
from assay.workspace.facade import DEFAULT_BASE, Workspace, open_workspace
from assay.workspace.services.documents import Documents

READER, FRIEND = Principal("reader"), Principal("friend")
SECRET = "The keeper of Carrow Point is paid eleven crowns.\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "secret.txt").write_text(SECRET)
    (folder / "open.txt").write_text("The lamp room is painted red.\n")
    return folder


class InThisProcess:
    """The real parsers, without a sandbox around each."""

    async def read(self, data: Path | bytes, name: str) -> Parsed | Unreadable:
        try:
            return detect.read(data if isinstance(data, bytes) else data.read_bytes(), name, FileLimits())
        except Refused as refused:
            return Unreadable(refused.status, refused.why)


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    real = Documents._workers
    monkeypatch.setattr(Documents, "_workers", lambda self, reader: real(self, reader or InThisProcess()))
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
    assert "Only those on its access list may read it" in told and "had the same content" in told
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


OTHER = "".join(
    f"The lamp of the tower burned {n} hours in month {n}, with {n * 3} litres of oil.\n" for n in range(30)
)
LONG = "".join(
    f"In week {n} the keeper of Carrow was paid {n * 7} crowns, and signed for {n + 3}.\n" for n in range(30)
)


def held(opened: Workspace) -> dict[str, str]:
    entries = opened.documents.listing()
    why = opened.people.held(entries)
    return {entry.name: why[entry.id] for entry in entries if entry.id in why}


async def test_a_restricted_file_that_is_renamed_and_edited_between_two_syncs_is_held_until_its_owner_decides(
    opened: Workspace, files: Path
):
    await restricted(opened, files)
    (files / "secret.txt").unlink()
    (files / "harmless.txt").write_text(
        "Whoever keeps the light at Carrow earns a dozen.\n"
    )  # no word of it is the same
    (files / "open.txt").write_text("The lamp room is painted blue.\n")
    report, _ = await opened.documents.sync(files)
    assert seen(opened) == {"open.txt"} and not await found(opened, "a dozen"), "and a changed file stays as it was"
    (told,) = [each.why for each in report.files if each.path.endswith("harmless.txt")]
    assert held(opened) == {"harmless.txt": told} and "a restricted document was gone" in told
    assert opened.for_principal(READER).people.held(opened.documents.listing()) == {}, "it is not theirs to decide"
    (entry,) = opened.documents.named("harmless.txt", opened.scope())
    with pytest.raises(Missing):
        await opened.for_principal(READER).people.decide(entry.id, False)
    await opened.people.decide(entry.id, False)
    assert held(opened) == {} and seen(opened) == {"open.txt", "harmless.txt"}
    (files / "harmless.txt").write_text("Another version.\n")
    await sync(opened, files)
    assert seen(opened) == {"open.txt", "harmless.txt"}, "what was decided holds for later versions"
    with pytest.raises(UserError, match="nothing to decide"):
        await opened.people.decide(opened.documents.named("harmless.txt", opened.scope())[0].id, True)
    assert verify(opened.store, None).whole


async def test_a_new_file_is_held_for_a_day_after_a_restricted_one_vanished_and_not_if_none_did(
    opened: Workspace, files: Path, monkeypatch: pytest.MonkeyPatch
):
    await restricted(opened, files)
    (files / "first.txt").write_text("A file that came while nothing had vanished.\n")
    await sync(opened, files)
    assert seen(opened) == {"open.txt", "first.txt"}
    (files / "secret.txt").unlink()
    await sync(opened, files)
    (files / "second.txt").write_text("A file of the next sync.\n")
    await sync(opened, files)
    (files / "third.pdf").write_text("%PDF-1.4 that cannot be read")
    await sync(opened, files)
    assert seen(opened) == {"open.txt", "first.txt"} and held(opened).keys() == {"second.txt", "third.pdf"}
    (kept,) = opened.documents.named("second.txt", opened.scope())
    await opened.people.decide(kept.id, True)
    assert held(opened).keys() == {"third.pdf"} and "second.txt" not in seen(opened), "it stays restricted"
    monkeypatch.setattr(place_lists, "GRACE", 0.0)  # a day later
    (files / "fourth.txt").write_text("A file of the day after.\n")
    await sync(opened, files)
    assert "fourth.txt" in seen(opened)


async def test_an_edited_copy_beside_a_restricted_file_or_over_an_open_one_is_held_and_an_unrelated_file_is_not(
    opened: Workspace, files: Path
):
    (files / "secret.txt").write_text(LONG)
    await restricted(opened, files)
    edited = LONG.replace("crowns", "pounds", 10).replace("signed", "SIGNED")
    (files / "copy.txt").write_text(f"Minutes of the harbour board.\n{edited}")
    (files / "open.txt").write_text(edited)
    (files / "other.txt").write_text(OTHER)
    await opened.add([files])
    assert seen(opened) == {"other.txt"} and held(opened).keys() == {"copy.txt", "open.txt"}
    assert all("much of the text of secret.txt" in why for why in held(opened).values())


@pytest.mark.parametrize("attached", [LONG.replace("keeper", "warden"), "Not a word of it is left.\n"])
async def test_a_restricted_file_in_a_message_beside_it_is_held_by_its_words_or_its_name(
    opened: Workspace, files: Path, attached: str
):
    (files / "secret.txt").write_text(LONG)
    await restricted(opened, files)
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "a@example.org", "b@example.org", "As you asked"
    message.set_content("You find it attached.")
    message.add_attachment(attached, filename="Secret.txt" if "left" in attached else "notes.txt")
    (files / "message.eml").write_bytes(bytes(message))
    await sync(opened, files)
    assert seen(opened) == {"open.txt"} and held(opened).keys() == {"message.eml"}


async def test_a_restricted_folder_is_restricted_for_what_is_there_what_comes_and_what_is_inside_messages(
    opened: Workspace, files: Path
):
    await restricted(opened, files)
    (files / "hr").mkdir()
    (files / "hr" / "pay.txt").write_text("The keeper is paid.\n")
    await sync(opened, files)
    assert seen(opened) == {"open.txt", "pay.txt"}
    await opened.people.restrict(DEFAULT_BASE, "HR/", ["user:friend"])
    await opened.people.restrict(DEFAULT_BASE, "*.csv", ["user:reader"])
    assert seen(opened) == {"open.txt"} and seen(opened, FRIEND) == {"pay.txt"} and not await found(opened, "paid")
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "a@example.org", "b@example.org", "Figures"
    message.set_content("You find them attached.")
    message.add_attachment("week,crowns\n1,7\n", filename="figures.csv")
    (files / "mail.eml").write_bytes(bytes(message))
    (files / "hr" / "more").mkdir()
    (files / "hr" / "more" / "both.csv").write_text("week,crowns\n2,14\n")
    (files / "hr" / "new.txt").write_text("New in the folder.\n")
    await sync(opened, files)
    assert seen(opened) == {"open.txt", "mail.eml"}, "`*.csv` is for them, `HR/` is not"
    assert seen(opened, FRIEND) == {"pay.txt", "new.txt"} and held(opened) == {}
    (files / "hr").rename(files / "public")
    await sync(opened, files)
    assert seen(opened) == {"open.txt", "mail.eml"} and seen(opened, FRIEND) == {"pay.txt", "new.txt"}, "moved out"
    (pay,) = opened.documents.named("pay.txt", opened.scope())
    await opened.people.reset_document_access(pay.id)
    await opened.people.lift(DEFAULT_BASE, "*.csv")
    assert seen(opened) == {"open.txt", "mail.eml", "pay.txt"} and "mail.eml" not in seen(opened, FRIEND)
    assert opened.people.base_access(DEFAULT_BASE).patterns == ("HR/**",)
    assert verify(opened.store, None).whole


async def test_a_document_that_is_given_a_list_in_a_restricted_folder_leaves_the_folders_list_as_it_is(
    opened: Workspace, files: Path
):
    await restricted(opened, files)
    await opened.people.restrict(DEFAULT_BASE, "files/**", [])
    assert seen(opened) == set()
    (entry,) = opened.documents.named("open.txt", opened.scope())
    assert opened.people.document_access(entry.id).patterns == ("files/**",)
    await opened.people.share_document(entry.id, "user:reader", True)
    assert seen(opened) == {"open.txt"}
    (files / "new.txt").write_text("The folder's list holds for this.\n")
    await sync(opened, files)
    assert seen(opened) == {"open.txt"}
    await opened.people.reset_document_access(entry.id)
    assert seen(opened) == set(), "back to the list of the folder, not of the base"
    await opened.people.lift(DEFAULT_BASE, "files/**")
    assert seen(opened) == {"open.txt", "new.txt"}, "what had a list of its own keeps it"
    with pytest.raises(Missing):
        await opened.for_principal(READER).people.restrict(DEFAULT_BASE, "files/**", [])


@pytest.mark.parametrize(
    "pattern, fitting, other",
    [
        (
            "hr/**",
            ["/home/x/hr/a.txt", "upload:hr/b/c.txt", "/x/HR/ä.txt", "C:\\x\\hr\\a.txt"],
            ["/x/hrs/a.txt", "/x/hr.txt"],
        ),
        ("*.xlsx", ["/a/b.xlsx", "upload:B.XLSX"], ["/a/b.xlsx.txt", "/a.xlsx/b"]),
        ("/x/*/a?.txt", ["/x/y/a1.txt"], ["/z/x/y/a1.txt", "/x/y/z/a1.txt", "/x/a1.txt"]),
        ("pay [[]final].txt*", [], ["/pay f.txt"]),
        ("pay [final].*", ["/pay [final].txt"], ["/pay f.txt"]),
        ("**", ["/a", "stdin:notes"], []),
        ("a*" * 40 + "b", [], ["/" + "a" * 200]),
        ("**/a/" * 40 + "b", [], ["/a" * 200]),
    ],
)
def test_a_pattern_fits_locations_by_their_folders_and_names(pattern: str, fitting: list[str], other: list[str]):
    assert all(place_lists.fits(pattern, each) for each in fitting)
    assert not any(place_lists.fits(pattern, each) for each in other)


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
