"""The parser process: drops its privileges, then reads a file for its parent.

Where the parent passes a control socket, this process never receives a document: it imports parsers, and forks a process for
each file. A parser's failure becomes a status here. What a process cannot report itself, its parent infers from its exit
status.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import gc
import json
import os
import platform
import signal
import socket
import struct
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from pkgutil import resolve_name
from typing import Any, BinaryIO

from assay.core.codec import from_json, to_json
from assay.ingest.parsed import FileLimits, Refused, Status, Unreadable
from assay.ingest.sandbox.process import OUT_OF_MEMORY, receive, send
from assay.ingest.sandbox.restrictions import (
    allow_cpu_seconds,
    end_with_parent,
    leave_network,
    readable_paths,
    restrict_process,
)

TOO_DEEP = "Its parts are nested too deeply to be read; open it and save it again in a simpler form."


def main() -> None:
    """Entry point. `argv[1]` names the parse function and the limits."""
    setting = json.loads(sys.argv[1])
    limits, readable = from_json(FileLimits, setting["limits"]), readable_paths(setting["path"])
    serve_file = partial(serve_restricted, setting, limits, readable)
    if setting["control"] is not None:
        fork_for_each_file(socket.socket(fileno=setting["control"]), serve_file)
        return
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # output of a library must not reach the parent
        os.dup2(nothing, stream)
    serve_file(incoming, outgoing)


def fork_for_each_file(control: socket.socket, serve_file: Callable[..., None]) -> None:
    """For each message with a descriptor: load what it names, fork a process that serves the descriptor, and kill it when the
    parent says so. Nothing that the forked process does can reach the control socket.
    """
    import resource

    end_with_parent()
    apart = leave_network()
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 10_000, 1)
        if not message:
            return
        wanted = json.loads(message)
        for name in wanted["load"]:
            with contextlib.suppress(ImportError, AttributeError):  # the process that reads the file will say so
                if callable(loaded := resolve_name(name)):
                    loaded()
        gc.freeze()  # what is loaded here stays shared
        child = os.fork()
        if child == 0:
            try:
                control.close()
                serve_file(descriptors[0], os.dup(descriptors[0]), apart=apart, threads=wanted["threads"])
                os._exit(0)
            finally:
                os._exit(1)
        os.close(descriptors[0])
        control.recv(10)
        os.kill(child, signal.SIGKILL)
        _, status, usage = os.wait4(child, 0)
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        report = os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024, own * 1024
        control.send(json.dumps(report).encode())


def serve_restricted(
    setting: dict[str, Any],
    limits: FileLimits,
    readable: Sequence[str],
    incoming: int,
    outgoing: int,
    apart: bool = False,
    threads: bool = False,
) -> None:
    with os.fdopen(incoming, "rb") as requests, os.fdopen(outgoing, "wb") as replies:
        missing = restrict_process(limits, readable, setting["without"], apart=apart, threads=threads)
        send(replies, {"ready": True, "missing": missing})
        serve(requests, replies, setting["reader"], limits)


def parser_tasks(reader: str, limits: FileLimits) -> dict[str, Callable[..., tuple[Any, bytes]]]:
    """The tasks that the parent may request. Each returns JSON and bytes. Reading text files never loads the PDF engine."""

    @cache
    def pdf() -> Any:
        return resolve_name("assay.ingest.pdf.reader:OpenPdf")(limits=limits)

    return {
        "read": lambda data, name: (to_json(resolve_name(reader)(data, name, limits.timed())), b""),
        "page_image": lambda data, **which: (None, pdf().page_image(data, **which)),
        "boxes": lambda data, **span: (to_json(pdf().boxes(data, **span)), b""),
        "pictures": lambda data: (pdf().pictures(data), b""),
        "recognise": lambda data, page: (to_json(pdf().recognise(data, page)), b""),
        "read_seen": lambda data, name, seen: (to_json(_read_seen(data, name, seen, limits.timed())), b""),
        "probe": lambda data, **targets: (attempts(**targets), b""),
    }


def _read_seen(data: bytes, name: str, seen: Any, limits: FileLimits) -> Any:
    parse, complete = (
        resolve_name(each) for each in ("assay.ingest.pdf.reader:parse", "assay.ingest.formats.detect:complete")
    )
    pages = from_json(resolve_name("assay.ingest.scan:SeenPages"), {"pages": seen}).pages
    return complete(parse(data, name, limits, pages), limits, name)


def serve(incoming: BinaryIO, outgoing: BinaryIO, reader: str, limits: FileLimits) -> None:
    tasks, data = parser_tasks(reader, limits), b""
    while (received := receive(incoming)) is not None:
        request = received[0]
        if not request["same"]:  # a request about the file before comes without bytes
            data = received[1]
        del received
        allow_cpu_seconds(limits.seconds)
        refused: Unreadable | None = None
        found, blob, last = None, b"", False
        try:
            found, blob = tasks[request["task"]](data, **request["with"])
        except Refused as refusal:
            refused = Unreadable(refusal.status, refusal.why)
        except MemoryError:
            refused, last = Unreadable(Status.out_of_memory, OUT_OF_MEMORY), True
        except ImportError as problem:
            why = f"This format's parser is not installed here ({problem.name or problem}); install all of Assay again."
            refused = Unreadable(Status.unsupported, why)
        except RecursionError:
            refused, last = Unreadable(Status.corrupt, TOO_DEEP), True
        except Exception as problem:
            why = (
                f"It cannot be read as the format it seems to be ({type(problem).__name__}); open it and save it again."
            )
            refused = Unreadable(Status.corrupt, why)
        reply = {"found": found} if refused is None else {"refused": to_json(refused), "last": last}
        del found
        send(outgoing, reply, blob)
        if last:
            return


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
        one, flags = ctypes.c_ulong(1), ctypes.c_ulong(0)  # an int would leave half of the last word undefined
        return libc.syscall(VM_READ.get(platform.machine(), -1), parent, own, one, remote, one, flags)

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
