"""Who may read a single document: the readers of its base, or the people and groups on the access list of its location, or of
a pattern of locations.

A document's label decides: it is the id of the base, or that of a list (see `place_lists`). All versions of
a document have the same label. The index is updated later (see `outdated_labels`); until then it may hide a document but
never show one.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, delete, select, update

from assay.core.access import Base
from assay.core.errors import Missing, UserError
from assay.core.events import Granted
from assay.core.types import file_name, names_inside
from assay.store import place_lists
from assay.store.access import offers
from assay.store.access.grants import check_grantee, grant_of
from assay.store.database import Store
from assay.store.dialect import among, insert_or_replace
from assay.store.documents import PENDING, READY, Entry
from assay.store.runs import records
from assay.store.schema import documents, facts

HOLDING = "Only those on its access list may read it until its owner decides: {why}."
OUTDATED = "relabel "  # prefix of facts about documents whose index rows still have an old label; the value is the base


def has_own_list(entry: Entry) -> bool:
    return entry.label != entry.base


def label_at(store: Store, base: Base, uri: str) -> str:
    """The label of whatever is or will be at a location."""
    with store.read() as connection:
        return place_lists.label_at(connection, base.id, uri)


def restricted_places(store: Store, base: Base, uris: Iterable[str]) -> set[str]:
    """Those locations that have a list, or fit a pattern that has one."""
    with store.read() as connection:
        return place_lists.restricted_places(connection, base.id, uris)


def readers(store: Store, base: Base, entry: Entry) -> list[str]:
    """All readers of a document, as `user:…` and `group:…`; the owner comes first."""
    with store.read() as connection:
        return _readers(connection, base, entry.label)


def _readers(connection: Connection, base: Base, label: str) -> list[str]:
    return sorted(place_lists.names_on(connection, label), key=lambda name: (name != grant_of(base), name))


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
        label = _own_list(connection, store, base.id, entry.uri, names)
        place_lists.settle(connection, label)
        if may:
            place_lists.add_names(connection, label, [name])
            offers.accept_if_operators(connection, base.id, [name], by)
        else:
            place_lists.remove_names(connection, label, [name])
        records.note(connection, store, Granted(entry.id, name, may, by))


def reset(store: Store, base: Base, entry: Entry, by: str) -> None:
    """Remove the document's own list: the readers of its base may read it, or those of the patterns that it fits."""
    with store.write() as connection:
        label = _label(connection, entry)
        if label != place_lists.own_list(connection, base.id, entry.uri):
            return
        before = set(place_lists.names_on(connection, label))
        then = place_lists.open_place(connection, store, base.id, entry.uri, label)
        after = set(place_lists.names_on(connection, then))
        _put_label(connection, base.id, entry.uri, then)
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
    before = set(place_lists.names_on(connection, place_lists.label_at(connection, base.id, uri)))
    label = _own_list(connection, store, base.id, uri, wanted)
    place_lists.settle(connection, label)
    _set_names(connection, store, base, label, wanted, by, before)


def _own_list(connection: Connection, store: Store, base: str, uri: str, names: Iterable[str]) -> str:
    """The list of a location; if it has none, one with these names."""
    label = place_lists.own_list(connection, base, uri)
    if label is None:
        label = place_lists.new_list(connection, store, base, place_lists.place_of(base, uri), names)
        _put_label(connection, base, uri, label)
    return label


def _set_names(
    connection: Connection,
    store: Store,
    base: Base,
    label: str,
    wanted: set[str],
    by: str,
    before: set[str],
    where: str = "",
) -> None:
    """Have exactly these names on a list, on the record."""
    place_lists.remove_names(connection, label, set(place_lists.names_on(connection, label)) - wanted)
    place_lists.add_names(connection, label, wanted)
    offers.accept_if_operators(connection, base.id, sorted(wanted), by)
    for name in sorted(before ^ wanted):
        records.note(connection, store, Granted(label, name, name in wanted, by, where))


# Patterns of locations


def patterns(store: Store, base: Base) -> dict[str, list[str]]:
    """The restricted patterns of a base, with their readers; the owner comes first."""
    with store.read() as connection:
        found = place_lists.patterns(connection, base.id)
        return {pattern: _readers(connection, base, label) for pattern, label in found.items()}


def pattern_of(store: Store, base: Base, entry: Entry) -> str:
    """The pattern whose list applies to a document; empty if none does."""
    with store.read() as connection:
        found = place_lists.patterns(connection, base.id)
    return next((pattern for pattern, label in found.items() if label == entry.label), "")


def restrict_pattern(store: Store, base: Base, pattern: str, names: Iterable[str], by: str) -> None:
    """Let only these people and groups, and the owner, read what fits a pattern, whether it is there already or comes later.
    Lists that documents have of their own become no longer than that."""
    wanted = {*names, grant_of(base)}
    for name in wanted:
        check_grantee(name)
    with store.write() as connection:
        place = place_lists.place_of_pattern(base.id, pattern)
        label = place_lists.patterns(connection, base.id).get(pattern)
        before = set(place_lists.names_on(connection, label)) if label else set[str]()
        label = label or place_lists.new_list(connection, store, base.id, place, wanted)
        _set_names(connection, store, base, label, wanted, by, before, place)
        for uri, inside in _files(connection, base.id).items():
            if any(place_lists.fits(pattern, each) for each in place_lists.places_inside(uri, inside)):
                now = place_lists.label_by_patterns(connection, store, base.id, uri, inside)
                _put_label(connection, base.id, uri, now)


def lift_pattern(store: Store, base: Base, pattern: str, by: str) -> None:
    """Restrict what fits a pattern no longer. Lists that documents have of their own stay."""
    with store.write() as connection:
        label = place_lists.patterns(connection, base.id).get(pattern)
        if label is None:
            raise Missing(f"{pattern!r} is not restricted. `assay access show --base NAME` lists what is.")
        names = place_lists.names_on(connection, label)
        place_lists.remove_list(connection, label)
        for name in sorted(names):
            records.note(
                connection, store, Granted(label, name, False, by, place_lists.place_of_pattern(base.id, pattern))
            )
        under = documents.c.base == base.id, documents.c.label == label
        for uri in connection.scalars(select(documents.c.uri).where(*under).distinct()).all():
            _put_label(connection, base.id, uri, place_lists.label_by_patterns(connection, store, base.id, uri))


def _files(connection: Connection, base: str) -> dict[str, tuple[str, ...]]:
    """The locations of a base, each with the names of the files inside its document."""
    rows = select(documents.c.uri, documents.c.kind, documents.c.sections).where(documents.c.base == base)
    found: dict[str, tuple[str, ...]] = {}
    for row in connection.execute(rows):
        inside = names_inside(row.kind, (each["title"] for each in row.sections))
        found[row.uri] = found.get(row.uri, ()) + inside
    return found


# Documents that are held until a person decides


def note_vanished(store: Store, base: Base, entries: Iterable[Entry]) -> None:
    """Remember that these documents are gone from where they were: a new file may be a restricted one of them."""
    with store.write() as connection:
        place_lists.note_vanished(connection, store, base.id, {entry.label for entry in entries})


def held(store: Store, entries: Iterable[Entry]) -> dict[str, str]:
    """Why documents are held, a sentence for each that is, by its id."""
    entries = list(entries)
    with store.read() as connection:
        reasons = place_lists.held(connection, {each.label for each in entries if has_own_list(each)})
        like = {why.partition(" ")[2] for why in reasons.values()}
        uris = connection.execute(select(documents.c.id, documents.c.uri).where(among(documents.c.id, like)))
        names = {row.id: file_name(row.uri) for row in uris}

    def describe(reason: str) -> str:
        kind, _, other = reason.partition(" ")
        return HOLDING.format(why=place_lists.REASONS[kind].format(name=names.get(other, "a document")))

    return {each.id: describe(reasons[each.label]) for each in entries if each.label in reasons}


def keep(store: Store, base: Base, entry: Entry, by: str) -> None:
    """A person has decided that a document that is held stays restricted."""
    with store.write() as connection:
        place_lists.settle(connection, entry.label)
        records.note(connection, store, Granted(entry.label, grant_of(base), True, by))


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
