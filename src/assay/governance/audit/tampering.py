"""Classifies the first record that differs from the witness: changed, removed, inserted, moved or cut off."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from assay.governance.audit import witness
from assay.governance.audit.witness import MARK, WitnessLine
from assay.store.runs.chains import FaultKind, RecordFault


class StoredRecord(NamedTuple):
    """A record as it is in the store, with its number among all records."""

    n: int
    run: str
    seq: int
    hash: str
    link: str
    digest: str

    @property
    def mark(self) -> str:
        return str(self.digest)[:MARK]


def classify_difference(
    connection: Connection, here: StoredRecord, line: WitnessLine, place: Path | None, size: int
) -> RecordFault:
    """What happened at the first record where store and witness differ. Everything before it agrees. So a record that only
    the witness has was removed, and one that only the store has was inserted. Records are matched by run and payload,
    since their numbers may have changed."""
    if (here.n, here.run, here.seq, here.mark) == (line.n, line.run, line.seq, line.mark):
        return RecordFault(line.run, line.seq, FaultKind.changed, line.n)
    counts = _in_witness(place, size, line, here) if place else (1, 0)
    ours = _in_store(connection, line.run, line.mark, line.n) >= counts[0]
    theirs = counts[1] > 0 and counts[1] >= _in_store(connection, here.run, here.mark, line.n)
    if type(here.n) is not int or here.n < line.n:
        return RecordFault(str(here.run), _int(here.seq), FaultKind.reordered if theirs else FaultKind.inserted, line.n)
    if not ours and not _any_left(connection, line.run):
        return RecordFault(line.run, line.seq, FaultKind.run_removed, line.n)
    if not ours:
        what = FaultKind.removed if theirs or here.n != line.n else FaultKind.changed
        return RecordFault(line.run, line.seq, what, line.n)
    if theirs:
        return RecordFault(line.run, line.seq, FaultKind.reordered, line.n)
    return RecordFault(str(here.run), _int(here.seq), FaultKind.inserted, line.n)


def _in_store(connection: Connection, run: str, mark: str, n: int) -> int:
    """How many records from number `n` on have this run and payload. Equal payloads may occur more than once."""
    return connection.scalar(
        text("SELECT count(*) FROM records WHERE run = :run AND substr(digest, 1, :mark) = :digest AND n >= :n"),
        {"run": run, "mark": MARK, "digest": mark, "n": n},
    )


def _any_left(connection: Connection, run: str) -> bool:
    return connection.execute(text("SELECT 1 FROM records WHERE run = :run LIMIT 1"), {"run": run}).first() is not None


def _in_witness(place: Path, size: int, line: WitnessLine, here: StoredRecord) -> tuple[int, int]:
    """How often the witness lists each of the two, from the first difference on."""
    keys = ((line.run, line.mark), (here.run, here.mark))
    counts = [0, 0]
    for each in witness.read_records(place, size):
        if each.n >= line.n:
            for at, key in enumerate(keys):
                counts[at] += (each.run, each.mark) == key
    return counts[0], counts[1]


def _int(value: Any) -> int:
    return value if type(value) is int else -1
