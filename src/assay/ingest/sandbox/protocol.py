"""Messages between the parent and a parser process: a length, JSON, and raw bytes. Never pickle.

A document may have compromised the process, so sizes are checked before anything is read.
"""

from __future__ import annotations

import json
import struct
from typing import Any, BinaryIO

HEAD = struct.Struct(">IQ")
LARGEST_JSON = 400_000_000  # the maximum text of a document, as JSON
LARGEST_BLOB = 300_000_000


class ProtocolError(Exception):
    """The received bytes are not a message."""


def send(stream: BinaryIO, message: Any, blob: bytes = b"") -> None:
    body = json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass")
    stream.write(HEAD.pack(len(body), len(blob)))
    stream.write(body)
    stream.write(blob)
    stream.flush()


def receive(stream: BinaryIO, largest: int = LARGEST_JSON) -> tuple[dict[str, Any], bytes] | None:
    """The next message, or None at the end of the stream."""
    head = stream.read(HEAD.size)
    if not head:
        return None
    if len(head) < HEAD.size:
        raise ProtocolError("cut short")
    size, blob_size = HEAD.unpack(head)
    if size > largest or blob_size > LARGEST_BLOB:
        raise ProtocolError("too large")
    body, blob = stream.read(size), stream.read(blob_size)
    if len(body) < size or len(blob) < blob_size:
        raise ProtocolError("cut short")
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as problem:
        raise ProtocolError("not JSON") from problem
    if not isinstance(message, dict):
        raise ProtocolError("not an object")
    return message, blob
