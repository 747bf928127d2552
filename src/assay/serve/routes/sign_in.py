"""HTTP routes for signing in with an OpenID provider, and for linking such a sign-in to an account. Who links one: the person
who is signed in, or an administrator."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, HTTPException, Request, Response
from pydantic import StringConstraints
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse

from assay.core.errors import Missing, UserError
from assay.serve.guard import COOKIE
from assay.serve.oidc import DENIED, NOT_THROUGH, OpenIdClient, Refused, claimed, groups_of, name_of
from assay.serve.schemas import PathId, RequestModel, ResponseModel, error_responses
from assay.serve.state import Administrator, CurrentPerson, CurrentServer, Server
from assay.workspace.stored import SIGN_IN_SECONDS, Identity, Member, SignIn, groups_now, is_valid_name

BROWSER = "assay_sign_in"  # the cookie by which a browser is known when it comes back
TOO_LATE = "That sign-in took too long, or began in another window. Begin again."

Subject = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=255)]


class SignInView(ResponseModel):
    """How one can sign in here: with a password, with a provider of this name; and why the last try in this browser failed."""

    passwords: bool
    provider: str
    problem: str


class WayView(ResponseModel):
    """The address at the provider where it goes on."""

    address: str


class IdentityView(ResponseModel):
    """A sign-in with a provider that leads to an account: the provider's address, and its name for the person."""

    id: str
    issuer: str
    subject: str
    created: str


class LinkRequest(RequestModel):
    """The provider's name for a person, which is told to them when they sign in without an account."""

    subject: Subject


router = APIRouter(prefix="/api", tags=["people"], responses=error_responses(413))


@router.get("/session")
def ways_to_sign_in(request: Request, server: CurrentServer) -> SignInView:
    """How one can sign in here. Needs no sign-in."""
    people, token = server.workspace.people, _cookie(request, BROWSER)
    problem = people.told_problem(token) if token else ""
    name = name_of(server.workspace.settings) if server.serving.auth == "keys" else ""
    return SignInView(passwords=server.serving.auth == "keys", provider=name, problem=problem)


@router.post("/session/provider")
async def begin_with_provider(request: Request, response: Response, server: CurrentServer) -> WayView:
    """Begin to sign in with the provider: the browser goes to the address, and comes back signed in. Needs no sign-in."""
    return await _begin(server, request, response, "")


@router.post("/identities")
async def begin_to_link(request: Request, response: Response, server: CurrentServer, who: CurrentPerson) -> WayView:
    """Begin to link a sign-in with the provider to your account: the same way, and from then on it signs you in."""
    if not who.csrf:
        raise UserError("Linking begins in a browser where you are signed in, not with an API key.")
    return await _begin(server, request, response, who.principal.id)


@router.get("/session/provider", response_class=RedirectResponse, status_code=303, include_in_schema=False)
async def come_back(request: Request, server: CurrentServer) -> RedirectResponse:
    """Somebody comes back from the provider."""
    client, people = _client(server), server.workspace.people
    answer = dict(request.query_params)
    sign_in = await asyncio.to_thread(people.end_sign_in, _cookie(request, BROWSER), answer.get("state", ""))
    response = RedirectResponse("/#/keys" if sign_in and sign_in.who else "/", 303)
    response.delete_cookie(BROWSER, path="/api/session", secure=_secure(server), httponly=True, samesite="lax")
    try:
        if sign_in is None:  # some providers send no state with a refusal
            raise Refused(NOT_THROUGH if answer.get("error") == DENIED else TOO_LATE)
        settings = server.workspace.settings
        wanted = (settings.oidc_name_claim, settings.oidc_groups_claim)
        claims = await client.who_came(answer, sign_in, [each for each in wanted if each])
        issuer, subject = client.provider.issuer, claims["sub"]
        if sign_in.who:
            await asyncio.to_thread(_link, server, request, sign_in, issuer, subject)
        else:
            member = await asyncio.to_thread(_member, server, issuer, subject, claims)
            await start_session(server, request, response, member)
    except (Refused, UserError) as problem:
        token = await asyncio.to_thread(people.tell_problem, str(problem))
        _remember(server, response, token)
    return response


@router.get("/session/provider/end", response_class=RedirectResponse, status_code=303, include_in_schema=False)
async def sign_out_at_provider(server: CurrentServer) -> RedirectResponse:
    """Leads to where one signs out at the provider too. Needs no sign-in."""
    try:
        return RedirectResponse(await _client(server).way_out() or "/", 303)
    except Refused:
        return RedirectResponse("/", 303)


@router.get("/identities")
def list_identities(server: CurrentServer, who: CurrentPerson) -> list[IdentityView]:
    """The sign-ins with a provider that lead to your account."""
    return _views(server, who.principal.id)


@router.delete("/identities/{identity}", status_code=204)
def unlink(identity: PathId, server: CurrentServer, who: CurrentPerson) -> Response:
    """Unlink one of them. Your sessions end, also this one."""
    server.workspace.people.unlink(who.principal.id, identity, who.principal.id)
    return Response(status_code=204)


@router.get("/people/{name}/identities")
def identities_of(name: PathId, server: CurrentServer, who: Administrator) -> list[IdentityView]:
    """The sign-ins with a provider that lead to somebody's account."""
    return _views(server, server.workspace.people.known(name).name)


@router.post("/people/{name}/identities", status_code=201)
def link_person(name: PathId, link: LinkRequest, server: CurrentServer, who: Administrator) -> list[IdentityView]:
    """Let a person of the provider sign in to this account."""
    people, issuer = server.workspace.people, _client(server).provider.issuer
    people.link(name, issuer, link.subject, who.principal.id)
    return _views(server, name)


@router.delete("/people/{name}/identities/{identity}", status_code=204)
def unlink_person(name: PathId, identity: PathId, server: CurrentServer, who: Administrator) -> Response:
    """Unlink one of them. The person's sessions end."""
    server.workspace.people.unlink(name, identity, who.principal.id)
    return Response(status_code=204)


def _client(server: Server) -> OpenIdClient:
    client = server.open_id()
    if client is None:
        raise Missing("Nobody signs in here with a provider.")
    return client


async def _begin(server: Server, request: Request, response: Response, who: str) -> WayView:
    client = _client(server)
    provider, origin = client.provider, request.headers.get("origin", client.provider.address)
    if origin != provider.address:
        raise UserError(f"Open {provider.address}/ for that: {provider.name} sends people back there.")
    token, sign_in = await asyncio.to_thread(server.workspace.people.begin_sign_in, who)
    try:
        address = await client.way_there(sign_in)
    except Refused as problem:
        raise HTTPException(504, str(problem)) from problem
    _remember(server, response, token)
    return WayView(address=address)


def _member(server: Server, issuer: str, subject: str, claims: dict[str, object]) -> Member:
    """The member whom this subject signs in, with the groups that the provider says; a new one, if that is wanted."""
    people, settings = server.workspace.people, server.workspace.settings
    provider, mapped = name_of(settings), groups_of(settings)
    name, said = claimed(claims, settings)
    member = people.member_with_identity(issuer, subject)
    if member is not None:
        groups = groups_now(member.groups, said, mapped)
        if groups != tuple(sorted(member.groups)):
            people.set_groups(member.name, groups, issuer)
            member = people.known(member.name)
        return member
    how = f"Sign in with a password and link {provider} to your account, or have an administrator link it: {subject}"
    if not settings.oidc_new_people:
        raise Refused(f"No account here belongs to this sign-in. {how}")
    if not is_valid_name(name):
        raise Refused(f"{provider} gives you no name that an account can have. {how}")
    member = people.add_with_identity(name, groups_now((), said, mapped), issuer, subject)
    if member is None:
        raise Refused(f"The name {name} is taken here, and is not yours by its name alone. {how}")
    return member


def _link(server: Server, request: Request, sign_in: SignIn, issuer: str, subject: str) -> None:
    """Link the subject to whoever began it, if they are still the one who is signed in here."""
    people = server.workspace.people
    session = people.find_session(_cookie(request, COOKIE))
    if session is None or session.member.name != sign_in.who:
        raise Refused("You are not signed in any more as whoever wanted to link it. Sign in, and begin again.")
    people.link(sign_in.who, issuer, subject, sign_in.who)


async def start_session(server: Server, request: Request, response: Response, member: Member) -> str:
    """Sign a member in with this reply; whoever was signed in there before is out. Returns the session's CSRF token."""
    people, seconds = server.workspace.people, server.workspace.settings.serve_session_hours * 3600
    if before := _cookie(request, COOKIE):
        await asyncio.to_thread(people.end_session, before)
    token, csrf = await asyncio.to_thread(people.begin_session, member.name, seconds)
    _set(response, COOKIE, token, int(seconds), "/", secure=server.serving.secure)
    return csrf


def _remember(server: Server, response: Response, token: str) -> None:
    _set(response, BROWSER, token, SIGN_IN_SECONDS, "/api/session", secure=_secure(server))


def _set(response: Response, name: str, value: str, seconds: int, path: str, *, secure: bool) -> None:
    response.set_cookie(name, value, max_age=seconds, path=path, secure=secure, httponly=True, samesite="lax")


def _secure(server: Server) -> bool:
    return server.serving.secure or server.workspace.settings.oidc_address.startswith("https:")


def _cookie(request: Request, name: str) -> str:
    return cookie_parser(request.headers.get("cookie", "")).get(name, "")


def _views(server: Server, name: str) -> list[IdentityView]:
    found: list[Identity] = server.workspace.people.list_identities(name)
    return [IdentityView.made_from(each) for each in found]
