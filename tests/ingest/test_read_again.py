"""Documents of an earlier version: a reindex reads them again from their originals, and until then a sentence says so."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.core.access import Principal
from assay.evaluate.plain_text import WordEmbedder
from assay.ingest import pipeline
from assay.ingest.parsed import Parsed, Unreadable
from assay.ingest.readiness import FileReport, Readiness
from assay.ingest.sandbox.runner import Sandbox
from assay.store import documents
from assay.store.documents import Entry
from assay.workspace.facade import Workspace, open_workspace

BELL = "# The bell\n\nThe chapel bell was cast in 1874 by Tollen and Sons.\n"
WELL = "# The well\n\nThe well at Carrow is forty metres deep.\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "notes"
    place.mkdir()
    (place / "bell.md").write_text(BELL)
    (place / "well.md").write_text(WELL)
    return place


@pytest.fixture
def opened(tmp_path: Path, folder: Path) -> Iterator[Workspace]:
    """Both files in a workspace, as the version before read them."""
    with open_workspace(tmp_path / "workspace", create=True) as workspace:
        workspace.embedder = WordEmbedder()
        asyncio.run(workspace.add([folder]))
        yield workspace


@pytest.fixture
def upgraded(opened: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on a version whose parsers read one more line of each file."""

    async def read(sandbox: Sandbox, data: Path | bytes, name: str = "") -> Parsed | Unreadable:
        text = data.read_text() if isinstance(data, Path) else data.decode()
        return Parsed(text=f"{text}\nA hidden margin note.", kind="markdown", title=f"New title of {name}")

    monkeypatch.setattr(pipeline, "PARSER", "next")
    monkeypatch.setattr(Sandbox, "read", read)


def entries(workspace: Workspace) -> dict[str, Entry]:
    return {entry.name: entry for entry in workspace.documents.listing()}


def text_of(workspace: Workspace, name: str) -> str:
    document = workspace.documents.get(entries(workspace)[name].id)
    assert document is not None
    return document.text


def files(report: Readiness) -> dict[str, FileReport]:
    return {Path(file.path).name: file for file in report.files}


def lose_original(workspace: Workspace, name: str) -> None:
    workspace.context.blobs.delete(entries(workspace)[name].digest)


@pytest.mark.usefixtures("upgraded")
def test_a_reindex_reads_documents_of_an_earlier_version_again_without_their_files(opened: Workspace, folder: Path):
    before = entries(opened)["bell.md"]
    for file in folder.iterdir():
        file.unlink()
    report = asyncio.run(opened.documents.reindex())
    assert files(report)["bell.md"].outcome == "replaced"
    assert "hidden margin note" in text_of(opened, "bell.md")
    now = entries(opened)["bell.md"]
    assert (now.uri, now.parser, now.title) == (before.uri, "next", "New title of bell.md")
    old = opened.documents.get(before.id)  # what earlier answers quote
    assert old is not None and "margin" not in old.text
    (first, *_) = asyncio.run(opened.search("chapel bell"))
    assert first.passage.doc_id == now.id


def test_a_document_that_reads_as_before_stays_the_same_document(
    opened: Workspace, monkeypatch: pytest.MonkeyPatch, folder: Path
):
    before = entries(opened)
    monkeypatch.setattr(pipeline, "PARSER", "next")
    asyncio.run(opened.documents.reindex())
    assert {name: entry.id for name, entry in entries(opened).items()} == {name: e.id for name, e in before.items()}
    assert {entry.parser for entry in entries(opened).values()} == {"next"}
    monkeypatch.setattr(pipeline, "PARSER", "after next")
    asyncio.run(opened.add([folder]))  # the same where the file itself is read again
    assert {name: entry.id for name, entry in entries(opened).items()} == {name: e.id for name, e in before.items()}


@pytest.mark.usefixtures("upgraded")
def test_without_its_original_a_document_keeps_its_text_and_the_report_says_so(opened: Workspace):
    lose_original(opened, "bell.md")
    before = entries(opened)["bell.md"]
    report = asyncio.run(opened.documents.reindex())
    assert "original is not stored any more" in files(report)["bell.md"].why
    assert files(report)["bell.md"].warnings and "margin" in text_of(opened, "well.md")
    assert entries(opened)["bell.md"].id == before.id and "margin" not in text_of(opened, "bell.md")
    assert asyncio.run(opened.search("chapel bell"))[0].passage.doc_id == before.id
    assert opened.documents.outdated() == ""  # a reindex would change nothing


@pytest.mark.usefixtures("upgraded")
def test_a_damaged_original_is_not_read(opened: Workspace):
    with opened.context.blobs.as_file(entries(opened)["bell.md"].digest) as path:
        path.write_text("Something else.")
    report = asyncio.run(opened.documents.reindex())
    assert "damaged" in files(report)["bell.md"].why
    assert "cast in 1874" in text_of(opened, "bell.md")


@pytest.mark.usefixtures("upgraded")
def test_a_file_that_is_added_again_replaces_a_text_that_was_kept(opened: Workspace, folder: Path):
    lose_original(opened, "bell.md")
    asyncio.run(opened.documents.reindex())
    asyncio.run(opened.add([folder / "bell.md"]))
    assert "margin" in text_of(opened, "bell.md")
    assert opened.context.blobs.has(entries(opened)["bell.md"].digest)


def test_an_original_that_can_no_longer_be_read_leaves_its_text(opened: Workspace, monkeypatch: pytest.MonkeyPatch):
    async def refuse(sandbox: Sandbox, data: Path | bytes, name: str = "") -> Parsed | Unreadable:
        return Unreadable(pipeline.Status.too_slow, "It took too long.")

    monkeypatch.setattr(pipeline, "PARSER", "next")
    monkeypatch.setattr(Sandbox, "read", refuse)
    report = asyncio.run(opened.documents.reindex())
    assert report.readable == 2 and "It took too long." in files(report)["bell.md"].why
    assert "cast in 1874" in text_of(opened, "bell.md")


@pytest.mark.usefixtures("upgraded")
def test_a_text_that_ocr_read_is_kept_where_ocr_is_off(opened: Workspace):
    entry = entries(opened)["bell.md"]
    document = opened.documents.get(entry.id)
    assert document is not None
    scanned = pipeline.replace(document, meta={"ocr": "eng"})
    documents.update_pending(opened.store, scanned, parser=entry.parser, warnings=())
    report = asyncio.run(opened.documents.reindex())
    assert "OCR" in files(report)["bell.md"].why and "margin" not in text_of(opened, "bell.md")


@pytest.mark.usefixtures("upgraded")
@pytest.mark.parametrize("way", ["reindex", "add"])
def test_what_a_person_corrected_survives_being_read_again_more_than_once(
    opened: Workspace, folder: Path, way: str, monkeypatch: pytest.MonkeyPatch
):
    asyncio.run(opened.documents.edit(entries(opened)["bell.md"].id, "The Tollen bell", "1874"))
    for version in ("next", "after next"):
        monkeypatch.setattr(pipeline, "PARSER", version)
        asyncio.run(opened.documents.reindex() if way == "reindex" else opened.add([folder]))
        now = entries(opened)["bell.md"]
        assert (now.parser, now.title, now.date) == (version, "The Tollen bell", "1874")
        assert entries(opened)["well.md"].title == "New title of well.md"
    (folder / "bell.md").write_text("Another bell altogether.")
    asyncio.run(opened.add([folder]))
    assert entries(opened)["bell.md"].title == "New title of bell.md"  # the correction was about other words


@pytest.mark.usefixtures("upgraded")
def test_a_correction_does_not_read_a_document_again(opened: Workspace):
    bell = entries(opened)["bell.md"].id
    asyncio.run(opened.documents.edit(bell, "The Tollen bell"))
    assert entries(opened)["bell.md"].id == bell


@pytest.mark.usefixtures("upgraded")
def test_an_access_list_holds_for_the_document_that_is_read_again(tmp_path: Path, opened: Workspace, folder: Path):
    (folder / "will.md").write_text("The will names nobody.")
    asyncio.run(opened.add([folder / "will.md"], only_for=["user:ada"]))
    label = entries(opened)["will.md"].label
    asyncio.run(opened.documents.reindex())
    assert entries(opened)["will.md"].label == label
    asyncio.run(opened.documents.reindex())
    assert entries(opened)["will.md"].label == label and label != entries(opened)["bell.md"].label


@pytest.mark.usefixtures("upgraded")
def test_a_reindex_that_was_stopped_goes_on_with_the_next_add(
    opened: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    class Stopped(Exception):
        pass

    async def stop(sandbox: Sandbox, data: Path | bytes, name: str = "") -> Parsed | Unreadable:
        raise Stopped

    with monkeypatch.context() as stopping:
        stopping.setattr(Sandbox, "read", stop)
        with pytest.raises(Stopped):
            asyncio.run(opened.documents.reindex())
    new = tmp_path / "new.md"
    new.write_text("A new note.")
    asyncio.run(opened.add([new]))
    assert {(entry.parser, entry.state) for entry in entries(opened).values()} == {("next", "ready")}
    assert "margin" in text_of(opened, "bell.md") and "margin" in text_of(opened, "well.md")


def test_versions_that_were_read_from_the_same_file_take_its_bytes_once(opened: Workspace, upgraded: None):
    before = documents.bytes_owned(opened.store, "local")
    asyncio.run(opened.documents.reindex())
    assert documents.bytes_owned(opened.store, "local") == before > 0


# --- the sentence ---------------------------------------------------------------------------------------------------


def test_documents_of_an_earlier_version_are_told_in_a_sentence_until_they_are_reindexed(
    opened: Workspace, upgraded: None, tmp_path: Path
):
    (tmp_path / "new.md").write_text("A note of this version.")
    asyncio.run(opened.add([tmp_path / "new.md"]))
    assert opened.documents.outdated() == (
        "2 of 3 documents were read by an earlier version or with other settings: run `assay reindex --base default` to read "
        "and index them as it is done now."
    )
    asyncio.run(opened.search("bell"))  # works meanwhile
    asyncio.run(opened.documents.reindex())
    assert opened.documents.outdated() == ""


def test_documents_that_other_settings_split_are_told_too(opened: Workspace):
    assert opened.documents.outdated() == ""
    other = opened.with_settings(passage_tokens=40)
    assert "2 of 2 documents" in other.documents.outdated()
    asyncio.run(other.documents.reindex())
    assert other.documents.outdated() == ""


def test_several_bases_are_named_and_only_to_those_who_may_reindex_them(
    opened: Workspace, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    asyncio.run(opened.add([folder], base="port"))
    opened.people.share_base("port", "user:eve", True)
    monkeypatch.setattr(pipeline, "PARSER", "next")
    assert "`assay reindex --base NAME` for each of default, port" in opened.documents.outdated()
    assert "`assay reindex --base port`" in opened.documents.outdated(["port"])
    assert opened.for_principal(Principal("eve")).documents.outdated() == ""
    assert (
        opened.for_principal(Principal("eve")).documents.outdated_of_all()
        == opened.documents.outdated_of_all()
        == opened.documents.outdated()
    )
