"""A place that is watched: whatever happens there, the shelf equals it in the end, no restriction is lost, nothing is read
twice."""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from doubles import WordAnswers
from notes import Plain
from place_servers import Files, Storage, in_a_bucket, in_a_folder, on_webdav

from assay.core.access import Principal
from assay.core.codec import dumps, to_json
from assay.core.errors import AssayError, StoreError
from assay.evaluate.plain_text import WordEmbedder
from assay.ingest.changes import PATIENCE, Watched, plan
from assay.ingest.parsed import Parsed
from assay.ingest.places import Listed
from assay.store.access import grants
from assay.workspace.facade import DEFAULT_BASE, Workspace, open_workspace
from assay.workspace.services.documents import Documents
from assay.workspace.types import Synced

SOAK = bool(os.environ.get("ASSAY_SOAK"))
FILES = 1000 if SOAK else 60
READER = Principal("reader")
SECRET = "eleven crowns"


class Once(Plain):
    """Reads plain texts, and counts how often each was read."""

    def __init__(self) -> None:
        self.read_texts: Counter[str] = Counter()

    async def read(self, data: Path | bytes, name: str) -> Parsed:
        parsed = await super().read(data, name)
        self.read_texts[parsed.text] += 1
        return parsed


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Once:
    real, once = Documents._workers, Once()
    monkeypatch.setattr(Documents, "_workers", lambda self, reader: real(self, reader or once))
    return once


@pytest.fixture(params=[in_a_folder, in_a_bucket, on_webdav], ids=lambda kind: kind.__name__)
def storage(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Storage]:
    with request.param(tmp_path / "place", monkeypatch) as made:
        yield made


@pytest.fixture
def opened(tmp_path: Path, storage: Storage, reader: Once) -> Iterator[Workspace]:
    flags = {"sources_allowed": storage.allowed, "sources_logins": storage.logins, "watch_every": 1, "watch_grace": 5}
    with open_workspace(tmp_path / "workspace", create=True, **flags) as made:
        made.embedder = WordEmbedder()
        made.context.parts.answer_model = WordAnswers()
        yield made


@asynccontextmanager
async def watching(opened: Workspace, storage: Storage) -> AsyncIterator[list[Synced]]:
    heard: list[Synced] = []

    def tell(what: Synced | AssayError) -> None:
        if not isinstance(what, StoreError):  # a server may fail to list what changes meanwhile; the next look is right
            assert isinstance(what, Synced), what
            heard.append(what)

    async with asyncio.TaskGroup() as group:  # a watch that breaks down ends the test
        task = group.create_task(opened.documents.watch(storage.address, tell=tell))
        yield heard
        task.cancel()


async def until(true: Callable[[], bool], seconds: float = 60.0) -> None:
    end = asyncio.get_running_loop().time() + seconds
    while not true():
        assert asyncio.get_running_loop().time() < end, "it did not happen in time"
        await asyncio.sleep(1.0 if SOAK else 0.1)


def agrees(opened: Workspace, busy: Busy) -> bool:
    """Whether everything there can be asked about, and nothing else; texts are compared once the names agree."""
    names = {entry.uri.partition("/all/")[2] for entry in opened.documents.listing() if entry.state == "ready"}
    return names == busy.names().keys() and shelf(opened) == busy.names()


def shelf(opened: Workspace) -> dict[str, str]:
    """What can be asked about: the text of each document by its name below the place."""
    found = [entry for entry in opened.documents.listing() if entry.state == "ready"]
    texts = {entry.uri: document.text for entry in found if (document := opened.documents.get(entry.id))}
    return {uri.partition("/all/")[2]: text for uri, text in texts.items()}


class Busy:
    """Somebody who changes, renames, deletes and adds files at random; and what is there then."""

    def __init__(self, storage: Storage, seed: int) -> None:
        self.storage, self.chance, self.there = storage, random.Random(seed), dict[str, str]()
        self.versions = Counter[str]()  # by name
        self.made = 0

    def add(self, *, secret: bool = False) -> None:
        self.made += 1
        folder = self.chance.choice(("", "minutes/", "minutes/2024/"))
        self.put(f"all/{folder}{'secret' if secret else 'open'}-{self.made}.txt", secret=secret)

    def put(self, name: str, *, secret: bool) -> None:
        self.made += 1
        words = f"The keeper is paid {SECRET}. " if secret else "The lamp of the pier is red. "
        text = f"{words}Note {self.made} of the log has the number {self.chance.randrange(10**9)}.\n"
        self.storage.put(name, text)
        self.there[name] = text
        self.versions[name] += 1

    def act(self) -> None:
        kind, name = self.chance.randrange(10), self.chance.choice(sorted(self.there))
        secret = "secret" in name
        if kind < 3:
            self.put(name, secret=secret)
        elif kind < 7:
            self.made += 1
            to = f"all/{self.chance.choice(('', 'old/', 'minutes/'))}{'secret' if secret else 'open'}-{self.made}.txt"
            self.storage.rename(name, to)
            self.there[to] = self.there.pop(name)
            self.versions[to] += 1
        elif kind < 9 and not secret:
            self.storage.delete(name)
            del self.there[name]
        else:
            self.add()

    def names(self) -> dict[str, str]:
        return {name.removeprefix("all/"): text for name, text in self.there.items()}


async def asks(opened: Workspace, stop: asyncio.Event) -> int:
    """Somebody who asks all the time, and may not read what is secret. How often."""
    mine, asked = opened.for_principal(READER), 0
    while not stop.is_set():
        hits = await mine.search("keeper crowns paid lamp", k=20)
        assert not any(SECRET in hit.passage.text for hit in hits)
        async for run, _ in mine.ask("What is the keeper paid?", model=False):
            last = run
        assert last.answer is not None and SECRET not in dumps(to_json(last.answer))
        asked += 1
        await asyncio.sleep(0.05)
    return asked


@pytest.mark.long
@pytest.mark.timeout(3000 if SOAK else 300)
async def test_the_shelf_equals_a_place_that_changes_while_people_ask(
    opened: Workspace, storage: Storage, reader: Once
):
    busy = Busy(storage, seed=FILES)
    for number in range(FILES):
        busy.add(secret=number % 10 == 0)
    before, stop = set(busy.there), asyncio.Event()
    async with watching(opened, storage):
        await until(lambda: agrees(opened, busy), 900 if SOAK else 60)
        base = opened.scope().named(DEFAULT_BASE)
        secret = [entry.uri for entry in opened.documents.listing() if "secret" in entry.uri]
        opened.documents.restrict(base, secret, [], "local")
        grants.share(opened.store, base, "user:reader")
        asking = asyncio.create_task(asks(opened, stop))
        if isinstance(storage, Files):
            storage.ago = 0.0
        for _ in range(FILES):
            await asyncio.to_thread(busy.act)
            await asyncio.sleep(0.02)
        await until(lambda: asking.done() or agrees(opened, busy), 900 if SOAK else 90)
        stop.set()
        assert await asking > 0
    assert shelf(opened) == busy.names() and set(busy.there) != before
    shown = opened.for_principal(READER).documents.listing()
    assert not any("secret" in entry.uri for entry in shown), "a restriction was lost"
    twice = [text for text, count in reader.read_texts.items() if count > 1]
    assert not twice, "a text was read twice"
    often = {name: count for name, count in storage.fetched.items() if count > busy.versions[name]}
    assert not often, "a version was fetched twice"


@pytest.mark.parametrize("storage", [in_a_folder], indirect=True)
async def test_a_change_is_read_within_seconds_and_a_deletion_follows_after_the_grace(
    opened: Workspace, tmp_path: Path, reader: Once
):
    place = Files(tmp_path / "watched")
    place.put("all/a.txt", "The gate opens at six.\n")
    place.put("all/b.txt", "The lamp is red.\n")
    place.ago = 0.0
    async with watching(opened, place) as heard:
        await until(lambda: len(shelf(opened)) == 2)
        place.put("all/a.txt", "The gate opens at seven.\n")
        await until(lambda: "seven" in shelf(opened)["a.txt"], 15)
        place.delete("all/b.txt")
        looks = len(heard)
        await until(lambda: len(heard) > looks)
        assert "b.txt" in shelf(opened), "it may come back"
        await until(lambda: "b.txt" not in shelf(opened), 30)


def test_a_file_that_is_written_all_the_time_is_read_after_a_while():
    files = {"/p/a": Listed("a", 1, "1", young=True)}
    watched = Watched(grace=5)
    assert plan("/p", files, {}, [], "", watched, 0.0).read == []
    assert plan("/p", files, {}, [], "", watched, PATIENCE - 1).read == []
    assert plan("/p", files, {}, [], "", watched, PATIENCE).read == ["/p/a"]


def test_a_file_that_is_gone_is_waited_for_while_one_as_large_is_not_read_yet():
    gone: Any = SimpleNamespace(
        uri="/p/a", base="b", label="b", bytes=7, digest="x", state="ready", parser="", status="read"
    )
    watched, young = Watched(grace=5), Listed("b", 7, "2", young=True)
    assert not plan("/p", {"/p/b": young}, {}, [gone], "", watched, 0.0).remove
    assert not plan("/p", {"/p/c": young}, {}, [gone], "", watched, 20.0).remove, "it may have been renamed twice"
    assert plan("/p", {"/p/c": replace(young, size=8)}, {}, [gone], "", watched, 21.0).remove == {"/p/a"}


def test_what_is_not_read_because_a_restricted_file_is_gone_is_waited_for_too():
    about: Any = {"base": "b", "bytes": 7, "digest": "x", "state": "ready", "parser": "", "status": "read"}
    secret, plain = (
        SimpleNamespace(uri=f"/p/{name}", label=label, **about) for name, label in (("s", "l"), ("a", "b"))
    )
    watched, old, young = Watched(grace=5), Listed("b", 7, "2"), Listed("c", 9, "3", young=True)
    watched.missed["/p/a"] = 0.0
    looked = plan("/p", {"/p/b": old, "/p/c": young}, {}, [secret, plain], "", watched, 20.0)
    assert not looked.read and not looked.vanished and not looked.remove, "b may be a, and c may be s"
    looked = plan("/p", {"/p/b": old, "/p/c": young}, {}, [secret, plain], "", watched, 24.0)
    assert looked.read == ["/p/b"] and looked.vanished == [secret]
