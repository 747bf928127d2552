"""Parsers in limited processes: whatever a document does to one, the answer is a status."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from assay.ingest.parsed import FileLimits, Parsed, Status, Unreadable
from assay.ingest.sandbox import process
from assay.ingest.sandbox.process import ParserProcess
from assay.ingest.sandbox.runner import Sandbox, load_file, missing_guards, validate_parsed

LINUX = sys.platform.startswith("linux")
READER = textwrap.dedent(
    """
    import os, sys, time
    from assay.ingest.parsed import Parsed, Refused, Status

    def read(data, name, limits):
        return globals()[name](data, limits)

    def says(data, limits):
        return Parsed(data.decode(), "text")

    def until(data, limits):
        stops = time.process_time() < limits.until < time.process_time() + limits.seconds
        return Parsed("before it is killed" if stops else "never", "text")

    def pid(data, limits):
        return Parsed(str(os.getpid()), "text")

    def stays(data, limits):
        # answers, and waits for the next request with an answer of its own
        from assay.ingest.sandbox import process
        for text in ("first", "forged", "forged"):
            process.send(_stream(), {"found": {"text": text, "kind": "text"}})
        time.sleep(3600)

    def refuses(data, limits):
        raise Refused(Status.encrypted, "It is locked.")

    def raises(data, limits):
        raise KeyError("missing part")

    def aborts(data, limits):
        os.abort()

    def segfaults(data, limits):
        import ctypes
        ctypes.string_at(8)

    def exits(data, limits):
        os._exit(0)

    def spins(data, limits):
        while True:
            pass

    def sleeps(data, limits):
        time.sleep(3600)

    def hoards(data, limits):
        return Parsed(str(len([bytearray(50_000_000) for _ in range(100)])), "text")

    def recurses(data, limits):
        def deeper(n):
            return deeper(n + 1) + 1
        return deeper(0)

    def prints(data, limits):
        print("garbage" * 100)
        os.write(1, b"more garbage")
        return Parsed("quiet", "text")

    def _stream():
        # what code that has taken the process over can do: find the pipe to the parent
        import gc, io
        return next(each for each in gc.get_objects() if isinstance(each, io.BufferedWriter) and each.fileno() > 2)

    def babbles(data, limits):
        stream = _stream()
        stream.write(b"\\xff" * 100)
        stream.flush()
        time.sleep(3600)

    def lies(data, limits):
        from assay.ingest.sandbox import process
        process.send(_stream(), {"found": {"text": "short", "kind": "text", "pages": [0, 900]}})
        time.sleep(3600)

    def _tries(action):
        try:
            action()
        except OSError as problem:
            return Parsed(f"refused: {problem.errno} {problem}", "text")
        return Parsed("allowed", "text")

    def connects(data, limits):
        import socket
        return _tries(lambda: socket.create_connection(("127.0.0.1", int(data)), 1))

    def connects_natively(data, limits):
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        made = libc.socket(2, 1, 0)
        if made < 0:
            return Parsed("refused: no socket", "text")
        port = int(data)
        address = (2).to_bytes(2, sys.byteorder) + port.to_bytes(2, "big") + bytes([127, 0, 0, 1]) + bytes(8)
        return Parsed("allowed" if libc.connect(made, address, 16) == 0 else "refused: no connection", "text")

    def writes(data, limits):
        return _tries(lambda: open(data.decode(), "w").write("x"))

    def writes_natively(data, limits):
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        return Parsed("allowed" if libc.creat(data, 0o600) >= 0 or libc.open(data, 65, 0o600) >= 0 else "refused", "text")

    def runs(data, limits):
        import subprocess
        return _tries(lambda: subprocess.run(["/bin/true"]))

    def forks_natively(data, limits):
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        child = libc.fork()
        if child == 0:
            os._exit(0)
        return Parsed("refused" if child < 0 else "allowed", "text")

    def environment(data, limits):
        return Parsed(" ".join(sorted(os.environ)), "text")
    """
)


@pytest.fixture
def reader(tmp_path: Path) -> Path:
    (tmp_path / "odd_reader.py").write_text(READER)
    return tmp_path


def sandbox_of(folder: Path, workers: int = 1, **limits: float) -> Sandbox:
    return Sandbox(
        FileLimits(**{"seconds": 20.0, **limits}), workers=workers, reader="odd_reader:read", path=(str(folder),)
    )  # type: ignore[arg-type]


@pytest.fixture
def sandbox(reader: Path):
    with sandbox_of(reader) as made:
        yield made


async def test_a_document_comes_back_from_the_other_process(sandbox: Sandbox) -> None:
    assert await sandbox.read("Grüße, 世界".encode(), "says") == Parsed("Grüße, 世界", "text")


@pytest.mark.skipif(not LINUX, reason="elsewhere files share a process")
async def test_each_file_has_a_process_of_its_own(sandbox: Sandbox) -> None:
    seen = {(await sandbox.read(b"", "pid")).text for _ in range(5)}  # type: ignore[union-attr]
    assert len(seen) == 5 and str(os.getpid()) not in seen


@pytest.mark.skipif(not LINUX, reason="elsewhere files share a process")
async def test_a_process_that_was_taken_over_has_no_part_in_the_next_file(sandbox: Sandbox) -> None:
    assert await sandbox.read(b"first", "stays") == Parsed("first", "text")
    assert await sandbox.read(b"second", "says") == Parsed("second", "text")


async def test_where_nothing_is_forked_one_process_reads_many_files(
    reader: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "FORKS", False)
    with sandbox_of(reader) as sandbox:
        seen = {(await sandbox.read(b"", "pid")).text for _ in range(3)}  # type: ignore[union-attr]
        assert len(seen) == 1 and str(os.getpid()) not in seen
        for crash, status in (("aborts", Status.crashed), ("recurses", Status.corrupt), ("lies", Status.crashed)):
            answer = await sandbox.read(b"", crash)
            assert isinstance(answer, Unreadable) and answer.status is status
            assert await sandbox.read(b"after", "says") == Parsed("after", "text")


async def test_a_parser_knows_when_to_stop(sandbox: Sandbox) -> None:
    assert await sandbox.read(b"", "until") == Parsed("before it is killed", "text")


async def test_a_parsers_refusal_arrives_as_it_was_said(sandbox: Sandbox) -> None:
    assert await sandbox.read(b"", "refuses") == Unreadable(Status.encrypted, "It is locked.")


async def test_an_error_in_a_parser_means_the_file_is_damaged(sandbox: Sandbox) -> None:
    answer = await sandbox.read(b"", "raises")
    assert isinstance(answer, Unreadable) and answer.status is Status.corrupt and "KeyError" in answer.why


@pytest.mark.parametrize("crash", ["aborts", "segfaults", "exits"])
async def test_a_crash_is_survived_and_the_next_file_is_read(sandbox: Sandbox, crash: str) -> None:
    answer = await sandbox.read(b"", crash)
    assert isinstance(answer, Unreadable) and answer.status is Status.crashed
    assert await sandbox.read(b"after", "says") == Parsed("after", "text")


@pytest.mark.long
@pytest.mark.skipif(not LINUX, reason="processor time is limited where the system can")
async def test_an_endless_loop_is_cut_by_its_processor_time(reader: Path) -> None:
    with sandbox_of(reader, seconds=1.0) as sandbox:
        answer = await sandbox.read(b"", "spins")
        assert isinstance(answer, Unreadable) and answer.status is Status.too_slow
        assert await sandbox.read(b"after", "says") == Parsed("after", "text")


@pytest.mark.long
async def test_a_parser_that_waits_for_ever_is_cut_by_the_clock(reader: Path) -> None:
    with sandbox_of(reader, seconds=1.0) as sandbox:
        await sandbox.read(b"warm", "says")
        answer = await sandbox.read(b"", "sleeps")
        assert isinstance(answer, Unreadable) and answer.status is Status.too_slow


@pytest.mark.long
@pytest.mark.skipif(not LINUX, reason="memory is limited where the system can")
async def test_a_parser_that_hoards_memory_is_stopped(reader: Path) -> None:
    with sandbox_of(reader, memory=1_500_000_000) as sandbox:
        answer = await sandbox.read(b"", "hoards")
        assert isinstance(answer, Unreadable) and answer.status is Status.out_of_memory
        assert await sandbox.read(b"after", "says") == Parsed("after", "text")


async def test_endless_nesting_is_a_status(sandbox: Sandbox) -> None:
    answer = await sandbox.read(b"", "recurses")
    assert isinstance(answer, Unreadable) and answer.status is Status.corrupt


async def test_what_a_library_prints_does_not_reach_the_parent(sandbox: Sandbox) -> None:
    assert await sandbox.read(b"", "prints") == Parsed("quiet", "text")


@pytest.mark.parametrize("taken_over", ["babbles", "lies"])
async def test_a_process_that_talks_nonsense_is_killed_and_replaced(sandbox: Sandbox, taken_over: str) -> None:
    answer = await sandbox.read(b"", taken_over)
    assert isinstance(answer, Unreadable) and answer.status is Status.crashed
    assert await sandbox.read(b"after", "says") == Parsed("after", "text")


async def test_the_network_is_out_of_reach(sandbox: Sandbox) -> None:
    async def answers(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(answers, "127.0.0.1", 0)
    port = str(server.sockets[0].getsockname()[1]).encode()
    async with server:
        attempts = ["connects", "connects_natively"] if LINUX else ["connects"]
        for attempt in attempts:
            answer = await sandbox.read(port, attempt)
            assert isinstance(answer, Parsed) and answer.text.startswith("refused"), attempt


async def test_files_cannot_be_written_and_programs_cannot_be_run(sandbox: Sandbox, tmp_path: Path) -> None:
    attempts = ["writes", "runs"]
    if LINUX and not missing_guards():
        attempts += ["writes_natively", "forks_natively"]
    for attempt in attempts:
        answer = await sandbox.read(str(tmp_path / "made").encode(), attempt)
        assert isinstance(answer, Parsed) and answer.text.startswith("refused"), attempt
    assert not (tmp_path / "made").exists()


async def test_the_parents_secrets_are_not_in_the_childs_environment(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_API_KEY", "secret")
    answer = await sandbox.read(b"", "environment")
    assert isinstance(answer, Parsed) and "ASSAY" not in answer.text and "HOME" not in answer.text


async def test_a_pdfs_text_boxes_and_pictures_come_from_the_sandbox() -> None:
    import io

    from reportlab.pdfgen.canvas import Canvas

    out = io.BytesIO()
    canvas = Canvas(out)
    canvas.drawString(100, 700, "evidence before writing")
    canvas.save()
    with Sandbox() as sandbox:
        parsed = await sandbox.read(out.getvalue(), "x.pdf")
        assert isinstance(parsed, Parsed) and parsed.text == "evidence before writing" and parsed.kind == "pdf"
        for start, end in ((0, 8), (9, 15)):
            found = await sandbox.boxes(out.getvalue(), start, end)
            assert isinstance(found, list) and len(found) == 1 and found[0].page == 1
        picture = await sandbox.page_image(out.getvalue(), 1, scale=1.0)
        assert isinstance(picture, bytes) and picture.startswith(b"\x89PNG")
        assert await sandbox.pictures(out.getvalue()) == []
        wrong = await sandbox.page_image(b"%PDF-1.4 nothing", 1, scale=1.0)
        assert isinstance(wrong, Unreadable) and wrong.status is Status.corrupt


async def test_several_processes_read_side_by_side(reader: Path) -> None:
    with sandbox_of(reader, workers=3) as sandbox:
        answers = await asyncio.gather(*[sandbox.read(str(number).encode(), "says") for number in range(20)])
        assert [answer.text for answer in answers if isinstance(answer, Parsed)] == [str(n) for n in range(20)]


async def test_a_cancelled_read_frees_its_process_at_once(sandbox: Sandbox) -> None:
    await sandbox.read(b"warm", "says")
    task = asyncio.create_task(sandbox.read(b"", "sleeps"))
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await sandbox.read(b"after", "says") == Parsed("after", "text")


def test_threads_can_read_without_an_event_loop(sandbox: Sandbox) -> None:
    assert sandbox.read_now(b"plain", "says") == Parsed("plain", "text")


def test_closing_leaves_no_process_behind(reader: Path) -> None:
    sandbox = sandbox_of(reader)
    answer = sandbox.read_now(b"", "pid")
    assert isinstance(answer, Parsed)
    sandbox.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int(answer.text), 0)


@pytest.mark.skipif(not LINUX, reason="needs the kernel's help")
def test_a_parser_never_outlives_a_killed_parent(reader: Path) -> None:
    program = textwrap.dedent(
        f"""
        import os, sys, threading, time
        from assay.ingest.sandbox.runner import Sandbox
        sandbox = Sandbox(reader="odd_reader:read", path=({str(reader)!r},))
        child = sandbox.read_now(b"", "pid").text
        threading.Thread(target=sandbox.read_now, args=(b"", "sleeps")).start()
        time.sleep(0.5)
        print(child, flush=True)
        """
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
        parent.wait()
    for _ in range(600):
        if not Path(f"/proc/{child}").exists() or " Z " in Path(f"/proc/{child}/stat").read_text():
            return
        time.sleep(0.1)
    pytest.fail("the parser is still there")


async def test_a_file_that_cannot_be_opened_is_a_status(sandbox: Sandbox, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe") if hasattr(os, "mkfifo") else None
    for path in [tmp_path / "absent.pdf", tmp_path, *([tmp_path / "pipe"] if hasattr(os, "mkfifo") else [])]:
        answer = await sandbox.read(path)
        assert isinstance(answer, Unreadable) and answer.status is Status.unreadable, path


def test_a_file_over_the_limit_is_not_even_loaded(tmp_path: Path) -> None:
    huge = tmp_path / "huge.txt"
    with huge.open("wb") as file:
        file.truncate(10_000_000)
    answer = load_file(huge, FileLimits(bytes=1_000_000))
    assert isinstance(answer, Unreadable) and answer.status is Status.too_large


@pytest.mark.parametrize(
    "found",
    [
        {"text": "", "kind": "text"},
        {"text": " \n", "kind": "text"},
        {"text": "short", "kind": "text", "pages": [0, 99]},
        {"text": "short", "kind": "text", "pages": []},
        {"text": "short", "kind": "text", "abstract": [2, 99]},
        {"text": "short", "kind": "text", "sections": [{"title": "x", "level": 1, "start": -1, "end": 2}]},
        {"text": "short", "kind": "text", "extra": 1},
        {"text": 5, "kind": "text"},
        [],
    ],
)
def test_offsets_that_do_not_hold_are_refused(found: object) -> None:
    with pytest.raises(ValueError):
        validate_parsed(found, FileLimits())


def test_a_message_larger_than_agreed_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    monkeypatch.setattr(process, "LARGEST_JSON", 999)
    stream = io.BytesIO(process.HEAD.pack(1_000, 0) + b"{}" * 500)
    with pytest.raises(process.ProtocolError):
        process.receive(stream)
    assert process.receive(io.BytesIO(process.HEAD.pack(2, 3) + b"{}abc")) == ({}, b"abc")


def test_the_doctor_can_ask_what_is_not_limited_here() -> None:
    assert all(isinstance(line, str) for line in missing_guards())


def test_a_process_that_cannot_start_is_a_status() -> None:
    child = ParserProcess({"limits": {"memory": 10**12, "unheard_of": 1}, "reader": "x:y", "path": []})
    answer = child.ask("read", {"name": "x"}, lambda: b"", 5.0)
    assert isinstance(answer, Unreadable) and answer.status is Status.crashed and "doctor" in answer.why
    child.end()
