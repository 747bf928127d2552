"""HTTP routes for setting up in the browser: settings and the model that is asked, for administrators only (hidden from
others); a folder of this computer, where only its own user can ask; and questions to begin with."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, HTTPException
from pydantic import Field, SecretStr, StringConstraints

from assay.models.endpoint import ServerHere
from assay.serve.routes.bases import JobView, begin_job, target_base
from assay.serve.routes.runs import SuggestionsResponse
from assay.serve.schemas import NOT_BLANK, ErrorResponse, Name, RequestModel, ResponseModel, error_responses
from assay.serve.state import Administrator, CurrentServer, CurrentWorkspace
from assay.serve.upload_files import Admit, copy_folder
from assay.workspace.stored import JobFile
from assay.workspace.types import ModelConnection, ProposedModel, SettingGroup

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


class ModelTestResponse(ResponseModel):
    """What the endpoint can do, a sentence each."""

    lines: tuple[str, ...]


class ModelNamesResponse(ResponseModel):
    names: tuple[str, ...]


class ModelsHereResponse(ResponseModel):
    servers: tuple[ServerHere, ...]


SettingValue = bool | int | float | Annotated[str, StringConstraints(strip_whitespace=True, max_length=2000)]


class SettingsResponse(ResponseModel):
    groups: tuple[SettingGroup, ...]


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


@setup_router.get("")
def model_connection(server: CurrentServer, who: Administrator) -> ModelConnection:
    """Which model is asked, where it is, and what is sent to it. The key is never shown."""
    return server.workspace.setup.connection(shared=server.signs_in)


@setup_router.post("/preview")
def preview_model(given: ModelRequest, server: CurrentServer, who: Administrator) -> ModelConnection:
    """What would be sent to which machine with this model. Nothing is sent and nothing is changed."""
    return server.workspace.setup.connection(_proposed(given), shared=server.signs_in)


@setup_router.post("/here")
async def models_here(server: CurrentServer, who: Administrator) -> ModelsHereResponse:
    """The model servers at the usual ports of this machine (Ollama, LM Studio, llama.cpp, vLLM), with their models. They are
    sent nothing."""
    found = await server.background.run(server.workspace.setup.servers_here())
    return ModelsHereResponse(servers=tuple(found))


@setup_router.post("/names")
async def model_names(given: ModelRequest, server: CurrentServer, who: Administrator) -> ModelNamesResponse:
    """The models at an address; empty where it lists none. It is connected to, and sent nothing but the key. With a model,
    an error where it has none of that name."""
    asked = server.workspace.setup.names(_proposed(given), given.agree, shared=server.signs_in)
    return ModelNamesResponse(names=await server.background.run(asked))


@setup_router.post("/test")
async def test_model(given: ModelRequest, server: CurrentServer, who: Administrator) -> ModelTestResponse:
    """Try the endpoint with a few test sentences; nothing of a document is among them. The machine must be agreed to, here
    or earlier. Nothing is changed."""
    trial = server.workspace.setup.test(_proposed(given), given.agree, shared=server.signs_in)
    lines = await server.background.run(trial)
    return ModelTestResponse(lines=tuple(lines))


@setup_router.put("")
async def connect_model(given: ModelRequest, server: CurrentServer, who: Administrator) -> ModelConnection:
    """Ask this model from now on. The address and the agreement are stored, the key in a file that only the server's user can
    read."""
    by = who.principal.id
    changed = await asyncio.to_thread(
        server.workspace.setup.connect, _proposed(given), given.agree, by=by, shared=server.signs_in
    )
    server.workspace = server.workspace.with_settings(changed)
    log.info("%s has connected the model %r", who.principal.id, server.workspace.settings.llm_model)
    server.background.begin(server.workspace.setup.probe_local_model())
    return await asyncio.to_thread(server.workspace.setup.connection, shared=server.signs_in)


@setup_router.delete("")
async def disconnect_model(server: CurrentServer, who: Administrator) -> ModelConnection:
    """Go on without a model: answers are quotations, and nothing is sent to it any more. Its key is deleted."""
    changed = await asyncio.to_thread(server.workspace.setup.disconnect, by=who.principal.id)
    server.workspace = server.workspace.with_settings(changed)
    log.info("%s has disconnected the model", who.principal.id)
    return await asyncio.to_thread(server.workspace.setup.connection, shared=server.signs_in)


@settings_router.get("")
def settings(server: CurrentServer, who: Administrator) -> SettingsResponse:
    """The settings that can be changed here, with their values and bounds. Keys and addresses are not among them."""
    return SettingsResponse(groups=server.workspace.setup.groups())


@settings_router.patch("")
async def change_settings(given: SettingsRequest, server: CurrentServer, who: Administrator) -> SettingsResponse:
    """Change settings, all of them or none. They are written to the workspace's file, hold from the next question on, and
    each change is recorded."""
    changed = await asyncio.to_thread(server.workspace.setup.change, given.values, by=who.principal.id)
    server.workspace = server.workspace.with_settings(changed)
    log.info("%s has changed settings: %s", who.principal.id, ", ".join(sorted(given.values)))
    return SettingsResponse(groups=await asyncio.to_thread(server.workspace.setup.groups))


@start_router.post(
    "/folders",
    status_code=202,
    responses={507: {"model": ErrorResponse, "description": "All that you may keep here is used."}},
)
async def add_folder(given: FolderRequest, workspace: CurrentWorkspace, server: CurrentServer) -> JobView:
    """Add the files of a folder on this computer. Only where the server has one user, who started it and has its token: that
    person can read the folder anyway."""
    if server.serving.auth != "off" or not server.serving.token:
        raise HTTPException(403, ONLY_ITS_USER)
    base = await asyncio.to_thread(target_base, workspace, given.base)

    async def arrive(folder: Path, most: int, admit: Admit) -> list[JobFile]:
        return await asyncio.to_thread(copy_folder, given.path, workspace.path, folder, most, admit)

    return await begin_job(server, workspace, base, arrive)


@start_router.get("/suggestions")
def suggestions(workspace: CurrentWorkspace) -> SuggestionsResponse:
    """Questions to begin with, drawn from the documents that you may read. No model is asked."""
    return SuggestionsResponse.made_from(questions=workspace.questions.suggest())
