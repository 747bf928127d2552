"""HTTP schemas for setting up: the connection to a model, settings, folders on the server's disk, and suggested questions."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, SecretStr, StringConstraints

from assay.serve.run_schemas import NOT_BLANK
from assay.serve.run_schemas import Id
from assay.serve.run_schemas import Name
from assay.serve.run_schemas import RequestModel
from assay.serve.run_schemas import ResponseModel
from assay.workspace.settings_change import Kind

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


class SuggestedQuestion(ResponseModel):
    """A question that the documents answer, and the document it is drawn from."""

    question: str
    document: Id
    title: str


class SuggestionsResponse(ResponseModel):
    questions: tuple[SuggestedQuestion, ...]
