"""The connection to a language model, as an administrator sets it: which endpoint, what would be sent to it, and the key.

An address comes from an administrator's request and from nowhere else. Nothing is sent to another machine before somebody
agreed to that machine by name. A key is stored in a file of its own, is never read back out, and never goes to an address
that it was not given for.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from pydantic import SecretStr

from assay.core.errors import ModelError, UserError
from assay.core.private_files import write_private
from assay.core.settings import PREFIX, Settings, hider, masked
from assay.models.capability import describe_capability
from assay.models.factory import (
    cluster_hosts,
    has_model,
    is_endpoint,
    llm_for,
    model_hosts,
    models_by_role,
    reached,
    remote_hosts,
)
from assay.models.llm import Role
from assay.store import facts
from assay.workspace import model_roles
from assay.workspace.context import WorkspaceContext
from assay.workspace.settings_change import write_changes

KEY_FILE = "llm.key"  # in the workspace, readable by its owner alone
CONNECTION = ("llm_base_url", "llm_model", "llm_api_key")
OTHER_MODELS = (*(f"llm_{role}_model" for role in Role), "llm_fallback_model")  # names at the endpoint before


@dataclass(frozen=True, slots=True)
class Recipient:
    """A host or provider that text would be sent to, what that would be, and whether somebody agreed to it."""

    host: str
    receives: tuple[str, ...]
    agreed: bool


@dataclass(frozen=True, slots=True)
class ModelConnection:
    """The connection as it is, or as it would be. `fixed` are environment variables that nothing here can change."""

    address: str
    model: str
    has_key: bool
    recipients: tuple[Recipient, ...]
    fixed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProposedModel:
    """An endpoint that an administrator named. An empty key keeps the present one if the address stays the same."""

    address: str
    model: str
    key: str = ""


def connection(context: WorkspaceContext, proposed: ProposedModel | None = None) -> ModelConnection:
    """The present connection, or what a proposed one would mean. Nothing is sent and nothing is changed."""
    settings = _with(context, proposed) if proposed else context.settings
    return ModelConnection(
        masked(settings.llm_base_url),
        settings.llm_model if has_model(settings) else "",
        bool(settings.llm_api_key.get_secret_value()),
        tuple(
            Recipient(host, tuple(receives(settings, host)), facts.agreed(context.store, host))
            for host in reached(settings)
        ),
        tuple(name for each in CONNECTION if (name := f"{PREFIX}{each.upper()}") in os.environ),
    )


def receives(settings: Settings, host: str) -> list[str]:
    """What would be sent to a host, as text."""
    what: list[str] = []
    if host in remote_hosts(settings.embedder, settings.proxy):
        what.append("every passage of your documents and every search, to be embedded")
    if host in remote_hosts(settings.reranker, settings.proxy):
        what.append("every search with the passages it finds, to be ranked")
    if host in cluster_hosts(settings):
        what.append("every file that is added, as a whole, to be parsed, split and embedded on Ray")
    if host in model_hosts(settings):
        names = sorted({name for named in models_by_role(settings).values() for name in named})
        what.append(f"your questions, and the passages found for them, to be read by {', '.join(names)}")
    return what


async def test(context: WorkspaceContext, proposed: ProposedModel, agreed: tuple[str, ...]) -> list[str]:
    """Try an endpoint: what it can do, in words. Only test sentences are sent, and only where that was agreed to."""
    settings = _with(context, proposed)
    _require_agreement(context, model_hosts(settings), agreed)
    tried = replace(context, settings=settings)
    try:
        can = await model_roles.capability(tried, llm_for(settings, settings.llm_model), settings.llm_model, anew=True)
    except ModelError as error:
        raise ModelError(hider(settings)(str(error))) from None
    return describe_capability(can)


def connect(context: WorkspaceContext, proposed: ProposedModel, agreed: tuple[str, ...], by: str) -> Settings:
    """Store the connection and the agreement, and return the settings from here on. Each change is recorded."""
    settings = _with(context, proposed)
    hosts = reached(settings)
    _require_agreement(context, model_hosts(settings), agreed)
    changed = {name: getattr(settings, name) for name in (*CONNECTION, *OTHER_MODELS)}
    changed = {name: value for name, value in changed.items() if value != getattr(context.settings, name)}
    if changed:
        _refuse_fixed()
        if proposed.key:
            write_private(context.path / KEY_FILE, proposed.key.encode())
            changed["llm_api_key"] = SecretStr(f"file:{(context.path / KEY_FILE).resolve()}")
        elif "llm_api_key" in changed:
            (context.path / KEY_FILE).unlink(missing_ok=True)
        write_changes(context, changed, by)
    for host in agreed:
        if host in hosts:
            facts.agree(context.store, host)
    return context.settings.model_copy(update=changed)


def disconnect(context: WorkspaceContext, by: str) -> Settings:
    """Go on without a model: the endpoint is forgotten, with its key. What was agreed to stays on record."""
    _refuse_fixed()
    gone = {"llm_base_url": "", "llm_model": "", "llm_api_key": SecretStr(""), **dict.fromkeys(OTHER_MODELS, "")}
    write_changes(context, gone, by)
    (context.path / KEY_FILE).unlink(missing_ok=True)
    return context.settings.model_copy(update=gone)


def _with(context: WorkspaceContext, proposed: ProposedModel) -> Settings:
    """The settings with the proposed endpoint. A key goes along only to the address that it was given for."""
    address, model, settings = proposed.address.strip(), proposed.model.strip(), context.settings
    same = bool(address) and address in (settings.llm_base_url, masked(settings.llm_base_url))
    if not same:
        _check_address(address)
    _check_names(model, proposed.key)
    key = SecretStr(proposed.key) if proposed.key else settings.llm_api_key if same else SecretStr("")
    others = {} if same else dict.fromkeys(OTHER_MODELS, "")
    own = {"llm_base_url": settings.llm_base_url if same else address, "llm_model": model, "llm_api_key": key}
    return settings.model_copy(update=own | others)


def _check_address(address: str) -> None:
    try:
        place = urlsplit(address)
        usable = bool(place.hostname) and (place.port is None or place.port > 0)
        named = "@" in place.netloc
    except ValueError:
        usable = named = False
    if not usable or not is_endpoint(address) or not address.isprintable() or " " in address:
        raise UserError("The address of an endpoint begins with http:// or https:// and, as a rule, ends with /v1.")
    if named:
        raise UserError("An address carries no name and no password here: give the key in its own field.")


def _check_names(model: str, key: str) -> None:
    if not model or not model.isprintable():
        raise UserError("Name the model, as its endpoint calls it.")
    if key and (not key.isprintable() or not key.isascii() or key.startswith(("file:", "keyring:"))):
        raise UserError("That is no key. Where a key comes from (file:…, keyring:…) is set with `assay init`.")


def _require_agreement(context: WorkspaceContext, hosts: list[str], agreed: tuple[str, ...]) -> None:
    for host in hosts:
        if host not in agreed and not facts.agreed(context.store, host):
            raise UserError(f"Nothing is sent to {host} before you agree to it.")


def _refuse_fixed() -> None:
    names = [name for each in CONNECTION if (name := f"{PREFIX}{each.upper()}") in os.environ]
    if names:
        raise UserError(f"The environment of the server sets {', '.join(names)}: change it there.")
