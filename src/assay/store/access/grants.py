"""Bases and grants: the source of truth for access, and the only module that creates a `Scope`."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

from sqlalchemy import Connection, delete, insert, select, update

from assay.core.access import LOCAL, Base, Principal, Scope
from assay.core.errors import Missing, UserError
from assay.core.events import Granted
from assay.store import fetched, place_lists
from assay.store.access import offers
from assay.store.database import Store
from assay.store.dialect import insert_new
from assay.store.runs import records
from assay.store.schema import bases, documents, grants, leftovers

USER, GROUP = "user:", "group:"
ID = re.compile("b[0-9a-f]{16}")  # of a base


def scope_of(store: Store, principal: Principal) -> Scope:
    """What this user may read now: of what others share with them, what they have accepted."""
    with store.read() as connection:
        return _scope(connection, principal)


def _scope(connection: Connection, principal: Principal) -> Scope:
    labels = offers.labels_of(connection, principal)
    accepted, _ = offers.readable_bases(connection, principal, labels)
    return Scope(principal.id, with_distinct_names(accepted, principal.id), labels)


def with_distinct_names(found: list[Base], who: str) -> tuple[Base, ...]:
    """Bases under names unique for this user: if several share a name, the owner is added to those of other owners, and the
    id if another base has exactly that name."""
    often = Counter(base.name for base in found)

    def distinct(base: Base) -> Base:
        if often[base.name] == 1 or base.owner == who:
            return base
        name = f"{base.name} ({base.owner})"
        return replace(base, name=f"{name} {base.id}" if name in often else name)

    return tuple(sorted(map(distinct, found), key=lambda base: base.name))


class NameTaken(UserError):
    """This user already has a base under that name."""


def create_base(store: Store, name: str, principal: Principal, description: str = "", group: str = "") -> Base:
    """Create a base owned by the user or by one of their groups. A base's own label is its id."""
    with store.write() as connection:
        if _find(connection, name, principal) is not None:
            raise _taken(name)
        return _create(store, connection, name, principal, description, group)


def get_or_create_base(store: Store, name: str, principal: Principal, description: str = "") -> Base:
    """The base of that name that this user may write to; created as their own if there is none."""
    with store.write() as connection:
        found = _find(connection, name, principal)
        if found is None:
            return _create(store, connection, name, principal, description, "")
        if not principal.owns(found):
            raise UserError(f"The knowledge base {name!r} is not yours to change.")
        if description:
            connection.execute(update(bases).where(bases.c.id == found.id).values(description=description))
        return replace(found, description=description or found.description)


def describe(store: Store, base: Base, description: str) -> Base:
    """Change the description of a base, and return the base."""
    store.execute(update(bases).where(bases.c.id == base.id).values(description=description))
    return replace(base, description=description)


def _find(connection: Connection, name: str, principal: Principal) -> Base | None:
    return _scope(connection, principal).find(name)


def _create(
    store: Store, connection: Connection, name: str, principal: Principal, description: str, group: str
) -> Base:
    invalid = not name or name != name.strip() or len(name) > 100 or any(not sign.isprintable() for sign in name)
    if invalid or ID.fullmatch(name):  # a base is also addressed by its id
        raise UserError(f"{name!r} cannot be the name of a knowledge base. Use up to 100 printable characters.")
    if group and group not in principal.groups:
        raise UserError(f"You are not in a group called {group!r}.")
    base = Base("b" + store.new_id(), name, GROUP + group if group else principal.id, description)
    if connection.scalar(select(bases.c.id).where(bases.c.name == name, bases.c.owner == base.owner)) is not None:
        raise _taken(name)
    connection.execute(
        insert(bases).values(id=base.id, name=name, owner=base.owner, description=description, created=store.now())
    )
    connection.execute(insert(grants).values(label=base.id, name=grant_of(base)))
    offers.record(connection, base.id, grant_of(base), True)
    if base.owner != LOCAL.id:
        records.note(connection, store, Granted(base.id, grant_of(base), True, principal.id))
    return base


def _taken(name: str) -> NameTaken:
    return NameTaken(f"There is a knowledge base called {name!r} already. Choose another name.")


def grant_of(base: Base) -> str:
    """The grant implied by owning a base."""
    return base.owner if base.owner.startswith(GROUP) else USER + base.owner


def share(store: Store, base: Base, name: str, by: str = LOCAL.id) -> None:
    """Grant a user (`user:…`) or all members of a group (`group:…`) read access to a base, which is offered to them."""
    check_grantee(name)
    with store.write() as connection:
        new = connection.execute(insert_new(grants).values(label=base.id, name=name))
        if new.rowcount:
            offers.accept_if_operators(connection, base.id, [name], by)
            records.note(connection, store, Granted(base.id, name, True, by))


def stop_sharing(store: Store, base: Base, name: str, by: str = LOCAL.id) -> None:
    """Revoke read access, effective from the next question. The owner always keeps access."""
    check_grantee(name)
    if name == grant_of(base):
        raise UserError(f"The knowledge base {base.name!r} belongs to {name!r}; they go on seeing it.")
    with store.write() as connection:
        gone = connection.execute(delete(grants).where(grants.c.label == base.id, grants.c.name == name))
        if not gone.rowcount:
            raise Missing(f"The knowledge base {base.name!r} is not shared with {name!r}.")
        records.note(connection, store, Granted(base.id, name, False, by))


def shared_with(store: Store, base: Base) -> list[str]:
    """All readers of a base, as `user:…` and `group:…`; the owner comes first."""
    names = store.scalars(select(grants.c.name).where(grants.c.label == base.id))
    return sorted(names, key=lambda name: (name != grant_of(base), name))


def check_grantee(name: str) -> None:
    if not any(name.startswith(kind) and len(name) > len(kind) for kind in (USER, GROUP)):
        raise UserError(f"Access is given to user:NAME or group:NAME, not to {name!r}.")


def every_base(store: Store) -> list[Base]:
    """All bases regardless of owner: for locks and backups, which expose nothing to users."""
    query = select(bases.c.id, bases.c.name, bases.c.owner, bases.c.description).order_by(bases.c.id)
    return [Base(*row) for row in store.rows(query)]


def embedder_of(store: Store, base: Base) -> tuple[str, int]:
    """The embedder of the vectors in the base's index, and their dimension; ("", 0) before the first document."""
    row = store.first(select(bases.c.embedder, bases.c.dim).where(bases.c.id == base.id))
    return (row.embedder, row.dim) if row else ("", 0)


def set_embedder(store: Store, base: Base, embedder: str, dim: int) -> None:
    """Set another embedder: every document of the base must be embedded again before it can be found."""
    with store.write() as connection:
        connection.execute(update(bases).where(bases.c.id == base.id).values(embedder=embedder, dim=dim))
        connection.execute(
            update(documents).where(documents.c.base == base.id, documents.c.state == "ready").values(state="pending")
        )


def forget_base(store: Store, base: Base) -> None:
    """Delete the base itself, after its documents were removed."""
    with store.write() as connection:
        connection.execute(delete(grants).where(grants.c.label == base.id))
        place_lists.remove_lists(connection, base.id)
        fetched.forget_base(connection, base.id)
        offers.forget_base(connection, base.id)
        connection.execute(delete(leftovers).where(leftovers.c.base == base.id))
        connection.execute(delete(bases).where(bases.c.id == base.id))
