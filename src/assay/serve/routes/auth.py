"""Identity: the current user (set by `RequestGuard`), signing in and out, and the workspace as a user sees it now."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException
from starlette.requests import cookie_parser

from assay import __version__
from assay.core.errors import UserError
from assay.core.events import KINDS, Checkpoint, Mode
from assay.models.factory import has_model, reached
from assay.serve.guard import COOKIE, client_address
from assay.serve.run_schemas import ErrorResponse
from assay.serve.run_schemas import LoginRequest
from assay.serve.run_schemas import MeResponse
from assay.serve.state import CurrentPerson, CurrentServer, Person, Server
from assay.store import facts
from assay.store.access import members, tokens

router = APIRouter(
    tags=["people"], responses={status: {"model": ErrorResponse} for status in (400, 401, 403, 413, 422, 429, 503)}
)


@router.get("/api/me", response_model=MeResponse)
def me(server: CurrentServer, who: CurrentPerson) -> MeResponse:
    """The person who asks, and what they can choose from."""
    return _me(server, who)


def _me(server: Server, person: Person) -> MeResponse:
    settings, store = server.workspace.settings, server.workspace.store
    return MeResponse(
        name=person.principal.id,
        groups=tuple(sorted(person.principal.groups)),
        admin=person.admin,
        auth=server.serving.auth,
        csrf=person.csrf,
        model=settings.llm_model if has_model(settings) else "",
        judge=server.workspace.judge_summary(),
        leaves=tuple(host for host in reached(settings) if not facts.agreed(store, host)),
        modes=tuple(Mode),
        checkpoints=tuple(Checkpoint),
        event_kinds=tuple(KINDS),
        version=__version__,
        upload_megabytes=settings.file_max_megabytes,
        folders=server.serving.auth == "off" and bool(server.serving.token),
    )


@router.post("/api/session", response_model=MeResponse)
async def sign_in(given: LoginRequest, request: Request, response: Response, server: CurrentServer) -> MeResponse:
    """Sign in with a name and a password. The reply sets a cookie; `csrf` has to come back with every change."""
    if server.serving.auth != "keys":
        raise UserError("Nobody signs in here with a password: this server knows people in another way.")
    store, address = server.workspace.store, client_address(server, request.scope, request.headers)
    server.limits.tries.begin(given.name, address)
    async with server.limits.signing_in:
        member = await asyncio.to_thread(members.check_password, store, given.name, given.password)
    if member is None:
        raise HTTPException(401, "That name and password do not go together.")
    server.limits.tries.right(given.name, address)
    seconds = server.workspace.settings.serve_session_hours * 3600
    token, csrf = await asyncio.to_thread(tokens.begin_session, store, member.name, seconds)
    response.set_cookie(
        COOKIE, token, max_age=int(seconds), path="/", secure=server.serving.secure, httponly=True, samesite="lax"
    )
    return await asyncio.to_thread(_me, server, Person(member.principal, member.admin, csrf))


@router.delete("/api/session", status_code=204)
def sign_out(request: Request, server: CurrentServer, who: CurrentPerson) -> Response:
    """Sign out: the session ends here and in the browser."""
    if token := cookie_parser(request.headers.get("cookie", "")).get(COOKIE):
        tokens.end_session(server.workspace.store, token)
    response = Response(status_code=204)
    response.delete_cookie(COOKIE, path="/", secure=server.serving.secure, httponly=True, samesite="lax")
    return response
