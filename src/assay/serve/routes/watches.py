"""HTTP routes for places that the server watches: administrators choose them, out of what the settings allow; who may read the
knowledge base sees how they are."""

from __future__ import annotations

import asyncio
from pathlib import Path

from fastapi import APIRouter

from assay.core.errors import Missing, UserError
from assay.ingest.places import allows, checked_address, entries_of, is_address
from assay.serve.routes.bases import target_base
from assay.serve.schemas import Name, PathId, RequestModel, ResponseModel, Source, error_responses
from assay.serve.state import Administrator, CurrentPerson, CurrentServer, CurrentWorkspace
from assay.serve.upload_worker import writable_base
from assay.workspace.facade import Workspace
from assay.workspace.stored import Watch

watches_router = APIRouter(prefix="/api/watches", tags=["knowledge bases"], responses=error_responses())


class WatchRequest(RequestModel):
    """A folder of the server or an address that `sources_allowed` names, or is below it; and the base that follows it."""

    place: Source
    base: Name


class WatchView(ResponseModel):
    """A place that is watched. `looked` is empty until the first look has ended, `problem` unless the last one failed."""

    id: str
    place: str
    base: str
    yours: bool  # whether the user may end it
    files: int
    looked: str
    changed: str
    problem: str


class WatchesResponse(ResponseModel):
    """What is watched for the knowledge bases that you may read; and for administrators what may be chosen."""

    watches: tuple[WatchView, ...]
    allowed: tuple[str, ...]


@watches_router.get("")
def list_watches(server: CurrentServer, workspace: CurrentWorkspace, person: CurrentPerson) -> WatchesResponse:
    """The places that the server watches, and how they are."""
    readable = {base.id for base in workspace.scope().bases}
    found = tuple(_view(workspace, each) for each in workspace.watches.listing() if each.base in readable)
    allowed = entries_of(server.workspace.settings.sources_allowed) if person.admin else []
    return WatchesResponse(watches=found, allowed=tuple(allowed))


@watches_router.post("", status_code=201)
async def begin_watch(
    given: WatchRequest, server: CurrentServer, workspace: CurrentWorkspace, who: Administrator
) -> WatchView:
    """Have a knowledge base of yours follow a place: what is there is read now, and each change within seconds."""
    place = await asyncio.to_thread(_checked, given.place)
    if not allows(server.workspace.settings.sources_allowed, place):
        raise UserError(f"{place} cannot be watched: it is not in the setting `sources_allowed` of this server.")
    base = await asyncio.to_thread(target_base, workspace, given.base)
    made = await asyncio.to_thread(workspace.watches.begin, place, base.id, who.principal.id)
    if server.works:
        await server.watcher.keep(server.workspace)
    return await asyncio.to_thread(_view, workspace, made)


@watches_router.delete("/{watch}", status_code=204)
async def end_watch(watch: PathId, server: CurrentServer, workspace: CurrentWorkspace, person: CurrentPerson) -> None:
    """Follow a place no longer. What was read stays."""

    def end() -> None:
        known, scope = workspace.watches.one(watch), workspace.scope()
        if not any(base.id == known.base for base in scope.bases):
            raise Missing(f"Nothing with the id {watch!r} is watched.")
        if not person.admin:
            writable_base(workspace, known.base)
        workspace.watches.end(watch)

    await asyncio.to_thread(end)
    if server.works:
        await server.watcher.keep(server.workspace)


def _checked(place: str) -> str:
    return checked_address(place) if is_address(place) else str(Path(place).expanduser().resolve())


def _view(workspace: Workspace, watch: Watch) -> WatchView:
    base = workspace.scope().named(watch.base)
    return WatchView.made_from(watch, base=base.name, yours=workspace.principal.owns(base))
