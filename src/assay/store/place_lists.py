"""Access lists of places. A location in a base, or a pattern of locations (`hr/**`), may have its own list of readers. The list
belongs to the place and not to the document: it stays when the document is removed, so that a file that comes back is not read
by more people than before. The list of a removed document is also kept for its content, which may come back under another name.

A document that may be a restricted one in another form is *held*: it gets the list of that one until a person decides.

Locations and contents are stored as digests, since the name of a file must not outlive the erasure of its document. Patterns
are stored as they were written.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from sqlalchemy import Connection, bindparam, delete, select

from assay.core.codec import digest, dumps
from assay.core.errors import UserError
from assay.core.events import Granted
from assay.core.types import STDIN, UPLOAD
from assay.store.database import Store, shifted
from assay.store.dialect import Prepared, among, insert_new, insert_or_replace
from assay.store.runs import records
from assay.store.schema import documents, facts, grants, lists

LIST = "l"  # prefix of the label of a list; base ids have another prefix
HELD, VANISHED = "held ", "vanished "  # prefixes of facts: why the list of a place is provisional; when one was left
GRACE = 24.0  # hours after a restricted document vanished in which what comes to its base is held
LONGEST = 300  # characters of a pattern
# Why a document is held; a copy and a namesake are followed by the id of the restricted document.
GONE, SAME, COPY, NAMESAKE = "gone", "same", "copy", "namesake"
REASONS: Mapping[str, str] = {
    GONE: "it came when a restricted document was gone",
    SAME: "a removed restricted document had the same content",
    COPY: "it holds much of the text of {name}, which is restricted",
    NAMESAKE: "a file inside it has the name of {name}, which is restricted",
}


# Patterns


def is_pattern(words: str) -> bool:
    return any(sign in words for sign in "*?") or words.endswith("/")


def checked_pattern(words: str) -> str:
    """A pattern as it is stored: a folder means all that is in it."""
    pattern = unicodedata.normalize("NFC", words.strip().replace("\\", "/"))
    pattern += "**" if pattern.endswith("/") else ""
    if not is_pattern(pattern) or len(pattern) > LONGEST or not pattern.isprintable():
        raise UserError(f"{words!r} is no pattern of locations. Write a folder as `hr/**`, or names as `*.xlsx`.")
    return pattern


def fits(pattern: str, uri: str) -> bool:
    """Whether a location is one of a pattern: `*` and `?` stand for signs of one name, `**` for any folders. A pattern begins
    at any folder, unless with `/`. Capitals make no difference, since they make none on many disks."""
    place = uri.removeprefix(UPLOAD).removeprefix(STDIN)
    wanted = _parts((pattern if pattern.startswith("/") else f"/**/{pattern}").replace("[", "[[]"))
    reached = _passing({0}, wanted)
    for part in _parts(place if place.startswith("/") else f"/{place}"):
        stay = {at for at in reached if at < len(wanted) and wanted[at] == "**"}
        reached = _passing(
            stay | {at + 1 for at in reached - stay if at < len(wanted) and fnmatchcase(part, wanted[at])}, wanted
        )
    return len(wanted) in reached


def _parts(path: str) -> list[str]:
    return unicodedata.normalize("NFC", path.replace("\\", "/").casefold()).split("/")[1:]


def _passing(reached: Collection[int], wanted: Sequence[str]) -> set[int]:
    """With what follows when `**` stands for no folder."""
    found = set(reached)
    for at, part in enumerate(wanted):
        if at in found and part == "**":
            found.add(at + 1)
    return found


# Places


def place_of(base: str, uri: str) -> str:
    return digest(dumps([base, uri]))


def place_of_pattern(base: str, pattern: str) -> str:
    return f"{base}/{pattern}"


def label_at(connection: Connection, base: str, uri: str) -> str:
    """The label of whatever is at a location: that of its list, of the pattern that it fits, or the id of the base."""
    own = own_list(connection, base, uri)
    return own or next(iter(_labels_over(connection, base, [uri])), base)


def own_list(connection: Connection, base: str, uri: str) -> str | None:
    """The label of the list that a location has for itself."""
    label = connection.scalar(select(lists.c.label).where(lists.c.place == place_of(base, uri)))
    return None if label == base else label


def patterns(connection: Connection, base: str) -> dict[str, str]:
    """The restricted patterns of a base, with their labels."""
    start = place_of_pattern(base, "")
    rows = select(lists.c.place, lists.c.label).where(lists.c.base == base, lists.c.place.startswith(start))
    return {row.place.removeprefix(start): row.label for row in connection.execute(rows.order_by(lists.c.place))}


def _labels_over(connection: Connection, base: str, places: Sequence[str]) -> list[str]:
    """The labels of the patterns that one of these locations fits."""
    found = patterns(connection, base)
    return [label for pattern, label in found.items() if any(fits(pattern, place) for place in places)]


def restricted_places(connection: Connection, base: str, uris: Iterable[str]) -> set[str]:
    """Those locations that have a list, or fit a pattern that has one."""
    places = set(connection.scalars(select(lists.c.place).where(lists.c.base == base, lists.c.label != base)))
    found = patterns(connection, base)
    return {
        uri
        for uri in (uris if places else ())
        if place_of(base, uri) in places or any(fits(pattern, uri) for pattern in found)
    }


def _content_of(base: str, sha: str) -> str:
    return digest(dumps([base, "content", sha]))


def keep_for_content(connection: Connection, base: str, contents: Iterable[tuple[str, str]]) -> None:
    """Keep the lists of documents that are removed for their contents: pairs of digest and label."""
    rows = [{"place": _content_of(base, sha), "base": base, "label": label} for sha, label in contents if label != base]
    if rows:
        connection.execute(insert_or_replace(lists), rows)


def _take_content(connection: Connection, base: str, sha: str) -> list[tuple[str, str]]:
    """The list of a removed document with this content; from here on it is that of a location."""
    kept = lists.c.place == _content_of(base, sha)
    label = connection.scalar(select(lists.c.label).where(kept))
    connection.execute(delete(lists).where(kept))
    return [(label, SAME)] if label else []


def note_vanished(connection: Connection, store: Store, base: str, labels: Iterable[str]) -> None:
    """Remember that restricted documents are gone from a folder: what comes next may be one of them."""
    for label in set(labels) - {base}:
        connection.execute(insert_or_replace(facts).values(name=f"{VANISHED}{base} {label}", value=store.now()))


def _vanished(connection: Connection, store: Store, base: str) -> list[tuple[str, str]]:
    start = f"{VANISHED}{base} "
    since = shifted(store.now(), hours=-GRACE)
    rows = connection.execute(select(facts).where(facts.c.name.startswith(start), facts.c.value > since)).all()
    labels = {row.name.removeprefix(start) for row in rows}
    return [(label, GONE) for label in connection.scalars(select(lists.c.label).where(among(lists.c.label, labels)))]


# Lists


def names_on(connection: Connection, label: str) -> list[str]:
    return list(connection.scalars(select(grants.c.name).where(grants.c.label == label)))


def add_names(connection: Connection, label: str, names: Iterable[str]) -> None:
    connection.execute(insert_new(grants), [{"label": label, "name": name} for name in names])


def remove_names(connection: Connection, label: str, names: Collection[str]) -> None:
    connection.execute(delete(grants).where(grants.c.label == label, grants.c.name.in_(sorted(names))))


def new_list(connection: Connection, store: Store, base: str, place: str, names: Iterable[str]) -> str:
    """Give a place its own list. Returns the label."""
    label = LIST + store.new_id() + store.new_id()
    connection.execute(insert_or_replace(lists).values(place=place, base=base, label=label))
    add_names(connection, label, names)
    return label


def remove_list(connection: Connection, label: str) -> None:
    """Remove a list: what is at its place is read by those on the lists of other patterns, or by the readers of the base."""
    connection.execute(delete(grants).where(grants.c.label == label))
    connection.execute(delete(lists).where(lists.c.label == label))
    settle(connection, label)


def remove_lists(connection: Connection, base: str) -> None:
    """Remove all lists of a base that is deleted."""
    for label in connection.scalars(select(lists.c.label).where(lists.c.base == base).distinct()).all():
        remove_list(connection, label)
    connection.execute(delete(facts).where(facts.c.name.startswith(f"{VANISHED}{base} ")))


def narrow(connection: Connection, store: Store, label: str, names: Collection[str], by: str = "") -> None:
    """Take everybody else off a list."""
    fewer = sorted(set(names_on(connection, label)) - set(names))
    remove_names(connection, label, fewer)
    for name in fewer:
        records.note(connection, store, Granted(label, name, False, by))


# Documents that come to a place


_RESTRICTED = Prepared(select(lists.c.place).where(lists.c.base == bindparam("of")).limit(1))


def label_on_arrival(
    connection: Connection,
    store: Store,
    base: str,
    uri: str,
    sha: str,
    inside: Sequence[str] = (),
    inherited: Sequence[tuple[str, str]] = (),
) -> str:
    """The label of a document that is stored at a location.

    inside: the names of files inside it, to which patterns apply too
    inherited: the labels of restricted documents that it may be in another form, each with the reason
    """
    if not inherited and _RESTRICTED.first(connection, of=base) is None:
        return base  # nothing in it has or had a list
    same = _take_content(connection, base, sha)
    here = connection.scalar(select(lists.c.label).where(lists.c.place == place_of(base, uri)))
    is_new = _is_free(connection, base, uri)
    if here is not None and not is_new:  # a person has decided, or it was decided for an earlier version
        over = _labels_over(connection, base, [uri]) if here == base else []
        return _combined(connection, store, base, uri, over, same)
    over = _labels_over(connection, base, places_inside(uri, inside))
    gone = _vanished(connection, store, base) if is_new else []
    return _combined(connection, store, base, uri, over, [*same, *inherited, *gone])


def places_inside(uri: str, inside: Sequence[str]) -> list[str]:
    """The location of a document, and those of the files inside it."""
    return [uri, *(f"{uri}/{name}" for name in inside)]


def _is_free(connection: Connection, base: str, uri: str) -> bool:
    """Whether no document was read from a location."""
    here = (documents.c.base == base, documents.c.uri == uri, documents.c.state != "unreadable")
    return connection.scalar(select(documents.c.id).where(*here).limit(1)) is None


def label_after_move(connection: Connection, store: Store, base: str, before: str, uri: str) -> str:
    """The label of a document that moves from the location `before` to `uri`. It is read by whoever is on the lists of both
    locations; a list at one of them applies alone. So a move never lets anybody read what a list kept from them."""
    left = label_at(connection, base, before)
    over = _labels_over(connection, base, [uri])
    return _combined(connection, store, base, uri, over if left == base else [left, *over])


def _combined(
    connection: Connection,
    store: Store,
    base: str,
    uri: str,
    over: Sequence[str],
    inherited: Sequence[tuple[str, str]] = (),
) -> str:
    """The label of a location for whoever is on its own list, if it has one, and on all these lists. If inherited ones make it
    shorter, it is held."""
    own = own_list(connection, base, uri)
    labels = [*([own] if own else []), *over]
    readers = set.intersection(*(set(names_on(connection, each)) for each in labels or [base]))
    narrower = [(set(names_on(connection, label)), why) for label, why in inherited]
    why = next((why for names, why in narrower if not readers <= names), "")
    readers = readers.intersection(*(names for names, _ in narrower))
    if own:
        narrow(connection, store, own, readers)
    elif not why and len(set(labels)) <= 1 and set(labels) == set(_labels_over(connection, base, [uri])):
        return next(iter(labels), base)
    label = own or new_list(connection, store, base, place_of(base, uri), readers)
    if why:
        connection.execute(insert_or_replace(facts).values(name=HELD + label, value=why))
    return label


def label_by_patterns(connection: Connection, store: Store, base: str, uri: str, inside: Sequence[str] = ()) -> str:
    """The label of a document that is at a location, for whoever is on its list and on those of the patterns that it fits."""
    over = _labels_over(connection, base, places_inside(uri, inside))
    return _combined(connection, store, base, uri, over)


# Documents that are held


def held(connection: Connection, labels: Collection[str]) -> dict[str, str]:
    """Why documents with these labels are held; without those that are not."""
    rows = connection.execute(select(facts).where(among(facts.c.name, [HELD + each for each in labels])))
    return {row.name.removeprefix(HELD): row.value for row in rows}


def settle(connection: Connection, label: str) -> None:
    """A person has decided: the list of this label is no longer provisional."""
    connection.execute(delete(facts).where(facts.c.name == HELD + label))


def open_place(connection: Connection, store: Store, base: str, uri: str, label: str) -> str:
    """Remove the list of a location. If it was provisional, it stays decided that there is none. Returns the label then."""
    was_held = bool(held(connection, [label]))
    remove_list(connection, label)
    if was_held:
        connection.execute(insert_or_replace(lists).values(place=place_of(base, uri), base=base, label=base))
    return label_by_patterns(connection, store, base, uri)
