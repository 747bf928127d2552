"""Places that a server watches, each for one base, and how they are. Facts, since there are few; the process that watches one
holds a lease on it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from sqlalchemy import Connection, delete, select

from assay.core.codec import dumps
from assay.core.errors import Missing, UserError
from assay.store.database import Store
from assay.store.dialect import insert_or_replace
from assay.store.runs.underway import FREE, is_elsewhere, lease
from assay.store.schema import bases, facts

WATCH = "watch "  # prefix of these facts; the id follows


@dataclass(frozen=True, slots=True)
class Watch:
    """A place that is watched for a base. It is read in the name of the owner of that base."""

    id: str
    place: str  # a folder or an address
    base: str  # its id
    by: str  # the administrator who chose it
    begun: str
    process: str = ""  # that watches it; empty if none
    until: str = ""  # when its lease runs out
    files: int = 0  # at the last look
    looked: str = ""  # when that was; empty: not yet
    changed: str = ""  # when something was read or removed last
    problem: str = ""  # why the last look failed


def listing(store: Store) -> list[Watch]:
    """All, by place."""
    with store.read() as connection:
        return _all(connection)


def begin(store: Store, place: str, base: str, by: str) -> Watch:
    with store.write() as connection:
        if any(each.place == place and each.base == base for each in _all(connection)):
            raise UserError(f"{place} is watched for that knowledge base already.")
        made = Watch("w" + store.new_id(), place, base, by, store.now())
        _put(connection, made)
        return made


def end(store: Store, watch: str) -> None:
    store.execute(delete(facts).where(facts.c.name == WATCH + watch))


def claim(store: Store, watch: str, process: str) -> bool:
    """Take or renew the lease. False if another process has it, or it was ended."""
    with store.write() as connection:
        now, known = store.now(), _one(connection, watch)
        if known is None or is_elsewhere(known, process, now):
            return False
        _put(connection, replace(known, **lease(process, now)))
        return True


def release(store: Store, watch: str, process: str) -> None:
    with store.write() as connection:
        known = _one(connection, watch)
        if known is not None and known.process == process:
            _put(connection, replace(known, **FREE))


def note(store: Store, watch: str, *, changed: bool = False, **found: Any) -> None:
    """Record how a look ended."""
    with store.write() as connection:
        known = _one(connection, watch)
        if known is not None:
            now = store.now()
            _put(connection, replace(known, looked=now, **({"changed": now} if changed else {}), **found))


def one(store: Store, watch: str) -> Watch:
    with store.read() as connection:
        known = _one(connection, watch)
    if known is None:
        raise Missing(f"Nothing with the id {watch!r} is watched.")
    return known


def _all(connection: Connection) -> list[Watch]:
    rows = connection.scalars(select(facts.c.value).where(facts.c.name.startswith(WATCH))).all()
    there = set(connection.scalars(select(bases.c.id)))  # what follows a deleted base is over
    found = [Watch(**json.loads(row)) for row in rows]
    return sorted((each for each in found if each.base in there), key=lambda each: (each.place, each.begun))


def _one(connection: Connection, watch: str) -> Watch | None:
    row = connection.scalar(select(facts.c.value).where(facts.c.name == WATCH + watch))
    return Watch(**json.loads(row)) if row else None


def _put(connection: Connection, watch: Watch) -> None:
    connection.execute(insert_or_replace(facts).values(name=WATCH + watch.id, value=dumps(asdict(watch))))
