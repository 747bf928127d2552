"""Verification: checks every record against its chain, the chain of all records against the signed heads, and all of it
against the witness in the second place; then the rights and the texts in the store against the records. Records are streamed,
so memory does not grow with their number."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from assay.core.codec import START, digest
from assay.core.errors import Missing, StoreError, UserError
from assay.core.events import WORKSPACE
from assay.governance.audit import witness
from assay.governance.audit.witness import MARK, WitnessLine
from assay.store.access import rights
from assay.store.database import DAMAGED, Store
from assay.store.runs import chains, seals
from assay.store.runs.chains import Erasures, FaultKind, Handovers, RecordFault, RecordRow, RunFlags
from assay.store.runs.seals import Seal

MOST = 100  # maximum number of reported faults; the first is the one that matters
LAST = 1 << 62  # sorts after all records with a number
STEP = 10_000  # records between two progress reports
ReportProgress = Callable[[int, int], None]  # records checked, and their total


@dataclass(frozen=True, slots=True)
class LastSeal:
    """The last valid signed head."""

    n: int
    at: str
    where: str
    key: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What was checked and what is wrong with it, the first bad record first. `since` counts the records after the last
    signed head: tampering with those cannot be found yet, if the chain was rebuilt."""

    records: int
    runs: int
    erased: int  # payloads that were erased, with a note that says why
    faults: tuple[RecordFault, ...]
    sealed: LastSeal | None
    since: int
    unsealed_since: str  # when the last signed head was made or, without one, the first record; empty if there is none
    witnessed: bool  # compared with a second place
    seconds: float

    @property
    def whole(self) -> bool:
        return not self.faults

    @property
    def conclusion(self) -> str:
        """What can be said of all of it: of what was recorded after the last signed head, nobody could tell a cut."""
        if not self.whole:
            return "The record is NOT whole. The first bad record stands first."
        if self.sealed:
            return f"The record is whole up to its last seal. It is unsealed since {self.unsealed_since}."
        if not self.records:
            return "There is no record yet."
        return f"No fault was found. The record is unsealed since {self.unsealed_since}: it could have been cut or rewritten."


def verify(
    store: Store,
    place: Path | None,
    *,
    run: str = "",
    keys: Sequence[str] = (),
    say: ReportProgress = lambda _, __: None,
) -> Verification:
    """Check every record, or those of one run. `place` is the witness file. `keys`, if given, must have signed the heads, in
    this order: where a key has signed, an earlier one signs no more."""
    try:
        return _verify(store, place, run, keys, say, nullcontext)
    except StoreError as error:
        if "decode" not in str(error):
            raise
    return _verify(store, place, run, keys, say, _lenient_text)  # the store contains bytes that are not UTF-8


def _verify(
    store: Store,
    place: Path | None,
    run: str,
    keys: Sequence[str],
    say: ReportProgress,
    reading: Callable[[Connection], AbstractContextManager[object]],
) -> Verification:
    begun = time.monotonic()
    # Taken before the records are read, so that records sealed meanwhile do not count as missing.
    size = witness.file_size(place) if place else 0
    with store.read() as connection, reading(connection):
        sealed, wrong = _check_heads(connection, place, size, keys)
        upto, signers = (sealed.n, set(keys) or {sealed.key}) if sealed else (0, set[str]())
        workspace = seals.identity(connection)

        def signed(n: int, note: Mapping[str, Any]) -> bool:
            return n <= upto or witness.is_signed_erasure(workspace, note, signers)

        erased, handed = chains.erasures(connection, run, sealed=upto, signed=signed), chains.handovers(connection)
        found: list[RecordFault] = []
        parted: RecordFault | None = None
        if run:
            found += _single_run_faults(connection, run, place, size, erased, handed)
        else:
            found += _log_faults(connection, place, size)
            parted = found[0] if found else None
            found += _run_faults(connection, erased, handed, say)
            found += _stray_payloads(connection)
            found += _right_faults(connection)
        counts = _counts(connection, run)
        last = seals.head(connection)
        first = connection.scalar(text("SELECT at FROM records ORDER BY n LIMIT 1")) or ""
    return Verification(
        *counts,
        _sort_faults(found + wrong, parted),
        sealed,
        (last[0] if last else 0) - (sealed.n if sealed else 0),
        sealed.at if sealed else str(first),
        bool(place and size),
        round(time.monotonic() - begun, 3),
    )


MISSING = frozenset(
    {FaultKind.removed, FaultKind.cut_off, FaultKind.run_removed, FaultKind.payload_removed, FaultKind.erasure_unsigned}
)


def _sort_faults(found: list[RecordFault], parted: RecordFault | None) -> tuple[RecordFault, ...]:
    """One fault for each record, in the order of records. Before the first difference from the witness (`parted`) no record is
    missing, and if an erasure note is doubtful, so is what it names: such faults come after their cause."""
    doubts = [each.n for each in found if each is parted or each.run == WORKSPACE]
    first = min(doubts, default=0)
    best: dict[tuple[str, int], RecordFault] = {}
    for each in found:
        best.setdefault((each.run, each.seq), each)

    def place(each: RecordFault) -> tuple[bool, int, bool]:
        follows = each.what in MISSING and each is not parted and each.run != WORKSPACE
        return each.run == "", max(each.n, first) if follows else each.n, follows

    return tuple(sorted(best.values(), key=place)[:MOST])


@contextmanager
def _lenient_text(connection: Connection) -> Iterator[None]:
    """Read text that is not valid UTF-8 without failing, which is slower."""
    driver: Any = connection.connection.driver_connection
    if not hasattr(driver, "text_factory"):
        yield
        return
    before = driver.text_factory
    driver.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    try:
        yield
    finally:
        driver.text_factory = before


def _log_faults(connection: Connection, place: Path | None, size: int) -> Iterator[RecordFault]:
    """The first record that differs from the witness or, after the end of the witness, from its link."""
    witnessed = witness.read_records(place, size) if place else iter(())
    link, before = START, 0
    for row in _stored_records(connection):
        line = next(witnessed, None)
        if line is not None and (row.n, row.run, row.seq, row.hash) != line[:4]:
            yield classify_difference(connection, row, line, place, size)
            return
        link = chains.link_of(row.n, row.hash, link) or ""
        if row.n != before + 1:
            yield RecordFault(
                row.run, row.seq, FaultKind.reordered, LAST, f"it is number {row.n}, and {before + 1} is missing"
            )
            return
        if row.link != link:
            yield RecordFault(row.run, row.seq, FaultKind.changed, row.n, "its link does not fit")
            return
        before = row.n
    line = next(witnessed, None)
    if line is not None:
        yield RecordFault(line.run, line.seq, FaultKind.cut_off, line.n)


def _stored_records(connection: Connection) -> Iterator[StoredRecord]:
    return map(
        StoredRecord._make, _stream(connection, "SELECT n, run, seq, hash, link, digest FROM records ORDER BY n")
    )


def _stream(connection: Connection, query: str) -> Iterator[tuple[Any, ...]]:
    """Rows as the driver gives them, one at a time. Any layer between would cost more than the check."""
    cursor: Any = connection.connection.cursor()
    try:
        cursor.execute(query)
        yield from cursor
    except connection.dialect.loaded_dbapi.Error as error:
        if "decode" in str(error):
            raise StoreError(f"The workspace's state could not be used: {error}.") from error
        raise UserError(DAMAGED.format(words=error)) from error
    finally:
        cursor.close()


def _run_faults(
    connection: Connection, erased: Erasures, handed: Handovers, say: ReportProgress
) -> Iterator[RecordFault]:
    listed = _entries(connection)
    listing = next(listed, None)
    every = connection.scalar(text("SELECT count(*) FROM records")) or 0
    done, texts = 0, StoredTexts(connection)
    differing: list[RecordFault] = []

    def counted(rows: Iterator[RecordRow]) -> Iterator[RecordRow]:
        nonlocal done
        for row in rows:
            done += 1
            if done % STEP == 0:
                say(done, every)
            if len(differing) < MOST and texts.differ(row):
                differing.append(RecordFault(row.run, row.seq, FaultKind.text_changed, row.n))
            yield row

    rows = map(RecordRow._make, _stream(connection, chains.ROWS.format(where="")))
    for run, own in groupby(rows, key=itemgetter(0)):
        while listing is not None and _before(listing[0], run):
            yield from _without_records(*listing, erased)
            listing = next(listed, None)
        entry = None
        if listing is not None and listing[0] == run:
            entry, listing = listing[1], next(listed, None)
        yield from chains.run_faults(run, counted(own), entry, erased, handed)
        for _ in counted(own):  # drain what a fault has left unread
            pass
    while listing is not None:
        yield from _without_records(*listing, erased)
        listing = next(listed, None)
    yield from differing


def _without_records(run: str, entry: RunFlags, erased: Erasures) -> Iterator[RecordFault]:
    """A run without records is a fault only if it was delivered."""
    return chains.run_faults(run, (), entry, erased, Handovers()) if entry.delivered else iter(())


def _before(left: Any, right: Any) -> bool:
    """The order in which the store lists names: by bytes."""
    return (
        str(left).encode("utf-8", "surrogateescape") < str(right).encode("utf-8", "surrogateescape") and left != right
    )


def _entries(connection: Connection) -> Iterator[tuple[str, RunFlags]]:
    rows = _stream(connection, "SELECT id, delivered, gated, who FROM runs ORDER BY id")
    return ((run, RunFlags(bool(delivered), bool(gated), who)) for run, delivered, gated, who in rows)


def _right_faults(connection: Connection) -> Iterator[RecordFault]:
    for number, words in enumerate(islice(rights.differences(connection), MOST), 1):
        yield RecordFault("", -number, FaultKind.right, LAST, words)


# A reference to words of a document, as records have it (see `core/codec.py`).
_REFERENCE = re.compile(
    r'\{"digest":"([0-9a-f]{64})","doc_id":"([^"\\]+)","end":(\d+)(?:,"id":"[^"\\]*")?(?:,"page":(?:\d+|null))?,"start":(\d+)\}'
)
TEXTS = 50_000_000  # characters of documents that are kept while records are checked


class StoredTexts:
    """Compares the words that records refer to with the stored texts. Documents that were erased are not compared."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._texts: dict[str, str | None] = {}
        self._run = ""
        self._compared: set[tuple[str, ...]] = set()  # in this run: its records often refer to the same words

    def differ(self, row: RecordRow) -> bool:
        if row.run != self._run:
            self._run, self._compared = row.run, set()
        found = set(_REFERENCE.findall(row.body)) - self._compared if isinstance(row.body, str) else set()
        self._compared |= found
        return any(not self._is_same(*each) for each in found)

    def _is_same(self, covered: str, document: str, end: str, start: str) -> bool:
        stored = self._text(document)
        return stored is None or digest(stored[int(start) : int(end)]) == covered

    def _text(self, document: str) -> str | None:
        if document not in self._texts:
            if sum(len(each or "") for each in self._texts.values()) > TEXTS:
                self._texts.clear()
            self._texts[document] = self._connection.scalar(
                text("SELECT text FROM texts WHERE document = :document"), {"document": document}
            )
        return self._texts[document]


def _stray_payloads(connection: Connection) -> Iterator[RecordFault]:
    """Payloads without a record."""
    found = connection.execute(
        text(
            "SELECT p.run, p.seq FROM payloads p LEFT JOIN records r ON r.run = p.run AND r.seq = p.seq "
            "WHERE r.run IS NULL ORDER BY p.run, p.seq LIMIT :most"
        ),
        {"most": MOST},
    ).all()
    for run, seq in found:
        yield RecordFault(run, seq, FaultKind.payload_inserted, LAST)


def _single_run_faults(
    connection: Connection, run: str, place: Path | None, size: int, erased: Erasures, handed: Handovers
) -> Iterator[RecordFault]:
    """The same for one run: its chain, and each of its records against the witness."""
    rows, entry = chains.stored_run(connection, run)
    own = [each for each in witness.read_records(place, size) if each.run == run] if place else []
    if not rows and not own and entry is None:
        raise Missing(f"There is no run called {run!r}. `assay runs` lists them.")
    by_place = {row.seq: row for row in rows}
    for line in own:
        row = by_place.get(line.seq)
        if row is None:
            inside = FaultKind.removed if line.seq <= max(by_place, default=0) else FaultKind.cut_off
            yield RecordFault(run, line.seq, inside if rows else FaultKind.run_removed, line.n)
            break
        if (row.n, row.hash) != (line.n, line.hash):
            here = StoredRecord(row.n, row.run, row.seq, row.hash, "", row.digest)
            yield classify_difference(connection, here, line, place, size)
            break
    yield from chains.run_faults(run, rows, entry, erased, handed)


def _check_heads(
    connection: Connection, place: Path | None, size: int, keys: Sequence[str]
) -> tuple[LastSeal | None, list[RecordFault]]:
    """The last signed head, and the faults of all heads."""
    wrong: list[str] = []
    workspace = seals.identity(connection)
    own = _last_valid_seal(
        connection, seals.every(connection), workspace, () if place else keys, wrong, "in the workspace"
    )
    if keys and not (size if place else own or wrong):
        wrong.append("nothing was signed with the key that was named")
    if not place:
        return (LastSeal(own.n, own.at, "the workspace", own.key) if own else None), _as_faults(wrong)
    if not size:
        if own:
            wrong.append("the second place has lost its witness")
        return None, _as_faults(wrong)
    last = _last_valid_seal(connection, witness.read_heads(place, size), workspace, keys, wrong, "in the second place")
    return (LastSeal(last.n, last.at, str(place), last.key) if last else None), _as_faults(wrong)


def _last_valid_seal(
    connection: Connection,
    stored_seals: Iterator[Seal],
    workspace: str,
    keys: Sequence[str],
    wrong: list[str],
    where: str,
) -> Seal | None:
    last = None
    for seal in stored_seals:
        if keys:
            expected = keys[keys.index(last.key) :] if last else keys
        else:
            expected = (last.key if last and where != "in the workspace" else seal.key,)
        found = seals.record_at(connection, seal.n)
        if seal.workspace != workspace:
            wrong.append(f"head {seal.n} {where} is of another workspace")
        elif seal.key not in expected:
            wrong.append(f"head {seal.n} {where} was signed with another key")
        elif not witness.is_signed_by(seal.key, seal.signature, seal.signed):
            wrong.append(f"head {seal.n} {where} was not signed with its key")
        elif found is None or found[3] != seal.link:
            wrong.append(f"head {seal.n} {where} is of other records than there are")
        else:
            last = seal
        if len(wrong) >= MOST:
            break
    return last


def _as_faults(wrong: list[str]) -> list[RecordFault]:
    return [RecordFault("", number, FaultKind.seal, 0, words) for number, words in enumerate(wrong)]


def _counts(connection: Connection, run: str) -> tuple[int, int, int]:
    """The numbers of records, runs and erased payloads."""
    where = "WHERE run = :run" if run else ""
    counted = connection.execute(
        text(
            f"SELECT (SELECT count(*) FROM records {where}), (SELECT count(DISTINCT run) FROM records {where}), "
            f"(SELECT count(*) FROM payloads {where})"
        ),
        {"run": run} if run else {},
    ).one()
    return counted[0], counted[1], max(counted[0] - counted[2], 0)


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
    same = f"run = :run AND substr(digest, 1, {MARK}) = :mark AND n >= :n"
    return connection.scalar(text(f"SELECT count(*) FROM records WHERE {same}"), {"run": run, "mark": mark, "n": n})


def _any_left(connection: Connection, run: str) -> bool:
    return connection.execute(text("SELECT 1 FROM records WHERE run = :run LIMIT 1"), {"run": run}).first() is not None


def _in_witness(place: Path, size: int, line: WitnessLine, here: StoredRecord) -> tuple[int, int]:
    """How often the witness lists each of the two, from the first difference on."""
    keys = ((line.run, line.mark), (here.run, here.mark))
    counts = Counter((each.run, each.mark) for each in witness.read_records(place, size) if each.n >= line.n)
    return counts[keys[0]], counts[keys[1]]


def _int(value: Any) -> int:
    return value if type(value) is int else -1
