"""Files that were sent: safe once that is acknowledged, read whoever leaves, carried on after a restart, stopped at a word."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from sending import job, listed, pdf, read, send
from serving import Served, served, until
from sqlalchemy import update
from starlette.exceptions import HTTPException
from team import team

from assay.core.access import LOCAL, Principal
from assay.core.errors import StoreError
from assay.ingest.parsed import Parsed
from assay.serve import upload_files, upload_worker
from assay.serve.limits import ServerLimits, UploadRoom
from assay.serve.live import LiveRuns
from assay.serve.upload_worker import JobStopped, RunningJob, StoppableReader
from assay.store import jobs
from assay.store.access import grants
from assay.store.database import Store
from assay.store.jobs import JobFile
from assay.store.schema import bases
from assay.workspace.context import OnStore
from assay.workspace.facade import open_workspace
from assay.workspace.services.documents import Documents
from assay.workspace.services.serving import Jobs

REAL = StoppableReader.read


@pytest.fixture
def at(folder: Path) -> Iterator[Served]:
    with served(folder, file_max_megabytes=1) as there:
        yield there


class Gate:
    """Files whose name holds `slow` are not read before it is opened: by then their job has had its turn."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.shut, self.waiting = True, set[str]()
        gate = self

        async def read(self: StoppableReader, data: Path | bytes, name: str) -> Any:
            gate.waiting.add(name)
            if "slow" in name and gate.shut:
                self.work.began -= upload_worker.TURN
            while "slow" in name and gate.shut:
                if self.work.stop.is_set():
                    raise JobStopped
                await asyncio.sleep(0.01)
            return await REAL(self, data, name)

        monkeypatch.setattr(StoppableReader, "read", read)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    return Gate(monkeypatch)


def waiting_in(there: Served) -> list[str]:
    return sorted(each.name for each in there.server.worker.uploads.folder.glob("*/*"))


def test_a_job_tells_of_every_file_and_tidies_up(client: httpx.Client, at: Served):
    done = read(client, [("a.pdf", pdf(["About ships."])), ("bad.pdf", b"nope"), ("fold/b.txt", b"About lamps.")])
    told = [(each["name"], each["outcome"], each["status"]) for each in done["reports"]]
    assert told == [("a.pdf", "added", "read"), ("bad.pdf", "failed", "corrupt"), ("fold/b.txt", "added", "read")]
    assert (done["state"], done["files"], done["done"], done["error"], done["left"]) == ("done", 3, 3, "", 0.0)
    assert client.get("/api/jobs").json()[0] == done
    assert waiting_in(at) == []


def test_what_is_acknowledged_is_on_disk_and_written_down(client: httpx.Client, at: Served, gate: Gate):
    sent = send(client, [("slow.txt", b"The words themselves.")]).json()
    place = at.server.worker.uploads.folder / sent["id"] / "0"
    assert place.read_bytes() == b"The words themselves."
    assert sent["id"] in jobs.going(at.server.workspace.store)
    gate.shut = False
    until(lambda: job(client, sent["id"])["state"] == "done")
    until(lambda: not place.parent.exists())  # a moment after it is done


@pytest.mark.long
def test_a_file_that_is_too_large_is_refused_and_stops_no_other(client: httpx.Client):
    done = read(client, [("big.txt", b"x" * 1_000_001), ("small.txt", b"A small note."), ("full.txt", b"y " * 500_000)])
    big, small, full = done["reports"]
    assert (big["outcome"], big["status"], big["bytes"]) == ("failed", "too_large", 1_000_001)
    assert "more than the limit of 1,000,000" in big["why"]
    assert (small["outcome"], full["outcome"]) == ("added", "added")
    assert listed(client, q="big.txt") == []


def test_a_stream_of_a_job_ends_with_it(client: httpx.Client, gate: Gate):
    name = send(client, [("a.txt", b"First."), ("slow.txt", b"Second.")]).json()["id"]
    seen: list[dict[str, Any]] = []
    with client.stream("GET", f"/api/jobs/{name}/events") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        for line in stream.iter_lines():
            if line.startswith("data:"):
                seen.append(json.loads(line[5:]))
                gate.shut = False
    assert seen[0]["state"] in {"waiting", "running"}
    assert (seen[-2]["state"], seen[-2]["done"]) == ("done", 2)
    assert seen[-1] == {"state": "done"}


@pytest.mark.long
def test_a_long_job_is_not_written_down_with_every_passage(
    client: httpx.Client, at: Served, monkeypatch: pytest.MonkeyPatch
):
    written: list[float] = []
    real = jobs.note
    note = OnStore(lambda *given: (written.append(time.monotonic()), real(*given)))
    monkeypatch.setattr(Jobs, "note", note, raising=False)
    began = time.monotonic()
    read(client, [(f"{number}.txt", f"Note {number}.".encode()) for number in range(60)])
    assert len(written) <= (time.monotonic() - began) / 0.4 + 2


@pytest.mark.long
def test_a_job_that_is_called_off_keeps_what_can_be_found_and_leaves_the_rest(
    client: httpx.Client, at: Served, gate: Gate
):
    files = [("a.txt", b"Words of the first file."), ("slow.txt", b"Never read."), ("c.txt", b"Nor this.")]
    name = send(client, files).json()["id"]
    until(lambda: job(client, name)["done"] == 1)
    ended = client.post(f"/api/jobs/{name}/cancel").json()
    assert (ended["state"], ended["done"]) == ("cancelled", 1)
    assert [each["outcome"] for each in ended["reports"]] == ["added", "", ""]
    assert {each["name"] for each in listed(client) if each["uri"].startswith("upload:")} == {"a.txt"}
    assert (waiting_in(at), gate.waiting) == ([], {"a.txt", "slow.txt"})
    assert client.post(f"/api/jobs/{name}/cancel").json() == ended


@pytest.mark.long
def test_a_job_that_is_called_off_while_it_embeds_ends_at_once_and_the_earlier_version_stays(
    client: httpx.Client, at: Served, monkeypatch: pytest.MonkeyPatch
):
    read(client, [("book.txt", b"The first edition.")])
    embedder = at.server.workspace.embedder
    real = type(embedder).passages

    async def forever(self: Any, texts: list[str]) -> Any:
        if any("second" in text for text in texts):
            await asyncio.sleep(3600)
        return await real(self, texts)

    monkeypatch.setattr(type(embedder), "passages", forever)
    name = send(client, [("book.txt", b"The second edition.")]).json()["id"]
    until(lambda: len(listed(client, state="pending")) == 1)
    assert client.post(f"/api/jobs/{name}/cancel").json()["state"] == "cancelled"
    assert listed(client, state="pending") == []
    [book] = listed(client, q="book.txt")
    assert client.get(f"/api/documents/{book['id']}/text").json()["text"] == "The first edition."
    assert read(client, [("more.txt", b"More of it.")])["state"] == "done"


@pytest.mark.long
def test_a_job_goes_on_after_a_restart_with_what_was_left(folder: Path, gate: Gate):
    with served(folder) as at, at.client() as client:
        name = send(client, [("a.txt", b"Read before."), ("slow.txt", b"Read after.")]).json()["id"]
        until(lambda: job(client, name)["done"] == 1)
    gate.shut = False
    with served(folder) as at, at.client() as client:
        until(lambda: job(client, name)["state"] == "done")
        assert [each["outcome"] for each in job(client, name)["reports"]] == ["added", "added"]
        assert {each["name"] for each in listed(client, q=".txt", state="ready")} >= {"a.txt", "slow.txt"}
        assert waiting_in(at) == []


def test_a_job_whose_process_was_killed_is_done_by_the_next_one(folder: Path):
    with open_workspace(folder) as opened:
        place = opened.path / "uploads" / "j1"
        place.mkdir(parents=True)
        (place / "0").write_bytes(b"Sent before the power went.")
        jobs.begin(opened.store, "j1", LOCAL, "default", [JobFile(0, "note.txt", 27)])
        jobs.start(opened.store, "j1")
        stray = opened.path / "uploads" / "j2"  # killed while the files arrived
        stray.mkdir()
        (stray / "0").write_bytes(b"half of a")
    with served(folder) as at, at.client() as client:
        until(lambda: job(client, "j1")["state"] == "done")
        assert listed(client, q="note.txt")[0]["state"] == "ready"
        until(lambda: not stray.exists())


def test_a_disk_that_is_full_leaves_nothing_behind(client: httpx.Client, at: Served, monkeypatch: pytest.MonkeyPatch):
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(upload_files.os, "fsync", full)
    reply = send(client, [("a.txt", b"words")])
    assert (reply.status_code, reply.json()["error"]) == (507, "full")
    assert "disk is full" in reply.json()["detail"]
    assert client.get("/api/jobs").json() == []
    assert list(at.server.worker.uploads.folder.iterdir()) == []


def test_an_upload_that_is_cut_off_leaves_nothing_behind(client: httpx.Client, at: Served):
    host, port = at.url.removeprefix("http://").split(":")
    body = b'--b\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n\r\nhalf of the words'
    with socket.create_connection((host, int(port))) as line:
        line.sendall(
            f"POST /api/bases/default/documents HTTP/1.1\r\nHost: {host}\r\nContent-Length: 100000\r\n"
            "Content-Type: multipart/form-data; boundary=b\r\n\r\n".encode()
            + body
        )
        until(lambda: any(at.server.worker.uploads.folder.glob("*")))
    until(lambda: not any(at.server.worker.uploads.folder.glob("*")))
    assert client.get("/api/jobs").json() == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", b"{}"),
        ("multipart/form-data", b""),
        ("multipart/form-data; boundary=b", b""),
        ("multipart/form-data; boundary=b", b"--b--\r\n"),
        ("multipart/form-data; boundary=b", b"no form at all"),
        (
            "multipart/form-data; boundary=b",
            b'--b\r\nContent-Disposition: form-data; name="files"\r\n\r\nx\r\n--b--\r\n',
        ),
        (
            "multipart/form-data; boundary=b",
            b'--b\r\nContent-Disposition: form-data; name="files"; filename="a"\r\n\r\nx',
        ),
    ],
)
def test_what_is_no_form_with_files_is_refused_and_not_kept(kind: str, body: bytes, client: httpx.Client, at: Served):
    reply = client.post("/api/bases/default/documents", content=body, headers={"Content-Type": kind})
    assert (reply.status_code, set(reply.json())) == (422, {"error", "detail"})
    assert list(at.server.worker.uploads.folder.iterdir()) == []


@pytest.mark.long
def test_jobs_of_one_person_wait_for_each_other(client: httpx.Client, gate: Gate):
    client.post("/api/bases", json={"name": "two"})
    sent = [send(client, [("slow.txt", b"words")], base).json()["id"] for base in ("default", "default", "two")]
    until(lambda: len(gate.waiting) == 1)
    time.sleep(0.3)
    assert [job(client, each)["state"] for each in sent] == ["running", "waiting", "waiting"]
    gate.shut = False
    until(lambda: {job(client, each)["state"] for each in sent} == {"done"})


@pytest.mark.long
def test_the_uploads_of_one_person_do_not_stop_those_of_another(folder: Path, gate: Gate):
    with team(folder) as tool_context, tool_context.as_("editor") as editor, tool_context.as_("reader") as reader:
        heavy: list[str] = []
        for base in ("one", "two", "three", "four"):
            editor.post("/api/bases", json={"name": base})
            heavy.append(send(editor, [("slow.txt", b"words")], base).json()["id"])
        assert read(reader, [("note.txt", b"The lamp was lit at dusk.")])["state"] == "done"
        assert [job(editor, each)["state"] for each in heavy] == ["running", "waiting", "waiting", "waiting"]
        gate.shut = False
        until(lambda: {job(editor, each)["state"] for each in heavy} == {"done"})


@pytest.mark.long
def test_where_all_places_are_taken_people_take_turns(folder: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(upload_worker, "JOBS_AT_ONCE", 1)
    with team(folder) as tool_context, tool_context.as_("editor") as editor, tool_context.as_("reader") as reader:
        heavy = send(editor, [("a.txt", b"Words of the first file."), ("slow.txt", b"Read later.")]).json()["id"]
        until(lambda: job(editor, heavy)["done"] == 1)
        assert read(reader, [("note.txt", b"The lamp was lit at dusk.")])["state"] == "done"
        assert (job(editor, heavy)["done"], job(editor, heavy)["state"]) != (2, "done")
        gate.shut = False
        until(lambda: job(editor, heavy)["state"] == "done")
        assert [each["outcome"] for each in job(editor, heavy)["reports"]] == ["added", "added"]


async def test_a_job_is_parked_between_two_files_and_not_within_one():
    class Reads:
        async def read(self, data: Path | bytes, name: str) -> Parsed:
            work.parked = True  # while it is read
            await asyncio.sleep(0)
            return Parsed("text", "text")

    work = RunningJob(cast(Any, None), "base")
    reader = StoppableReader(Reads(), work)
    assert await reader.read(b"", "first.txt") == Parsed("text", "text")
    with pytest.raises(JobStopped):
        await reader.read(b"", "second.txt")
    assert work.stop.is_set()


def test_who_has_used_up_the_room_is_told_and_nothing_is_kept(folder: Path, monkeypatch: pytest.MonkeyPatch):
    words = b"The lamp was lit at dusk." + b" " * 600_000
    with served(folder, serve_megabytes_per_person=1) as at, at.client() as client:
        assert read(client, [("one.txt", words)])["state"] == "done"
        reply = send(client, [("two.txt", words)])
        assert reply.status_code == 413 and "of 1 MB are used" in reply.json()["detail"]
        assert list(at.server.worker.uploads.folder.iterdir()) == [] and at.server.limits.uploads == {}
        [one] = listed(client, q="one.txt")
        assert client.delete(f"/api/documents/{one['id']}").status_code == 200
        assert read(client, [("two.txt", words)])["state"] == "done"
        monkeypatch.setattr(Documents, "bytes_owned", OnStore(lambda store, owner: 1_000_000), raising=False)
        reply = send(client, [("tiny.txt", b"One more.")])
        assert reply.status_code == 507 and "Remove documents" in reply.json()["detail"]
        assert at.server.limits.uploads == {}


def test_uploads_that_arrive_together_share_the_room():
    limits = ServerLimits()
    first, second = (UploadRoom(limits, "ann", most=100, used=20) for _ in range(2))
    with second:
        with first:
            first.take(50)
            with pytest.raises(HTTPException):
                second.take(40)
        with pytest.raises(HTTPException):
            second.take(40)  # what the first one brought is stored now
        second.take(30)
    assert limits.uploads == {}


def test_an_upload_of_very_many_files_is_refused_and_leaves_nothing_behind(
    client: httpx.Client, at: Served, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(upload_files, "MAX_FILES", 50)
    reply = send(client, [(f"{number}.txt", b"words") for number in range(51)])
    assert reply.status_code == 422 and "more than 50 files" in reply.json()["detail"]
    assert list(at.server.worker.uploads.folder.iterdir()) == []
    assert client.get("/api/jobs").json() == []


def test_a_job_that_waits_can_be_called_off_before_it_begins(client: httpx.Client, at: Served, gate: Gate):
    first = send(client, [("slow.txt", b"words")]).json()["id"]
    second = send(client, [("other.txt", b"words")]).json()["id"]
    assert client.post(f"/api/jobs/{second}/cancel").json()["state"] == "cancelled"
    assert not (at.server.worker.uploads.folder / second).exists()
    gate.shut = False
    until(lambda: job(client, first)["state"] == "done")
    assert listed(client, q="other.txt") == []


def test_a_job_is_done_with_the_rights_that_its_person_has_by_then(folder: Path, gate: Gate):
    with team(folder) as tool_context:
        server = tool_context.at.server
        with tool_context.as_("editor") as editor:
            first = send(editor, [("slow.txt", b"words")]).json()["id"]
            second = send(editor, [("later.txt", b"words")]).json()["id"]
            base = server.workspace.for_principal(Principal("editor")).scope().named("default")
            with server.workspace.store.write() as connection:
                connection.execute(update(bases).where(bases.c.id == base.id).values(owner="reader"))
            gate.shut = False
            until(lambda: job(editor, second)["state"] == "failed")
            assert job(editor, second)["error"] == "The knowledge base 'default' is not yours to change."
            assert job(editor, first)["state"] == "done"
            with tool_context.as_("reader") as reader:
                grants.share(server.workspace.store, base, "user:reader")
                assert listed(reader, q="later.txt") == []
                assert reader.get(f"/api/jobs/{first}").status_code == 404
                assert reader.get(f"/api/jobs/{first}/events").status_code == 404
                assert reader.post(f"/api/jobs/{first}/cancel").status_code == 404
                assert reader.get("/api/jobs").json() == []


def test_a_base_that_is_gone_by_then_is_not_made_again(client: httpx.Client, at: Served, gate: Gate):
    for base in ("one", "two", "gone"):
        client.post("/api/bases", json={"name": base})
    for base in ("one", "two"):
        send(client, [("slow.txt", b"words")], base)
    name = send(client, [("a.txt", b"words")], "gone").json()["id"]
    asyncio.run(at.server.workspace.records.erase_base("gone"))  # as a command beside the server does
    gate.shut = False
    until(lambda: job(client, name)["state"] == "failed")
    assert job(client, name)["error"].startswith("There is no knowledge base called 'gone'.")
    assert client.get("/api/bases/gone").status_code == 404


@pytest.mark.long
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(errno.ENOSPC, "full"), upload_worker.FULL),
        (ValueError("secret words of a document"), upload_worker.BROKEN),
    ],
)
def test_what_goes_wrong_is_told_in_the_job_and_the_next_one_is_done(
    error: Exception, told: str, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
):
    async def breaks(self: StoppableReader, data: Path | bytes, name: str) -> Parsed:
        if name == "breaks.txt":
            raise error
        return await REAL(self, data, name)  # pyright: ignore[reportReturnType]

    monkeypatch.setattr(StoppableReader, "read", breaks)
    assert (lambda done: (done["state"], done["error"]))(read(client, [("breaks.txt", b"x")])) == ("failed", told)
    assert read(client, [("fine.txt", b"Words that can be read.")])["state"] == "done"


@pytest.mark.long
def test_a_job_that_cannot_be_written_down_is_tried_again_after_a_while_and_not_at_once(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
):
    tries, start = [], jobs.start

    def full(store: Store, name: str, process: str) -> bool:
        tries.append(name)
        if len(tries) < 3:
            raise StoreError("The disk is full.")
        return start(store, name, process)

    monkeypatch.setattr(upload_worker, "PAUSE", 0.5)
    monkeypatch.setattr(Jobs, "start", OnStore(full), raising=False)
    began = time.monotonic()
    assert read(client, [("a.txt", b"About lamps.")])["state"] == "done"
    assert time.monotonic() - began > 1.0 and len(tries) == 3


def test_a_server_closes_though_a_job_cannot_be_written_down(folder: Path, monkeypatch: pytest.MonkeyPatch):
    tries = []

    def full(store: Store, name: str, process: str) -> bool:
        tries.append(name)
        raise StoreError("The disk is full.")

    monkeypatch.setattr(Jobs, "start", OnStore(full), raising=False)
    with served(folder) as there, there.client() as client:
        send(client, [("a.txt", b"About lamps.")])
        until(lambda: tries)
    assert len(tries) == 1


def test_files_are_read_though_the_runs_of_an_earlier_server_cannot_be_taken_up(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    async def breaks(*_: object) -> int:
        raise RuntimeError("broken")

    monkeypatch.setattr(LiveRuns, "take_up", breaks)
    with served(folder) as there, there.client() as client:
        assert read(client, [("a.txt", b"About lamps.")])["state"] == "done"


def test_a_form_is_written_piece_by_piece_however_it_is_cut(tmp_path: Path):
    body = (
        b'--b\r\nContent-Disposition: form-data; name="note"\r\n\r\npassed over\r\n'
        b'--b\r\nContent-Disposition: form-data; name="files"; filename="a/\xc3\xa4.txt"\r\n'
        b"Content-Type: text/plain\r\n\r\none\r\n--bx\r\n\r\n"
        b'--b\r\nContent-Disposition: form-data; name="files"; filename=""\r\n\r\n\r\n'
        b'--b\r\nContent-Disposition: form-data; name="files"; filename="large"\r\n\r\n' + b"z" * 50 + b"\r\n--b--\r\n"
    )

    def taken(size: int) -> tuple[list[JobFile], bytes]:
        folder = tmp_path / str(size)
        folder.mkdir()
        form = upload_files.UploadForm(b"b", folder, 40)
        for start in range(0, len(body), size):
            form.take(body[start : start + size])
        return form.finish(), (folder / "0").read_bytes()

    for size in (1, 2, 7, 64, len(body)):
        files, words = taken(size)
        assert [(each.n, each.name, each.bytes, each.outcome) for each in files] == [
            (0, "a/ä.txt", 11, ""),
            (1, "large", 50, "failed"),
        ]
        assert words == b"one\r\n--bx\r\n"
        assert sorted(path.name for path in (tmp_path / str(size)).iterdir()) == ["0"]


def test_files_can_be_sent_for_some_readers_alone(folder: Path):
    with team(folder) as people, people.as_("editor") as editor, people.as_("reader") as reader:
        editor.post("/api/bases", json={"name": "letters"})
        editor.post("/api/bases/letters/access", json={"name": "user:reader", "may": True})
        reader.post(f"/api/offers/{reader.get('/api/offers').json()[0]['id']}", json={"accept": True})
        form = {"files": ("board.txt", b"The board meets on Monday.")}
        wrong = editor.post("/api/bases/letters/documents", params={"only_for": "board"}, files=form)
        assert wrong.status_code == 400 and "group:NAME" in wrong.json()["detail"]
        sent = editor.post("/api/bases/letters/documents", params={"only_for": "group:board"}, files=form)
        assert sent.status_code == 202, sent.text
        until(lambda: job(editor, sent.json()["id"])["state"] == "done", 60)
        assert read(editor, [("notice.txt", b"The office is closed on Sunday.")], "letters")["state"] == "done"
        assert [each["name"] for each in listed(reader, base="letters")] == ["notice.txt"]
        assert len(listed(editor, base="letters")) == 2
