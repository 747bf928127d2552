"""What differs on macOS and Windows, run here: the fallbacks are real, the system's name is not."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import types
from pathlib import Path

import pytest

from assay.cli import doctor, serve
from assay.core import private_files
from assay.index.lance import tables
from assay.ingest.pdf import ocr
from assay.ingest.sandbox import process, restrictions, runner
from assay.models.local import openvino_runner
from assay.store.runs import underway

PARSER = """
import sys
sys.platform = {system!r}
if {system!r} == "win32":
    sys.modules["resource"] = None
from assay.ingest.parsed import FileLimits
from assay.ingest.sandbox.restrictions import allow_cpu_seconds, restrict_process
missing = restrict_process(FileLimits(), [])
allow_cpu_seconds(5)
import socket, subprocess
def tries(attempt):
    try:
        attempt()
    except PermissionError:
        return "refused"
    return "done"
print(tries(lambda: open("made", "w")), tries(lambda: socket.create_connection(("127.0.0.1", 9))))
print(tries(lambda: subprocess.run([sys.executable])), tries(lambda: open(sys.argv[1]).read()))
print("; ".join(missing))
"""


@pytest.mark.parametrize(
    ("system", "said"), [("darwin", "does not enforce it"), ("win32", "file sizes are not limited, only the clock")]
)
def test_a_parser_is_refused_what_python_can_refuse_and_the_rest_is_named(system: str, said: str, tmp_path: Path):
    note = tmp_path / "note"
    note.write_text("read")
    told = subprocess.run(
        [sys.executable, "-c", PARSER.format(system=system), note],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    first, second, missing = told.stdout.splitlines() or pytest.fail(told.stderr)
    assert (first, second) == ("refused refused", "refused done") and not (tmp_path / "made").exists()
    assert said in missing and "to Python code only" in missing and restrictions.OUTLIVES in missing


def test_doctor_names_the_system_and_what_it_lacks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(doctor, "sys", types.SimpleNamespace(platform="darwin"))
    assert doctor._system()[0] is None and doctor._system()[1].endswith("Assay is tested on Linux only")
    monkeypatch.setattr(doctor, "sys", types.SimpleNamespace(platform="win32"))
    assert "not closed to other accounts" in doctor._system()[1] and "properties" in doctor._permissions(tmp_path)[1]


def test_what_is_attempted_of_linux_is_not_attempted_elsewhere(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(process, "FORKS", False)
    monkeypatch.delattr(process.os, "killpg")
    monkeypatch.delattr(process.os, "wait4")
    missing, attempts = runner.try_guards()
    assert not attempts and runner.NO_PROCESS not in missing


def test_a_process_of_windows_is_not_signalled_to_learn_whether_it_lives(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(underway, "SIGNAL_ASKS", False)
    monkeypatch.setattr(underway.os, "kill", lambda *_: pytest.fail("it would be interrupted"))
    assert underway._is_alive(os.getpid())


def test_an_index_is_flushed_where_folders_cannot_be(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "rows").write_bytes(b"1")
    opened: list[tuple[str, int]] = []
    real = os.open
    monkeypatch.setattr(tables, "FOLDERS_FLUSH", False)
    monkeypatch.setattr(
        tables.os, "open", lambda path, flags: opened.append((Path(path).name, flags)) or real(path, flags)
    )
    tables._flush(tmp_path, 0)
    assert opened == [("rows", os.O_RDWR)]


async def test_a_worker_hears_signals_where_the_loop_cannot_listen_for_them(monkeypatch: pytest.MonkeyPatch):
    def cannot(*_: object) -> None:
        raise NotImplementedError

    loop, heard = asyncio.get_running_loop(), asyncio.Event()
    monkeypatch.setattr(loop, "add_signal_handler", cannot)
    before = signal.getsignal(signal.SIGTERM)
    try:
        serve._on_signal(loop, signal.SIGTERM, heard.set)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(heard.wait(), 10)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_what_a_system_lacks_is_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "open").touch(0o644)
    with monkeypatch.context() as patch:
        patch.setattr(private_files, "os", types.SimpleNamespace(name="nt"))
        private_files.make_private(tmp_path)
    assert (tmp_path / "open").stat().st_mode & 0o777 == 0o644
    monkeypatch.delattr(openvino_runner.os, "sched_getaffinity")
    assert openvino_runner.cores() >= 1
    monkeypatch.setitem(sys.modules, "resource", None)
    monkeypatch.setattr(ocr, "sys", types.SimpleNamespace(platform="darwin"))
    ocr._limit(os.getpid(), runner.FileLimits())  # nothing is limited, and nothing fails
    monkeypatch.setattr(restrictions, "sys", types.SimpleNamespace(platform="darwin"))
    assert restrictions.confined(["tesseract"], []) == ["tesseract"] and not restrictions.end_with_parent()
