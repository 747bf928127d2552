"""A process that is forked from one in which everything is loaded is, to whoever started it, a process like any other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import forked
import pytest

TOLD = """
import os, sys
print(os.getcwd(), os.environ["WHO"], sys.argv, sys.stdin.read().upper())
print("beside", file=sys.stderr)
sys.exit(7)
"""


def test_it_is_given_what_it_is_given_and_says_what_it_says(tmp_path: Path):
    command = [sys.executable, "-c", TOLD, "one", "two"]
    own = {**os.environ, "WHO": "somebody"}
    ours = forked.run(command, input=b"words", cwd=tmp_path, env=own)
    theirs = subprocess.run(command, input=b"words", cwd=tmp_path, env=own, capture_output=True)
    assert (ours.returncode, ours.stdout, ours.stderr) == (theirs.returncode, theirs.stdout, theirs.stderr)
    assert ours.returncode == 7 and b"somebody ['-c', 'one', 'two'] WORDS" in ours.stdout


@pytest.mark.parametrize(
    ("code", "ends"),
    [
        ("pass", 0),
        ("raise SystemExit('no')", 1),
        ("1 / 0", 1),
        ("import os; os._exit(5)", 5),
        ("import atexit; atexit.register(lambda: print('late')); raise SystemExit(3)", 3),
        ("raise KeyboardInterrupt", -signal.SIGINT),
    ],
)
def test_it_ends_as_it_would(code: str, ends: int):
    done = forked.run([sys.executable, "-c", code], text=True)
    assert done.returncode == ends
    assert ("late" in done.stdout) == ("late" in code)
    assert ("ZeroDivisionError" in done.stderr) == ("1 / 0" in code)


def test_it_can_be_spoken_with_and_killed():
    with forked.Process(
        [sys.executable, "-c", "import sys; [print(line, end='', flush=True) for line in sys.stdin]"],
        stdin=forked.PIPE,
        stdout=forked.PIPE,
        text=True,
    ) as process:
        process.stdin.write("hello\n")
        assert process.stdout.readline() == "hello\n" and process.poll() is None
        process.kill()
        assert process.wait(20) == -signal.SIGKILL


def test_one_knows_nothing_of_another():
    assert forked.run([sys.executable, "-c", "import os, sys; os.environ['X'] = '1'; sys.seen = 1"]).returncode == 0
    assert forked.run([sys.executable, "-c", "import os, sys; assert 'X' not in os.environ; sys.seen"]).returncode == 1


def test_what_counts_when_an_interpreter_starts_starts_one():
    done = forked.run(
        [
            sys.executable,
            "-c",
            "import sys; print(sys.flags.hash_randomization, 'assay.workspace.facade' in sys.modules)",
        ],
        env={**os.environ, "PYTHONHASHSEED": "0"},
        text=True,
    )
    assert done.stdout.split() == ["0", "False"]
