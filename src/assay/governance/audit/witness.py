"""The witness: a file in a second place that says which records there were. It only ever grows, by a short line for each
record and then the signed head; a line that was torn by a kill is left as it is, and what it was to say is said again."""

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
MARK = 12  # hexadecimal digits of a payload's digest: they tell a record that was moved from one that was changed
BLOCK = 1 << 20  # bytes that are written at once


class WitnessLine(NamedTuple):
    """What the witness says of one record."""

    n: int
    run: str
    seq: int
    hash: str
    mark: str


@dataclass(frozen=True, slots=True)
class WitnessEnd:
    """Where a witness stands: its last record and its last signed head; whether its last line was torn."""

    line: WitnessLine | None = None
    seal: Seal | None = None
    torn: bool = False


def witness_file(copy: str, folder: Path) -> Path | None:
    """The witness's file, where a second place is set."""
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
    """What the first `upto` bytes say of records, in order; what says nothing is passed over."""
    return (each for line in _read(file, upto, b"[") if isinstance(each := _parse_line(line), WitnessLine))


def read_heads(file: Path, upto: int) -> Iterator[Seal]:
    """The signed heads in them."""
    return (each for line in _read(file, upto, b"{") if isinstance(each := _parse_line(line), Seal))


def _read(file: Path, upto: int, first: bytes) -> Iterator[bytes]:
    """Lines that begin so."""
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
        told = _parsed(line.decode())
        if isinstance(told, list):
            n, run, seq, hash, mark = told
            right = (
                type(n) is int and 0 < n < MOST and type(run) is type(hash) is type(mark) is str and type(seq) is int
            )
            return WitnessLine(n, run, seq, hash, mark) if right and 0 <= seq < MOST else None
        return Seal(**told)
    except (ValueError, TypeError):
        return None


_parsed = json.JSONDecoder().decode


def read_end(file: Path) -> WitnessEnd:
    """How a witness ends, read from its end backwards."""
    if not file.exists():
        return WitnessEnd()
    size = file_size(file)
    back = 1 << 16
    while True:
        with file.open("rb") as tail:
            tail.seek(max(size - back, 0))
            block = tail.read(size - max(size - back, 0))
        read_records = block.splitlines(keepends=True)
        said = [
            each for each in map(_parse_line, read_records if back >= size else read_records[1:]) if each is not None
        ]
        line = next((each for each in reversed(said) if isinstance(each, WitnessLine)), None)
        seal = next((each for each in reversed(said) if isinstance(each, Seal)), None)
        if back >= size or (line and seal):
            return WitnessEnd(line, seal, bool(block) and not block.endswith(b"\n"))
        back *= 4


def format_records(read_records: Iterable[tuple[int, str, int, str, str]]) -> Iterator[bytes]:
    """Lines of the witness for these records."""
    for n, run, seq, hash, covered in read_records:
        yield dumps([n, run, seq, hash, covered[:MARK]]).encode() + b"\n"


def format_head(seal: Seal) -> bytes:
    told = {name: getattr(seal, name) for name in ("workspace", "n", "link", "at", "key", "signature")}
    return dumps(told).encode() + b"\n"


def append(file: Path, read_records: Iterable[bytes], seal: Seal, *, torn: bool) -> None:
    """The records' lines, on disk, and then their signed head. Nothing that is there is touched."""
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
