"""A seccomp filter with the system calls that a parser needs. All others are refused, to native code too, and the filter
cannot be removed. Linux on x86_64 and aarch64.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct

PR_SET_SECCOMP, FILTER = 22, 2
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # BPF instructions
ALLOW, REFUSE, UNKNOWN, KILL = (
    0x7FFF0000,
    0x00050001,
    0x00050026,
    0x80000000,
)  # UNKNOWN: ENOSYS, so that libc falls back
OTHER_NUMBERING = 0x40000000  # the x32 system calls of x86_64
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16  # offsets in the data that the filter sees
NOT_READING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | 0o20000000  # the last one makes temporary files
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
OPEN = {"x86_64": 2, "aarch64": None}
OPENAT = {"x86_64": 257, "aarch64": 56}
FCNTL_CALL = {"x86_64": 72, "aarch64": 25}
IOCTL_CALL = {"x86_64": 16, "aarch64": 29}
PRLIMIT = {"x86_64": 302, "aarch64": 261}
TGKILL = {"x86_64": 234, "aarch64": 131}
NEWER = (435, 437, 439)  # clone3, openat2, faccessat2: the C library has older ones to fall back on
MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def restrict_calls(libc: ctypes.CDLL) -> bool:
    """Allow this process, which must have one thread, no other system calls. Needs `no_new_privs`. False if it cannot be."""
    machine = platform.machine()
    if machine not in MACHINES or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    program = b"".join(struct.pack("=HBBI", *step) for step in filter_program(machine, os.getpid()))
    steps = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))

    wanted = Program(len(program) // 8, ctypes.addressof(steps))
    return libc.prctl(PR_SET_SECCOMP, FILTER, ctypes.byref(wanted), 0, 0) == 0


def filter_program(machine: str, own_pid: int) -> list[Step]:
    """The filter as BPF instructions."""
    steps: list[Step] = [(LOAD, 0, 0, ARCHITECTURE), (EQUAL, 1, 0, MACHINES[machine]), (RETURN, 0, 0, KILL)]
    steps += [(LOAD, 0, 0, NUMBER), (AT_LEAST, 0, 1, OTHER_NUMBERING), (RETURN, 0, 0, REFUSE)]
    for call in CALLS[machine].values():
        steps += [(EQUAL, 0, 1, call), (RETURN, 0, 0, ALLOW)]
    for call in NEWER:
        steps += [(EQUAL, 0, 1, call), (RETURN, 0, 0, UNKNOWN)]
    for call, place in ((OPEN[machine], 1), (OPENAT[machine], 2)):
        if call is not None:
            steps += _with_argument(call, place, [(ANY_BIT, 0, 1, NOT_READING), (RETURN, 0, 0, REFUSE)], ALLOW)
    steps += _with_values(FCNTL_CALL[machine], 1, FCNTL)
    steps += _with_values(IOCTL_CALL[machine], 1, IOCTL)
    steps += _with_values(PRLIMIT[machine], 0, (0,))  # limits of this process
    steps += _with_values(TGKILL[machine], 0, (own_pid,))  # a signal to itself: how `abort` ends it
    return [*steps, (RETURN, 0, 0, REFUSE)]


def _with_values(call: int, place: int, values: tuple[int, ...]) -> list[Step]:
    """Allow a call if its argument at this place is one of the values."""
    allowed = [step for value in values for step in ((EQUAL, 0, 1, value), (RETURN, 0, 0, ALLOW))]
    return _with_argument(call, place, allowed, REFUSE)


def _with_argument(call: int, place: int, checks: list[Step], otherwise: int) -> list[Step]:
    """Run the checks on one argument of a call, of which the kernel uses 32 bits; they all return, or the rest applies."""
    load: Step = (LOAD, 0, 0, ARGUMENTS + 8 * place)
    return [(EQUAL, 0, len(checks) + 2, call), load, *checks, (RETURN, 0, 0, otherwise)]
