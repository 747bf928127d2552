"""The witness: an append-only file in a second place that lists all records, one short line each, followed by the signed
head. A line that was cut short by a crash stays as it is and is written again after it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from assay.core.codec import dumps
from assay.core.errors import UserError
from assay.store.runs.seals import MOST, Seal

FILE = "assay-witness.jsonl"
MARK = 12  # hexadecimal digits of a payload's digest: they distinguish a moved record from a changed one
BLOCK = 1 << 20  # bytes that are written at once


class WitnessLine(NamedTuple):
    """One record in the witness."""

    n: int
    run: str
    seq: int
    hash: str
    mark: str


@dataclass(frozen=True, slots=True)
class WitnessEnd:
    """The end of a witness: its last record, its last signed head, and whether its last line is incomplete."""

    line: WitnessLine | None = None
    seal: Seal | None = None
    torn: bool = False


def witness_file(copy: str, folder: Path) -> Path | None:
    """The witness file, or None if no second place is set."""
    if not copy:
        return None
    second = Path(copy).expanduser()
    if not second.is_dir():
        raise UserError(f"The second place {copy!r} for signed heads is no folder, or it is not mounted.")
    if second.resolve().is_relative_to(folder.resolve()):
        raise UserError(f"The second place {copy!r} is inside the workspace: whoever changes one changes both.")
    return second / FILE


def file_size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def read_records(file: Path, upto: int) -> Iterator[WitnessLine]:
    """The records in the first `upto` bytes, in order. Invalid lines are skipped."""
    return (each for line in _read(file, upto, b"[") if isinstance(each := _parse_line(line), WitnessLine))


def read_heads(file: Path, upto: int) -> Iterator[Seal]:
    """The signed heads in the first `upto` bytes. Invalid lines are skipped."""
    return (each for line in _read(file, upto, b"{") if isinstance(each := _parse_line(line), Seal))


def _read(file: Path, upto: int, first: bytes) -> Iterator[bytes]:
    """Lines that begin with `first`."""
    if not upto:
        return
    left = upto
    with file.open("rb") as every:
        for line in every:
            left -= len(line)
            if left < 0:
                return
            if line.startswith(first):
                yield line


def _parse_line(line: bytes) -> WitnessLine | Seal | None:
    if not line.endswith(b"\n"):
        return None
    try:
        parsed = _parsed(line.decode())
        if isinstance(parsed, list):
            n, run, seq, hash, mark = parsed
            right = (
                type(n) is int and 0 < n < MOST and type(run) is type(hash) is type(mark) is str and type(seq) is int
            )
            return WitnessLine(n, run, seq, hash, mark) if right and 0 <= seq < MOST else None
        return Seal(**parsed)
    except (ValueError, TypeError):
        return None


_parsed = json.JSONDecoder().decode


def read_end(file: Path) -> WitnessEnd:
    """The end of a witness, read backwards."""
    if not file.exists():
        return WitnessEnd()
    size = file_size(file)
    back = 1 << 16
    while True:
        with file.open("rb") as tail:
            tail.seek(max(size - back, 0))
            block = tail.read(size - max(size - back, 0))
        read_records = block.splitlines(keepends=True)
        parsed = [
            each for each in map(_parse_line, read_records if back >= size else read_records[1:]) if each is not None
        ]
        line = next((each for each in reversed(parsed) if isinstance(each, WitnessLine)), None)
        seal = next((each for each in reversed(parsed) if isinstance(each, Seal)), None)
        if back >= size or (line and seal):
            return WitnessEnd(line, seal, bool(block) and not block.endswith(b"\n"))
        back *= 4


def format_records(read_records: Iterable[tuple[int, str, int, str, str]]) -> Iterator[bytes]:
    """Lines of the witness for these records."""
    for n, run, seq, hash, covered in read_records:
        yield dumps([n, run, seq, hash, covered[:MARK]]).encode() + b"\n"


def format_head(seal: Seal) -> bytes:
    fields = {name: getattr(seal, name) for name in ("workspace", "n", "link", "at", "key", "signature")}
    return dumps(fields).encode() + b"\n"


def append(file: Path, read_records: Iterable[bytes], seal: Seal, *, torn: bool) -> None:
    """Append the lines of records, sync them to disk, then append the signed head. Existing bytes are never changed."""
    with _open_for_append(file) as out:
        block = bytearray(b"\n" if torn else b"")
        for line in read_records:
            block += line
            if len(block) >= BLOCK:
                out.write(block)
                block = bytearray()
        out.write(block)
        out.flush()
        os.fsync(out.fileno())
        out.write(format_head(seal))
        out.flush()
        os.fsync(out.fileno())


def _open_for_append(file: Path) -> BinaryIO:
    try:
        return os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")
    except OSError as error:
        raise UserError(f"The second place {str(file)!r} cannot be written to: {error.strerror}.") from error
