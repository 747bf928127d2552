"""Who may read a single document: the readers of its base, or the people and groups on its own access list.

A document's label decides: it is the id of the base, or that of the list of its location (see `place_lists`). All versions of
a document have the same label. The index is updated later (see `outdated_labels`); until then it may hide a document but
never show one.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, delete, select, update

from assay.core.access import Base
from assay.core.errors import Missing, UserError
from assay.core.events import Granted
from assay.store import place_lists
from assay.store.access import offers
from assay.store.access.grants import check_grantee, grant_of
from assay.store.database import Store
from assay.store.dialect import insert_or_replace
from assay.store.documents import PENDING, READY, Entry
from assay.store.runs import records
from assay.store.schema import documents, facts

OUTDATED = "relabel "  # prefix of facts about documents whose index rows still have an old label; the value is the base


def has_own_list(entry: Entry) -> bool:
    return entry.label != entry.base


def label_at(store: Store, base: Base, uri: str) -> str:
    """The label of whatever is or will be at a location."""
    with store.read() as connection:
        return place_lists.label_at(connection, base.id, uri)


def readers(store: Store, base: Base, entry: Entry) -> list[str]:
    """All readers of a document, as `user:…` and `group:…`; the owner comes first."""
    with store.read() as connection:
        return sorted(place_lists.names_on(connection, entry.label), key=lambda name: (name != grant_of(base), name))


def set_access(store: Store, base: Base, entry: Entry, name: str, may: bool, by: str) -> None:
    """Grant or withdraw access to a document. The first change gives it its own list, which starts with the readers of its
    base."""
    check_grantee(name)
    if name == grant_of(base) and not may:
        raise UserError(f"The document belongs to {name!r}; they go on seeing it.")
    with store.write() as connection:
        label = _label(connection, entry)
        names = place_lists.names_on(connection, label)
        if (name in names) == may:
            if may:
                return
            raise Missing(f"That document is not shared with {name!r}.")
        if label == base.id:
            label = place_lists.new_list(connection, store, base.id, entry.uri, names)
            _put_label(connection, base.id, entry.uri, label)
        if may:
            place_lists.add_names(connection, label, [name])
            offers.accept_if_operators(connection, base.id, [name], by)
        else:
            place_lists.remove_names(connection, label, [name])
        records.note(connection, store, Granted(entry.id, name, may, by))


def reset(store: Store, base: Base, entry: Entry, by: str) -> None:
    """Remove the document's own list: the readers of its base may read it."""
    with store.write() as connection:
        label = _label(connection, entry)
        if label == base.id:
            return
        before = set(place_lists.names_on(connection, label))
        after = set(place_lists.names_on(connection, base.id))
        _put_label(connection, base.id, entry.uri, base.id)
        place_lists.remove_list(connection, base.id, entry.uri)
        for name in sorted(before ^ after):
            records.note(connection, store, Granted(entry.id, name, name in after, by))


def restrict(store: Store, base: Base, uris: Iterable[str], names: Iterable[str], by: str) -> None:
    """Let only these people and groups, and the owner, read what is at these locations, whether it is there already or comes
    later."""
    wanted = set(names)
    for name in wanted:
        check_grantee(name)
    wanted.add(grant_of(base))
    with store.write() as connection:
        for uri in uris:
            _restrict(connection, store, base, uri, wanted, by)


def _restrict(connection: Connection, store: Store, base: Base, uri: str, wanted: set[str], by: str) -> None:
    label = place_lists.label_at(connection, base.id, uri)
    before = set(place_lists.names_on(connection, label))
    if label == base.id:
        label = place_lists.new_list(connection, store, base.id, uri, wanted)
        _put_label(connection, base.id, uri, label)
    else:
        place_lists.add_names(connection, label, wanted)
        place_lists.remove_names(connection, label, before - wanted)
    offers.accept_if_operators(connection, base.id, sorted(wanted), by)
    for name in sorted(before ^ wanted):
        records.note(connection, store, Granted(label, name, name in wanted, by))


def outdated_labels(store: Store, base: Base) -> dict[str, str]:
    """Documents whose rows in the index may have an old label, with their current label."""
    marked = select(documents.c.id, documents.c.label).join(facts, facts.c.name == OUTDATED + documents.c.id)
    return {row.id: row.label for row in store.rows(marked.where(documents.c.base == base.id))}


def mark_labels_written(store: Store, done: Iterable[tuple[str, str]]) -> None:
    """Record that the index has these labels. A label that was changed again meanwhile stays outdated."""
    with store.write() as connection:
        for document, label in done:
            still = select(documents.c.id).where(documents.c.id == document, documents.c.label != label)
            if connection.scalar(still) is None:
                connection.execute(delete(facts).where(facts.c.name == OUTDATED + document))


def _label(connection: Connection, entry: Entry) -> str:
    """The current label, read inside the transaction that changes it."""
    label = connection.scalar(select(documents.c.label).where(documents.c.id == entry.id))
    if label is None:
        raise Missing(f"There is no document with the id {entry.id!r}.")
    return label


def _put_label(connection: Connection, base: str, uri: str, label: str) -> None:
    """Set the label on every version of the document, and record which are indexed under the old one."""
    place = (documents.c.base == base) & (documents.c.uri == uri)
    connection.execute(update(documents).where(place).values(label=label))
    indexed = select(documents.c.id).where(place, documents.c.state.in_((READY, PENDING)))
    rows = [{"name": OUTDATED + each, "value": base} for each in connection.scalars(indexed)]
    if rows:
        connection.execute(insert_or_replace(facts), rows)
