"""How the parent and a parser's process talk: a length, JSON, and raw bytes beside it. Never pickle.

Either side may have been taken over by a document, so sizes are checked before anything is read.
"""

from __future__ import annotations

import json
import struct
from typing import Any, BinaryIO

HEAD = struct.Struct(">IQ")
LARGEST_JSON = 400_000_000  # the characters a document may have, written as JSON
LARGEST_BLOB = 300_000_000


class Garbled(Exception):
    """What arrived is not a message."""


def send(stream: BinaryIO, message: Any, blob: bytes = b"") -> None:
    body = json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass")
    stream.write(HEAD.pack(len(body), len(blob)))
    stream.write(body)
    stream.write(blob)
    stream.flush()


def receive(stream: BinaryIO, largest: int = LARGEST_JSON) -> tuple[dict[str, Any], bytes] | None:
    """The next message; none at the end of the stream."""
    head = stream.read(HEAD.size)
    if not head:
        return None
    if len(head) < HEAD.size:
        raise Garbled("cut short")
    size, blob_size = HEAD.unpack(head)
    if size > largest or blob_size > LARGEST_BLOB:
        raise Garbled("too large")
    body, blob = stream.read(size), stream.read(blob_size)
    if len(body) < size or len(blob) < blob_size:
        raise Garbled("cut short")
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as problem:
        raise Garbled("not JSON") from problem
    if not isinstance(message, dict):
        raise Garbled("not an object")
    return message, blob
