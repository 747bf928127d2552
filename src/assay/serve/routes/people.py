"""HTTP routes for users, for administrators only (hidden from others), and for everyone's own API keys."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, HTTPException, Path, Response

from assay.core.errors import Missing, UserError
from assay.serve.routes.people import CreatedKeyResponse
from assay.serve.routes.people import CreateKeyRequest
from assay.serve.routes.people import CreatePersonRequest
from assay.serve.routes.people import KeysResponse
from assay.serve.routes.people import KeyView
from assay.serve.routes.people import PeopleResponse
from assay.serve.routes.people import PersonView
from assay.serve.routes.people import UpdatePersonRequest
from assay.serve.run_schemas import error_responses
from assay.serve.state import CurrentPerson, CurrentServer, Person
from assay.store.access import members, tokens
from assay.store.access import members
from assay.store.access.members import Member

router = APIRouter(
    prefix="/api",
    tags=["people"],
    responses=error_responses(413),
)

PersonName = Annotated[str, Path(max_length=100)]
KeyId = Annotated[str, Path(max_length=100)]


def require_administrator(who: Person) -> None:
    if not who.admin:
        raise HTTPException(404, "Not Found")


def _shape(member: Member) -> PersonView:
    return PersonView(name=member.name, groups=member.groups, admin=member.admin, created=member.created)


@router.get("/people", response_model=PeopleResponse)
def list_people(server: CurrentServer, who: CurrentPerson) -> PeopleResponse:
    """Everybody who may sign in, with their groups."""
    require_administrator(who)
    return PeopleResponse(people=tuple(map(_shape, members.listing(server.workspace.store))))


@router.post("/people", status_code=201, response_model=PersonView)
def add_person(new: CreatePersonRequest, server: CurrentServer, who: CurrentPerson) -> PersonView:
    """Add a person; without a password they come with an API key, or through a proxy."""
    require_administrator(who)
    store, by = server.workspace.store, who.principal.id
    return _shape(members.add(store, new.name, new.groups, admin=new.admin, password=new.password, by=by))


@router.patch("/people/{name}", response_model=PersonView)
def change_person(
    name: PersonName, changed: UpdatePersonRequest, server: CurrentServer, who: CurrentPerson
) -> PersonView:
    """Change somebody's groups, rights or password. It holds from their next request on; a new password ends all their
    sessions and API keys. Every change is recorded."""
    require_administrator(who)
    store, by = server.workspace.store, who.principal.id
    member = members.known(store, name)
    if changed.admin is False and member.name == who.principal.id:
        raise UserError("Nobody takes their own rights away: another administrator has to.")
    if changed.groups is not None:
        members.set_groups(store, member.name, changed.groups, by)
    if changed.password is not None:
        members.set_password(store, member.name, changed.password, by)
    if changed.admin is not None:
        members.set_admin(store, member.name, changed.admin, by)
    return _shape(members.known(store, name))


@router.delete("/people/{name}", status_code=204)
def remove_person(name: PersonName, server: CurrentServer, who: CurrentPerson) -> Response:
    """Remove a person: keys and sessions end, their runs stop, and what others let them read is closed. What they own stays
    under a name that nobody can have."""
    require_administrator(who)
    if name == who.principal.id:
        raise UserError("Nobody removes themselves: another administrator has to.")
    members.remove_member(server.workspace.store, server.workspace.cache, name, by=who.principal.id)
    return Response(status_code=204)


@router.get("/keys", response_model=KeysResponse)
def list_keys(server: CurrentServer, who: CurrentPerson) -> KeysResponse:
    """Your own API keys, without what makes them keys."""
    own = tokens.listing(server.workspace.store, who.principal.id)
    return KeysResponse(
        keys=tuple(KeyView(id=key.id, label=key.label, created=key.created, used=key.used) for key in own)
    )


@router.post("/keys", status_code=201, response_model=CreatedKeyResponse)
def make_key(new: CreateKeyRequest, server: CurrentServer, who: CurrentPerson) -> CreatedKeyResponse:
    """A new API key of your own."""
    store = server.workspace.store
    before = {key.id for key in tokens.listing(store, who.principal.id)}
    secret = tokens.new_key(store, who.principal.id, new.label, who.principal.id)
    made = next(key for key in tokens.listing(store, who.principal.id) if key.id not in before)
    return CreatedKeyResponse(id=made.id, key=secret)


@router.delete("/keys/{key}", status_code=204)
def remove_key(key: KeyId, server: CurrentServer, who: CurrentPerson) -> Response:
    """Take one of your own API keys back."""
    store = server.workspace.store
    if key not in {each.id for each in tokens.listing(store, who.principal.id)}:
        raise Missing(f"There is no API key {key!r} of yours.")
    tokens.revoke(store, key, who.principal.id)
    return Response(status_code=204)
