"""HTTP routes for people: signing in and out, users (for administrators only, hidden from others), everyone's own API keys,
and who may read what. To whoever does not own an object it is missing."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, HTTPException, Path, Request, Response
from pydantic import Field, StringConstraints
from starlette.requests import cookie_parser

from assay import __version__
from assay.core.errors import Missing, UserError
from assay.core.events import KINDS, Checkpoint, Mode
from assay.models.factory import has_model, reached, unconnected
from assay.serve.guard import COOKIE, client_address
from assay.serve.oidc import name_of
from assay.serve.routes.sign_in import start_session
from assay.serve.schemas import (
    BaseName,
    ErrorResponse,
    Name,
    PathId,
    RequestModel,
    ResponseModel,
    StrictFlag,
    error_responses,
)
from assay.serve.state import Administrator, CurrentPerson, CurrentServer, CurrentWorkspace, Person, Server
from assay.serve.upload_worker import change_base

Grantee = Annotated[str, StringConstraints(pattern=r"^(user|group):\S", max_length=110)]
Pattern = Annotated[str, StringConstraints(min_length=1, max_length=300)]
Password = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
Groups = Annotated[tuple[Name, ...], Field(max_length=200)]


class MeResponse(ResponseModel):
    """The person, and what they can choose from. `csrf` has to come back as the header X-CSRF-Token with every change that
    is made with a session's cookie; it is empty where none is needed."""

    name: str
    groups: tuple[str, ...]
    admin: bool
    auth: str  # off, keys (names and passwords, or API keys), header
    provider: str  # with which a sign-in can be linked to the account; empty: none
    csrf: str
    model: str  # the model's name; empty: answers are quotations
    models: tuple[str, ...]  # the connected models, of which a question may name one
    written_by: str  # which model writes and checks the answers, in a sentence; empty: none
    unconnected: str  # why the model that is named cannot be asked, in a sentence; empty: it can, or none is named
    judge: str  # how well the model judges claims, as it was measured, in a sentence; empty: not measured
    leaves: tuple[str, ...]  # hosts that would receive text and have no consent yet
    modes: tuple[Mode, ...]
    checkpoints: tuple[Checkpoint, ...]
    event_kinds: tuple[str, ...]  # the event kinds of a run, used as event names in its stream
    version: str
    upload_megabytes: int  # the maximum file size
    folders: bool  # whether a folder of the server's computer can be added by its path


class LoginRequest(RequestModel):
    name: Name
    password: Annotated[str, StringConstraints(min_length=1, max_length=1000)]


class AccessView(ResponseModel):
    """Who may read a knowledge base, a document, or what fits a pattern of locations. `own`: it has a list of its own, else its
    base's counts, or that of the pattern that it fits. The owner comes first, and is always on it."""

    what: str  # base, document, pattern
    id: str
    owner: str
    own: bool
    readers: tuple[str, ...]  # user:NAME, group:NAME
    mine: bool
    patterns: tuple[str, ...]  # of a base: those that are restricted; of a document: that whose list counts
    accepted: tuple[str, ...]  # of a base: those of its readers who accepted it; to others it is offered
    held: str  # why the list is provisional until its owner decides; empty if it is not


class RestrictRequest(RequestModel):
    """A folder (`hr/**`) or another pattern of locations (`*.xlsx`), and who may read it besides the owner."""

    pattern: Pattern
    only_for: Annotated[tuple[Grantee, ...], Field(max_length=100)]


class DecideRequest(RequestModel):
    """Whether a document that is held stays restricted; else whoever reads its base may read it."""

    keep: StrictFlag


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


people_router = APIRouter(prefix="/api", tags=["people"], responses=error_responses(413))


@people_router.get("/people")
def list_people(server: CurrentServer, who: Administrator) -> PeopleResponse:
    """Everybody who may sign in, with their groups."""
    return PeopleResponse.made_from(people=tuple(server.workspace.people.listing()))


@people_router.post("/people", status_code=201)
def add_person(new: CreatePersonRequest, server: CurrentServer, who: Administrator) -> PersonView:
    """Add a person; without a password they come with an API key, or through a proxy."""
    people, by = server.workspace.people, who.principal.id
    return PersonView.made_from(people.add(new.name, new.groups, admin=new.admin, password=new.password, by=by))


@people_router.patch("/people/{name}")
def change_person(name: PathId, changed: UpdatePersonRequest, server: CurrentServer, who: Administrator) -> PersonView:
    """Change somebody's groups, rights or password. It holds from their next request on; a new password ends all their
    sessions and API keys. Every change is recorded."""
    people, by = server.workspace.people, who.principal.id
    member = people.known(name)
    if changed.admin is False and member.name == who.principal.id:
        raise UserError("Nobody takes their own rights away: another administrator has to.")
    if changed.groups is not None:
        people.set_groups(member.name, changed.groups, by)
    if changed.password is not None:
        people.set_password(member.name, changed.password, by)
    if changed.admin is not None:
        people.set_admin(member.name, changed.admin, by)
    return PersonView.made_from(people.known(name))


@people_router.delete("/people/{name}", status_code=204)
def remove_person(name: PathId, server: CurrentServer, who: Administrator) -> Response:
    """Remove a person: keys and sessions end, their runs stop, and what others let them read is closed. What they own stays
    under a name that nobody can have."""
    if name == who.principal.id:
        raise UserError("Nobody removes themselves: another administrator has to.")
    server.workspace.people.remove(name, by=who.principal.id)
    return Response(status_code=204)


@people_router.get("/keys")
def list_keys(server: CurrentServer, who: CurrentPerson) -> KeysResponse:
    """Your own API keys, without what makes them keys."""
    own = server.workspace.people.list_keys(who.principal.id)
    return KeysResponse.made_from(keys=tuple(own))


@people_router.post("/keys", status_code=201)
def make_key(new: CreateKeyRequest, server: CurrentServer, who: CurrentPerson) -> CreatedKeyResponse:
    """A new API key of your own."""
    people = server.workspace.people
    before = {key.id for key in people.list_keys(who.principal.id)}
    secret = people.new_key(who.principal.id, new.label, who.principal.id)
    made = next(key for key in people.list_keys(who.principal.id) if key.id not in before)
    return CreatedKeyResponse(id=made.id, key=secret)


@people_router.delete("/keys/{key}", status_code=204)
def remove_key(key: PathId, server: CurrentServer, who: CurrentPerson) -> Response:
    """Take one of your own API keys back."""
    people = server.workspace.people
    if key not in {each.id for each in people.list_keys(who.principal.id)}:
        raise Missing(f"There is no API key {key!r} of yours.")
    people.revoke_key(key, who.principal.id)
    return Response(status_code=204)


# Writing to the index must not block requests: it is done in a thread with its own loop.
access_router = APIRouter(prefix="/api", tags=["access"], responses=error_responses(413))

BaseId = Annotated[str, Path(max_length=100, description="The id of a knowledge base.")]


@access_router.get("/bases/{name:path}/access")
def base_access(name: BaseName, workspace: CurrentWorkspace) -> AccessView:
    """Who may read a knowledge base; for its owner."""
    return AccessView.made_from(workspace.people.base_access(name))


@access_router.post("/bases/{name:path}/access")
async def change_base_access(name: BaseName, changed: ChangeAccessRequest, workspace: CurrentWorkspace) -> AccessView:
    """Let a person or a group read a knowledge base, or not any more. It holds from their next request on."""
    return AccessView.made_from(await asyncio.to_thread(workspace.people.share_base, name, changed.name, changed.may))


@access_router.get("/bases/{name:path}/restrictions")
def restriction(name: BaseName, pattern: Pattern, workspace: CurrentWorkspace) -> AccessView:
    """Who may read what fits a pattern of locations; for its owner."""
    return AccessView.made_from(workspace.people.pattern_access(name, pattern))


@access_router.post("/bases/{name:path}/restrictions")
async def restrict(name: BaseName, wanted: RestrictRequest, workspace: CurrentWorkspace) -> AccessView:
    """Let only these people and groups read what fits a pattern of locations, whether it is there already or comes later."""
    change = workspace.people.restrict(name, wanted.pattern, wanted.only_for)
    return AccessView.made_from(await asyncio.to_thread(asyncio.run, change))


@access_router.delete("/bases/{name:path}/restrictions")
async def lift_restriction(name: BaseName, pattern: Pattern, workspace: CurrentWorkspace) -> AccessView:
    """Restrict what fits a pattern no longer. Documents with lists of their own keep them."""
    return AccessView.made_from(await asyncio.to_thread(asyncio.run, workspace.people.lift(name, pattern)))


@access_router.get("/offers")
def list_offers(workspace: CurrentWorkspace) -> list[OfferView]:
    """Knowledge bases that others share with you, and that you have not accepted: nothing of them is searched."""
    return [OfferView.made_from(offer, offer.base) for offer in workspace.people.offers()]


@access_router.post("/offers/{base}", status_code=204)
def answer_offer(base: BaseId, answer: AnswerOfferRequest, workspace: CurrentWorkspace) -> Response:
    """Accept a shared knowledge base; or decline it, or leave it."""
    workspace.people.answer_offer(base, answer.accept)
    return Response(status_code=204)


@access_router.get("/documents/{document}/access")
def document_access(document: PathId, workspace: CurrentWorkspace) -> AccessView:
    """Who may read a document; for its owner."""
    return AccessView.made_from(workspace.people.document_access(document))


@access_router.post("/documents/{document}/access")
async def change_document_access(
    document: PathId, changed: ChangeAccessRequest, workspace: CurrentWorkspace
) -> AccessView:
    """The same for one document, which has a list of its own from then on."""
    change = workspace.people.share_document(document, changed.name, changed.may)
    return AccessView.made_from(await asyncio.to_thread(asyncio.run, change))


@access_router.delete("/documents/{document}/access")
async def reset_document_access(document: PathId, workspace: CurrentWorkspace) -> AccessView:
    """Whoever may read its knowledge base may read the document again, and nobody else."""
    change = workspace.people.reset_document_access(document)
    return AccessView.made_from(await asyncio.to_thread(asyncio.run, change))


@access_router.post("/documents/{document}/held")
async def decide_held(document: PathId, decision: DecideRequest, workspace: CurrentWorkspace) -> AccessView:
    """Decide about a document that may be a restricted one in another form, and is restricted until then."""
    change = workspace.people.decide(document, decision.keep)
    return AccessView.made_from(await asyncio.to_thread(asyncio.run, change))


@access_router.post("/documents/{document}/erase", responses={409: {"model": ErrorResponse}})
async def erase_document(document: PathId, workspace: CurrentWorkspace, server: CurrentServer) -> ErasedResponse:
    """Erase a document with everything that was made of it, and say what went: also from the records of all runs that spoke
    of it, whoever asked."""
    base, entry = await asyncio.to_thread(workspace.people.owned_document, document)
    if await server.worker.fills(base):
        raise HTTPException(
            409, f"Files are being read into {base.name!r} now. Erase it when they are done, or stop them."
        )
    gone = await change_base(workspace, base, lambda: workspace.records.erase([entry], workspace.scope([base.name])))
    await server.pages.forget()
    return ErasedResponse.made_from(gone)


auth_router = APIRouter(
    tags=["people"], responses={status: {"model": ErrorResponse} for status in (400, 401, 403, 413, 422, 429, 503)}
)


@auth_router.get("/api/me")
def me(server: CurrentServer, who: CurrentPerson) -> MeResponse:
    """The person who asks, and what they can choose from."""
    return _me(server, who)


def _me(server: Server, person: Person) -> MeResponse:
    settings = server.workspace.settings
    return MeResponse.made_from(
        person,
        server.serving,
        name=person.principal.id,
        groups=tuple(sorted(person.principal.groups)),
        model=settings.llm_model if has_model(settings) else "",
        models=server.workspace.models.connected(),
        provider=name_of(settings) if server.serving.auth == "keys" else "",
        written_by=server.workspace.setup.written_by(shared=server.signs_in),
        unconnected=unconnected(settings),
        judge=server.workspace.models.judge_summary(),
        leaves=tuple(host for host in reached(settings) if not server.workspace.setup.agreed(host)),
        modes=tuple(Mode),
        checkpoints=tuple(Checkpoint),
        event_kinds=tuple(KINDS),
        version=__version__,
        upload_megabytes=settings.file_max_megabytes,
        folders=server.serving.auth == "off" and bool(server.serving.token),
    )


@auth_router.post("/api/session")
async def sign_in(given: LoginRequest, request: Request, response: Response, server: CurrentServer) -> MeResponse:
    """Sign in with a name and a password. The reply sets a cookie; `csrf` has to come back with every change."""
    if server.serving.auth != "keys":
        raise UserError("Nobody signs in here with a password: this server knows people in another way.")
    people, address = server.workspace.people, client_address(server, request.scope, request.headers)
    server.limits.tries.begin(given.name, address)
    async with server.limits.signing_in:
        member = await asyncio.to_thread(people.check_password, given.name, given.password)
    if member is None:
        raise HTTPException(401, "That name and password do not go together.")
    server.limits.tries.right(given.name, address)
    csrf = await start_session(server, request, response, member)
    return await asyncio.to_thread(_me, server, Person(member.principal, member.admin, csrf))


@auth_router.delete("/api/session", status_code=204)
def sign_out(request: Request, server: CurrentServer, who: CurrentPerson) -> Response:
    """Sign out: the session ends here and in the browser."""
    if token := cookie_parser(request.headers.get("cookie", "")).get(COOKIE):
        server.workspace.people.end_session(token)
    response = Response(status_code=204)
    response.delete_cookie(COOKIE, path="/", secure=server.serving.secure, httponly=True, samesite="lax")
    return response
