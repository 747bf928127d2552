"""Retention: erases the payloads of old runs. The chain stays, and a note in it says what was erased and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, delete, exists, select, update

from assay.core.errors import UserError
from assay.core.events import WORKSPACE
from assay.store.database import Store, discard_erased, shifted, truncate_log
from assay.store.dialect import parts
from assay.store.erasure import erase_payloads, payloads_of
from assay.store.runs.reviews import supersede
from assay.store.runs.seals import Sign
from assay.store.schema import forecasts, mentions, payloads, runs, threads, turns
from assay.store.schema import records as table

SHORTEST = 183  # days: six months, the legal minimum for such logs
AT_ONCE = 200  # runs per note
WHY = "older than {days} days"


@dataclass(frozen=True, slots=True)
class RetentionResult:
    """How much was erased; `before` is the moment before which runs ended."""

    runs: int
    payloads: int
    before: str


def erase_old(store: Store, days: int, by: str, sign: Sign, *, shorter: bool = False) -> RetentionResult:
    """Erase the payloads of runs whose last record is older than `days`; 0 keeps all. Less than six months is refused
    unless `shorter` is set."""
    if 0 < days < SHORTEST and not shorter:
        raise UserError(
            f"Records are kept for at least {SHORTEST} days (six months), not {days}. If fewer are meant, say --shorter."
        )
    before = shifted(store.now(), days=-days) if days else ""
    count = erased = 0
    for batch in parts(store.scalars(_old(before).order_by(runs.c.id)), AT_ONCE) if days else ():
        with store.write() as connection:
            batch = list(connection.scalars(_old(before).where(runs.c.id.in_(batch))))  # one may have been resumed
            gone = payloads_of(connection, batch)
            erase_payloads(connection, store, gone, (), WHY.format(days=days), by, sign)
            for part in (mentions, forecasts):
                connection.execute(delete(part).where(part.c.run.in_(batch)))
            supersede(connection, batch)
            _clear_titles(connection, batch)
        count, erased = count + len(gone), erased + sum(map(len, gone.values()))
    if erased:  # nothing of it is left in the files; readers may delay this for the write-ahead file
        with store.engine.connect() as connection:
            discard_erased(connection)
            truncate_log(connection)
    return RetentionResult(count, erased, before)


def _old(before: str) -> Select[Any]:
    """Runs that still have payloads and no record since `before`."""
    newest = select(table.c.at).where(table.c.run == runs.c.id).order_by(table.c.seq.desc()).limit(1)
    return select(runs.c.id).where(
        runs.c.started < before,
        runs.c.id != WORKSPACE,
        newest.correlate(runs).scalar_subquery() < before,
        exists().where(payloads.c.run == runs.c.id),
    )


def _clear_titles(connection: Connection, batch: list[str]) -> None:
    """Clear the titles of conversations without turns: a title is the first question."""
    has_kept_turns = exists().where(turns.c.thread == threads.c.id, turns.c.run == payloads.c.run)
    own = select(turns.c.thread).where(turns.c.run.in_(batch))
    connection.execute(update(threads).where(threads.c.id.in_(own), ~has_kept_turns).values(title=""))
