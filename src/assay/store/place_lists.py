"""Access lists of places. A location in a base may have its own list of readers. The list belongs to the location and not to
the document: it stays when the document is removed, so that a file that comes back is not read by more people than before.
The list of a removed document is also kept for its content, which may come back under another name.

Locations and contents are stored as digests, since the name of a file must not outlive the erasure of its document.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from sqlalchemy import Connection, delete, select

from assay.core.codec import digest, dumps
from assay.core.events import Granted
from assay.store.database import Store
from assay.store.dialect import insert_new, insert_or_replace
from assay.store.runs import records
from assay.store.schema import grants, lists

LIST = "l"  # prefix of the label of a list; base ids have another prefix


def place_of(base: str, uri: str) -> str:
    return digest(dumps([base, uri]))


def label_at(connection: Connection, base: str, uri: str) -> str:
    """The label of whatever is at a location: that of its list, or the id of the base."""
    return connection.scalar(select(lists.c.label).where(lists.c.place == place_of(base, uri))) or base


def _content_of(base: str, sha: str) -> str:
    return digest(dumps([base, "content", sha]))


def keep_for_content(connection: Connection, base: str, contents: Iterable[tuple[str, str]]) -> None:
    """Keep the lists of documents that are removed for their contents: pairs of digest and label."""
    rows = [{"place": _content_of(base, sha), "base": base, "label": label} for sha, label in contents if label != base]
    if rows:
        connection.execute(insert_or_replace(lists), rows)


def take_over(connection: Connection, store: Store, base: str, uri: str, sha: str) -> bool:
    """Apply the list of a removed document with this content to a location. Returns whether there was one."""
    kept = lists.c.place == _content_of(base, sha)
    label = connection.scalar(select(lists.c.label).where(kept))
    if label is None:
        return False
    connection.execute(delete(lists).where(kept))  # from here on it is the list of the location
    if label == label_at(connection, base, uri):
        return False
    _label_of_both(connection, store, base, label, uri)
    return True


def names_on(connection: Connection, label: str) -> list[str]:
    return list(connection.scalars(select(grants.c.name).where(grants.c.label == label)))


def add_names(connection: Connection, label: str, names: Iterable[str]) -> None:
    connection.execute(insert_new(grants), [{"label": label, "name": name} for name in names])


def remove_names(connection: Connection, label: str, names: Collection[str]) -> None:
    connection.execute(delete(grants).where(grants.c.label == label, grants.c.name.in_(sorted(names))))


def new_list(connection: Connection, store: Store, base: str, uri: str, names: Iterable[str]) -> str:
    """Give a location its own list. Returns the label."""
    label = LIST + store.new_id() + store.new_id()
    connection.execute(insert_or_replace(lists).values(place=place_of(base, uri), base=base, label=label))
    add_names(connection, label, names)
    return label


def remove_list(connection: Connection, base: str, uri: str) -> None:
    """Remove the list of a location: the readers of the base read what is there."""
    label = label_at(connection, base, uri)
    if label != base:
        connection.execute(delete(grants).where(grants.c.label == label))
        connection.execute(delete(lists).where(lists.c.label == label))


def remove_lists(connection: Connection, base: str) -> None:
    """Remove all lists of a base that is deleted."""
    own = select(lists.c.label).where(lists.c.base == base)
    connection.execute(delete(grants).where(grants.c.label.in_(own)))
    connection.execute(delete(lists).where(lists.c.base == base))


def label_after_move(connection: Connection, store: Store, base: str, before: str, uri: str) -> str:
    """The label of a document that moves from the location `before` to `uri`. It is read by whoever is on the lists of both
    locations; a list at one of them applies alone. So a move never lets anybody read what a list kept from them."""
    left = label_at(connection, base, before)
    if left == base:
        return label_at(connection, base, uri)
    return _label_of_both(connection, store, base, left, uri)


def _label_of_both(connection: Connection, store: Store, base: str, left: str, uri: str) -> str:
    """The label of a location for whoever is on the list `left` and, if the location has one, on its own."""
    here, names = label_at(connection, base, uri), names_on(connection, left)
    if here == base:
        return new_list(connection, store, base, uri, names)
    fewer = sorted(set(names_on(connection, here)) - set(names))
    remove_names(connection, here, fewer)
    for name in fewer:
        records.note(connection, store, Granted(here, name, False, ""))
    return here
