"""Shared bases and threads are offered: until a person accepts one, it is in none of their searches and lists. They can leave
it again.

What the operator shares at the command line counts as accepted, and so does what a person or their group owns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Text, bindparam, delete, exists, select, update

from assay.core.access import LOCAL, Base, Principal
from assay.core.codec import dumps
from assay.core.errors import Missing, UserError
from assay.store.database import Store
from assay.store.dialect import Prepared, insert_or_replace, one_of, update_where_free
from assay.store.schema import acceptances, bases, documents, grants

# Built once: a scope is created on every call, and building a statement takes longer than running it.
_NAMES, _LABELS = bindparam("names", type_=Text), bindparam("labels", type_=Text)
_GRANTED = Prepared(select(grants.c.label).where(one_of(grants.c.name, _NAMES)))
_BASES = Prepared(
    select(bases.c.id, bases.c.name, bases.c.owner, bases.c.description).where(
        one_of(bases.c.id, _LABELS)  # first: then the documents of this base are not looked through
        | exists().where(documents.c.base == bases.c.id, one_of(documents.c.label, _LABELS))
    )
)
_ANSWERS = Prepared(
    select(acceptances.c.base, acceptances.c.name, acceptances.c.accepted).where(one_of(acceptances.c.name, _NAMES))
)


@dataclass(frozen=True, slots=True)
class Offer:
    """A base that a person may read and has not accepted."""

    base: Base
    declined: bool


def labels_of(connection: Connection, principal: Principal) -> frozenset[str]:
    """The labels that the person may read."""
    return frozenset(label for (label,) in _GRANTED.all(connection, names=dumps(sorted(principal.names))))


def readable_bases(
    connection: Connection, principal: Principal, labels: Iterable[str]
) -> tuple[list[Base], list[Offer]]:
    """The bases with these labels that the person has accepted, and those that are only offered."""
    found = [Base(*row) for row in _BASES.all(connection, labels=dumps(sorted(labels)))]
    said = answers(connection, principal)
    accepted = [base for base in found if said.get(base.id)]
    return accepted, [Offer(base, base.id in said) for base in found if not said.get(base.id)]


def answers(connection: Connection, principal: Principal) -> dict[str, bool]:
    """By base or thread: what the person said, or else what was accepted for one of their groups."""
    rows = _ANSWERS.all(connection, names=dumps(sorted(principal.names)))
    own = {base: bool(accepted) for base, name, accepted in rows if name == f"user:{principal.id}"}
    return {base: bool(accepted) for base, _, accepted in rows} | own


def listing(store: Store, principal: Principal) -> list[Offer]:
    """The bases that others let this person read, and that they have not accepted."""
    with store.read() as connection:
        labels = labels_of(connection, principal)
        return sorted(readable_bases(connection, principal, labels)[1], key=lambda each: (each.base.name, each.base.id))


def accepted(store: Store, what: str) -> tuple[str, ...]:
    """The people and groups who accepted a base or thread, by its id."""
    own = acceptances.c.base == what, acceptances.c.accepted
    return tuple(store.scalars(select(acceptances.c.name).where(*own).order_by(acceptances.c.name)))


def answer(store: Store, principal: Principal, base: str, accepted: bool) -> Base:
    """Accept a base that is offered, by its id; or decline it, or leave it. What somebody owns they cannot leave."""
    with store.write() as connection:
        labels = labels_of(connection, principal)
        mine, offered = readable_bases(connection, principal, labels)
        found = next((each for each in (*mine, *(offer.base for offer in offered)) if each.id == base), None)
        if found is None:
            raise Missing(f"No knowledge base with the id {base!r} is offered to you.")
        if principal.owns(found) and not accepted:
            raise UserError(f"The knowledge base {found.name!r} is yours: it can be deleted, not left.")
        record(connection, base, f"user:{principal.id}", accepted)
    return found


def record(connection: Connection, base: str, name: str, accepted: bool) -> None:
    connection.execute(insert_or_replace(acceptances).values(base=base, name=name, accepted=accepted))


def accept_if_operators(connection: Connection, base: str, names: Sequence[str], by: str) -> None:
    """What the operator shares is accepted for whom they share it with, unless those have said otherwise."""
    if by == LOCAL.id:
        said = set(connection.scalars(select(acceptances.c.name).where(acceptances.c.base == base)))
        for name in set(names) - said:
            record(connection, base, name, True)


def forget_base(connection: Connection, base: str) -> None:
    connection.execute(delete(acceptances).where(acceptances.c.base == base))


def forget_person(connection: Connection, name: str) -> None:
    connection.execute(delete(acceptances).where(acceptances.c.name == f"user:{name}"))


def transfer(connection: Connection, old: str, new: str) -> None:
    own = acceptances.c.name == f"user:{old}"
    connection.execute(update_where_free(acceptances, own, name=f"user:{new}"))
    connection.execute(
        update(acceptances)
        .where(
            acceptances.c.name == f"user:{new}", acceptances.c.base.in_(select(bases.c.id).where(bases.c.owner == new))
        )
        .values(accepted=True)
    )
    connection.execute(delete(acceptances).where(own))
