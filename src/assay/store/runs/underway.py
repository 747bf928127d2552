"""Runs in progress on a server, with their owners: those still listed when a server starts were interrupted."""

from __future__ import annotations

from sqlalchemy import delete, insert, select

from assay.core.access import Principal
from assay.store.database import Store
from assay.store.schema import reviews, underway


def begin(store: Store, run: str, principal: Principal) -> None:
    """Register a run. From now on it survives the process: the next server to start resumes it."""
    with store.write() as connection:
        connection.execute(delete(underway).where(underway.c.run == run))
        connection.execute(insert(underway).values(run=run, who=principal.id, groups=sorted(principal.groups)))


def end(store: Store, run: str) -> None:
    with store.write() as connection:
        connection.execute(delete(underway).where(underway.c.run == run))


def listing(store: Store) -> list[tuple[str, Principal]]:
    """All interrupted runs with their owners. A run that waits for review is not interrupted: it stays listed to
    keep the asker's groups, and continues after the decision."""
    held = select(reviews.c.run).where(reviews.c.state == "waiting")
    with store.read() as connection:
        rows = connection.execute(select(underway).where(underway.c.run.not_in(held)).order_by(underway.c.run)).all()
    return [(row.run, Principal(row.who, frozenset(row.groups))) for row in rows]


def asker(store: Store, run: str) -> Principal | None:
    """The asker of a run started by a server, with their groups at that time."""
    with store.read() as connection:
        row = connection.execute(select(underway).where(underway.c.run == run)).first()
    return Principal(row.who, frozenset(row.groups)) if row else None
