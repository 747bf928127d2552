"""The restrictions of a parser process, which it applies to itself before it receives a document.

`restrict_process` returns the guards that are missing, as clauses for the user. Each guard holds without the others: the
filter of system calls (`seccomp.py`), the paths that may be read (`landlock.py`), a user namespace without capabilities.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import sysconfig
from collections.abc import Collection, Iterable
from pathlib import Path

from assay.ingest.parsed import FileLimits
from assay.ingest.sandbox.landlock import restrict_files
from assay.ingest.sandbox.privileges import (
    CLONE_NEWUSER,
    PR_SET_DUMPABLE,
    drop_capabilities,
    end_with_parent,
    refuse_new_privileges,
)
from assay.ingest.sandbox.seccomp import restrict_calls

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
SMALL_FILE = 1_000_000
OPEN_FILES = 64
SECCOMP, LANDLOCK, NAMESPACES = "seccomp", "landlock", "namespaces"
MISSING = {
    SECCOMP: "system calls are not filtered (seccomp), so it could write files, start programs and use the network",
    LANDLOCK: "reading other files is not prevented (Landlock, Linux 5.13 or newer)",
    NAMESPACES: "it has no user namespace of its own",
}
REFUSED_EVENTS = ("socket.", "subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.system", "os.kill")
# Shared libraries, time zones, and the fonts that pages are drawn with.
SYSTEM_PATHS = (
    "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo",
    "/usr/share/fonts", "/usr/share/X11/fonts", "/usr/local/share/fonts",
)  # fmt: skip


def restrict_process(
    limits: FileLimits, readable: Iterable[str], without: Collection[str] = (), *, apart: bool = False
) -> list[str]:
    """Drop every privilege that a parser does not need. `apart`: it is in a user namespace of its own already. `without` names
    guards that are treated as missing, for tests. Returns what is missing.
    """
    missing = [*_resources(limits)]
    if sys.platform.startswith("linux"):
        missing += _linux(readable, without, apart)
    else:
        missing += ["the network, files and programs are refused to Python code only"]
        missing += ["it may outlive a killed parent for a moment"]
    sys.addaudithook(_refuse)
    return missing


def readable_paths(code: Iterable[str]) -> list[str]:
    """What a parser may read: this package, the libraries that it imports, what the system shares, and further `code`."""
    libraries = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    package, shared = str(Path(__file__).resolve().parents[2]), str(Path(sys.base_prefix) / "lib")
    return [package, *code, *libraries, shared, *SYSTEM_PATHS]


def allow_cpu_seconds(seconds: float) -> None:
    """Limit the CPU time of the next request; earlier ones do not count."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF)
        ceiling = int(used.ru_utime + used.ru_stime + seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (ceiling, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _resources(limits: FileLimits) -> list[str]:
    try:
        import resource
    except ImportError:
        return ["memory, processor time and file sizes are not limited, only the clock"]
    missing = []
    for name, limit in (
        ("RLIMIT_AS", limits.memory),
        ("RLIMIT_CORE", 0),
        ("RLIMIT_FSIZE", SMALL_FILE),
        ("RLIMIT_NOFILE", OPEN_FILES),
    ):
        try:
            which = getattr(resource, name)
            _, hard = resource.getrlimit(which)
            ceiling = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            resource.setrlimit(which, (ceiling, ceiling))
        except (AttributeError, ValueError, OSError):
            missing.append(f"{name} is not limited")
    if sys.platform == "darwin":
        missing.append("memory is not limited, since this system does not enforce it")
    return missing


def _linux(readable: Iterable[str], without: Collection[str], apart: bool) -> list[str]:
    libc = ctypes.CDLL(None, use_errno=True)
    apart = NAMESPACES not in without and (apart or libc.unshare(CLONE_NEWUSER) == 0)
    drop_capabilities(libc)
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    missing = [] if end_with_parent() else ["it may outlive a killed parent for a moment"]
    unprivileged = refuse_new_privileges(libc)
    confined = LANDLOCK not in without and unprivileged and restrict_files(libc, readable)
    filtered = SECCOMP not in without and unprivileged and restrict_calls(libc)  # last: it refuses what the others need
    found = {SECCOMP: filtered, LANDLOCK: confined, NAMESPACES: apart}
    return missing + [MISSING[guard] for guard, works in found.items() if not works]


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    if event.startswith(REFUSED_EVENTS):
        raise PermissionError(f"a parser may not use {event}")
    if event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITES:
        raise PermissionError("a parser may not write files")
