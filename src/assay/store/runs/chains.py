"""Verification of record chains: what is wrong, and with which record first. All stored data is untrusted: an
attacker may have had the source code."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from json.encoder import encode_basestring as _quote
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from assay.core.codec import START
from assay.core.events import WORKSPACE, AccountChange, Decision
from assay.core.events.upgrade import current_kind


class FaultKind(StrEnum):
    """The kind of tampering."""

    changed = "changed"
    removed = "removed"
    inserted = "inserted"
    reordered = "reordered"
    cut_off = "cut off"
    run_removed = "run removed"
    payload_changed = "payload changed"
    payload_removed = "payload removed"
    payload_inserted = "payload inserted"
    erasure_unsigned = "erased on the word of an unsigned note"
    unapproved = "delivered without approval"
    text_changed = "text changed"
    right = "right"  # that the store has, and the record does not
    seal = "seal"  # a signed head, here or at the second location


FAULT_TEXTS = {
    FaultKind.changed: "{record} was changed",
    FaultKind.removed: "{record} is missing",
    FaultKind.inserted: "{record} was put in afterwards",
    FaultKind.reordered: "{record} is not in its place",
    FaultKind.cut_off: "{record} and what came after it are cut off",
    FaultKind.run_removed: "{record} is missing, with its whole run",
    FaultKind.payload_changed: "the payload of {record} was changed",
    FaultKind.payload_removed: "the payload of {record} is missing, and nothing on record says that it was erased",
    FaultKind.payload_inserted: "there is a payload of {record} that does not belong there",
    FaultKind.erasure_unsigned: "the payload of {record} is missing, and nobody signed the note that it was erased",
    FaultKind.unapproved: "{record} was delivered without a reviewer's approval of exactly that",
    FaultKind.text_changed: "the text of a document that {record} refers to was changed",
    FaultKind.right: "no record says this",
    FaultKind.seal: "the signed heads do not hold",
}


@dataclass(frozen=True, slots=True)
class RecordFault:
    """A faulty record, by run and position, and its fault. `n` is its number among all records, 0 for none."""

    run: str
    seq: int
    what: FaultKind
    n: int = 0
    detail: str = ""

    @property
    def record(self) -> str:
        return (
            f"{self.run}/{self.seq}"
            if self.run
            else "the rights"
            if self.what is FaultKind.right
            else "the signed heads"
        )

    @property
    def words(self) -> str:
        """The message without the run, for displays of a single run."""
        text = FAULT_TEXTS[self.what].format(record=f"record {self.seq}")
        return f"{text} ({self.detail})" if self.detail else text


class RecordRow(NamedTuple):
    """A stored record with its payload; values may have any type, since they are untrusted."""

    run: str
    seq: int
    at: str
    kind: str
    digest: str
    prev: str
    hash: str
    n: int
    body: str | None


ROWS = (
    "SELECT r.run, r.seq, r.at, r.kind, r.digest, r.prev, r.hash, r.n, p.body FROM records r "
    "LEFT JOIN payloads p ON p.run = r.run AND p.seq = r.seq {where}ORDER BY r.run, r.seq"
)
_NOTES = text(
    "SELECT r.n, r.digest, p.body FROM records r LEFT JOIN payloads p ON p.run = r.run AND p.seq = r.seq "
    "WHERE r.run = :run AND r.kind = :kind ORDER BY r.seq"
)


class RunFlags(NamedTuple):
    """The flags of a run in the table of runs."""

    delivered: bool
    gated: bool
    who: str = ""


def stored_run(connection: Connection, run: str) -> tuple[list[RecordRow], RunFlags | None]:
    """The records of a run, and its flags if it is in the table of runs."""
    rows = connection.execute(text(ROWS.format(where="WHERE r.run = :run ")), {"run": run})
    entry = connection.execute(text("SELECT delivered, gated, who FROM runs WHERE id = :run"), {"run": run}).first()
    flags = RunFlags(bool(entry[0]), bool(entry[1]), entry[2]) if entry else None
    return [RecordRow(*row) for row in rows], flags


# The same encoding as `codec.dumps` for these lists, built by hand for speed: a verification encodes millions.


def hash_of(row: RecordRow) -> str | None:
    """The expected hash of a record; None if its values are invalid for any record."""
    try:
        words = ",".join(map(_quote, (row.at, row.kind, row.digest, row.prev)))
        return digest_of(f"[{_quote(row.run)},{row.seq:d},{words}]")
    except (TypeError, ValueError):
        return None


def link_of(n: int, hash: str, before: str) -> str | None:
    """The same for its link in the chain of all records."""
    try:
        return digest_of(f"[{n:d},{_quote(hash)},{_quote(before)}]")
    except (TypeError, ValueError):
        return None


def digest_of(words: Any) -> str | None:
    """The digest of a text; None if the value is no text."""
    try:
        return sha256(words.encode()).hexdigest()
    except (AttributeError, ValueError):
        return None


@dataclass(frozen=True, slots=True)
class Erasures:
    """Payloads that were erased for a recorded reason. `doubtful` if such an erasure record was itself tampered
    with. `unsigned` are those that only a note says that nobody signed; records up to number `sealed` are under a signed
    head."""

    spans: Mapping[str, tuple[tuple[int, int], ...]]
    doubtful: bool = False
    unsigned: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    sealed: int = 0

    def names(self, run: str, seq: int) -> bool:
        return _covering(self.spans, run, seq) > 0

    def vouches(self, row: RecordRow) -> bool:
        """Whether the missing payload of this record may be missing: if a signed head covers it, a signed note must say so."""
        signed = _covering(self.spans, row.run, row.seq) - _covering(self.unsigned, row.run, row.seq)
        return _number(row.n) > self.sealed or signed > 0


def _covering(spans: Mapping[str, tuple[tuple[int, int], ...]], run: str, seq: int) -> int:
    return sum(first <= seq <= last for first, last in spans.get(run, ()))


# The number of an erasure's note, and what it says → whether it is signed.
Signed = Callable[[int, Mapping[str, Any]], bool]


def erasures(
    connection: Connection, run: str = "", *, sealed: int = 0, signed: Signed = lambda _, __: True
) -> Erasures:
    """The erasures recorded in the workspace's own chain, for one run or all."""
    spans: dict[str, tuple[tuple[int, int], ...]] = {}
    unsigned: dict[str, tuple[tuple[int, int], ...]] = {}
    doubtful = False
    for n, covered, body in connection.execute(_NOTES, {"run": WORKSPACE, "kind": "Erased"}):
        if body is None or digest_of(body) != covered:
            doubtful = True
            continue
        payload = _object(body)
        named, believed = payload.get("records"), signed(_number(n), payload)
        for each, places in (named if isinstance(named, dict) else {}).items():
            if not run or each == run:
                numbers = sorted(place for place in places if type(place) is int) if isinstance(places, list) else []
                found = tuple(_spans(numbers))
                spans[each] = (*spans.get(each, ()), *found)
                if not believed:
                    unsigned[each] = (*unsigned.get(each, ()), *found)
    return Erasures(spans, doubtful, unsigned, sealed)


@dataclass(frozen=True, slots=True)
class Handovers:
    """Whose runs went to whom, by the number of the record that says so. `doubtful` if such a record was erased with a
    person."""

    pairs: tuple[tuple[int, str, str], ...] = ()
    doubtful: bool = False

    def explain(self, n: int, asker: str, owner: str) -> bool:
        """Whether a run that one person asked, with record `n`, may belong to another now."""
        names = {asker}
        for place, old, new in self.pairs:
            if place > n and old in names:
                names.add(new)
        return owner in names or self.doubtful


def handovers(connection: Connection) -> Handovers:
    """The handovers recorded in the workspace's own chain."""
    pairs: list[tuple[int, str, str]] = []
    doubtful = False
    for n, covered, body in connection.execute(_NOTES, {"run": WORKSPACE, "kind": "AccountChanged"}):
        if body is None or digest_of(body) != covered:
            doubtful = True
        elif (payload := _object(body)).get("change") == AccountChange.handed_over:
            pairs.append((_number(n), str(payload.get("name")).removeprefix("user:"), str(payload.get("detail"))))
    return Handovers(tuple(sorted(pairs)), doubtful)


def _object(body: str) -> dict[str, Any]:
    """The JSON object of a payload; empty if it is malformed."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _spans(places: list[int]) -> Iterator[tuple[int, int]]:
    """First and last of each contiguous range."""
    begun = 0
    for at in range(len(places)):
        if at + 1 == len(places) or places[at + 1] > places[at] + 1:
            yield places[begun], places[at]
            begun = at + 1


def run_faults(
    run: str, rows: Iterable[RecordRow], entry: RunFlags | None, erased: Erasures, handed: Handovers
) -> Iterator[RecordFault]:
    """The faults of one run's records, in order: after a gap nothing more can be verified."""
    prev, place, last = START, 0, None
    approved: set[str] = set()
    gated = bool(entry and entry.gated)
    over = ""
    for row in rows:
        if row.seq != place:
            yield RecordFault(run, place, FaultKind.removed, _number(row.n))
            return
        n = _number(row.n)
        fault = _fault_of(row, prev, erased)
        if fault is not None:
            yield RecordFault(run, place, fault, n)
        elif over:
            yield RecordFault(run, place, FaultKind.inserted, n, over)
        elif (kind := current_kind(row.kind)) in ("AwaitingReview", "Reviewed", "Answered") and row.body is not None:
            payload = _object(row.body)
            gated |= kind == "AwaitingReview"
            if row.kind == "Reviewed" and payload.get("decision") == Decision.approve:
                approved.add(payload.get("seal", ""))
            elif row.kind == "Reviewed" and payload.get("decision") == Decision.reject:
                over = "the run was rejected before"
            elif row.kind == "Answered" and gated and payload.get("seal") not in approved and not erased.spans.get(run):
                yield RecordFault(run, place, FaultKind.unapproved, n)
        if entry and fault is None and place == 0 and not _is_askers(row, entry, handed):
            yield RecordFault(run, place, FaultKind.changed, n, "the list of runs names somebody else as the asker")
        if row.kind == "Answered" and not over:
            over = "the run was delivered before"
        prev, place, last = row.hash, place + 1, row
    yield from _end_faults(run, place, last, entry)


def _is_askers(row: RecordRow, entry: RunFlags, handed: Handovers) -> bool:
    """Whether the run is listed as that of whoever asked, or of somebody it was handed over to."""
    asker = _object(row.body).get("who") if row.body is not None else None
    return asker is None or asker == entry.who or handed.explain(_number(row.n), str(asker), entry.who)


def _end_faults(run: str, place: int, last: RecordRow | None, entry: RunFlags | None) -> Iterator[RecordFault]:
    answered = last is not None and last.kind == "Answered"
    n = _number(last.n) if last else 0
    if entry is None:
        yield RecordFault(run, 0, FaultKind.run_removed, n, "it is not in the list of runs")
    elif entry.delivered and not answered:
        yield RecordFault(run, place, FaultKind.cut_off, n + 1, "the run was delivered")
    elif answered and not entry.delivered:
        yield RecordFault(run, place - 1, FaultKind.changed, n, "the list of runs says that it was not delivered")


def _fault_of(row: RecordRow, prev: str, erased: Erasures) -> FaultKind | None:
    made = hash_of(row)
    if made is None or made != row.hash or row.prev != prev:
        return FaultKind.changed
    if row.body is None:
        doubtful = erased.doubtful and row.run != WORKSPACE  # the workspace's own records are never erased
        if doubtful or not erased.names(row.run, row.seq):
            return None if doubtful else FaultKind.payload_removed
        return None if erased.vouches(row) else FaultKind.erasure_unsigned
    if digest_of(row.body) != row.digest:
        return FaultKind.payload_changed
    return FaultKind.payload_inserted if row.run in erased.spans and erased.names(row.run, row.seq) else None


def _number(n: Any) -> int:
    return n if type(n) is int else 0
