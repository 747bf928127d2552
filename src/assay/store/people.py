"""Bases and grants: the truth about access, and the only place where a `Scope` is made."""

from __future__ import annotations

from sqlalchemy import bindparam, delete, insert, select, update

from assay.access import Base, Principal, Scope
from assay.errors import UserError
from assay.store.open import Store
from assay.store.schema import bases, documents, grants

# Spelt once: a scope is made at every call, and putting a statement together takes longer than running it.
_LABELS = select(grants.c.label).where(grants.c.name.in_(bindparam("names", expanding=True)))
_BASES = (
    select(bases.c.id, bases.c.name, bases.c.owner, bases.c.description)
    .where(
        bases.c.id.in_(select(documents.c.base).where(documents.c.label.in_(bindparam("labels", expanding=True))))
        | bases.c.id.in_(bindparam("labels", expanding=True))
    )
    .order_by(bases.c.name)
)


def scope_of(store: Store, principal: Principal) -> Scope:
    """What this person may read, as of now."""
    with store.read() as connection:
        labels = frozenset(connection.scalars(_LABELS, {"names": sorted(principal.names)}))
        rows = connection.execute(_BASES, {"labels": sorted(labels)})
        return Scope(principal.id, tuple(Base(*row) for row in rows), labels)


def base_named(store: Store, name: str, principal: Principal, description: str = "") -> Base:
    """The person's base of that name, made when it is not there. A base's own label is its id."""
    if not name or name != name.strip() or len(name) > 100 or any(not sign.isprintable() for sign in name):
        raise UserError(f"{name!r} cannot be the name of a knowledge base. Use up to 100 printable characters.")
    with store.write() as connection:
        row = connection.execute(
            select(bases.c.id, bases.c.name, bases.c.owner, bases.c.description).where(bases.c.name == name)
        ).first()
        if row is not None and row.owner != principal.id:
            raise UserError(f"There is no knowledge base called {name!r} that you may add to.")
        if row is not None:
            if description:
                connection.execute(update(bases).where(bases.c.id == row.id).values(description=description))
            return Base(row.id, row.name, row.owner, description or row.description)
        base = Base("b" + store.new_id(), name, principal.id, description)
        connection.execute(
            insert(bases).values(id=base.id, name=name, owner=base.owner, description=description, created=store.now())
        )
        connection.execute(insert(grants).values(label=base.id, name=f"user:{principal.id}"))
        return base


def embedder_of(store: Store, base: Base) -> tuple[str, int]:
    """Whose vectors the base's index holds, and how long they are; ("", 0) before the first document."""
    with store.read() as connection:
        row = connection.execute(select(bases.c.embedder, bases.c.dim).where(bases.c.id == base.id)).first()
    return (row.embedder, row.dim) if row else ("", 0)


def set_embedder(store: Store, base: Base, embedder: str, dim: int) -> None:
    """Another embedder: every document of the base has to be embedded again before it can be found."""
    with store.write() as connection:
        connection.execute(update(bases).where(bases.c.id == base.id).values(embedder=embedder, dim=dim))
        connection.execute(
            update(documents).where(documents.c.base == base.id, documents.c.state == "ready").values(state="pending")
        )


def forget_base(store: Store, base: Base) -> None:
    """The base itself, once its documents are gone."""
    with store.write() as connection:
        connection.execute(delete(grants).where(grants.c.label == base.id))
        connection.execute(delete(bases).where(bases.c.id == base.id))
