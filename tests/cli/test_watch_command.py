"""`assay sync --watch`: a process that goes on until Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.long
def test_a_watch_tells_each_change_and_ends_with_ctrl_c(tmp_path: Path):
    folder = tmp_path / "minutes"
    folder.mkdir()
    (folder / "gate.txt").write_text("The gate opens at six.\n")
    command = [sys.executable, "-m", "assay.cli.main", "sync", str(folder), "--watch", "--json", "--grace", "5"]
    command += ["--workspace", str(tmp_path / "workspace")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ}) as process:
        assert process.stdout is not None
        try:
            first = json.loads(process.stdout.readline())
            assert [file["outcome"] for file in first["files"]] == ["added"]
            (folder / "gate.txt").rename(folder / "door.txt")
            second = json.loads(process.stdout.readline())
            assert [(Path(file["path"]).name, file["outcome"]) for file in second["files"]] == [("door.txt", "moved")]
            (folder / "lamp.txt").write_text("The lamp is red.\n")
            assert json.loads(process.stdout.readline())["files"][0]["outcome"] == "added"
            (folder / "door.txt").unlink()
            assert json.loads(process.stdout.readline())["removed"] == [str(folder / "door.txt")]
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
