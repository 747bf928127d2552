"""What runs did, as chains of digests: each record covers the one before, and its payload only by digest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update

from assay.codec import START, Texts, digest, dumps, from_json, linked, to_json
from assay.errors import Missing, StoreError, UserError
from assay.events import KINDS, Answered, Asked, Event
from assay.store import reviews
from assay.store.open import Store
from assay.store.schema import mentions, payloads, records, runs
from assay.trust import WORKSPACE, Erased, Granted, Held, Reviewed, Withheld

# Spelt once: putting a statement together takes longer than running it.
_LAST = (
    select(records.c.seq, records.c.hash, records.c.kind)
    .where(records.c.run == bindparam("of"))
    .order_by(records.c.seq.desc())
    .limit(1)
)
_HEAD = select(records.c.n, records.c.link).order_by(records.c.n.desc()).limit(1)
_RECORD, _PAYLOAD, _MENTION = insert(records), insert(payloads), insert(mentions)


@dataclass(frozen=True, slots=True)
class Record:
    """`hash` covers everything before it here; the payload is apart, covered by `digest`. `n` and `link` are its place in the
    chain of all records."""

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


@dataclass(frozen=True, slots=True)
class RunEntry:
    id: str
    who: str
    started: str
    delivered: bool


def link(run: str, seq: int, at: str, kind: str, body_digest: str, prev: str) -> str:
    return digest(dumps([run, seq, at, kind, body_digest, prev]))


def begin(store: Store, who: str, *, gated: bool = False) -> str:
    """A new run of this person; a gated one is delivered only with a reviewer's approval, whatever it comes to."""
    run = "r" + store.new_id()
    with store.write() as connection:
        connection.execute(insert(runs).values(id=run, who=who, started=store.now(), delivered=False, gated=gated))
    return run


def append(store: Store, run: str, seq: int, event: Event, *, hours: float = reviews.HOURS) -> Record:
    """One event at its place in the chain, on disk when this returns. A place that is taken is refused, and so is what no
    reviewer has approved where one has to. `hours` is how long an approval holds."""
    with store.write() as connection:
        last = connection.execute(_LAST, {"of": run}).first()
        expected = last.seq + 1 if last else 0
        if seq != expected:
            raise StoreError(f"Run {run} is being carried on elsewhere: record {expected} is next, not {seq}.")
        if last and last.kind == "Answered":
            raise StoreError(f"Run {run} is delivered; nothing can follow.")
        if last and last.kind == "Reviewed":
            reviews.refuse_after_rejection(connection, run)
        match event:
            case Held():
                reviews.hold(connection, store, run, event)
            case Reviewed():
                reviews.decide(connection, store, run, event, hours)
            case Answered():
                reviews.deliver(connection, store, run, event.seal)
                connection.execute(update(runs).where(runs.c.id == run).values(delivered=True))
            case _:
                pass
        return _put(connection, store, run, seq, last.hash if last else START, event)


def note(connection: Connection, store: Store, event: Erased | Granted) -> Record:
    """What happened to the whole workspace, in its own chain; in the transaction in which it happens."""
    last = connection.execute(_LAST, {"of": WORKSPACE}).first()
    if last is None:
        connection.execute(insert(runs).values(id=WORKSPACE, who="", started=store.now(), delivered=False, gated=False))
    seq, prev = (last.seq + 1, last.hash) if last else (0, START)
    return _put(connection, store, WORKSPACE, seq, prev, event)


def _put(connection: Connection, store: Store, run: str, seq: int, prev: str, event: Event) -> Record:
    assert not isinstance(event, Withheld), "what is withheld is on record already"
    kind = type(event).__name__
    plain = to_json(event, words=False)
    body = dumps(plain)
    at, covered = store.now(), digest(body)
    head = connection.execute(_HEAD).first()
    n, before = (head.n + 1, head.link) if head else (1, START)
    hash = link(run, seq, at, kind, covered, prev)
    record = Record(run, seq, at, kind, covered, prev, hash, n, linked(n, hash, before))
    connection.execute(_RECORD, to_json(record))
    connection.execute(_PAYLOAD, {"run": run, "seq": seq, "body": body})
    if spoken_of := sorted(documents_in(plain)):
        connection.execute(_MENTION, [{"document": each, "run": run, "seq": seq} for each in spoken_of])
    return record


def documents_in(body: Any) -> set[str]:
    """Every document that a payload refers to."""
    if isinstance(body, dict):
        own = {body["doc_id"]} if isinstance(body.get("doc_id"), str) else set()
        told = body.get("documents")  # their ids, where it is no mere number of them
        own.update(each for each in (told if isinstance(told, list) else ()) if isinstance(each, str))
        return own.union(*(documents_in(each) for each in body.values()))
    if isinstance(body, list):
        return set().union(*(documents_in(each) for each in body))
    return set()


def chain(store: Store, run: str, who: str) -> list[Record]:
    """A run's records, if it is this person's."""
    with store.read() as connection:
        rows = connection.execute(
            select(records)
            .join(runs, runs.c.id == records.c.run)
            .where(runs.c.id == run, runs.c.who == who)
            .order_by("seq")
        )
        found = [Record(**row) for row in rows.mappings()]
    if not found:
        raise Missing(f"There is no run called {run!r}. `assay runs` lists them.")
    return found


def events_of(store: Store, run: str, who: str, texts: Texts) -> list[Event]:
    """A run's events, with the words of documents put back in."""
    kinds = {record.seq: record.kind for record in chain(store, run, who)}
    bodies = _bodies(store, run)
    if kinds.keys() - bodies.keys():
        raise UserError(f"Part of run {run} was erased with a document that it spoke of; it cannot be shown again.")
    try:
        return [from_json(KINDS[kind], json.loads(bodies[seq]), texts=texts) for seq, kind in kinds.items()]
    except (ValueError, KeyError) as error:
        raise StoreError(f"The record of run {run} was changed and cannot be read ({error}).") from error


def since(
    store: Store, run: str, who: str, texts: Texts, after: int, most: int = 200
) -> list[tuple[Record, Event | None]]:
    """A person's run from after this record on, in order, a few at a time; nothing when there is no more yet. A record
    whose payload was erased with a document has no event."""
    with store.read() as connection:
        rows = connection.execute(
            select(records, payloads.c.body)
            .join(runs, runs.c.id == records.c.run)
            .outerjoin(payloads, (payloads.c.run == records.c.run) & (payloads.c.seq == records.c.seq))
            .where(runs.c.id == run, runs.c.who == who, records.c.seq > after)
            .order_by(records.c.seq)
            .limit(most)
        ).mappings()
        found = [(Record(**{name: row[name] for name in RECORD}), row["body"]) for row in rows]
    try:
        return [
            (record, None if body is None else from_json(KINDS[record.kind], json.loads(body), texts=texts))
            for record, body in found
        ]
    except (ValueError, KeyError) as error:
        raise StoreError(f"The record of run {run} was changed and cannot be read ({error}).") from error


_MOMENT = select(records.c.at).where(records.c.run == bindparam("of"), records.c.seq == bindparam("place"))


def moment(store: Store, run: str, seq: int) -> str:
    """When something was recorded; nothing where it was not."""
    with store.read() as connection:
        return connection.scalar(_MOMENT, {"of": run, "place": seq}) or ""


def _bodies(store: Store, run: str) -> dict[int, str]:
    with store.read() as connection:
        rows = connection.execute(select(payloads.c.seq, payloads.c.body).where(payloads.c.run == run))
        return {row.seq: row.body for row in rows}


def listing(store: Store, who: str, limit: int = 50) -> list[tuple[RunEntry, str]]:
    """A person's runs with their questions, newest first."""
    with store.read() as connection:
        rows = connection.execute(
            select(runs, payloads.c.body)
            .join(payloads, (payloads.c.run == runs.c.id) & (payloads.c.seq == 0))
            .where(runs.c.who == who)
            .order_by(runs.c.started.desc(), runs.c.id)
            .limit(limit)
        ).mappings()
        return [
            (
                RunEntry(row["id"], row["who"], row["started"], row["delivered"]),
                from_json(Asked, json.loads(row["body"])).question,
            )
            for row in rows
        ]


IDLE = ("Paused", "Failed", "Held", "Answered")  # after these nothing goes on
LONGEST = 600.0  # seconds between two events of a run that is alive; what is longer was spent asleep or dead


def active_seconds(store: Store, run: str) -> float:
    """How long a run was at work, as far as its record tells: waiting for a person is not work."""
    with store.read() as connection:
        rows = connection.execute(
            select(records.c.kind, records.c.at).where(records.c.run == run).order_by(records.c.seq)
        ).all()
    gaps = (
        (datetime.fromisoformat(after.at) - datetime.fromisoformat(before.at)).total_seconds()
        for before, after in pairwise(rows)
        if before.kind not in IDLE and after.kind not in ("Resumed", "Reviewed")
    )
    return sum(min(max(gap, 0.0), LONGEST) for gap in gaps)


def faults(store: Store, run: str) -> Iterator[str]:
    """What is wrong with a run's chain, in words; nothing when it is whole."""
    with store.read() as connection:
        rows = connection.execute(select(records).where(records.c.run == run).order_by(records.c.seq)).mappings().all()
        delivered = connection.scalar(select(runs.c.delivered).where(runs.c.id == run))
    bodies = _bodies(store, run)
    prev = START
    for place, row in enumerate(rows):
        record = Record(**row)
        if record.seq != place:
            yield f"record {place} is missing"
            return
        if record.prev != prev:
            yield f"record {place} does not follow the one before it"
        body = bodies.get(place)
        if body is not None and digest(body) != record.digest:
            yield f"the payload of record {place} was changed"
        if link(record.run, record.seq, record.at, record.kind, record.digest, record.prev) != record.hash:
            yield f"record {place} was changed"
        prev = record.hash
    if delivered and (not rows or rows[-1]["kind"] != "Answered"):
        yield "the run was delivered, and its end is missing"
