"""The inside of the jail: gives up its rights, then reads one file after another for its parent.

A parser's failure becomes a status here; what this process cannot report itself, its parent reads from how it ended.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

from assay.core.codec import digest, from_json, to_json
from assay.ingest.parsed import Limits, Refused, Status, Unreadable
from assay.ingest.sandbox import protocol
from assay.ingest.sandbox.confine import allow_seconds, confine


def main() -> None:
    """`argv[1]`: which function reads, and under which limits."""
    setting = json.loads(sys.argv[1])
    limits = from_json(Limits, setting["limits"])
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # a library that prints must not speak to the parent
        os.dup2(nothing, stream)
    protocol.send(outgoing, {"ready": True, "missing": confine(limits)})
    serve(incoming, outgoing, setting["reader"], limits)


def serve(incoming: BinaryIO, outgoing: BinaryIO, reader: str, limits: Limits) -> None:
    kept: dict[str, Any] = {}
    book: list[Any] = []
    tasks: dict[str, Callable[..., tuple[Any, bytes]]] = {
        "read": lambda data, name: (to_json(_function(reader)(data, name, limits)), b""),
        "boxes": lambda data, name, start, end: (_boxes(data, start, end, limits, kept), b""),
        "pages": lambda data, name: (_function("assay.ingest.pdf.reader:page_count")(data), b""),
        "turned": lambda data, path, page, width: (None, _book(book, limits).picture(path, page, width)),
        "found": lambda data, path, **span: (to_json(_book(book, limits).boxes(path, **span)), b""),
        "picture": lambda data, name, page, scale: (
            None,
            _function("assay.ingest.pdf.reader:page_image")(data, page, scale),
        ),
    }
    while (asked := protocol.receive(incoming)) is not None:
        request, data = asked
        allow_seconds(limits.seconds)
        try:
            found, blob = tasks[request["task"]](data, **request["with"])
            reply = {"found": found}
        except Refused as refused:
            reply, blob = {"refused": to_json(Unreadable(refused.status, refused.why))}, b""
        except MemoryError:
            reply, blob = {"refused": to_json(Unreadable(Status.out_of_memory, OUT_OF_MEMORY)), "last": True}, b""
        except ImportError as problem:
            why = f"The parser for this format is not installed here ({problem.name}); install Assay again, with everything."
            reply, blob = {"refused": to_json(Unreadable(Status.unsupported, why))}, b""
        except RecursionError:
            reply, blob = {"refused": to_json(Unreadable(Status.corrupt, TOO_DEEP)), "last": True}, b""
        except Exception as problem:
            why = (
                f"It cannot be read as the format it seems to be ({type(problem).__name__}); open it and save it again."
            )
            reply, blob = {"refused": to_json(Unreadable(Status.corrupt, why))}, b""
        del data, asked
        protocol.send(outgoing, reply, blob)
        if reply.get("last"):
            return


OUT_OF_MEMORY = "Reading it takes more memory than the limit allows; split it, or raise the limit on memory."
TOO_DEEP = "Its parts are nested too deeply to be read; open it and save it again in a simpler form."


def _function(path: str) -> Callable[..., Any]:
    """Imported when first needed, so that a folder of text files never pays for the PDF engine."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def _book(kept: list[Any], limits: Limits) -> Any:
    """The file that stays open, once one is asked for."""
    if not kept:
        kept.append(_function("assay.ingest.pdf.open_pdf:Kept")(limits=limits))
    return kept[0]


def _boxes(data: bytes, start: int, end: int, limits: Limits, kept: dict[str, Any]) -> list[Any]:
    """A reader asks for one citation after another: the last document's reading is kept."""
    from assay.ingest.pdf import reader as pdf

    key = digest(data)
    if key not in kept:
        kept.clear()
        kept[key] = pdf.read(data, limits)
    return [to_json(box) for box in pdf.boxes(data, start, end, reading=kept[key])]
