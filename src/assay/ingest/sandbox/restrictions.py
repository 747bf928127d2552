"""The restrictions of a parser process, which it applies to itself before it receives a document.

`restrict_process` returns the guards that the platform does not offer, for `assay doctor`.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import signal
import struct
import sys

from assay.ingest.parsed import FileLimits

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38
CLONE_THREAD, CLONE_NEWUSER, CLONE_NEWNET = 0x00010000, 0x10000000, 0x40000000
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
SMALL_FILE = 1_000_000
OPEN_FILES = 64

# System calls that no parser needs: network, other programs, other processes, changes to files. Numbers per architecture.
REFUSED_CALLS = {
    "x86_64": (
        0xC000003E,
        "41 42 49 50 57 58 59 322 62 101 310 311 321 425 165 82 264 316 83 258 84 86 265 87 263 88 266 76 90 268 260 259 85",
        {"clone": 56, "clone3": 435, "open": 2, "openat": 257, "openat2": 437},
    ),
    "aarch64": (
        0xC00000B7,
        "198 203 200 201 221 281 129 117 270 271 280 425 40 38 276 34 35 36 37 45 53 54 33 219 217",
        {"clone": 220, "clone3": 435, "openat": 56, "openat2": 437},
    ),
}
REFUSED_EVENTS = ("socket.", "subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.system", "os.kill")


def restrict_process(limits: FileLimits) -> list[str]:
    """Drop every privilege that a parser does not need. Returns the guards that are missing on this platform."""
    missing = [*_resources(limits)]
    if sys.platform.startswith("linux"):
        missing += _linux()
    else:
        missing += ["the network is refused to Python code only", "a parser may outlive a killed parent for a moment"]
    sys.addaudithook(_refuse)
    return missing


def allow_cpu_seconds(seconds: float) -> None:
    """Limit the CPU time of the next file; earlier files do not count."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF)
        ceiling = int(used.ru_utime + used.ru_stime + seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (ceiling, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _resources(limits: FileLimits) -> list[str]:
    try:
        import resource
    except ImportError:
        return ["memory, processor time and file sizes (only the clock is limited on this system)"]
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
            missing.append(name.removeprefix("RLIMIT_").lower())
    if sys.platform == "darwin":
        missing.append("memory (this system does not enforce the limit)")
    return missing


# --- Linux ----------------------------------------------------------------------------------------------------------


def _linux() -> list[str]:
    missing = []
    libc = ctypes.CDLL(None, use_errno=True)
    parent = os.getppid()
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0):
        missing.append("a parser may outlive a killed parent for a moment")
    if os.getppid() != parent:
        os._exit(1)  # the parent died before the guard was in place
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    unprivileged = libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    # An empty network namespace; without the privilege for it, inside a new user namespace.
    apart = libc.unshare(CLONE_NEWNET) == 0 or libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0
    filtered = unprivileged and _filter_calls(libc)
    if not apart and not filtered:
        missing.append("the network is refused to Python code only")
    if not filtered:
        missing.append("writing to files and starting programs are refused to Python code only")
    return missing


def _filter_calls(libc: ctypes.CDLL) -> bool:
    """Install a seccomp filter that refuses these calls. It applies to native code too and cannot be removed."""
    if platform.machine() not in REFUSED_CALLS or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    program = b"".join(struct.pack("=HBBI", *step) for step in _program(*REFUSED_CALLS[platform.machine()]))
    steps = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))

    wanted = Program(len(program) // 8, ctypes.addressof(steps))
    return libc.prctl(PR_SET_SECCOMP, 2, ctypes.byref(wanted), 0, 0) == 0


def _program(machine: int, refused: str, special: dict[str, int]) -> list[tuple[int, int, int, int]]:
    """The filter as BPF instructions: (code, jump if true, jump if false, value)."""
    load, equal, at_least, masked, done = 0x20, 0x15, 0x35, 0x45, 0x06
    allow, deny, unknown = 0x7FFF0000, 0x00050001, 0x00050026  # allow; EPERM; ENOSYS
    number, arch, argument = 0, 4, 16
    steps = [(load, 0, 0, arch), (equal, 1, 0, machine), (done, 0, 0, deny)]
    steps += [(load, 0, 0, number), (at_least, 0, 1, 0x40000000), (done, 0, 0, deny)]  # alternative numbering
    for call in map(int, refused.split()):
        steps += [(equal, 0, 1, call), (done, 0, 0, deny)]
    for name in ("clone3", "openat2"):  # arguments not inspectable; on ENOSYS the C library uses the old calls
        steps += [(equal, 0, 1, special[name]), (done, 0, 0, unknown)]
    # a new thread is fine, a new process is not
    steps += [(equal, 0, 4, special["clone"]), (load, 0, 0, argument), (masked, 1, 0, CLONE_THREAD)]
    steps += [(done, 0, 0, deny), (done, 0, 0, allow)]
    for name, place in (("open", 1), ("openat", 2)):  # reading is fine, writing is not
        if name in special:
            steps += [(equal, 0, 4, special[name]), (load, 0, 0, argument + 8 * place), (masked, 0, 1, WRITES)]
            steps += [(done, 0, 0, deny), (done, 0, 0, allow)]
    return [*steps, (done, 0, 0, allow)]


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    if event.startswith(REFUSED_EVENTS):
        raise PermissionError(f"a parser may not use {event}")
    if event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITES:
        raise PermissionError("a parser may not write files")
