"""Transfer of everything one user owns to another: when a local user becomes a member, or a member leaves."""

from __future__ import annotations

from sqlalchemy import Connection, Engine, delete, select, update

from assay.store.database import Store, plain_errors
from assay.store.dialect import insert_new, update_where_free
from assay.store.schema import bases, forecasts, grants, jobs, reviews, runs, spending, threads, underway, vectors


def transfer_ownership(store: Store, cache: Engine, old: str, new: str) -> int:
    """Transfer bases, runs, threads and jobs in one transaction. Returns the number of bases."""
    with store.write() as connection:
        moved = _bases(connection, old, new)
        for table in (runs, threads, jobs, underway, spending, reviews, forecasts):
            connection.execute(update(table).where(table.c.who == old).values(who=new))
    with plain_errors(), cache.connect().execution_options(assay_writes=True) as connection, connection.begin():
        # So that the vectors are erased together with the documents; those the new owner already has are not moved.
        connection.execute(update_where_free(vectors).where(vectors.c.owner == old).values(owner=new))
        connection.execute(delete(vectors).where(vectors.c.owner == old))
    return moved


def _bases(connection: Connection, old: str, new: str) -> int:
    taken = set(connection.scalars(select(bases.c.name).where(bases.c.owner == new)))
    owned = connection.execute(select(bases.c.id, bases.c.name).where(bases.c.owner == old)).all()
    for row in owned:
        name = row.name if row.name not in taken else _free(row.name, old, taken)
        taken.add(name)
        connection.execute(update(bases).where(bases.c.id == row.id).values(owner=new, name=name))
    for label in connection.scalars(select(grants.c.label).where(grants.c.name == f"user:{old}")).all():
        connection.execute(insert_new(grants).values(label=label, name=f"user:{new}"))
    connection.execute(delete(grants).where(grants.c.name == f"user:{old}"))
    return len(owned)


def _free(name: str, old: str, taken: set[str]) -> str:
    """A name that the new owner does not use yet."""
    wanted = f"{name} ({old})"
    n = 2
    while wanted in taken:
        wanted, n = f"{name} ({old} {n})", n + 1
    return wanted
