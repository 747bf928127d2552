"""Starts a program that may read given paths and nothing else: no writing, no network, no capabilities. Linux; elsewhere it is
only started. Imports little, because it runs for every page that OCR reads.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from assay.ingest.sandbox.landlock import restrict_files
from assay.ingest.sandbox.privileges import drop_capabilities, end_with_parent, leave_network, refuse_new_privileges

BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from assay.ingest.sandbox.launch import main; main()"


def confined(command: Sequence[str], readable: Sequence[str]) -> list[str]:
    """The command that starts `command` confined."""
    if not sys.platform.startswith("linux"):
        return list(command)
    root = str(Path(__file__).resolve().parents[3])
    return [sys.executable, "-I", "-S", "-B", "-c", BOOT, root, json.dumps([*readable, command[0]]), *command]


def main() -> None:
    """Entry point: give up everything but reading, then become the program."""
    readable, command = json.loads(sys.argv[2]), sys.argv[3:]
    libc = ctypes.CDLL(None, use_errno=True)
    leave_network()
    drop_capabilities(libc)
    end_with_parent()
    if refuse_new_privileges(libc):
        restrict_files(libc, readable, programs=True)
    os.execv(command[0], command)
