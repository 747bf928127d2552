"""A real server over a real workspace, in a thread, and what the tests of the API say to it.

with served(folder, model) as at, at.client() as client:
    run = client.post("/api/runs", json={"question": "How tall is the tower?"}).json()["run"]
    assert followed(client, run)[-1].event == "end"
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from doubles import ChatServer, Script, enough, keeps, lookup, role_of, supported, writes
from notes import Plain, opened, until

from assay.core.access import Principal
from assay.ingest.sources import SourceFile
from assay.serve.app import make_app
from assay.serve.housekeeping import work_until
from assay.serve.process import ServerProcess, listen
from assay.serve.state import ServeOptions, Server

NOTES = {
    "lamp.txt": "The lamp room at Carrow Point is painted with orpiment. Nobody has painted it anew since.",
    "tower.txt": "The tower of the lighthouse at Carrow Point is 31 metres tall. It leans a little.",
    "beacon.txt": "The keeper tends the beacon, day and night, and writes the log.",
}
QUESTION = "How tall is the tower at Carrow Point?"
ANSWER = "The tower of the lighthouse at Carrow Point is 31 metres tall."


@dataclass(frozen=True, slots=True)
class Served:
    """Where it answers, and what is behind it."""

    url: str
    server: Server
    process: ServerProcess

    def client(self, **headers: str) -> httpx.Client:
        return httpx.Client(base_url=self.url, headers=headers, timeout=30.0)


@contextmanager
def served(
    folder: Path,
    model: ChatServer | None = None,
    serving: ServeOptions | None = None,
    grace: float = 0.2,
    process: str = "",
    works: bool = True,
    shared: bool = False,
    **flags: Any,
) -> Iterator[Served]:
    """A server over the workspace in this folder, with this model if there is one; closed in good order at the end."""
    with opened(folder, model, **{"serve_requests_per_minute": 0, "serve_runs_per_person": 0} | flags) as workspace:
        server = Server(workspace, serving or ServeOptions(), grace=grace, process=process, works=works, shared=shared)
        listening = listen("127.0.0.1", 0)
        running = ServerProcess(make_app(server), server)
        thread = threading.Thread(target=running.run, args=([listening],), daemon=True)
        thread.start()
        port = listening.getsockname()[1]
        until(lambda: running.started or not thread.is_alive())
        assert running.started, "the server did not start"
        try:
            yield Served(f"http://127.0.0.1:{port}", server, running)
        finally:
            running.should_exit = True
            thread.join(20)
            assert not thread.is_alive(), "the server did not end"


@contextmanager
def working(folder: Path, model: ChatServer | None = None, process: str = "", **flags: Any) -> Iterator[Server]:
    """A worker over the workspace in this folder; ended in good order."""
    with opened(folder, model, **flags) as workspace:
        server = Server(workspace, grace=0.2, process=process, most_runs=4, shared=True)
        loop, stopped = asyncio.new_event_loop(), asyncio.Event()
        thread = threading.Thread(target=loop.run_until_complete, args=(work_until(server, stopped),), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            loop.call_soon_threadsafe(stopped.set)
            thread.join(20)
            assert not thread.is_alive(), "the worker did not end"
            loop.close()


async def add(folder: Path, base: str, who: str, **texts: str) -> None:
    """A knowledge base of somebody's, with these texts."""
    with opened(folder) as workspace:
        own = workspace.for_principal(Principal(who))
        own.embedder = workspace.embedder
        files = [SourceFile(uri=f"{base}/{name}", name=name, data=words.encode()) for name, words in texts.items()]
        await own.documents.add_sources(files, base, reader=Plain())


def script(**other: Any) -> Script:
    """One look-up and one claim, as often as it is asked for."""
    lines: dict[str, Any] = {
        "route": lookup(),
        "weigh": keeps(ANSWER),
        "judge": enough(),
        "write": writes("The tower at Carrow Point is 31 metres tall [{31 metres}]."),
        "check": supported(),
    }
    return Script(**lines | other)


def slow(seconds: float, **other: Any) -> Callable[[dict[str, Any]], Awaitable[Any]]:
    """The same from a model that takes its time: what a `ChatServer` takes."""
    own = script(**other)

    async def answer(request: dict[str, Any]) -> Any:
        if role_of(request)[0]:  # what the endpoint can do, it says at once
            await asyncio.sleep(seconds)
        return own.answer(request)

    return answer


@dataclass(frozen=True, slots=True)
class Sent:
    """One server-sent event."""

    event: str
    data: Any
    id: str = ""


def sent(lines: Iterable[str]) -> Iterator[Sent]:
    """Server-sent events out of the lines they come in; comments are passed over."""
    fields: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        if not line and "data" in fields:
            yield Sent(fields.get("event", "message"), json.loads(fields["data"]), fields.get("id", ""))
        if not line:
            fields = {}
        elif name:
            fields[name] = value.removeprefix(" ")


UNSAID = frozenset({"Claimed", "Drafted", "Checked", "Revised"})  # whose words come only once they are delivered


def recorded(events: Iterable[Sent]) -> list[Sent]:
    """Events of a stream that are recorded, and its end, whether they were read before delivery or after it: without the
    words that are hidden until then, and without `statements`, which say how far the answer is."""
    kept = []
    for each in events:
        if each.event == "statements":
            continue
        data = dict(each.data)
        if each.event in UNSAID:
            data = {key: data[key] for key in ("seq", "kind", "title", "family", "at")}
        elif each.event == "ModelReplied":
            data["line"], data["event"] = "", data["event"] | {"text": "", "calls": []}
        kept.append(Sent(each.event, data, each.id))
    return kept


def followed(client: httpx.Client, run: str, after: int | None = None, last: str = "") -> list[Sent]:
    """A run's stream to its end; `last` is the id that a browser gives when it comes back."""
    query = {} if after is None else {"after": after}
    headers = {"Last-Event-ID": last} if last else {}
    with client.stream("GET", f"/api/runs/{run}/events", params=query, headers=headers) as reply:
        assert reply.status_code == 200, reply.read()
        return list(sent(reply.iter_lines()))
