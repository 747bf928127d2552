"""Runs that a server carries on, with the person each is for: what is still listed when one starts was cut off."""

from __future__ import annotations

from sqlalchemy import delete, insert, select

from assay.core.access import Principal
from assay.store.database import Store
from assay.store.schema import reviews, underway


def begin(store: Store, run: str, principal: Principal) -> None:
    """From now on the run survives the process: whichever server starts next takes it up."""
    with store.write() as connection:
        connection.execute(delete(underway).where(underway.c.run == run))
        connection.execute(insert(underway).values(run=run, who=principal.id, groups=sorted(principal.groups)))


def end(store: Store, run: str) -> None:
    with store.write() as connection:
        connection.execute(delete(underway).where(underway.c.run == run))


def listing(store: Store) -> list[tuple[str, Principal]]:
    """Every run that was cut off, with whose it is. One whose answer waits for a reviewer was not: it stays listed for the
    groups of whoever asked, and goes on when it is decided."""
    held = select(reviews.c.run).where(reviews.c.state == "waiting")
    with store.read() as connection:
        rows = connection.execute(select(underway).where(underway.c.run.not_in(held)).order_by(underway.c.run)).all()
    return [(row.run, Principal(row.who, frozenset(row.groups))) for row in rows]


def asker(store: Store, run: str) -> Principal | None:
    """Who asked, in the groups that they were in then, of a run that a server has begun."""
    with store.read() as connection:
        row = connection.execute(select(underway).where(underway.c.run == run)).first()
    return Principal(row.who, frozenset(row.groups)) if row else None
