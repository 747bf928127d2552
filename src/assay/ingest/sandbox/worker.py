"""The parser process: drops its privileges, then reads one file after another for its parent.

A parser's failure becomes a status here. What this process cannot report itself, its parent infers from its exit status.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable
from functools import cached_property
from typing import Any, BinaryIO

from assay.core.codec import digest, from_json, to_json
from assay.ingest.parsed import FileLimits, Refused, Status, Unreadable
from assay.ingest.sandbox import protocol
from assay.ingest.sandbox.restrictions import allow_cpu_seconds, restrict_process

OUT_OF_MEMORY = "Reading it takes more memory than the limit allows; split it, or raise the limit on memory."
TOO_DEEP = "Its parts are nested too deeply to be read; open it and save it again in a simpler form."


def main() -> None:
    """Entry point. `argv[1]` names the parse function and the limits."""
    setting = json.loads(sys.argv[1])
    limits = from_json(FileLimits, setting["limits"])
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # output of a library must not reach the parent
        os.dup2(nothing, stream)
    protocol.send(outgoing, {"ready": True, "missing": restrict_process(limits)})
    serve(incoming, outgoing, Tasks(setting["reader"], limits))


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
            "open_page_image": lambda data, path, page, width: (None, self._open_pdf.page_image(path, page, width)),
            "open_boxes": lambda data, path, **span: (to_json(self._open_pdf.boxes(path, **span)), b""),
        }
        self._last_reading: tuple[str, Any] = ("", None)

    @cached_property
    def _open_pdf(self) -> Any:
        return _function("assay.ingest.pdf.open_pdf:OpenPdf")(limits=self.limits)

    def _read(self, data: bytes, name: str) -> tuple[Any, bytes]:
        return to_json(_function(self.reader)(data, name, self.limits)), b""

    def _boxes(self, data: bytes, name: str, start: int, end: int) -> tuple[Any, bytes]:
        """Boxes of a span. Citations are requested one after another, so the last document stays parsed."""
        key = digest(data)
        if self._last_reading[0] != key:
            self._last_reading = (key, _function("assay.ingest.pdf.reader:read")(data, self.limits))
        boxes = _function("assay.ingest.pdf.reader:find_boxes")(data, start, end, reading=self._last_reading[1])
        return to_json(boxes), b""


def serve(incoming: BinaryIO, outgoing: BinaryIO, tasks: Tasks) -> None:
    while (received := protocol.receive(incoming)) is not None:
        request, data = received
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
        del data, received, found
        protocol.send(outgoing, reply, blob)
        if last:
            return


def _function(path: str) -> Callable[..., Any]:
    """Imports a function when first needed, so that reading text files never loads the PDF engine."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)
