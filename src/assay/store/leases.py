"""Leases: the process that works on a run or a job, and until when. The process renews it; when it runs out, the process has
died and another takes the work up."""

from __future__ import annotations

import os
import socket
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

LEASE = 30.0  # seconds until the work of a process that has died is taken up
FREE = {"process": "", "until": ""}  # the columns of work that nobody holds


def this_process() -> str:
    """The name of this process, unique among machines and containers."""
    return f"{_system()} {os.getpid()}"


def _system() -> str:
    """The machine, or the container: process ids are unique within it."""
    namespace = Path("/proc/self/ns/pid")
    return f"{socket.gethostname()} {namespace.readlink() if namespace.exists() else ''}".strip()


def lease(process: str, now: str) -> dict[str, str]:
    """The columns of work that this process holds from now on."""
    if not process:
        return FREE
    return {"process": process, "until": (datetime.fromisoformat(now) + timedelta(seconds=LEASE)).isoformat()}


def is_held(work: Any, now: str) -> bool:
    """Whether the lease on this row has not run out, and its process is not known to have died on this machine."""
    if not work.process or datetime.fromisoformat(work.until) <= datetime.fromisoformat(now):
        return False
    system, _, process = work.process.rpartition(" ")
    return system != _system() or _is_alive(int(process))


def is_elsewhere(work: Any, process: str, now: str) -> bool:
    """Whether a process other than this one holds the lease."""
    return work.process != process and is_held(work, now)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
