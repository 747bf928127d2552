"""What every `Place` must do: list its files with what tells a change, and bring one. And what a sync of it comes to."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from notes import Plain
from place_servers import STORAGES, Files, Storage

from assay.core.errors import AssayError, StoreError, UserError
from assay.core.settings import hider
from assay.evaluate.plain_text import WordEmbedder
from assay.ingest.places import Login, Place, below, login_for, open_place
from assay.ingest.readiness import Readiness
from assay.workspace.facade import Workspace, open_workspace
from assay.workspace.services.documents import Documents

BELL = "The chapel bell was cast in the year 1788.\n"


class Stopped(Exception): ...


@pytest.fixture(params=STORAGES, ids=lambda kind: kind.__name__)
def storage(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Storage]:
    with request.param(tmp_path / "place", monkeypatch) as made:
        yield made


@pytest.fixture
def opened(tmp_path: Path, storage: Storage, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    real = Documents._workers
    monkeypatch.setattr(Documents, "_workers", lambda self, reader: real(self, reader or Plain()))
    flags = {"sources_allowed": storage.allowed, "sources_logins": storage.logins}
    with open_workspace(tmp_path / "workspace", create=True, **flags) as made:
        made.embedder = WordEmbedder()
        yield made


@pytest.fixture
def place(opened: Workspace, storage: Storage) -> Place:
    return open_place(storage.address, opened.settings)


def sync(opened: Workspace, storage: Storage, **given: Any) -> tuple[dict[str, str], set[str]]:
    """How each file ended, by name, and the names of what was removed."""
    report, removed = asyncio.run(opened.documents.sync(storage.address, **given))
    return outcomes(report), {entry.name for entry in removed}


def outcomes(report: Readiness) -> dict[str, str]:
    return {file.path.rpartition("/")[2]: file.outcome for file in report.files}


def names(opened: Workspace) -> set[str]:
    return {entry.name for entry in opened.documents.listing() if entry.state == "ready"}


def test_it_lists_every_file_below_it_and_no_hidden_one(storage: Storage, place: Place):
    for name in (
        "a.txt",
        "minutes/2024/b ü%20#1.txt",
        ".hidden.txt",
        ".git/config",
        "minutes/~$b.docx",
        "minutes/Thumbs.db",
    ):
        storage.put(name, name)
    listed = place.listed()
    assert [each.name for each in listed] == ["a.txt", "minutes/2024/b ü%20#1.txt"]
    assert [each.size for each in listed] == [5, len("minutes/2024/b ü%20#1.txt".encode())]
    assert all(each.mark for each in listed)


def test_it_brings_the_bytes_of_a_file(storage: Storage, place: Place, tmp_path: Path):
    storage.put("minutes/b ü%20#1?.txt", BELL * 1000)
    place.fetch("minutes/b ü%20#1?.txt", tmp_path / "copy")
    assert (tmp_path / "copy").read_text(encoding="utf-8") == BELL * 1000


def test_a_file_that_is_gone_is_no_failure_of_the_place(storage: Storage, place: Place, tmp_path: Path):
    storage.put("a.txt", BELL)
    with pytest.raises(FileNotFoundError):
        place.fetch("b.txt", tmp_path / "copy")


def test_a_changed_file_has_another_mark_and_an_unchanged_one_the_same(storage: Storage, place: Place):
    storage.put("a.txt", "one")
    storage.put("b.txt", "one")
    before = {each.name: each.mark for each in place.listed()}
    storage.put("a.txt", "two")
    after = {each.name: each.mark for each in place.listed()}
    assert after["a.txt"] != before["a.txt"] and after["b.txt"] == before["b.txt"]


def test_a_sync_reads_what_is_there_and_then_only_what_has_changed(opened: Workspace, storage: Storage):
    for name in ("bell.txt", "deep/er/kettle.md", "orlen.md"):
        storage.put(name, f"{name} says that the {name} is old.\n")
    storage.put("empty.txt", "")
    assert sync(opened, storage) == (
        {"bell.txt": "added", "kettle.md": "added", "orlen.md": "added", "empty.txt": "failed"},
        set(),
    )
    storage.put("bell.txt", BELL)
    storage.delete("orlen.md")
    storage.fetched.clear()
    now, removed = sync(opened, storage)
    assert now == {"bell.txt": "replaced", "kettle.md": "unchanged", "empty.txt": "failed"}
    assert removed == {"orlen.md"} and names(opened) == {"bell.txt", "kettle.md"}
    assert set(storage.fetched) <= {"bell.txt"}, "nothing that is unchanged is fetched again"


def test_a_renamed_file_is_moved_and_keeps_who_may_read_it(opened: Workspace, storage: Storage):
    storage.put("bell.txt", BELL)
    storage.put("kettle.txt", "The kettle boils at noon.\n")
    sync(opened, storage)
    (entry,) = opened.documents.named("bell.txt", opened.scope())
    asyncio.run(opened.people.share_document(entry.id, "user:reader", True))
    storage.rename("bell.txt", "chapel/old.txt")
    now, removed = sync(opened, storage)
    assert now == {"old.txt": "moved", "kettle.txt": "unchanged"} and not removed
    (moved,) = opened.documents.named("old.txt", opened.scope())
    assert (moved.id == entry.id and moved.label == entry.label) or moved.label != moved.base
    assert opened.people.document_access(moved.id).readers == ("user:local", "user:reader")


def test_two_files_with_the_same_content_stay_where_they_are(opened: Workspace, storage: Storage):
    storage.put("a.txt", BELL)
    storage.put("b.txt", BELL)
    assert sync(opened, storage)[0] == {"a.txt": "added", "b.txt": "duplicate"}
    assert sync(opened, storage)[0] == {"a.txt": "unchanged", "b.txt": "duplicate"}
    storage.delete("a.txt")
    assert sync(opened, storage) == ({"b.txt": "moved"}, set())


def test_a_place_without_files_takes_nothing_away(opened: Workspace, storage: Storage):
    storage.put("a.txt", BELL)
    sync(opened, storage)
    storage.delete("a.txt")
    with pytest.raises(AssayError):
        sync(opened, storage)
    assert names(opened) == {"a.txt"}


def test_a_file_that_is_too_large_is_refused_without_fetching_it(opened: Workspace, storage: Storage):
    storage.put("a.txt", "x" * 1_100_000)
    small = opened.with_settings(file_max_megabytes=1)
    assert sync(small, storage)[0] == {"a.txt": "failed"} and not storage.fetched


def test_a_sync_that_was_stopped_fetches_only_the_rest(
    opened: Workspace, storage: Storage, monkeypatch: pytest.MonkeyPatch
):
    for number in range(60):
        storage.put(f"{number:02}.txt", f"Lamp {number} of the pier is {number} metres high.\n")

    def stop(progress: Any) -> None:
        if progress.files == 45:
            raise Stopped

    with pytest.raises(Stopped):
        sync(opened, storage, say=stop)
    storage.fetched.clear()
    now, _ = sync(opened, storage)
    assert len(now) == 60 and len(names(opened)) == 60
    assert len(storage.fetched) < 40, "what was read before is not fetched again"
    assert not list(opened.context.blobs.scratch.glob("*.part"))


def test_only_an_address_in_the_settings_is_reached(opened: Workspace, storage: Storage):
    if isinstance(storage, Files) and not storage.allowed:
        pytest.skip("a folder of this machine is for whoever may read it")
    for setting in ("", storage.allowed + "/below", storage.allowed + "er", "s3://another/place"):
        with pytest.raises(UserError, match="sources_allowed"):
            open_place(storage.address, opened.with_settings(sources_allowed=setting).settings)
    for address in (storage.address + "/../secret", storage.address + "/%2e%2e/secret", storage.address + "?a=b"):
        with pytest.raises(UserError):
            open_place(address, opened.settings)
    assert open_place(storage.address + "/below/", opened.settings).address == storage.address + "/below"


@pytest.mark.parametrize("scheme", ["dav", "http"])
def test_a_redirect_is_not_followed(tmp_path: Path, scheme: str):
    asked: list[str] = []

    class Elsewhere(BaseHTTPRequestHandler):
        def answer(self) -> None:
            asked.append(self.path)
            self.send_response(302)
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_address[1]}/secret/")
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_HEAD = do_PROPFIND = answer

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"{scheme}://127.0.0.1:{server.server_address[1]}/minutes"
    try:
        with open_workspace(tmp_path / "workspace", create=True, sources_allowed=address) as made:
            place = open_place(address, made.settings)
            for reached in (place.listed, lambda: place.fetch("a.txt", tmp_path / "copy")):
                with pytest.raises(StoreError, match="not followed"):
                    reached()
    finally:
        server.shutdown()
        server.server_close()
    assert asked and not any("secret" in path for path in asked)


def test_a_server_that_lists_what_is_elsewhere_is_not_believed():
    assert below("/minutes", "/minutes/a/b.txt") == "a/b.txt"
    assert not any(below("/minutes", path) for path in ("/minutes", "/other/a", "/minutes/../a", "/minutes//a"))


def test_the_longest_address_says_who_signs_in_and_no_password_is_shown(tmp_path: Path):
    lines = "davs://cloud.example anna:one word\ndavs://cloud.example/hr board:another:word\n"
    assert login_for("davs://cloud.example/minutes", lines) == Login("anna", "one word")
    assert login_for("davs://cloud.example/hr/2024", lines) == Login("board", "another:word")
    assert login_for("davs://cloud.example.org/hr", lines) == Login()
    with open_workspace(tmp_path / "workspace", create=True, sources_logins=lines) as made:
        assert "another:word" not in hider(made.settings)("it refused another:word")
        assert "one word" not in repr(made.settings)
    with pytest.raises(UserError) as refused:
        open_place("davs://anna:a-password@cloud.example/x", made.settings)
    assert "a-password" not in str(refused.value)


def test_the_connector_of_the_how_to_is_one(tmp_path: Path):
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "sync.md").read_text(encoding="utf-8")
    shown: dict[str, Any] = {}
    exec(page.partition("```python\n")[2].partition("```")[0], shown)  # the words of the how-to
    notes = {"gate.txt": "The gate opens at six.", "lamp.txt": "The lamp is red."}
    with open_workspace(tmp_path / "workspace", create=True) as made:
        made.embedder = WordEmbedder()
        report, _ = asyncio.run(made.documents.sync(shown["Notes"](notes)))
        assert outcomes(report) == {"gate.txt": "added", "lamp.txt": "added"}
        notes.pop("lamp.txt")
        report, removed = asyncio.run(made.documents.sync(shown["Notes"](notes)))
        assert outcomes(report) == {"gate.txt": "unchanged"} and [entry.uri for entry in removed] == [
            "notes://team/lamp.txt"
        ]
