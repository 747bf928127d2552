"""Attempts what a parser must not do, by system calls as native code would make them. Runs inside a restricted process.

`assay doctor` shows the result; the tests require that every attempt is refused.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import signal
import socket
import struct
from collections.abc import Callable

# Numbers of system calls, for those that the C library has no function for: pidfd_open, process_vm_readv, io_uring_setup.
VM_READ = {"x86_64": 310, "aarch64": 270}
PIDFD_OPEN, IO_URING_SETUP = 434, 425
REFUSALS = (errno.EPERM, errno.EACCES, errno.ENOSYS)
AT_FDCWD, PTRACE_ATTACH = -100, 16


def attempts(secret: str, writable: str, folder: str, parent: int, address: int, port: int) -> dict[str, str]:
    """Each attempt with how it was refused, or an empty word if it was not. `secret` and `writable` are files, `parent` is
    the process to attack with something to read at `address`, `port` a listening one on this machine.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    here, hidden, own = folder.encode(), secret.encode(), writable.encode()
    old, new = here + b"/old", here + b"/new"
    remote = struct.pack("=QQ", address, 8)
    inet = struct.pack("=H", socket.AF_INET) + struct.pack(">H", port) + bytes([127, 0, 0, 1]) + bytes(8)

    def reads(path: bytes) -> int:
        handle = libc.open(path, os.O_RDONLY)
        return libc.read(handle, ctypes.create_string_buffer(8), 8) if handle >= 0 else handle

    def connects() -> int:
        made = libc.socket(socket.AF_INET, socket.SOCK_STREAM, 0)
        return libc.connect(made, inet, len(inet)) if made >= 0 else made

    def starts_program() -> int:
        child = libc.fork()
        if child <= 0:  # in a new process, or here if there is none: nothing is left of a process that succeeds
            refused = libc.execve(b"/bin/true", (ctypes.c_char_p * 2)(b"true"), (ctypes.c_char_p * 1)())
            return refused if child < 0 else os._exit(ctypes.get_errno())
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        ctypes.set_errno(code)
        return -1 if code else 0

    def forks() -> int:
        child = libc.fork()
        return child if child else os._exit(0)

    def reads_memory() -> int:
        here = ctypes.create_string_buffer(8)
        own = struct.pack("=QQ", ctypes.addressof(here), 8)
        return libc.syscall(VM_READ.get(platform.machine(), -1), parent, own, 1, remote, 1, 0)

    tried = {
        "read a file": lambda: reads(hidden),
        "list a folder": lambda: libc.open(here, os.O_RDONLY | os.O_DIRECTORY),
        "read the memory of its parent": reads_memory,
        "read the memory of its parent as a file": lambda: reads(b"/proc/%d/mem" % parent),
        "read the environment of its parent": lambda: reads(b"/proc/%d/environ" % parent),
        "trace its parent": lambda: libc.ptrace(PTRACE_ATTACH, parent, None, None),
        "write a file": lambda: libc.open(own, os.O_WRONLY),
        "make a file": lambda: libc.open(new, os.O_RDWR | os.O_CREAT, 0o600),
        "empty a file that it opens to read": lambda: libc.open(own, os.O_RDONLY | os.O_TRUNC),
        "empty a file by its name": lambda: libc.truncate(own, 0),
        "change the mode of a file": lambda: libc.chmod(own, 0o777),
        "change the times of a file": lambda: libc.utimensat(AT_FDCWD, own, None, 0),
        "remove a file": lambda: libc.unlink(old),
        "rename a file": lambda: libc.rename(own, new),
        "link a file": lambda: libc.link(own, new),
        "make a folder": lambda: libc.mkdir(new, 0o700),
        "signal its parent": lambda: libc.kill(parent, 0),
        "stop its parent": lambda: libc.kill(parent, signal.SIGCONT),
        "hold on to its parent": lambda: libc.syscall(PIDFD_OPEN, parent, 0),
        "limit its parent": lambda: libc.prlimit(parent, 7, None, ctypes.create_string_buffer(16)),
        "direct signals to its parent": lambda: libc.fcntl(0, 8, parent),
        "connect to a port": connects,
        "make a socket pair": lambda: libc.socketpair(socket.AF_UNIX, socket.SOCK_STREAM, 0, (ctypes.c_int * 2)()),
        "start a process": forks,
        "start a program": starts_program,
        "gain privileges": lambda: libc.unshare(0x10000000),
        "use another interface of the kernel": lambda: libc.syscall(
            IO_URING_SETUP, 1, ctypes.create_string_buffer(120)
        ),
    }
    return {name: _refused(attempt) for name, attempt in tried.items()}


def _refused(attempt: Callable[[], int]) -> str:
    """How the system refused an attempt; empty if it did not. Other errors mean that it got that far."""
    ctypes.set_errno(0)
    number = ctypes.get_errno() if attempt() < 0 else 0
    return errno.errorcode[number] if number in REFUSALS else ""
