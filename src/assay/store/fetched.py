"""What was read of places: for each file the mark under which it was listed then, and the digest of its content. So a file
that is listed as before is not fetched again. Facts, by digests of locations: a name must not outlive the erasure of its
document."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import astuple, dataclass

from sqlalchemy import Connection, delete, select

from assay.core.access import Base
from assay.core.codec import digest, dumps
from assay.store.database import Store
from assay.store.dialect import among, insert_or_replace
from assay.store.schema import facts

FETCHED = "fetched "  # prefix of these facts; the base and the digest of the location follow
AT_ONCE = 500  # rows


@dataclass(frozen=True, slots=True)
class Fetched:
    """A file as it was last read. `how`: what decides whether it can be read, besides its content."""

    place: str  # the digest of the address of its place
    mark: str
    sha: str
    how: str


def _name(base: str, uri: str) -> str:
    return f"{FETCHED}{base} {digest(uri)}"


def known(store: Store, base: Base) -> Mapping[str, Fetched]:
    """By the digest of the location."""
    import json

    start = f"{FETCHED}{base.id} "
    rows = store.rows(select(facts.c.name, facts.c.value).where(facts.c.name.startswith(start)))
    return {row.name.removeprefix(start): Fetched(*json.loads(row.value)) for row in rows}


def note(store: Store, base: Base, files: Mapping[str, Fetched]) -> None:
    """Keep these, by their location."""
    rows = [{"name": _name(base.id, uri), "value": dumps(astuple(each))} for uri, each in files.items()]
    if rows:
        with store.write() as connection:
            connection.execute(insert_or_replace(facts), rows)


def forget(store: Store, base: Base, locations: Collection[str]) -> None:
    """Forget the files at these locations, given by their digests."""
    names = [f"{FETCHED}{base.id} {each}" for each in sorted(locations)]
    for first in range(0, len(names), AT_ONCE):
        store.execute(delete(facts).where(among(facts.c.name, names[first : first + AT_ONCE])))


def forget_erased(connection: Connection, base: str, uris: Iterable[str]) -> None:
    """Forget the files whose documents are erased."""
    connection.execute(delete(facts).where(among(facts.c.name, [_name(base, uri) for uri in set(uris)])))


def forget_base(connection: Connection, base: str) -> None:
    connection.execute(delete(facts).where(facts.c.name.startswith(f"{FETCHED}{base} ")))
