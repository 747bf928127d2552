"""A workspace of several people behind a server in this process, whose clock and ids are handed in: what is done in it can be
done again, sign for sign, in another one that differs in what its reader may not know.

async with world(folder) as made:
    reply = await made.get("reader", "/api/documents")
"""

from __future__ import annotations

import asyncio
import atexit
import copy
import random
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
from notes import Plain, opened
from sqlalchemy import select

from assay.core.access import Principal
from assay.ingest.sources import SourceFile
from assay.serve.app import make_app
from assay.serve.state import ServeOptions, Server
from assay.store import documents
from assay.store.access import document_access, grants, members, tokens
from assay.workspace.facade import Workspace, open_workspace

EDITOR, READER = Principal("editor", frozenset({"desk"})), Principal("reader")
DESK = Principal("writer", frozenset({"desk"}))
QUESTION = "How tall is the tower at Carrow Point?"
# Of each document: its file's name, its title (the same, by `Plain`) and its words hold a mark that stands nowhere else.
OPEN = {
    "tower-{}.txt": "The tower of the lighthouse at Carrow Point is 31 metres tall, says {}. It leans a little.",
    "lamp-{}.txt": "The lamp room at Carrow Point is painted with orpiment, says {}. The tower has 99 steps.",
    "keeper-{}.txt": "The keeper of the tower at Carrow Point is Ines Varga, says {}. She writes the log every night.",
}
SECRET = {
    "survey-{}.txt": "The survey of the tower at Carrow Point found cracks, and {} says how tall it was: 29 metres.",
    "letter-{}.txt": "A letter about the tower at Carrow Point says that {} wants it pulled down.",
}
OWN = {"diary-{}.txt": "My diary: from the pier the tower at Carrow Point looks small, and {} agrees."}


@dataclass
class Clock:
    """Time and ids as the test has them: time stands still until it is moved. Whoever is not to be noticed has other ids."""

    ids: random.Random
    seconds: int = 0
    hidden: random.Random | None = None

    def now(self) -> str:
        minutes, seconds = divmod(self.seconds, 60)
        return f"2026-03-{1 + minutes // 1440:02d}T{minutes // 60 % 24:02d}:{minutes % 60:02d}:{seconds:02d}.000Z"

    def new_id(self) -> str:
        return f"{(self.hidden or self.ids).getrandbits(64):016x}"


@dataclass
class World:
    """People, what each has, and the way to the server as any of them."""

    workspace: Workspace
    server: Server
    client: httpx.AsyncClient
    clock: Clock
    keys: dict[str, str]
    marks: dict[str, str] = field(default_factory=dict)  # document → what only it says

    def as_(self, who: Principal) -> Workspace:
        return self.workspace.for_principal(who)

    async def ask(self, method: str, path: str, who: str = "reader", **more: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.keys[who]}", **more.pop("headers", {})}
        return await self.client.request(method, path, headers=headers, **more)

    async def rest(self) -> None:
        """Nothing goes on any more."""
        while any(self.server.runs.count_for(who.id) for who in (EDITOR, READER, DESK)):  # noqa: ASYNC110
            await asyncio.sleep(0.005)

    async def fill(self, who: Principal, base: str, texts: Mapping[str, str], tag: str) -> list[str]:
        """Documents of this person's, each with its own mark; their ids."""
        marked = {name.format(mark): words.format(mark) for name, words, mark in _marked(texts, tag)}
        files = [SourceFile(uri=f"notes/{name}", name=name, data=words.encode()) for name, words in marked.items()]
        self.clock.seconds += 1
        seen = self.as_(who)
        await seen.documents.add_sources(files, base, reader=Plain())
        found = {entry.name: entry.id for entry in seen.documents.listing([base])}
        made = {found[name.format(mark)]: mark for name, _, mark in _marked(texts, tag)}
        self.marks |= made
        return list(made)

    def forbidden(self, who: Principal) -> dict[str, str]:
        """What this person may not see now: marks, ids and digests of documents, each with the document it is of."""
        scope = grants.scope_of(self.workspace.store, who)
        told: dict[str, str] = {}
        for document, mark in self.marks.items():
            if documents.get(self.workspace.store, document, scope) is None:
                told |= {mark: document, document: document}
        return told

    def set_access(self, document: str, name: str, may: bool) -> None:
        """For one document, in the store alone: the index lags behind, as it may."""
        store = self.workspace.store
        (entry,) = documents.entries_of(store, select(*documents.LINE).where(documents.documents.c.id == document))
        base = next(base for base in grants.every_base(store) if base.id == entry.base)
        if (name in document_access.readers(store, base, entry)) != may:
            document_access.set_access(store, base, entry, name, may, "editor")


def _marked(texts: Mapping[str, str], tag: str) -> Iterator[tuple[str, str, str]]:
    return ((name, words, f"zq{tag}{place}x") for place, (name, words) in enumerate(texts.items()))


_made: dict[int, tuple[Path, Clock, dict[str, str], dict[str, str]]] = {}


async def _template(seed: int) -> tuple[Path, Clock, dict[str, str], dict[str, str]]:
    """The workspace of a world, made once for all tests: where it lies, its clock, the keys of its people, and its marks."""
    if seed not in _made:
        place = Path(tempfile.mkdtemp(prefix="world-"))
        atexit.register(shutil.rmtree, place, ignore_errors=True)
        clock, keys = Clock(random.Random(seed)), {}
        open_workspace(place / "workspace", create=True).close()
        with opened(place / "workspace") as workspace:
            workspace.store = replace(workspace.store, now=clock.now, new_id=clock.new_id)
            for who in (EDITOR, READER, DESK):
                members.add(workspace.store, who.id, who.groups, admin=who is EDITOR)
                keys[who.id] = tokens.new_key(workspace.store, who.id)
            made = World(workspace, Server(workspace), httpx.AsyncClient(), clock, keys)
            await made.fill(EDITOR, "shared", OPEN, "open")
            await made.fill(EDITOR, "shared", SECRET, "secret")
            await made.fill(EDITOR, "private", SECRET, "private")
            await made.fill(READER, "own", OWN, "own")
        _made[seed] = place / "workspace", clock, keys, made.marks
    return _made[seed]


@asynccontextmanager
async def world(folder: Path, seed: int = 0, **flags: Any) -> AsyncIterator[World]:
    """An editor with a shared base (of which two documents are kept back) and a private one; a reader with a base of their
    own; somebody else of the editor's group."""
    place, before, keys, marks = await _template(seed)
    shutil.copytree(place, folder)
    clock = copy.deepcopy(before)
    limits: dict[str, Any] = {"serve_requests_per_minute": 0, "serve_runs_per_person": 0}
    with opened(folder, **limits | flags) as workspace:
        workspace.store = replace(workspace.store, now=clock.now, new_id=clock.new_id)
        server = Server(workspace, ServeOptions(auth="keys"), grace=0.1)
        transport = httpx.ASGITransport(make_app(server), raise_app_exceptions=False)
        await server.start()
        await server.load()
        try:
            async with httpx.AsyncClient(transport=transport, base_url="http://assay", timeout=60.0) as client:
                yield World(workspace, server, client, clock, dict(keys), dict(marks))
        finally:
            await server.stop()


async def asked(seen: Workspace, question: str = QUESTION, **how: Any) -> str:
    """A question put and answered by rule; the run."""
    steps = [step async for step in seen.ask(question, model=False, today="2026-03-01", **how)]
    return steps[-1][0].id


def operations(described: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every operation of an OpenAPI document: method, path, and what it says of it."""
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            if method in {"get", "post", "put", "patch", "delete"}:
                yield method.upper(), path, operation
