"""HTTP routes for setting up in the browser: settings and the model that is asked, for administrators only (hidden from
others); a folder of this computer, where only its own user can ask; and questions to begin with."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, HTTPException
from pydantic import Field, SecretStr, StringConstraints

from assay.ingest.parsed import file_limits
from assay.serve.document_schemas import JobView
from assay.serve.document_views import suggested
from assay.serve.routes.bases import job_of, target_base
from assay.serve.routes.people import require_administrator
from assay.serve.run_schemas import (
    NOT_BLANK,
    ErrorResponse,
    Name,
    RequestModel,
    ResponseModel,
    SuggestionsResponse,
    error_responses,
)
from assay.serve.state import CurrentPerson, CurrentServer, CurrentWorkspace
from assay.serve.upload_files import copy_folder
from assay.workspace.types import Kind, ModelConnection, ProposedModel, SettingGroup

log = logging.getLogger("assay.serve")

Address = Annotated[str, StringConstraints(strip_whitespace=True, max_length=500)]
ModelName = Annotated[str, StringConstraints(strip_whitespace=True, max_length=200)]
Host = Annotated[str, StringConstraints(max_length=300)]


class ModelRequest(RequestModel):
    """An OpenAI-compatible endpoint. Without a key the present one is kept, if the address stays the same."""

    address: Address
    model: ModelName
    key: Annotated[SecretStr, Field(max_length=2000)] = SecretStr("")
    agree: Annotated[tuple[Host, ...], Field(max_length=20)] = ()  # machines that text may be sent to from now on


class RecipientView(ResponseModel):
    """A machine that text would be sent to, and what that would be."""

    host: str
    receives: tuple[str, ...]
    agreed: bool


class ModelConnectionView(ResponseModel):
    address: str
    model: str  # empty: answers are quotations
    has_key: bool  # the key itself is never sent
    recipients: tuple[RecipientView, ...]  # empty: nothing leaves this machine
    fixed: tuple[str, ...]  # environment variables of the server that decide instead


class ModelTestResponse(ResponseModel):
    """What the endpoint can do, a sentence each."""

    lines: tuple[str, ...]


SettingValue = bool | int | float | Annotated[str, StringConstraints(strip_whitespace=True, max_length=2000)]


class SettingView(ResponseModel):
    """A setting, and what it can be."""

    name: str
    label: str
    about: str
    kind: Kind
    value: SettingValue
    default: SettingValue
    choices: tuple[str, ...]
    least: float | None
    most: float | None
    fixed: str  # why it cannot be changed here; empty if it can


class SettingGroupView(ResponseModel):
    title: str
    settings: tuple[SettingView, ...]


class SettingsResponse(ResponseModel):
    groups: tuple[SettingGroupView, ...]


class SettingsRequest(RequestModel):
    """New values by the names of settings. What is not named stays as it is."""

    values: Annotated[dict[str, SettingValue], Field(min_length=1, max_length=100)]


class FolderRequest(RequestModel):
    base: Name = "default"
    path: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4000, pattern=NOT_BLANK)]


setup_router = APIRouter(prefix="/api/model", tags=["model"], responses=error_responses(413, 502))
settings_router = APIRouter(prefix="/api/settings", tags=["settings"], responses=error_responses(413))
start_router = APIRouter(prefix="/api", tags=["documents"], responses=error_responses(413))

ONLY_ITS_USER = "Only the one user of this computer can name a folder of it. Send the files instead."


def _proposed(given: ModelRequest) -> ProposedModel:
    return ProposedModel(given.address, given.model, given.key.get_secret_value())


def _view(found: ModelConnection) -> ModelConnectionView:
    return ModelConnectionView(
        address=found.address,
        model=found.model,
        has_key=found.has_key,
        recipients=tuple(
            RecipientView(host=each.host, receives=each.receives, agreed=each.agreed) for each in found.recipients
        ),
        fixed=found.fixed,
    )


@setup_router.get("", response_model=ModelConnectionView)
def model_connection(server: CurrentServer, who: CurrentPerson) -> ModelConnectionView:
    """Which model is asked, where it is, and what is sent to it. The key is never shown."""
    require_administrator(who)
    return _view(server.workspace.setup.connection())


@setup_router.post("/preview", response_model=ModelConnectionView)
def preview_model(given: ModelRequest, server: CurrentServer, who: CurrentPerson) -> ModelConnectionView:
    """What would be sent to which machine with this model. Nothing is sent and nothing is changed."""
    require_administrator(who)
    return _view(server.workspace.setup.connection(_proposed(given)))


@setup_router.post("/test", response_model=ModelTestResponse)
async def test_model(given: ModelRequest, server: CurrentServer, who: CurrentPerson) -> ModelTestResponse:
    """Try the endpoint with a few test sentences; nothing of a document is among them. The machine must be agreed to, here
    or earlier. Nothing is changed."""
    require_administrator(who)
    lines = await server.background.run(server.workspace.setup.test(_proposed(given), given.agree))
    return ModelTestResponse(lines=tuple(lines))


@setup_router.put("", response_model=ModelConnectionView)
async def connect_model(given: ModelRequest, server: CurrentServer, who: CurrentPerson) -> ModelConnectionView:
    """Ask this model from now on. The address and the agreement are stored, the key in a file that only the server's user can
    read."""
    require_administrator(who)
    by = who.principal.id
    changed = await asyncio.to_thread(server.workspace.setup.connect, _proposed(given), given.agree, by=by)
    server.workspace = server.workspace.with_settings(changed)
    log.info("%s has connected the model %r", who.principal.id, server.workspace.settings.llm_model)
    return _view(await asyncio.to_thread(server.workspace.setup.connection))


@setup_router.delete("", response_model=ModelConnectionView)
async def disconnect_model(server: CurrentServer, who: CurrentPerson) -> ModelConnectionView:
    """Go on without a model: answers are quotations, and nothing is sent to it any more. Its key is deleted."""
    require_administrator(who)
    changed = await asyncio.to_thread(server.workspace.setup.disconnect, by=who.principal.id)
    server.workspace = server.workspace.with_settings(changed)
    log.info("%s has disconnected the model", who.principal.id)
    return _view(await asyncio.to_thread(server.workspace.setup.connection))


@settings_router.get("", response_model=SettingsResponse)
def settings(server: CurrentServer, who: CurrentPerson) -> SettingsResponse:
    """The settings that can be changed here, with their values and bounds. Keys and addresses are not among them."""
    require_administrator(who)
    return _settings_view(server.workspace.setup.groups())


@settings_router.patch("", response_model=SettingsResponse)
async def change_settings(given: SettingsRequest, server: CurrentServer, who: CurrentPerson) -> SettingsResponse:
    """Change settings, all of them or none. They are written to the workspace's file, hold from the next question on, and
    each change is recorded."""
    require_administrator(who)
    changed = await asyncio.to_thread(server.workspace.setup.change, given.values, by=who.principal.id)
    server.workspace = server.workspace.with_settings(changed)
    log.info("%s has changed settings: %s", who.principal.id, ", ".join(sorted(given.values)))
    return _settings_view(await asyncio.to_thread(server.workspace.setup.groups))


def _settings_view(groups: Sequence[SettingGroup]) -> SettingsResponse:
    return SettingsResponse(
        groups=tuple(
            SettingGroupView(title=group.title, settings=tuple(SettingView(**asdict(each)) for each in group.settings))
            for group in groups
        )
    )


@start_router.post(
    "/folders",
    response_model=JobView,
    status_code=202,
    responses={507: {"model": ErrorResponse, "description": "All that you may keep here is used."}},
)
async def add_folder(
    given: FolderRequest, workspace: CurrentWorkspace, server: CurrentServer, who: CurrentPerson
) -> JobView:
    """Add the files of a folder on this computer. Only where the server has one user, who started it and has its token: that
    person can read the folder anyway."""
    if server.serving.auth != "off" or not server.serving.token:
        raise HTTPException(403, ONLY_ITS_USER)
    base = await asyncio.to_thread(target_base, workspace, given.base)
    job = "j" + workspace.store.new_id()
    with (
        await asyncio.to_thread(server.reserve_upload, who),
        await asyncio.to_thread(server.upload_room, base, who) as room,
    ):
        async with server.worker.arrival(job) as into:
            most = file_limits(workspace.settings).bytes
            files = await asyncio.to_thread(copy_folder, given.path, workspace.path, into, most, room.take)
            await server.worker.begin(job, workspace.principal, base.name, files)
    await server.worker.wake()
    return await asyncio.to_thread(job_of, workspace, job)


@start_router.get("/suggestions", response_model=SuggestionsResponse)
def suggestions(workspace: CurrentWorkspace) -> SuggestionsResponse:
    """Questions to begin with, drawn from the documents that you may read. No model is asked."""
    return SuggestionsResponse(questions=tuple(map(suggested, workspace.questions.suggest())))
