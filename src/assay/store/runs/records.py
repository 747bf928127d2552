"""Records of runs as hash chains: each record covers the previous one, and its payload only by digest."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Any

from sqlalchemy import Connection, bindparam, func, insert, literal, or_, select, update

from assay.core.access import Scope
from assay.core.codec import START, Texts, digest, dumps, linked, to_json
from assay.core.errors import CarriedOn, Missing, StoreError
from assay.core.events import (
    WORKSPACE,
    Answered,
    Asked,
    AwaitingReview,
    DocumentEdited,
    Erased,
    Event,
    Narrowed,
    Reviewed,
    Withheld,
    WorkspaceEvent,
)
from assay.core.events.upgrade import SALT, current_kind, read_event, stored_kinds
from assay.store.database import Store
from assay.store.dialect import Prepared, insert_new
from assay.store.runs import reviews, seals, visibility
from assay.store.runs.chains import erasures, handovers, run_faults, stored_run
from assay.store.runs.seals import Sign
from assay.store.schema import SAME_RECORD, mentions, payloads, records, runs

# Built once: building a statement takes longer than running it.
_LAST = Prepared(
    select(records.c.seq, records.c.hash, records.c.kind)
    .where(records.c.run == bindparam("of"))
    .order_by(records.c.seq.desc())
    .limit(1)
)
_HEAD = Prepared(select(records.c.n, records.c.link).order_by(records.c.n.desc()).limit(1))
_NEWEST = select(func.max(records.c.n))
_RECORD, _PAYLOAD, _MENTION = Prepared(insert(records)), Prepared(insert(payloads)), Prepared(insert(mentions))
LATE = "it was recorded while a document that it speaks of was erased"


@dataclass(frozen=True, slots=True)
class Record:
    """`hash` covers all previous records of the run; the payload is stored separately, covered by `digest`. `n` and
    `link` are its position in the chain of all records."""

    run: str
    seq: int
    at: str
    kind: str
    digest: str
    prev: str
    hash: str
    n: int
    link: str


RECORD = tuple(Record.__dataclass_fields__)


def link(run: str, seq: int, at: str, kind: str, body_digest: str, prev: str) -> str:
    return digest(dumps([run, seq, at, kind, body_digest, prev]))


def new_id(store: Store) -> str:
    """The id of a run that is still to begin."""
    return "r" + store.new_id()


def begin(store: Store, who: str, *, gated: bool = False, run: str = "") -> str:
    """Create a run for this user; a gated run is delivered only with a reviewer's approval, whatever its result."""
    run = run or new_id(store)
    store.execute(insert(runs).values(id=run, who=who, started=store.now(), delivered=False, gated=gated))
    return run


def append(
    store: Store,
    run: str,
    seq: int,
    event: Event,
    *,
    hours: float = reviews.HOURS,
    check: Callable[[Connection], None] = lambda _: None,
) -> Record:
    """Append one event to the chain; durable when this returns. Refuses a position that is taken, and an answer that
    lacks a required approval. `hours` is how long an approval is valid; `check` runs in the same transaction and
    raises to prevent the write."""
    with store.write() as connection:
        last, prev, kind = _LAST.first(connection, of=run) or (-1, START, "")
        expected = last + 1
        if seq != expected:
            raise CarriedOn(f"Run {run} is being carried on elsewhere: record {expected} is next, not {seq}.")
        if kind == "Answered":
            raise StoreError(f"Run {run} is delivered; nothing can follow.")
        if kind == "Reviewed":
            reviews.refuse_after_rejection(connection, run)
        check(connection)
        match event:
            case AwaitingReview():
                reviews.add_waiting(connection, store, run, event)
            case Reviewed():
                reviews.decide(connection, store, run, event, hours)
            case Answered():
                reviews.deliver(connection, store, run, event.seal)
                _check_approved(connection, run, event)
                connection.execute(update(runs).where(runs.c.id == run).values(delivered=True))
            case _ if kind in stored_kinds(AwaitingReview):  # the answer that waits is no longer the run's
                reviews.supersede(connection, [run])
            case _:
                pass
        return _put(connection, store, run, seq, prev, event)


def runs_after(store: Store, n: int | None) -> tuple[int, set[str]]:
    """The number of the latest record, and the runs that have records after number `n`; with None, no runs."""
    with store.read() as connection:
        if n is None:
            return connection.scalar(_NEWEST) or 0, set()
        rows = connection.execute(select(records.c.n, records.c.run).where(records.c.n > n)).all()
    return max((row.n for row in rows), default=n), {row.run for row in rows}


def _check_approved(connection: Connection, run: str, answered: Answered) -> None:
    """An answer delivered under a seal must equal, character by character, the one that waited under it; only its
    cost may have grown."""
    if answered.seal is None:
        return
    own = (records.c.run == run) & (records.c.kind.in_(stored_kinds(AwaitingReview)))
    stored = map(json.loads, connection.scalars(select(payloads.c.body).join(records, SAME_RECORD).where(own)))
    free = {"usage": None}
    given = to_json(answered.answer, words=False) | free
    if not any(each["seal"] == answered.seal and each["answer"] | free == given for each in stored):
        raise StoreError(f"Run {run} may not be delivered: no reviewer has approved exactly this answer.")


def note(connection: Connection, store: Store, event: WorkspaceEvent) -> Record:
    """Record a workspace-wide event in its own chain, in the transaction in which it happens."""
    last, prev, _ = _LAST.first(connection, of=WORKSPACE) or (-1, START, "")
    if last < 0:
        connection.execute(insert(runs).values(id=WORKSPACE, who="", started=store.now(), delivered=False, gated=False))
    return _put(connection, store, WORKSPACE, last + 1, prev, event)


def note_erased(connection: Connection, store: Store, event: Erased, sign: Sign) -> Record:
    """Record an erasure, signed if any head was: what a signed head covers is missing only on the word of the key's owner."""
    if seals.last(connection) is not None:
        key, signature = sign(seals.erasure_message(seals.identity(connection), to_json(event, words=False)))
        event = replace(event, key=key, signature=signature)
    return note(connection, store, event)


def _put(connection: Connection, store: Store, run: str, seq: int, prev: str, event: Event) -> Record:
    assert not isinstance(event, Withheld), "what is withheld is on record already"
    kind = type(event).__name__
    plain = to_json(event, words=False)
    # The digest outlives the payload: without the salt, which goes with it, whoever guesses erased words could confirm them.
    body = dumps(plain if isinstance(event, Erased) else plain | {SALT: store.new_id()})
    at, covered = store.now(), digest(body)
    head, before = _HEAD.first(connection) or (0, START)
    n = head + 1
    hash = link(run, seq, at, kind, covered, prev)
    record = Record(run, seq, at, kind, covered, prev, hash, n, linked(n, hash, before))
    _RECORD.run(connection, **{name: getattr(record, name) for name in RECORD})
    if spoken_of := sorted(documents_in(plain)):
        _MENTION.run_many(connection, [{"document": each, "run": run, "seq": seq} for each in spoken_of])
    if isinstance(event, Narrowed):
        visibility.clear_erasure_mark(connection, run)
    if run != WORKSPACE and visibility.must_erase(connection, run, spoken_of):
        # Text that was erased meanwhile never reaches the disk.
        note(connection, store, Erased(LATE, "", (), {run: (seq,)}))
        if isinstance(event, AwaitingReview):
            reviews.supersede(connection, [run])  # it can no longer be reviewed
            visibility.clear_erasure_mark(connection, run)  # the run rests, and whoever resumes it reads it anew
        else:
            visibility.mark_erased(connection, run)
    else:
        _PAYLOAD.run(connection, run=run, seq=seq, body=body)
    if isinstance(event, Asked) and event.history:
        # A follow-up sees the results of previous turns: it inherits all documents they mention, cited or not.
        turns = mentions.c.run.in_([turn.run for turn in event.history])
        theirs = select(mentions.c.document, literal(run), literal(0)).where(turns).distinct()
        connection.execute(insert_new(mentions).from_select(["document", "run", "seq"], theirs))
    return record


def documents_in(body: Any) -> set[str]:
    """All documents that a payload refers to."""
    if isinstance(body, dict):
        named = body.get("doc_id")  # empty if it concerns several documents
        own = {named} if isinstance(named, str) and named else set()
        listed = body.get("documents")  # ids, unless it is just a count
        own.update(each for each in (listed if isinstance(listed, list) else ()) if isinstance(each, str))
        # Tool arguments contain documents in the model's own words: those are not ids and refer to nothing.
        return own.union(*(documents_in(each) for name, each in body.items() if name != "arguments"))
    if isinstance(body, list):
        return set().union(*(documents_in(each) for each in body))
    return set()


def workspace_log(store: Store) -> list[tuple[str, Event]]:
    """Workspace-wide events with their times, oldest first: for the operator."""
    rows = store.rows(
        select(records.c.at, records.c.kind, payloads.c.body)
        .outerjoin(payloads, SAME_RECORD)
        .where(records.c.run == WORKSPACE)
        .order_by(records.c.seq)
    )
    erased = "It was erased."
    return [
        (row.at, read_event(row.kind, json.loads(row.body)) if row.body else Withheld(current_kind(row.kind), erased))
        for row in rows
    ]


def document_edits(connection: Connection, ids: Sequence[str]) -> list[DocumentEdited]:
    """The corrections of these documents by people, oldest first."""
    rows = connection.scalars(
        select(payloads.c.body)
        .join(records, SAME_RECORD)
        .where(records.c.run == WORKSPACE, records.c.kind == DocumentEdited.__name__)
        .where(or_(*(payloads.c.body.contains(dumps(each), autoescape=True) for each in ids)))
        .order_by(records.c.seq)
    )
    edits = (read_event(DocumentEdited.__name__, json.loads(body)) for body in rows)
    return [edit for edit in edits if isinstance(edit, DocumentEdited) and edit.what in ids]


_STARTED = Prepared(select(runs.c.started).where(runs.c.id == bindparam("of")))


def owner(store: Store, run: str) -> str:
    """Whose run it is now; empty if there is none."""
    return store.scalar(select(runs.c.who).where(runs.c.id == run)) or ""


def started(store: Store, run: str) -> str:
    """When a run was begun."""
    with store.read() as connection:
        return (_STARTED.first(connection, of=run) or ("",))[0]


def chain(store: Store, run: str, who: str) -> list[Record]:
    """A run's records, if it belongs to this user."""
    own = select(records).join(runs, runs.c.id == records.c.run).where(runs.c.id == run, runs.c.who == who)
    found = [Record(**row) for row in store.mappings(own.order_by(records.c.seq))]
    if not found:
        raise Missing(f"There is no run called {run!r}. `assay runs` lists them.")
    return found


def events_of(store: Store, run: str, who: str, texts: Texts, scope: Scope) -> list[Event]:
    """A run's events as this user may see them now, with document text restored."""
    found = [event for _, event in events_since(store, run, who, texts, scope, -1, None)]
    if not found:
        raise Missing(f"There is no run called {run!r}. `assay runs` lists them.")
    if isinstance(found[0], Withheld):
        raise Missing(f"Run {run} was erased, with a document that it spoke of, with its person or for its age.")
    return found


def events_since(
    store: Store, run: str, who: str, texts: Texts, scope: Scope, after: int, most: int | None = 200
) -> list[tuple[Record, Event]]:
    """Events of a user's run after this record, in order and in small batches; empty if there are no more yet. Hidden payloads
    are not even read."""
    own = select(records, payloads.c.body).join(runs, runs.c.id == records.c.run).outerjoin(payloads, SAME_RECORD)
    own = own.where(runs.c.id == run, runs.c.who == who, records.c.seq > after)
    with store.read_shown() as connection:
        rows = connection.execute(own.order_by(records.c.seq).limit(most)).mappings().all()
        over = visibility.hidden_records(connection, run, scope)

        def read(record: Record, body: str | None) -> Event:
            if body is None or (record.seq and over.covers(record.seq)):
                return Withheld(current_kind(record.kind), visibility.WITHHELD_REASON)
            try:
                event = read_event(record.kind, json.loads(body), texts=texts)
            except (ValueError, KeyError) as error:
                raise StoreError(f"The record of run {run} was changed and cannot be read ({error}).") from error
            return visibility.redact(connection, event, scope)

        found = ((Record(**{name: row[name] for name in RECORD}), row["body"]) for row in rows)
        return [(record, read(record, body)) for record, body in found]


_MOMENT = Prepared(select(records.c.at).where(records.c.run == bindparam("of"), records.c.seq == bindparam("place")))


def recorded_at(store: Store, run: str, seq: int) -> str:
    """The time of a record; empty if it does not exist."""
    with store.read() as connection:
        return (_MOMENT.first(connection, of=run, place=seq) or ("",))[0]


IDLE = ("Paused", "Failed", "AwaitingReview", "Answered")  # nothing runs after these
LONGEST = 600.0  # the maximum seconds between two events of a live run; longer gaps were suspension or a crash


def active_seconds(store: Store, run: str) -> float:
    """How long a run was active according to its record: waiting for the user does not count."""
    rows = store.rows(select(records.c.kind, records.c.at).where(records.c.run == run).order_by(records.c.seq))
    gaps = (
        (datetime.fromisoformat(after.at) - datetime.fromisoformat(before.at)).total_seconds()
        for before, after in pairwise(rows)
        if current_kind(before.kind) not in IDLE and after.kind not in ("Resumed", "Reviewed")
    )
    return sum(min(max(gap, 0.0), LONGEST) for gap in gaps)


def faults(store: Store, run: str) -> Iterator[str]:
    """The faults of a run's chain, as messages; empty if it is intact."""
    with store.read() as connection:
        rows, entry = stored_run(connection, run)
        erased, handed = erasures(connection, run), handovers(connection)
    if rows or entry:
        yield from (each.words for each in run_faults(run, rows, entry, erased, handed))
