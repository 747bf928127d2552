"""HTTP schemas for access, users and keys."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from assay.serve.run_schemas import Name
from assay.serve.run_schemas import RequestModel
from assay.serve.run_schemas import ResponseModel
from assay.serve.run_schemas import StrictFlag

Grantee = Annotated[str, StringConstraints(pattern=r"^(user|group):\S", max_length=110)]
Password = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
Groups = Annotated[tuple[Name, ...], Field(max_length=200)]


class AccessView(ResponseModel):
    """Who may read a knowledge base or a document. `own`: it has a list of its own, else its base's counts. The owner comes
    first, and is always on it."""

    what: str  # base, document
    id: str
    owner: str
    own: bool
    readers: tuple[str, ...]  # user:NAME, group:NAME
    mine: bool


class ChangeAccessRequest(RequestModel):
    """Somebody who may read it from now on, or may not any more."""

    name: Grantee
    may: StrictFlag


class BackupView(ResponseModel):
    """A copy of the workspace that was made before: whatever is erased here is still in it."""

    path: str
    at: str


class ErasedResponse(ResponseModel):
    """What went: how many records say nothing any more. The copies that were made before still hold it."""

    records: int
    backups: tuple[BackupView, ...]


class PersonView(ResponseModel):
    name: str
    groups: tuple[str, ...]
    admin: bool
    created: str


class PeopleResponse(ResponseModel):
    people: tuple[PersonView, ...]


class CreatePersonRequest(RequestModel):
    name: Name
    groups: Groups = ()
    admin: StrictFlag = False
    password: Password | None = None


class UpdatePersonRequest(RequestModel):
    groups: Groups | None = None
    admin: StrictFlag | None = None
    password: Password | None = None


class KeyView(ResponseModel):
    id: str
    label: str
    created: str
    used: str


class KeysResponse(ResponseModel):
    keys: tuple[KeyView, ...]


class CreateKeyRequest(RequestModel):
    label: Annotated[str, StringConstraints(strip_whitespace=True, max_length=200)] = ""


class CreatedKeyResponse(ResponseModel):
    """The key is shown this once: only a digest of it is kept."""

    id: str
    key: str


class OfferView(ResponseModel):
    """A knowledge base that somebody shares with you, and that you have not accepted."""

    id: str
    name: str
    description: str
    owner: str
    declined: bool


class AnswerOfferRequest(RequestModel):
    accept: StrictFlag  # false: decline it, or leave it
