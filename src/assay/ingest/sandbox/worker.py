"""The parser process: drops its privileges, then reads a file for its parent.

Where the parent passes a control socket, this process never receives a document: it imports parsers, and forks a process for
each file. A parser's failure becomes a status here. What a process cannot report itself, its parent infers from its exit
status.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, BinaryIO

from assay.core.codec import digest, from_json, to_json
from assay.ingest.parsed import FileLimits, Refused, Status, Unreadable
from assay.ingest.sandbox import protocol
from assay.ingest.sandbox.privileges import end_with_parent, leave_network
from assay.ingest.sandbox.restrictions import allow_cpu_seconds, readable_paths, restrict_process

OUT_OF_MEMORY = "Reading it takes more memory than the limit allows; split it, or raise the limit on memory."
TOO_DEEP = "Its parts are nested too deeply to be read; open it and save it again in a simpler form."


def main() -> None:
    """Entry point. `argv[1]` names the parse function and the limits."""
    setting = json.loads(sys.argv[1])
    limits, readable = from_json(FileLimits, setting["limits"]), readable_paths(setting["path"])
    if setting["control"] is not None:
        fork_for_each_file(socket.socket(fileno=setting["control"]), setting, limits, readable)
        return
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # output of a library must not reach the parent
        os.dup2(nothing, stream)
    serve_restricted(incoming, outgoing, setting, limits, readable)


def fork_for_each_file(
    control: socket.socket, setting: dict[str, Any], limits: FileLimits, readable: Sequence[str]
) -> None:
    """For each message with a descriptor: import the modules, fork a process that serves the descriptor, and kill it when the
    parent says so. Nothing that the forked process does can reach the control socket.
    """
    import resource

    end_with_parent()
    apart = leave_network()
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 10_000, 1)
        if not message:
            return
        for module in json.loads(message)["load"]:
            with contextlib.suppress(ImportError):  # the process that reads the file will say so
                importlib.import_module(module)
        gc.freeze()  # what is loaded here stays shared
        child = os.fork()
        if child == 0:
            try:
                control.close()
                serve_restricted(descriptors[0], os.dup(descriptors[0]), setting, limits, readable, apart=apart)
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
    incoming: int,
    outgoing: int,
    setting: dict[str, Any],
    limits: FileLimits,
    readable: Sequence[str],
    *,
    apart: bool = False,
) -> None:
    with os.fdopen(incoming, "rb") as requests, os.fdopen(outgoing, "wb") as replies:
        missing = restrict_process(limits, readable, setting["without"], apart=apart)
        protocol.send(replies, {"ready": True, "missing": missing})
        serve(requests, replies, Tasks(setting["reader"], limits))


class Tasks:
    """The tasks that the parent may request. Each returns JSON and bytes."""

    def __init__(self, reader: str, limits: FileLimits) -> None:
        self.reader, self.limits = reader, limits
        self.by_name: dict[str, Callable[..., tuple[Any, bytes]]] = {
            "read": self._read,
            "boxes": self._boxes,
            "pages": lambda data, name: (_function("assay.ingest.pdf.reader:page_count")(data), b""),
            "page_image": lambda data, name, page, scale: (
                None,
                _function("assay.ingest.pdf.reader:page_image")(data, page, scale),
            ),
            "open_page_image": lambda data, page, width: (None, self._open_pdf.page_image(data, page, width)),
            "open_boxes": lambda data, **span: (to_json(self._open_pdf.boxes(data, **span)), b""),
            "probe": lambda data, **targets: (_function("assay.ingest.sandbox.probe:attempts")(**targets), b""),
        }
        self._last_reading: tuple[str, Any] = ("", None)

    @cached_property
    def _open_pdf(self) -> Any:
        return _function("assay.ingest.pdf.open_pdf:OpenPdf")(limits=self.limits)

    def _read(self, data: bytes, name: str) -> tuple[Any, bytes]:
        return to_json(_function(self.reader)(data, name, self.limits.timed())), b""

    def _boxes(self, data: bytes, name: str, start: int, end: int) -> tuple[Any, bytes]:
        """Boxes of a span. Citations are requested one after another, so the last document stays parsed."""
        key = digest(data)
        if self._last_reading[0] != key:
            self._last_reading = (key, _function("assay.ingest.pdf.reader:read")(data, self.limits))
        boxes = _function("assay.ingest.pdf.reader:find_boxes")(data, start, end, reading=self._last_reading[1])
        return to_json(boxes), b""


def serve(incoming: BinaryIO, outgoing: BinaryIO, tasks: Tasks) -> None:
    data = b""
    while (received := protocol.receive(incoming)) is not None:
        request = received[0]
        if not request["same"]:  # a request about the file before comes without bytes
            data = received[1]
        del received
        allow_cpu_seconds(tasks.limits.seconds)
        refused: Unreadable | None = None
        found, blob, last = None, b"", False
        try:
            found, blob = tasks.by_name[request["task"]](data, **request["with"])
        except Refused as refusal:
            refused = Unreadable(refusal.status, refusal.why)
        except MemoryError:
            refused, last = Unreadable(Status.out_of_memory, OUT_OF_MEMORY), True
        except ImportError as problem:
            why = f"The parser for this format is not installed here ({problem.name}); install Assay again, with everything."
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
        protocol.send(outgoing, reply, blob)
        if last:
            return


def _function(path: str) -> Callable[..., Any]:
    """Imports a function when first needed, so that reading text files never loads the PDF engine."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)
