"""Signed heads of the chain of all records, as stored in the workspace, and the records they cover."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, bindparam, select

from assay.core.codec import dumps
from assay.store.database import Store
from assay.store.dialect import insert_or_replace
from assay.store.schema import facts, records, seals

Sign = Callable[[bytes], tuple[str, str]]  # a message → the public key, and the signature
MOST = 1 << 62  # upper bound of record numbers
_LINES = (
    select(records.c.n, records.c.run, records.c.seq, records.c.hash, records.c.digest)
    .where(records.c.n > bindparam("after"), records.c.n <= bindparam("upto"))
    .order_by(records.c.n)
)


@dataclass(frozen=True, slots=True)
class Seal:
    """The signed head of all records at a moment: the public key proves that this workspace signed it."""

    workspace: str
    n: int
    link: str
    at: str
    key: str  # public
    signature: str = ""

    @property
    def signed(self) -> bytes:
        """The bytes that are signed."""
        return dumps(["assay seal", self.workspace, self.n, self.link, self.at]).encode()


def erasure_message(workspace: str, note: Mapping[str, Any]) -> bytes:
    """The bytes that are signed with a note of an erasure, which is given as it is stored."""
    said = {name: value for name, value in note.items() if name not in ("key", "signature")}
    return dumps(["assay erasure", workspace, said]).encode()


def identity(connection: Connection) -> str:
    """The id of this workspace."""
    return connection.scalar(select(facts.c.value).where(facts.c.name == "id")) or ""


def head(connection: Connection) -> tuple[int, str] | None:
    """The number and link of the last record."""
    row = connection.execute(select(records.c.n, records.c.link).order_by(records.c.n.desc()).limit(1)).first()
    return tuple(row) if row else None


def record_at(connection: Connection, n: int) -> tuple[str, int, str, str] | None:
    """Run, position, hash and link of the nth record; None if the number, which may be an untrusted claim, is
    impossible."""
    if type(n) is not int or not 0 < n < MOST:
        return None
    found = select(records.c.run, records.c.seq, records.c.hash, records.c.link).where(records.c.n == n)
    return tuple(row) if (row := connection.execute(found).first()) else None


def lines(connection: Connection, after: int, upto: int) -> Iterator[tuple[int, str, int, str, str]]:
    """Number, run, position, hash and payload digest of these records, in order."""
    found = connection.execution_options(yield_per=2000).execute(_LINES, {"after": after, "upto": upto})
    yield from (tuple(row) for row in found)  # pyright: ignore[reportReturnType]


def add(store: Store, seal: Seal) -> None:
    store.execute(
        insert_or_replace(seals).values(n=seal.n, link=seal.link, at=seal.at, key=seal.key, signature=seal.signature)
    )


def every(connection: Connection) -> Iterator[Seal]:
    """All seals, oldest first."""
    workspace = identity(connection)
    for row in connection.execute(select(seals).order_by(seals.c.n)):
        yield Seal(workspace, *row)


def last(connection: Connection) -> Seal | None:
    return _one(connection, select(seals).order_by(seals.c.n.desc()).limit(1))


def covering(connection: Connection, n: int, key: str) -> Seal | None:
    """The first head signed with this key that covers the nth record."""
    return _one(connection, select(seals).where(seals.c.n >= n, seals.c.key == key).order_by(seals.c.n).limit(1))


def _one(connection: Connection, query: Select[Any]) -> Seal | None:
    row = connection.execute(query).first()
    return Seal(identity(connection), *row) if row else None
