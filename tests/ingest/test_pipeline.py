from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from assay.core.errors import UserError
from assay.evaluate.plain_text import WordEmbedder
from assay.index.filters import EVERYTHING
from assay.ingest import pipeline
from assay.ingest.parsed import Parsed, Unreadable
from assay.ingest.sources import SourceFile
from assay.ingest.workers import LocalWorkers
from assay.store import documents
from assay.store.access import grants as people
from assay.store.database import Store
from assay.store.dialect import FileFlush
from assay.workspace.facade import Workspace, open_workspace
from assay.workspace.types import ErasureReport

NOTES = {
    "kettle.md": "# Kettle\n\nThe kettle in the pump house holds seven litres of water. It was bought in Orlen in 2019.\n",
    "orlen.md": "# Orlen\n\nOrlen is a market town on the river Sarrow. Its mayor is elected every four years.\n",
    "bell.txt": "The bell of the old chapel weighs two tonnes and has not been rung since the flood.\n",
}


class Plain:
    """A reader that counts: text files only."""

    def __init__(self) -> None:
        self.read_files: list[str] = []

    async def read(self, data: Path | bytes, name: str) -> Parsed | Unreadable:
        self.read_files.append(name)
        return Parsed(text=data.decode() if isinstance(data, bytes) else data.read_text(), kind="text", title=name)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "notes"
    place.mkdir()
    for name, text in NOTES.items():
        (place / name).write_text(text)
    return place


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Workspace]:
    with open_workspace(tmp_path / "workspace", create=True) as workspace:
        workspace.embedder = WordEmbedder()
        yield workspace


def add(opened: Workspace, *files: Path, reader: Plain | None = None):
    from assay.ingest.sources import find_sources

    return asyncio.run(opened.documents.add_sources(find_sources(files), reader=reader or Plain()))


def outcomes(report) -> dict[str, str]:
    return {Path(file.path).name: file.outcome for file in report.files}


def rows(opened: Workspace) -> int:
    base = opened.scope().named("default")

    async def count() -> int:
        return await (await opened.context.index(base)).count(EVERYTHING)

    return asyncio.run(count())


def found(opened: Workspace, words: str) -> list[str]:
    return [Path(str(hit.fields["source"])).name for hit in asyncio.run(opened.search(words, 3))]


def test_what_was_added_is_found_with_its_exact_place(opened: Workspace, folder: Path):
    add(opened, folder)
    (hit, *_) = asyncio.run(opened.search("weight of the chapel bell", 3))
    document = opened.documents.get(hit.passage.doc_id)
    assert document and document.text[hit.passage.start : hit.passage.end] == hit.passage.text
    assert "two tonnes" in hit.passage.text


def test_the_total_is_known_before_anything_is_read(opened: Workspace, folder: Path):
    from assay.ingest.sources import find_sources

    said = []
    asyncio.run(opened.documents.add_sources(find_sources([folder]), reader=Plain(), say=said.append))
    assert [(each.files, each.of) for each in said[:1]] == [(0, len(NOTES))]
    assert {each.of for each in said} == {len(NOTES)}


def test_adding_the_same_folder_twice_reads_and_embeds_nothing(opened: Workspace, folder: Path):
    add(opened, folder)
    embedded, reader = opened.embedder.embedded, Plain()
    report = add(opened, folder, reader=reader)
    assert set(outcomes(report).values()) == {"unchanged"}
    assert (opened.embedder.embedded, reader.read_files, report.embedded) == (embedded, [], 0)


def test_another_splitter_reads_no_file_again_and_leaves_no_old_rows(opened: Workspace, folder: Path):
    (folder / "long.txt").write_text(" ".join(f"Sentence number {n} is about valve {n}." for n in range(60)))
    add(opened, folder)
    before = rows(opened)
    opened = opened.with_settings(passage_tokens=40)
    reader = Plain()
    report = add(opened, folder, reader=reader)
    assert not reader.read_files and rows(opened) > before
    assert rows(opened) == sum(file.passages for file in report.files)


def test_reindex_needs_no_files(opened: Workspace, folder: Path):
    add(opened, folder)
    for file in folder.iterdir():
        file.unlink()
    opened = opened.with_settings(passage_tokens=40)
    asyncio.run(opened.documents.reindex())
    assert found(opened, "chapel bell")[0] == "bell.txt"


def test_another_embedder_is_refused_until_the_base_was_reindexed(opened: Workspace, folder: Path):
    add(opened, folder)
    other = WordEmbedder()
    other.name = "words/other"
    opened.embedder = other
    with pytest.raises(UserError, match="reindex"):
        asyncio.run(opened.search("bell"))
    asyncio.run(opened.documents.reindex())
    assert other.embedded and found(opened, "chapel bell")[0] == "bell.txt"


def test_a_changed_file_replaces_what_it_said_before(opened: Workspace, folder: Path):
    add(opened, folder)
    old = next(entry for entry in opened.documents.listing() if entry.name == "bell.txt")
    (folder / "bell.txt").write_text("The bell was sold and the chapel is a library now.\n")
    report = add(opened, folder)
    assert outcomes(report)["bell.txt"] == "replaced"
    texts = [hit.passage.text for hit in asyncio.run(opened.search("chapel bell tonnes", 10))]
    assert not any("tonnes" in text for text in texts)
    assert rows(opened) == sum(entry.passages for entry in opened.documents.listing())
    assert "two tonnes" in (opened.documents.get(old.id) or pytest.fail("old citations lead nowhere")).text


def test_the_same_content_twice_is_kept_once_and_said(opened: Workspace, folder: Path):
    (folder / "copy.txt").write_text(NOTES["bell.txt"])
    report = add(opened, folder)
    twins = {name: outcome for name, outcome in outcomes(report).items() if name in {"bell.txt", "copy.txt"}}
    assert sorted(twins.values()) == ["added", "duplicate"] and report.duplicates == 1
    assert rows(opened) == 3


def test_a_copy_of_a_file_that_is_being_read_is_a_duplicate_of_it(
    opened: Workspace, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    """Several files are read at the same time; how they end is decided in their order."""
    (folder / "bell-copy.txt").write_text(NOTES["bell.txt"])  # comes before bell.txt
    looked_at = threading.Event()
    alone, digest = LocalWorkers.engine, SourceFile.digest

    class Held(Plain):
        async def read(self, data: Path | bytes, name: str) -> Parsed | Unreadable:
            await asyncio.to_thread(looked_at.wait, 60)
            return await super().read(data, name)

    def noted(source: SourceFile) -> str:
        if source.name == "bell.txt":
            looked_at.set()
        return digest(source)

    monkeypatch.setattr(SourceFile, "digest", noted)
    monkeypatch.setattr(LocalWorkers, "engine", lambda *given: replace(alone(*given), files_at_once=2))
    reader = Held()
    report = add(opened, folder, reader=reader)
    assert outcomes(report) == {
        "bell-copy.txt": "added", "bell.txt": "duplicate", "kettle.md": "added", "orlen.md": "added"
    }  # fmt: skip
    assert rows(opened) == 3 and "bell.txt" not in reader.read_files


@pytest.mark.parametrize("most", [1, 3])
def test_no_more_files_are_read_at_the_same_time_than_the_engine_allows(
    opened: Workspace, folder: Path, monkeypatch: pytest.MonkeyPatch, most: int
):
    for number in range(5):
        (folder / f"note-{number}.txt").write_text(f"Note {number} is about the lamp on pier {number}.\n")
    alone, enough = LocalWorkers.engine, asyncio.Event()

    class Counting(Plain):
        under_way = seen = 0

        async def read(self, data: Path | bytes, name: str) -> Parsed | Unreadable:
            self.under_way += 1
            self.seen = max(self.seen, self.under_way)
            if self.seen == most:
                enough.set()
            await enough.wait()
            self.under_way -= 1
            return await super().read(data, name)

    monkeypatch.setattr(LocalWorkers, "engine", lambda *given: replace(alone(*given), files_at_once=most))
    reader = Counting()
    report = add(opened, folder, reader=reader)
    assert reader.seen == most and set(outcomes(report).values()) == {"added"} and rows(opened) == 8


def test_what_is_read_is_embedded_while_the_next_file_takes_its_time(
    opened: Workspace, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pipeline, "MOMENT", 3600.0)
    embedded = asyncio.Event()
    sources = [SourceFile(f"{n:02}.txt", f"{n:02}.txt", data=f"Valve {n}.".encode()) for n in range(pipeline.ENOUGH)]

    class Late(Plain):
        async def read(self, data: Path | bytes, name: str) -> Parsed | Unreadable:
            if name == "late.txt":
                await asyncio.wait_for(embedded.wait(), 20)
            return await super().read(data, name)

    def say(progress: pipeline.Progress) -> None:
        if progress.passages == pipeline.ENOUGH:
            embedded.set()

    late = SourceFile("late.txt", "late.txt", data=b"The last valve.")
    report = asyncio.run(opened.documents.add_sources([*sources, late], reader=Late(), say=say))
    assert report.passages == len(sources) + 1


def test_a_file_that_was_moved_is_not_read_again(opened: Workspace, folder: Path):
    add(opened, folder)
    (folder / "bell.txt").rename(folder / "chapel.txt")
    reader = Plain()
    assert outcomes(add(opened, folder, reader=reader))["chapel.txt"] == "moved"
    assert not reader.read_files and found(opened, "chapel bell")[0] == "chapel.txt"


@pytest.mark.long
def test_sync_removes_what_is_gone_and_moves_what_was_moved(opened: Workspace, folder: Path):
    asyncio.run(opened.documents.sync(folder))
    (folder / "orlen.md").unlink()
    (folder / "bell.txt").rename(folder / "chapel.txt")
    report, gone = asyncio.run(opened.documents.sync(folder))
    assert [entry.name for entry in gone] == ["orlen.md"]
    assert outcomes(report)["chapel.txt"] == "moved"
    assert {entry.name for entry in opened.documents.listing()} == {"kettle.md", "chapel.txt"}


@pytest.mark.long
def test_sync_leaves_other_folders_alone(opened: Workspace, folder: Path, tmp_path: Path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "far.txt").write_text("A lighthouse stands on the far shore of the lake.\n")
    asyncio.run(opened.documents.sync(folder))
    asyncio.run(opened.documents.sync(tmp_path / "elsewhere"))
    assert len(opened.documents.listing()) == 4


def test_a_removed_document_is_nowhere(opened: Workspace, folder: Path, tmp_path: Path):
    add(opened, folder)
    asyncio.run(opened.documents.remove(["bell.txt"]))
    assert "bell.txt" not in found(opened, "chapel bell tonnes")
    opened.store.close()
    leaks = [
        file for file in (tmp_path / "workspace").rglob("*")
        if file.is_file() and b"two tonnes" in file.read_bytes() and not file.name.startswith("cache.db")
    ]  # fmt: skip
    assert not [file for file in leaks if not file.name.endswith("-wal")]


def test_a_file_without_text_is_never_called_read(opened: Workspace, tmp_path: Path):
    class Careless(Plain):
        async def read(self, data: Path | bytes, name: str) -> Parsed | Unreadable:
            return Parsed(text="  \n ", kind="text")

    source = SourceFile("stdin:x", "x", data=b"x")
    report = asyncio.run(opened.documents.add_sources([source], reader=Careless()))
    assert (report.files[0].status, report.readable) == ("empty", 0) and report.files[0].why


def test_a_file_that_cannot_be_opened_is_reported_and_the_rest_goes_on(opened: Workspace, folder: Path):
    missing = SourceFile(str(folder / "ghost.txt"), "ghost.txt", path=folder / "ghost.txt")
    from assay.ingest.sources import find_sources

    report = asyncio.run(opened.documents.add_sources([missing, *find_sources([folder])], reader=Plain()))
    assert report.files[0].status == "unreadable" and report.readable == 3


def test_what_an_earlier_add_left_unfinished_is_finished_by_the_next(opened: Workspace, folder: Path, tmp_path: Path):
    add(opened, folder)
    base = people.scope_of(opened.store, opened.principal).named("default")
    entry = next(entry for entry in opened.documents.listing() if entry.name == "bell.txt")
    documents.mark_pending(opened.store, [entry.id])
    (folder / "bell.txt").unlink()
    report = asyncio.run(opened.documents.add_sources([], reader=Plain()))
    assert [(Path(file.path).name, file.outcome) for file in report.files] == [("bell.txt", "finished")]
    assert not documents.pending(opened.store, base) and rows(opened) == 3


def test_what_the_index_has_but_the_store_does_not_is_never_shown(opened: Workspace, folder: Path):
    add(opened, folder)
    base = opened.scope().named("default")
    entry = next(entry for entry in opened.documents.listing() if entry.name == "bell.txt")
    documents.remove(opened.store, [entry.id], base)  # the index still has the rows
    assert "bell.txt" not in found(opened, "chapel bell tonnes")
    assert rows(opened) == 3


def test_two_bases_do_not_see_each_other(opened: Workspace, folder: Path):
    from assay.core.events import SearchFilters
    from assay.ingest.sources import find_sources

    asyncio.run(opened.documents.add_sources(find_sources([folder / "bell.txt"]), "chapel", reader=Plain()))
    asyncio.run(opened.documents.add_sources(find_sources([folder / "orlen.md"]), "town", reader=Plain()))
    hits = asyncio.run(opened.search("bell mayor", 10, SearchFilters(bases=("town",))))
    assert {Path(str(hit.fields["source"])).name for hit in hits} == {"orlen.md"}
    with pytest.raises(UserError, match="no knowledge base called 'attic'"):
        asyncio.run(opened.search("bell", 10, SearchFilters(bases=("attic",))))


def test_a_base_can_be_deleted_with_everything_in_it(opened: Workspace, folder: Path):
    add(opened, folder)
    asyncio.run(opened.records.erase_base("default"))
    assert opened.documents.listing() == [] and not opened.scope().bases
    assert not list(opened.context.blobs.digests())


def test_a_copy_of_a_file_that_has_since_changed_is_not_a_duplicate(opened: Workspace, folder: Path):
    add(opened, folder)
    (folder / "copy.txt").write_text(NOTES["bell.txt"])
    (folder / "bell.txt").write_text("The bell was sold.\n")
    add(opened, folder)
    assert found(opened, "chapel bell weighs two tonnes")[0] == "copy.txt"


def test_removing_a_document_removes_its_earlier_versions_and_its_vectors_too(opened: Workspace, folder: Path):
    from assay.store import embedding_cache

    add(opened, folder / "bell.txt")
    (folder / "bell.txt").write_text("The bell was sold and the chapel is a library now.\n")
    add(opened, folder / "bell.txt")
    asyncio.run(opened.documents.remove(["bell.txt"]))
    with opened.store.read() as connection:
        from assay.store.schema import documents as table
        from assay.store.schema import texts

        assert not connection.execute(table.select()).all() and not connection.execute(texts.select()).all()
    assert not list(opened.context.blobs.digests())
    assert embedding_cache.size(opened.context.cache) == 0


def test_an_index_that_was_lost_is_built_again_without_embedding(opened: Workspace, folder: Path):
    import shutil

    add(opened, folder)
    embedded = opened.embedder.embedded
    shutil.rmtree(opened.path / "index")
    opened.context.parts.indexes.clear()
    report = asyncio.run(opened.documents.reindex())
    assert report.readable == 3 and opened.embedder.embedded == embedded
    assert found(opened, "chapel bell")[0] == "bell.txt"


def test_an_add_notices_that_the_index_was_lost(opened: Workspace, folder: Path):
    import shutil

    add(opened, folder)
    shutil.rmtree(opened.path / "index")
    opened.context.parts.indexes.clear()
    add(opened, folder)
    assert found(opened, "chapel bell")[0] == "bell.txt"


def test_a_damaged_index_says_what_to_do_and_reindex_does_it(opened: Workspace, folder: Path):
    from assay.core.errors import StoreError

    add(opened, folder)
    for file in (opened.path / "index").rglob("*.manifest"):
        file.write_bytes(b"rubbish")
    opened.context.parts.indexes.clear()
    with pytest.raises(StoreError, match="assay reindex"):
        asyncio.run(opened.search("bell"))
    opened.context.parts.indexes.clear()
    asyncio.run(opened.documents.reindex())
    assert found(opened, "chapel bell")[0] == "bell.txt"


def erase(opened: Workspace, name: str) -> ErasureReport:
    return asyncio.run(
        opened.records.erase([each for each in opened.documents.listing() if each.uri.endswith(name)], opened.scope())
    )


def test_erasing_from_a_damaged_index_deletes_it(opened: Workspace, folder: Path):
    add(opened, folder)
    for file in (opened.path / "index").rglob("*.manifest"):
        file.write_bytes(b"rubbish")
    opened.context.parts.indexes.clear()
    assert erase(opened, "bell.txt").whole
    assert not list((opened.path / "index").rglob("*.lance"))


@pytest.mark.parametrize(("reachable", "failures"), [(True, 1), (False, 9)])
def test_an_index_that_fails_for_a_moment_or_cannot_be_reached_is_not_deleted(
    opened: Workspace, folder: Path, monkeypatch: pytest.MonkeyPatch, reachable: bool, failures: int
):
    from assay.core.errors import StoreError
    from assay.index.lance.lance_index import LanceEngine, LanceIndex

    add(opened, folder)
    purge, failed = LanceIndex.purge, 0

    async def fail_first(index: LanceIndex) -> tuple[str, ...]:
        nonlocal failed
        failed += 1
        if failed <= failures:
            raise StoreError("the connection was lost")
        return await purge(index)

    async def unreachable(engine: LanceEngine) -> dict[str, str]:
        raise StoreError("no route")

    with monkeypatch.context() as patched:
        patched.setattr(LanceIndex, "purge", fail_first)
        if not reachable:
            patched.setattr(LanceEngine, "versions", unreachable)
        assert erase(opened, "bell.txt").whole == reachable
    assert found(opened, "kettle litres")[0] == "kettle.md"
    assert "bell.txt" not in found(opened, "chapel bell")


def test_a_workspace_inside_the_folder_does_not_swallow_itself(folder: Path):
    from assay.ingest.sources import find_sources

    with open_workspace(folder / "workspace", create=True) as inside:
        inside.embedder = WordEmbedder()
        for _ in range(2):
            report = asyncio.run(inside.documents.add_sources(find_sources([folder]), reader=Plain()))
            assert {Path(file.path).name for file in report.files} == set(NOTES)


def test_text_goes_to_another_machine_only_after_the_person_agreed(tmp_path: Path, folder: Path):
    from assay.store import facts

    with open_workspace(
        tmp_path / "w", create=True, embedder="https://models.example/v1", embedder_model="m"
    ) as remote:
        with pytest.raises(UserError, match=r"assay config agree models\.example"):
            asyncio.run(remote.add([folder]))
        facts.agree(remote.store, "models.example")
        assert remote.embedder.name
    with open_workspace(tmp_path / "w", embedder="http://127.0.0.1:9/v1", embedder_model="m") as local:
        assert local.embedder.name  # this machine needs no agreement


def test_a_file_that_became_a_copy_of_another_no_longer_says_what_it_said(opened: Workspace, folder: Path):
    add(opened, folder)
    (folder / "bell.txt").write_text(NOTES["orlen.md"])
    assert outcomes(add(opened, folder))["bell.txt"] == "duplicate"
    assert "bell.txt" not in found(opened, "chapel bell tonnes")
    assert not any("tonnes" in hit.passage.text for hit in asyncio.run(opened.search("chapel bell tonnes", 10)))


def test_a_version_that_answers_cite_is_kept_even_when_it_waits_to_be_embedded_again(opened: Workspace, folder: Path):
    add(opened, folder)
    old = next(entry for entry in opened.documents.listing() if entry.name == "bell.txt")
    other = WordEmbedder()
    other.name = "words/other"
    opened.embedder = other
    (folder / "bell.txt").write_text("The bell was sold.\n")
    add(opened, folder)
    assert "two tonnes" in (opened.documents.get(old.id) or pytest.fail("old citations lead nowhere")).text


def test_removing_a_document_that_was_moved_removes_what_it_said_in_its_old_place(opened: Workspace, folder: Path):
    add(opened, folder / "bell.txt")
    (folder / "bell.txt").write_text("The bell was sold and melted.\n")
    add(opened, folder / "bell.txt")
    (folder / "bell.txt").rename(folder / "chapel.txt")
    add(opened, folder / "chapel.txt")
    asyncio.run(opened.documents.remove(["chapel.txt"]))
    with opened.store.read() as connection:
        from assay.store.schema import texts

        assert not connection.execute(texts.select()).all()
    assert not list(opened.context.blobs.digests())


def test_two_adds_in_one_process_wait_for_each_other_without_blocking(opened: Workspace, folder: Path):
    from assay.ingest.sources import find_sources

    async def both() -> None:
        one, two = find_sources([folder / "bell.txt"]), find_sources([folder / "orlen.md"])
        await asyncio.wait_for(
            asyncio.gather(
                opened.documents.add_sources(one, reader=Plain()), opened.documents.add_sources(two, reader=Plain())
            ),
            30,
        )

    asyncio.run(both())
    assert {entry.name for entry in opened.documents.listing()} == {"bell.txt", "orlen.md"}


def test_somebody_who_may_only_read_can_neither_remove_nor_reindex_nor_delete(opened: Workspace, folder: Path):
    from sqlalchemy import insert

    from assay.core.access import Principal
    from assay.store.schema import acceptances, grants

    add(opened, folder)
    base = opened.scope().named("default")
    with opened.store.write() as connection:
        connection.execute(insert(grants).values(label=base.id, name="user:eve"))
        connection.execute(insert(acceptances).values(base=base.id, name="user:eve", accepted=True))
    eve = opened.for_principal(Principal("eve"))
    assert len(eve.documents.listing()) == 3
    for attempt in (eve.documents.remove(["bell.txt"]), eve.documents.reindex(), eve.records.erase_base("default")):
        with pytest.raises(UserError, match="not yours"):
            asyncio.run(attempt)
    assert len(opened.documents.listing()) == 3 and found(opened, "chapel bell")[0] == "bell.txt"


def test_what_is_kept_and_what_was_read_are_the_same_bytes_though_the_file_changes_meanwhile(
    opened: Workspace, folder: Path
):
    class Slow(Plain):
        async def read(self, data: Path | bytes, name: str) -> Parsed | Unreadable:
            (folder / "bell.txt").write_text("Something else entirely.\n")
            return await super().read(data, name)

    add(opened, folder / "bell.txt", reader=Slow())
    (entry,) = opened.documents.listing()
    document = opened.documents.get(entry.id)
    assert (
        document is not None
        and opened.documents.original(document) == document.text.encode() == NOTES["bell.txt"].encode()
    )


def test_a_host_that_only_looks_like_this_machine_needs_agreement(tmp_path: Path):
    for host in ("127.0.0.1.example.org", "127.example.org", "localhost.example.org"):
        remote = open_workspace(tmp_path / "w", create=True, embedder=f"http://{host}/v1", embedder_model="m")
        with remote, pytest.raises(UserError, match="would be sent to"):
            _ = remote.embedder


def test_a_broken_cache_is_made_anew(opened: Workspace, folder: Path):
    (opened.path / "cache.db").write_bytes(b"rubbish " * 1000)
    add(opened, folder)
    assert found(opened, "chapel bell")[0] == "bell.txt"


def test_what_is_embedded_and_indexed_is_on_disk_first_by_one_flush_for_many_files(
    opened: Workspace, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    seen: list[str] = []
    put, now, embed = documents.put_pending, FileFlush.now, WordEmbedder.passages

    def stored(store: Store, *given: object, **named: object) -> str:
        seen.append("waits" if store.waits else "stored")
        return put(store, *given, **named)  # type: ignore[arg-type]

    async def embedded(self: WordEmbedder, texts: Sequence[str]) -> np.ndarray:
        seen.append("embedded")
        return await embed(self, texts)

    monkeypatch.setattr(pipeline, "MOMENT", 60.0)
    monkeypatch.setattr(documents, "put_pending", stored)
    monkeypatch.setattr(WordEmbedder, "passages", embedded)
    monkeypatch.setattr(FileFlush, "now", lambda self: (now(self), seen.append("flushed"))[0])
    add(opened, folder)
    assert seen == ["stored", "stored", "stored", "flushed", "embedded"]
