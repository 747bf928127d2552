"""The loop that serves people waits for nothing: while every operation is asked, no store, no file and no long computation is
touched on its thread. What is measured is whose thread did it and how much of the processor it took, so that a busy machine
changes nothing."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fastapi import APIRouter
from furnished import Real, destroys, furnished, made, operations
from serving import QUESTION, Served, until

from assay.serve import app as whole
from assay.serve.state import CurrentWorkspace

LONGEST = 0.25  # seconds of the processor that one step on the loop may take
TOUCHES = frozenset(
    {"open", "os.listdir", "os.scandir", "sqlite3.connect", "subprocess.Popen", "time.sleep", "shutil.rmtree"}
)

BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/api/bases"): {"json": {"name": "another"}},
    ("POST", "/api/offers/{base}"): {"json": {"accept": True}},
    ("PATCH", "/api/bases/{name}"): {"json": {"description": "Another."}},
    ("PATCH", "/api/threads/{thread}"): {"json": {"title": "Another"}},
    ("POST", "/api/bases/{name}/documents"): {"files": {"files": ("new.txt", b"Something new.")}},
    ("POST", "/api/search"): {"json": {"query": "tower"}},
    ("POST", "/api/runs"): {"json": {"question": QUESTION}},
    ("POST", "/api/ask"): {"json": {"question": QUESTION}},
    ("POST", "/v1/chat/completions"): {
        "json": {"model": "assay", "messages": [{"role": "user", "content": QUESTION}], "stream": True}
    },
    ("POST", "/api/synthesis/forecast"): {"json": {}},
    ("GET", "/api/documents/{document}/boxes"): {"params": {"start": 0, "end": 40}},
}


@dataclass
class Watch:
    """What was done on one thread while it is watched."""

    thread: int = 0
    found: list[str] = field(default_factory=list)

    def touched(self, what: str) -> None:
        if threading.get_ident() != self.thread:
            return
        places, frame = [], sys._getframe()
        while frame is not None:
            places.append((frame.f_code.co_filename, frame.f_lineno))
            frame = frame.f_back
        if not any("importlib" in file for file, _ in places):  # loaded once, at its first use
            own = [f"{Path(file).name}:{line}" for file, line in places if "assay" in file]
            self.found.append(f"{what} at {' < '.join(own[:3])}")

    def audited(self, event: str, arguments: tuple[Any, ...]) -> None:
        source = event == "open" and str(arguments[0]).endswith(
            ".py"
        )  # FastAPI looks at a route once, at its first use
        if self.thread and event in TOUCHES and not source:
            self.touched(f"{event} {arguments[:1]}")


WATCH = Watch()


@pytest.fixture(scope="module", autouse=True)
def _hook() -> None:
    sys.addaudithook(WATCH.audited)  # stays for good; it looks only while a thread is watched


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Real]]:
    """A server with two routes that do what none may do, and everything loaded that is loaded at its first use."""
    wrong = APIRouter()

    @wrong.get("/api/wrong/store", include_in_schema=False)
    async def reads_the_store(mine: CurrentWorkspace) -> int:
        return len(mine.scope().bases)

    @wrong.get("/api/wrong/work", include_in_schema=False)
    async def works() -> int:
        end = time.thread_time() + 2 * LONGEST
        return sum(1 for _ in iter(lambda: time.thread_time() < end, False))

    routers = whole.ROUTERS
    whole.ROUTERS = (*routers, wrong)  # pyright: ignore[reportAttributeAccessIssue]
    try:
        with furnished(tmp_path_factory.mktemp("unblocked") / "workspace") as (at, real):
            yield at, real
    finally:
        whole.ROUTERS = routers


@pytest.fixture
def watch(own: tuple[Served, Real], monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    store = own[0].server.workspace.store
    for name in ("read", "write"):
        monkeypatch.setattr(type(store), name, noted(getattr(type(store), name)))
    step = asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        began = time.thread_time()
        step(handle)
        took = time.thread_time() - began
        if took > LONGEST and threading.get_ident() == WATCH.thread:
            WATCH.found.append(f"{took:.2f} s of work in {handle!r}")

    monkeypatch.setattr(asyncio.Handle, "_run", timed)
    thread: list[int] = []
    serving = own[0].server.runs.watchers.loop
    assert serving is not None
    serving.call_soon_threadsafe(lambda: thread.append(threading.get_ident()))
    while not thread:
        time.sleep(0.01)
    WATCH.found, WATCH.thread = [], thread[0]
    yield WATCH
    WATCH.thread = 0


def noted(method: Callable[..., Any]) -> Callable[..., Any]:
    def called(store: Any, *given: Any) -> Any:
        WATCH.touched("the store")
        return method(store, *given)

    return called


@pytest.mark.long
def test_no_operation_holds_up_the_loop(own: tuple[Served, Real], watch: Watch):
    at, real = own
    asked, held = 0, {}
    with at.client() as client:
        document = made(client.get("/openapi.json"))
        listed = sorted(operations(document), key=lambda each: destroys(each[0], each[1]))
        for method, path, _ in [*listed, ("GET", "/", {}), ("GET", "/static/app.js", {}), ("POST", "/mcp", {})]:
            reply = client.request(method, real.path(path), **BODIES.get((method, path), {}))
            assert reply.status_code < 500, (method, path, reply.text)
            asked += 1
            if watch.found:
                held[f"{method} {path}"], watch.found = watch.found, []
    assert held == {}
    assert asked > 45


@pytest.mark.long
def test_a_route_that_reads_the_store_on_the_loop_is_seen(own: tuple[Served, Real], watch: Watch):
    with own[0].client() as client:
        assert client.get("/api/wrong/store").status_code == 200
    assert any("the store" in each for each in watch.found)


def test_a_route_that_works_on_the_loop_is_seen(own: tuple[Served, Real], watch: Watch):
    with own[0].client() as client:
        assert client.get("/api/wrong/work").status_code == 200
    until(lambda: any("of work" in each for each in watch.found))  # told when the step ends, which is after the reply


@pytest.mark.long
def test_a_long_conversation_of_follow_ups_does_not_hold_up_the_loop(own: tuple[Served, Real], watch: Watch):
    messages = [{"role": "user", "content": "and that " * 220}] * 40 + [{"role": "user", "content": QUESTION}]
    with own[0].client() as client:
        reply = client.post("/v1/chat/completions", json={"model": "assay-quick", "messages": messages})
        assert reply.status_code == 200, reply.text
    assert watch.found == []
