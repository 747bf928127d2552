"""Access, people and keys as they go over the wire."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from assay.serve.schemas.run_schemas import Flag, Given, Name, Told

Who = Annotated[str, StringConstraints(pattern=r"^(user|group):\S", max_length=110)]
Password = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
Groups = Annotated[tuple[Name, ...], Field(max_length=200)]


class AccessShape(Told):
    """Who may read a knowledge base or a document. `own`: it has a list of its own, else its base's counts. The owner comes
    first, and is always on it."""

    what: str  # base, document
    id: str
    owner: str
    own: bool
    readers: tuple[str, ...]  # user:NAME, group:NAME
    mine: bool


class ChangedAccess(Given):
    """Somebody who may read it from now on, or may not any more."""

    name: Who
    may: Flag


class BackupShape(Told):
    """A copy of the workspace that was made before: whatever is erased here is still in it."""

    path: str
    at: str


class ErasedShape(Told):
    """What went: how many records say nothing any more. The copies that were made before still hold it."""

    records: int
    backups: tuple[BackupShape, ...]


class PersonShape(Told):
    name: str
    groups: tuple[str, ...]
    admin: bool
    created: str


class People(Told):
    people: tuple[PersonShape, ...]


class NewPerson(Given):
    name: Name
    groups: Groups = ()
    admin: Flag = False
    password: Password | None = None


class ChangedPerson(Given):
    groups: Groups | None = None
    admin: Flag | None = None
    password: Password | None = None


class KeyShape(Told):
    id: str
    label: str
    created: str
    used: str


class Keys(Told):
    keys: tuple[KeyShape, ...]


class NewKey(Given):
    label: Annotated[str, StringConstraints(strip_whitespace=True, max_length=200)] = ""


class MadeKey(Told):
    """The key is shown this once: only a digest of it is kept."""

    id: str
    key: str
