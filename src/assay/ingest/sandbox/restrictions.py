"""The restrictions of a parser process, which it applies to itself before it receives a document.

Each guard holds without the others: a filter of system calls (seccomp), the paths that may be read (Landlock), a user namespace
without capabilities. Imports little, because a program for OCR is started through it for every page.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import platform
import signal
import stat
import struct
import sys
import sysconfig
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.ingest.parsed import FileLimits

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
SMALL_FILE = 1_000_000
OPEN_FILES = 64
SECCOMP, LANDLOCK, NAMESPACES = "seccomp", "landlock", "namespaces"
MISSING = {
    SECCOMP: "system calls are not filtered (seccomp), so it could write files, start programs and use the network",
    LANDLOCK: "reading other files is not prevented (Landlock, Linux 5.13 or newer)",
    NAMESPACES: "it has no user namespace of its own",
}
OUTLIVES = "it may outlive a killed parent for a moment"
REFUSED_EVENTS = ("socket.", "subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.system", "os.kill")
# Shared libraries, time zones, and the fonts that pages are drawn with.
SYSTEM_PATHS = (
    "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo",
    "/usr/share/fonts", "/usr/share/X11/fonts", "/usr/local/share/fonts",
)  # fmt: skip


def restrict_process(
    limits: FileLimits,
    readable: Iterable[str],
    without: Collection[str] = (),
    *,
    apart: bool = False,
    threads: bool = False,
) -> list[str]:
    """Drop every privilege that a parser does not need. `apart`: it is in a user namespace of its own already. `threads`: it
    may start threads, which OCR computes with. `without` names guards that are treated as missing, for tests. Returns what
    is missing, as clauses for the user."""
    missing = _resources(limits)
    if sys.platform.startswith("linux"):
        missing += _linux(readable, without, apart, threads)
    else:
        missing += ["the network, files and programs are refused to Python code only", OUTLIVES]
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
    ceilings = {"AS": limits.memory, "CORE": 0, "FSIZE": SMALL_FILE, "NOFILE": OPEN_FILES}
    for name, limit in ceilings.items():
        try:
            which = getattr(resource, f"RLIMIT_{name}")
            _, hard = resource.getrlimit(which)
            ceiling = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            resource.setrlimit(which, (ceiling, ceiling))
        except (AttributeError, ValueError, OSError):
            missing.append(f"RLIMIT_{name} is not limited")
    if sys.platform == "darwin":
        missing.append("memory is not limited, since this system does not enforce it")
    return missing


def _linux(readable: Iterable[str], without: Collection[str], apart: bool, threads: bool) -> list[str]:
    libc = ctypes.CDLL(None, use_errno=True)
    apart = NAMESPACES not in without and (apart or libc.unshare(CLONE_NEWUSER) == 0)
    drop_capabilities(libc)
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    missing = [] if end_with_parent() else [OUTLIVES]
    unprivileged = refuse_new_privileges(libc)
    confined = LANDLOCK not in without and unprivileged and restrict_files(libc, readable)
    filtered = (
        SECCOMP not in without and unprivileged and restrict_calls(libc, threads)
    )  # last: refuses what others need
    found = {SECCOMP: filtered, LANDLOCK: confined, NAMESPACES: apart}
    return missing + [MISSING[guard] for guard, works in found.items() if not works]


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    if event.startswith(REFUSED_EVENTS):
        raise PermissionError(f"a parser may not use {event}")
    if event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITES:
        raise PermissionError("a parser may not write files")


# --- Landlock: no access to files but reading below given paths; from ABI 4 on no TCP, from ABI 6 on no signals and abstract
# sockets beyond itself. Linux 5.13 or newer.

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # system calls, with the same numbers on every architecture
VERSION, PATH_BENEATH = 1, 1
EXECUTE, READ_FILE, READ_DIR = 1 << 0, 1 << 2, 1 << 3
FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 5: 16}  # ABI → number of rights to files that it knows
TCP, BEYOND = 0b11, 0b11  # bind and connect; abstract sockets and signals


def restrict_files(libc: ctypes.CDLL, readable: Iterable[str], *, programs: bool = False) -> bool:
    """Allow this process to read below these paths and nothing else; with `programs` also to start programs there. Needs
    `no_new_privs`. False if the kernel cannot."""
    abi = libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), VERSION)
    if abi < 1:
        return False
    rights = (1 << max(count for known, count in FILE_RIGHTS.items() if known <= abi)) - 1
    wanted = struct.pack("=QQQ", rights, TCP if abi >= 4 else 0, BEYOND if abi >= 6 else 0)
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    ruleset = libc.syscall(CREATE_RULESET, wanted, ctypes.c_size_t(size), 0)
    if ruleset < 0:
        return False
    try:
        for path in readable:
            _allow(libc, ruleset, path, EXECUTE if programs else 0)
        return libc.syscall(RESTRICT_SELF, ruleset, 0) == 0
    finally:
        os.close(ruleset)


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, more: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # it is not on this system
    try:
        rights = more | (READ_FILE | READ_DIR if stat.S_ISDIR(os.fstat(place).st_mode) else READ_FILE)
        libc.syscall(ADD_RULE, ruleset, PATH_BENEATH, struct.pack("=Qi", rights, place), 0)
    finally:
        os.close(place)


# --- privileges that a process gives up for good. Linux; elsewhere nothing happens.

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECUREBITS, PR_SET_NO_NEW_PRIVS = 1, 4, 28, 38
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
CAPABILITY_VERSION = 0x20080522
NO_ROOT = 0b11  # a program that root starts gets no capabilities back; locked


def end_with_parent() -> bool:
    """Have this process killed when its parent ends. False where the system cannot."""
    if not sys.platform.startswith("linux"):
        return False
    parent = os.getppid()
    done = ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) == 0
    if os.getppid() != parent:
        os._exit(1)  # the parent died before the guard was in place
    return done


def leave_network() -> bool:
    """Move to an empty network namespace, if possible. Whether a new user namespace came with it; only root needs none."""
    if not sys.platform.startswith("linux"):
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.unshare(CLONE_NEWNET) != 0 and libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0


def drop_capabilities(libc: ctypes.CDLL) -> None:
    """A process of root, or in a user namespace of its own, has all of them."""
    libc.prctl(PR_SET_SECUREBITS, NO_ROOT, 0, 0, 0)
    head = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
    libc.capset(head, (ctypes.c_uint32 * 6)())


def refuse_new_privileges(libc: ctypes.CDLL) -> bool:
    """No program that this process starts gains anything. The other restrictions need it."""
    return libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0


# --- seccomp: the system calls that a parser needs. All others are refused, to native code too, and the filter cannot be
# removed. Linux on x86_64 and aarch64.

PR_SET_SECCOMP, FILTER = 22, 2
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # BPF instructions
ALLOW, REFUSE, KILL = 0x7FFF0000, 0x00050001, 0x80000000
UNKNOWN = 0x00050026  # ENOSYS, so that libc falls back
OTHER_NUMBERING = 0x40000000  # the x32 system calls of x86_64
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16  # offsets in the data that the filter sees
NOT_READING = WRITES | 0o20000000  # the last one makes temporary files
FCNTL = (1, 2, 3, 1030)  # get and set close-on-exec, get the flags, duplicate
IOCTL = (0x5401, 0x5451)  # ask whether it is a terminal, set close-on-exec

Step = tuple[int, int, int, int]  # code, jump if true, jump if false, value

# Reading open files, memory, time, own signal handlers, looking up files. Nothing that changes a file or reaches a process.
CALLS = {
    "x86_64": {
        "read": 0, "write": 1, "close": 3, "stat": 4, "fstat": 5, "lstat": 6, "lseek": 8, "mmap": 9, "mprotect": 10,
        "munmap": 11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15, "pread64": 17, "readv": 19,
        "writev": 20, "access": 21, "sched_yield": 24, "mremap": 25, "madvise": 28, "dup": 32, "nanosleep": 35, "getpid": 39,
        "exit": 60, "uname": 63, "getdents": 78, "getcwd": 79, "readlink": 89, "gettimeofday": 96, "getrusage": 98,
        "sysinfo": 99, "getuid": 102, "getgid": 104, "geteuid": 107, "getegid": 108, "sigaltstack": 131, "gettid": 186,
        "time": 201, "futex": 202, "sched_getaffinity": 204, "getdents64": 217, "restart_syscall": 219, "fadvise64": 221,
        "clock_gettime": 228, "clock_getres": 229, "clock_nanosleep": 230, "exit_group": 231, "newfstatat": 262,
        "readlinkat": 267, "faccessat": 269, "set_robust_list": 273, "getcpu": 309, "getrandom": 318, "statx": 332,
    },
    "aarch64": {
        "getcwd": 17, "dup": 23, "faccessat": 48, "close": 57, "getdents64": 61, "lseek": 62, "read": 63, "write": 64,
        "readv": 65, "writev": 66, "pread64": 67, "readlinkat": 78, "newfstatat": 79, "fstat": 80, "exit": 93,
        "exit_group": 94, "futex": 98, "set_robust_list": 99, "nanosleep": 101, "clock_gettime": 113, "clock_getres": 114,
        "clock_nanosleep": 115, "sched_getaffinity": 123, "sched_yield": 124, "restart_syscall": 128, "sigaltstack": 132,
        "rt_sigaction": 134, "rt_sigprocmask": 135, "rt_sigreturn": 139, "uname": 160, "getrusage": 165, "getcpu": 168,
        "gettimeofday": 169, "getpid": 172, "getuid": 174, "geteuid": 175, "getgid": 176, "getegid": 177, "gettid": 178,
        "sysinfo": 179, "brk": 214, "munmap": 215, "mremap": 216, "mmap": 222, "fadvise64": 223, "mprotect": 226,
        "madvise": 233, "getrandom": 278, "statx": 291,
    },
}  # fmt: skip
# Calls that are allowed with some arguments only.
LIMITED = {
    "x86_64": {"open": 2, "openat": 257, "fcntl": 72, "ioctl": 16, "prlimit": 302, "tgkill": 234},
    "aarch64": {"openat": 56, "fcntl": 25, "ioctl": 29, "prlimit": 261, "tgkill": 131},
}
THREADS = {"x86_64": (56, 334), "aarch64": (220, 293)}  # clone, rseq: what the C library starts a thread with
CLONE_THREAD = 0x10000
NEWER = (435, 437, 439)  # clone3, openat2, faccessat2: the C library has older ones to fall back on
MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def restrict_calls(libc: ctypes.CDLL, threads: bool = False) -> bool:
    """Allow this process, which must have one thread, no other system calls. Needs `no_new_privs`. False if it cannot be."""
    machine = platform.machine()
    if machine not in MACHINES or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    program = b"".join(struct.pack("=HBBI", *step) for step in filter_program(machine, os.getpid(), threads))
    steps = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))

    wanted = Program(len(program) // 8, ctypes.addressof(steps))
    return libc.prctl(PR_SET_SECCOMP, FILTER, ctypes.byref(wanted), 0, 0) == 0


def filter_program(machine: str, own_pid: int, threads: bool = False) -> list[Step]:
    """The filter as BPF instructions. A thread has the filter of the process that it is part of."""
    steps: list[Step] = [(LOAD, 0, 0, ARCHITECTURE), (EQUAL, 1, 0, MACHINES[machine]), (RETURN, 0, 0, KILL)]
    steps += [(LOAD, 0, 0, NUMBER), (AT_LEAST, 0, 1, OTHER_NUMBERING), (RETURN, 0, 0, REFUSE)]
    for call in CALLS[machine].values():
        steps += [(EQUAL, 0, 1, call), (RETURN, 0, 0, ALLOW)]
    for call in NEWER:
        steps += [(EQUAL, 0, 1, call), (RETURN, 0, 0, UNKNOWN)]
    limited = LIMITED[machine]
    for name, place in (("open", 1), ("openat", 2)):
        if name in limited:
            steps += _with_argument(limited[name], place, [(ANY_BIT, 0, 1, NOT_READING), (RETURN, 0, 0, REFUSE)], ALLOW)
    steps += _with_values(limited["fcntl"], 1, FCNTL)
    steps += _with_values(limited["ioctl"], 1, IOCTL)
    steps += _with_values(limited["prlimit"], 0, (0,))  # limits of this process
    steps += _with_values(limited["tgkill"], 0, (own_pid,))  # a signal to itself: how `abort` ends it
    if threads:
        clone, rseq = THREADS[machine]
        steps += _with_argument(clone, 0, [(ANY_BIT, 0, 1, CLONE_THREAD), (RETURN, 0, 0, ALLOW)], REFUSE)
        steps += [(EQUAL, 0, 1, rseq), (RETURN, 0, 0, ALLOW)]
    return [*steps, (RETURN, 0, 0, REFUSE)]


def _with_values(call: int, place: int, values: tuple[int, ...]) -> list[Step]:
    """Allow a call if its argument at this place is one of the values."""
    allowed = [step for value in values for step in ((EQUAL, 0, 1, value), (RETURN, 0, 0, ALLOW))]
    return _with_argument(call, place, allowed, REFUSE)


def _with_argument(call: int, place: int, checks: list[Step], otherwise: int) -> list[Step]:
    """Run the checks on one argument of a call, of which the kernel uses 32 bits; they all return, or the rest applies."""
    load: Step = (LOAD, 0, 0, ARGUMENTS + 8 * place)
    return [(EQUAL, 0, len(checks) + 2, call), load, *checks, (RETURN, 0, 0, otherwise)]


# --- a program that may read given paths and nothing else: no writing, no network, no capabilities. Linux; elsewhere it is only
# started.

BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from assay.ingest.sandbox.restrictions import main; main()"


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
