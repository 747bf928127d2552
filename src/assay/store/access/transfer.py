"""Transfer of everything one user owns to another: when a local user becomes a member, or a member leaves."""

from __future__ import annotations

from sqlalchemy import Connection, Engine, delete, select, update

from assay.core.access import LOCAL
from assay.core.events import AccountChange
from assay.store import embedding_cache
from assay.store.access import members, offers
from assay.store.database import Store
from assay.store.dialect import insert_new
from assay.store.schema import bases, forecasts, grants, jobs, reviews, runs, spending, threads, underway

FORMER = "removed:"  # prefix of the name under which the things of a removed person stay: nobody can sign in with it
OWNED = (runs, threads, jobs, underway, spending, reviews, forecasts)


def transfer_ownership(store: Store, cache: Engine, old: str, new: str, by: str = LOCAL.id) -> int:
    """Transfer bases, runs, threads and jobs in one transaction. Returns the number of bases."""
    with store.write() as connection:
        moved = _transfer(connection, store, old, new, by)
    embedding_cache.transfer(cache, old, new)
    return moved


def remove_member(store: Store, cache: Engine, name: str, heir: str = "", by: str = LOCAL.id) -> tuple[int, str]:
    """Remove a member. What they own goes to the heir, or stays under a name that nobody has or can get: whoever is added
    under the old name inherits nothing. Returns the number of bases, and the name under which they are now."""
    new = heir or f"{FORMER}{name}:{store.new_id()}"
    with store.write() as connection:
        members.remove(connection, store, name, by)
        moved = _transfer(connection, store, name, new, by)
    embedding_cache.transfer(cache, name, new)
    return moved, new


def former_names(store: Store, name: str) -> list[str]:
    """The names under which the things of removed people of this name are."""
    with store.read() as connection:
        columns = (bases.c.owner, *(table.c.who for table in OWNED))
        like = f"{FORMER}{name}:"
        queries = [select(column).where(column.startswith(like, autoescape=True)) for column in columns]
        return sorted({found for query in queries for found in connection.scalars(query)})


def _transfer(connection: Connection, store: Store, old: str, new: str, by: str) -> int:
    moved = _bases(connection, old, new)
    for table in OWNED:
        connection.execute(update(table).where(table.c.who == old).values(who=new))
    members.note(connection, store, old, AccountChange.handed_over, by, new)
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
    offers.transfer(connection, old, new)
    return len(owned)


def _free(name: str, old: str, taken: set[str]) -> str:
    """A name that the new owner does not use yet."""
    wanted = f"{name} ({old})"
    n = 2
    while wanted in taken:
        wanted, n = f"{name} ({old} {n})", n + 1
    return wanted
