"""The stream of a run is its record: every event once, in order, whoever reads it, from wherever, at whatever pace."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from doubles import ChatServer
from doubles.held_stream import HeldReply
from serving import QUESTION, Sent, Served, followed, recorded, sent, served, slow, until
from sqlalchemy import delete

from assay.serve import run_registry, stream
from assay.serve.live import LiveRuns
from assay.serve.run_registry import EventFrame
from assay.serve.stream import sse
from assay.store.runs import visibility
from assay.store.schema import payloads

Serve = Callable[..., AbstractContextManager[Served]]


def asked(client: httpx.Client, **wish: Any) -> str:
    reply = client.post("/api/runs", json={"question": QUESTION, **wish})
    assert reply.status_code == 201, reply.text
    return reply.json()["run"]


def numbers(events: list[Sent]) -> list[int]:
    return [int(each.id) for each in events if each.id]


def told(frames: list[Sent]) -> list[tuple[str, str]]:
    """The events of a stream. Their words may be there after delivery alone."""
    return [(each.event, each.id) for each in frames if each.event != "statements"]


def test_the_stream_is_the_record_and_ends_with_how_the_run_ended(serve: Serve):
    with ChatServer(slow(0.01)) as model, serve(model) as at, at.client() as client:
        run = asked(client)
        live = [each for each in followed(client, run) if each.event != "statements"]
        recorded = client.get(f"/api/runs/{run}/trace").json()
        assert [each.data for each in followed(client, run)[:-1]] == recorded["events"]
        assert numbers(live) == [record["seq"] for record in recorded["chain"]]
        assert [each.event for each in live[:-1]] == [record["kind"] for record in recorded["chain"]]
        assert live[-1] == Sent("end", {"state": "delivered"})
        assert client.get(f"/api/runs/{run}/events?format=json").json() == {"events": recorded["events"]}
        assert recorded["faults"] == []


def test_the_stream_says_that_nobody_may_keep_it_back(serve: Serve):
    with serve() as at, at.client() as client:
        run = asked(client)
        with client.stream("GET", f"/api/runs/{run}/events") as reply:
            assert reply.headers["content-type"].startswith("text/event-stream")
            assert reply.headers["cache-control"] == "no-store"
            assert reply.headers["x-accel-buffering"] == "no"
            assert next(reply.iter_lines()).startswith("retry: ")


def test_who_comes_back_at_any_event_gets_the_rest_once(serve: Serve):
    with serve() as at, at.client() as client:
        run = asked(client)
        whole = followed(client, run)
        for place in range(len(whole) - 1):
            rest = whole[place + 1 :]
            assert followed(client, run, last=str(place)) == rest
            assert followed(client, run, after=place) == rest
        assert followed(client, run, last="not a number") == whole
        assert followed(client, run, after=2, last="4") == whole[5:]  # what came last is the later word


def test_a_reader_who_is_cut_off_again_and_again_misses_nothing_of_a_run_under_way(serve: Serve):
    with ChatServer(slow(0.02)) as model, serve(model) as at, at.client() as client:
        run = asked(client)
        pieces: list[Sent] = []
        while not pieces or pieces[-1].event != "end":
            headers = {"Last-Event-ID": pieces[-1].id} if pieces else {}
            with client.stream("GET", f"/api/runs/{run}/events", headers=headers) as reply:
                pieces.append(next(sent(reply.iter_lines())))  # one event, and the connection is gone
        assert told(pieces) == told(followed(client, run))


def test_who_comes_late_to_a_run_under_way_sees_all_of_it_though_little_is_at_hand(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(run_registry, "BUFFERED_FRAMES", 2)
    model = ChatServer(slow(30))
    with model, serve(model) as at, at.client() as client:
        run = asked(client)
        client.post(f"/api/runs/{run}/cancel")  # what came before is not in memory any more
        model.answer = slow(0.2)
        client.post(f"/api/runs/{run}/resume")
        with client.stream("GET", f"/api/runs/{run}/events", params={"after": 1}):  # somebody watches already
            until(lambda: at.server.runs.active[run].frames)
            late = told(followed(client, run))
        assert [int(id) for _, id in late[:-1]] == list(range(len(late) - 1))
        assert late == told(followed(client, run))


@pytest.mark.long
def test_thirty_readers_of_one_run_see_the_same_though_one_is_slow(serve: Serve):
    with ChatServer(slow(0.02)) as model, serve(model) as at, at.client() as client:
        run = asked(client)
        seen: dict[int, list[Sent]] = {}

        def read(number: int) -> None:
            with at.client() as own, own.stream("GET", f"/api/runs/{run}/events") as reply:
                events = []
                for each in sent(reply.iter_lines()):
                    time.sleep(0.05 if number == 0 else 0.0)
                    events.append(each)
            seen[number] = events

        readers = [threading.Thread(target=read, args=(number,)) for number in range(30)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(30)
        whole = followed(client, run)
        assert len(whole) > 8
        assert [recorded(seen.get(number, [])) for number in range(30)] == [recorded(whole)] * 30
        assert at.server.runs.watchers.waiting == {}


@pytest.mark.long
def test_nothing_is_kept_for_a_reader_who_does_not_read(serve: Serve, monkeypatch: pytest.MonkeyPatch):
    """A long record and a reader who takes the first bytes and no more: the server stops reading for them, too."""
    reads: list[int] = []
    body = json.dumps({"words": "x" * 20_000})

    def behind(workspace: Any, run_id: str, after: int, most: int) -> list[EventFrame]:
        reads.append(after)
        return [EventFrame(seq, "ToolRan", body) for seq in range(after + 1, min(after + 11, 5000))]

    with serve() as at, at.client() as client:
        run = asked(client)
        followed(client, run)
        monkeypatch.setattr(stream, "stored_frames", behind)
        with socket.socket() as raw:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            raw.connect(("127.0.0.1", urlsplit(at.url).port or 0))
            raw.sendall(f"GET /api/runs/{run}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            assert raw.recv(100)
            until(lambda: reads)
            time.sleep(0.5)
            filled = len(reads)
            time.sleep(0.5)
            assert len(reads) == filled, "the server reads on for somebody who does not"
            assert filled * 10 * len(body) < 20_000_000  # what the kernel's own buffers hold, and not 100 MB
            assert client.get("/health").status_code == 200
        until(lambda: at.server.runs.watchers.waiting == {})


def test_a_watcher_who_leaves_does_not_stop_the_run(serve: Serve):
    with ChatServer(slow(0.1)) as model, serve(model) as at, at.client() as client:
        run = asked(client)
        with client.stream("GET", f"/api/runs/{run}/events") as reply:
            next(sent(reply.iter_lines()))
        until(lambda: client.get(f"/api/runs/{run}").json()["state"] == "delivered")
        assert at.server.runs.watchers.waiting == {}


def test_a_silent_run_gives_signs_of_life(serve: Serve, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stream, "SILENCE", 0.05)
    held = HeldReply(slow(0.0), "write")
    with ChatServer(held) as model, serve(model) as at, at.client() as client:
        run = asked(client)
        with client.stream("GET", f"/api/runs/{run}/events") as reply:
            assert any(line.startswith(":") for line in reply.iter_lines())
            held.released.set()


@pytest.mark.long
def test_a_stream_goes_on_at_another_server_where_the_first_one_left_off(folder: Path):
    with ChatServer(slow(0.3)) as model:
        with served(folder, model, grace=0.0) as at, at.client() as client:
            run = asked(client)
            with client.stream("GET", f"/api/runs/{run}/events") as reply:
                events = sent(reply.iter_lines())
                first = [next(events)]
                at.process.should_exit = True
                first += list(events)
        assert first.pop() == Sent("parked", {})
        with served(folder, model) as at, at.client() as client:
            rest = followed(client, run, last=first[-1].id)
            assert rest[-1] == Sent("end", {"state": "delivered"})
            assert recorded(first + rest) == recorded(followed(client, run))
            assert numbers(first + rest) == list(range(len(recorded(first + rest)) - 1))


@pytest.mark.long
def test_who_comes_back_before_a_run_is_taken_up_again_is_not_told_that_it_rests(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    with ChatServer(slow(0.3)) as model:
        with served(folder, model, grace=0.0) as at, at.client() as client:
            run, other = asked(client), asked(client)
        taken_up, go_on = LiveRuns.take_up, threading.Event()

        async def late(self: LiveRuns, *given: Any) -> int:
            await asyncio.to_thread(go_on.wait, 30)
            return await taken_up(self, *given)

        monkeypatch.setattr(LiveRuns, "take_up", late)
        with served(folder, model) as at, at.client() as client:
            assert client.get(f"/api/runs/{run}").json()["state"] == "running"
            assert client.post(f"/api/runs/{other}/cancel").json()["state"] == "cancelled"
            go_on.set()
            assert followed(client, run)[-1].data == {"state": "delivered"}
            assert followed(client, other)[-1].data == {"state": "cancelled"}


def test_there_is_no_stream_of_a_run_that_is_not_there(serve: Serve):
    with serve() as at, at.client() as client:
        reply = client.get("/api/runs/r0/events", params={"after": 7})
        assert reply.status_code == 404
        assert reply.json()["error"] == "missing"


def test_an_event_that_was_erased_with_a_document_keeps_its_place_in_the_stream(serve: Serve):
    with serve() as at, at.client() as client:
        run = asked(client)
        whole = followed(client, run)
        with at.server.workspace.store.write() as connection:
            connection.execute(delete(payloads).where(payloads.c.run == run, payloads.c.seq.in_((3, 4))))
        again = followed(client, run)
        assert [each.id for each in again] == [each.id for each in whole]
        assert [each.data["line"] for each in again[3:5]] == [visibility.WITHHELD_REASON] * 2
        assert again[3].data["event"] == {} and again[5:] == whole[5:]


def test_a_stream_that_breaks_down_half_way_is_in_the_log(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def breaks(*_: object) -> None:
        raise ValueError("broken")

    with serve() as at, at.client() as client:
        run = asked(client)
        followed(client, run)
        monkeypatch.setattr(stream.RunFollower, "summary", breaks)
        with pytest.raises(httpx.RemoteProtocolError):
            followed(client, run)
    assert "a request broke down" in caplog.text


def test_nothing_in_an_event_can_end_it_early():
    words = "a\n\nevent: end\ndata: {}\r\n\x85b\u2028c\u2029"
    written = sse("Asked", json.dumps({"words": words}, ensure_ascii=False), 3)
    assert list(sent(written.splitlines())) == [Sent("Asked", {"words": words}, "3")]
    assert len(written.splitlines()) == 4
