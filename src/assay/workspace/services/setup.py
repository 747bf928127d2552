"""What an administrator sets: the connection to a language model, and settings in the browser.

An address comes from an administrator's request and from nowhere else. Nothing is sent to another machine before somebody
agreed to that machine by name. A key is stored in a file of its own, is never read back out, and never goes to an address
that it was not given for. What could send text elsewhere, run code, name files or hold a key is no setting of the browser.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, get_args
from urllib.parse import urlsplit

from pydantic import SecretStr

from assay.core.access import LOCAL
from assay.core.codec import dumps
from assay.core.errors import ModelError, UserError
from assay.core.events import Checkpoint, SettingChanged
from assay.core.private_files import write_private
from assay.core.settings import (
    FILE,
    PREFIX,
    Settings,
    changed_settings,
    hider,
    load_settings,
    masked,
    shown_value,
    write_settings,
)
from assay.governance.reviewing import parse_policy, parse_reviewers
from assay.models import factory
from assay.models.capability import Checkable, describe_capability
from assay.models.endpoint import ServerHere, servers_here
from assay.models.http import SAID
from assay.models.llm import Role
from assay.store import facts
from assay.store.runs import records
from assay.workspace.context import OnStore, Service
from assay.workspace.services.ask import parse_checkpoints
from assay.workspace.services.models import Models
from assay.workspace.types import Kind, ModelConnection, ProposedModel, Recipient, SettingGroup, ShownSetting

KEY_FILE = "llm.key"  # in the workspace, readable by its owner alone
CONNECTION = ("llm_base_url", "llm_model", "llm_api_key")
OTHER_MODELS = (*(f"llm_{role}_model" for role in Role), "llm_fallback_model")  # names at the endpoint before

MODELS = ("llm_base_url", "llm_model", *OTHER_MODELS, "embedder", "embedder_model", "reranker", "reranker_model")
SET = "models set"  # a fact: the values of these settings, since when, and by whom
CONFIGURATION = "the configuration"  # the file, a flag or the environment

GROUPS: Mapping[str, Mapping[str, str]] = {
    "Questions": {
        "eagerness": "How readily it searches",
        "search_rounds": "Rounds of searching",
        "reranker": "Ranking of what is found",
        "per_document": "Passages of one document",
        "checkpoints": "Wait for the person",
        "llm_general": "Answer general questions without documents",
        "judges_differ": "Claims on which judgements differ",
    },
    "Limits of a question": {
        "budget_run_money": "USD",
        "budget_run_tokens": "Tokens",
        "budget_run_calls": "Model calls",
        "budget_run_seconds": "Seconds",
    },
    "Limits of a synthesis": {
        "synthesis_money": "USD",
        "synthesis_tokens": "Tokens",
        "synthesis_calls": "Model calls",
        "synthesis_seconds": "Seconds",
    },
    "Limits of a day": {
        "budget_day_money": "USD for each person",
        "budget_day_tokens": "Tokens for each person",
        "budget_day_calls": "Model calls for each person",
        "budget_all_day_money": "USD for all together",
        "budget_all_day_tokens": "Tokens for all together",
    },
    "Review": {
        "review_always": "Review every answer",
        "review_conflicts": "Review answers whose sources disagree",
        "review_flagged": "Review answers that rest on suspicious passages",
        "review_four_eyes": "Four eyes",
        "review_classes": "Review by kind of question",
        "review_support": "Least share of claims that hold",
        "reviewers": "Reviewers",
        "review_hours": "Hours that an approval holds",
    },
    "Records": {"retention_days": "Days that records are kept"},
    "Documents": {
        "ocr": "Read scanned pages",
        "ocr_languages": "Languages of scanned pages",
        "file_max_megabytes": "Largest file, in megabytes",
        "file_max_pages": "Most pages of a file",
        "serve_megabytes_per_person": "Megabytes for each person",
    },
    "This server": {
        "serve_session_hours": "Hours until a person signs in again",
        "serve_requests_per_minute": "Requests of one person in a minute",
        "serve_runs_per_person": "Runs of one person at a time",
        "serve_uploads_per_person": "Waiting uploads of one person",
    },
}
ABOUT: Mapping[str, str] = {
    "reranker": "late: by tokens of the bundled embedder; answer: by the bundled answer model; llm: by the language model",
    "checkpoints": "searches: after three searches; nothing: when nothing relevant is found; sources: before answering; "
    "reading: when a question can be read in several ways",
}  # where the file can say more than this screen
OFFERED = frozenset(name for group in GROUPS.values() for name in group)
RERANKERS = ("none", "late", "answer", "llm")  # those on this machine, and the model that is asked anyway


@dataclass(frozen=True)
class Setup(Service):
    """What an administrator sets: the model that is asked, and the settings."""

    agree = OnStore(facts.agree)
    agreed = OnStore(facts.agreed)

    def groups(self) -> tuple[SettingGroup, ...]:
        """The settings that can be changed in the browser."""
        stored = load_settings(self.context.path)
        return tuple(
            SettingGroup(title, tuple(_shown(self.settings, stored, name, label) for name, label in labels.items()))
            for title, labels in GROUPS.items()
        )

    def change(self, wanted: Mapping[str, Any], *, by: str = LOCAL.id) -> Settings:
        """Validate, record and write these settings. Returns the settings from here on."""
        if strange := sorted(wanted.keys() - OFFERED):
            raise UserError(f"The setting {strange[0]!r} cannot be changed in the browser.")
        settings, stored = changed_settings(self.settings, wanted), load_settings(self.context.path)
        changed = {name: new for name in wanted if (new := getattr(settings, name)) != getattr(self.settings, name)}
        for name in changed:
            if reason := _fixed(self.settings, stored, name):
                raise UserError(f"The setting {name!r} cannot be changed here. {reason}")
        if changed.get("reranker", RERANKERS[0]) not in RERANKERS:
            raise UserError(f"The setting 'reranker' is one of these here: {', '.join(RERANKERS)}.")
        parse_policy(settings)
        parse_reviewers(settings.reviewers)
        parse_checkpoints(settings.checkpoints)
        self.write_changes(changed, by)
        return settings

    def write_changes(self, changed: Mapping[str, Any], by: str) -> None:
        """Write these settings to the workspace's file and record each. Without the file there is no record."""
        self.notice()  # what somebody changed in the file before is not this person's doing
        with self.store.one_transaction():
            self._record(
                {
                    name: (shown_value(getattr(self.settings, name)), shown_value(value))
                    for name, value in changed.items()
                    if value != getattr(self.settings, name)
                },
                by,
            )
            plain = {name: v.get_secret_value() if isinstance(v, SecretStr) else v for name, v in changed.items()}
            write_settings(self.context.path, plain)

    def notice(self) -> None:
        """Record that other models are set than those last recorded: somebody has changed the configuration."""
        now, known = {name: shown_value(getattr(self.settings, name)) for name in MODELS}, self._models_set()
        before = {name: known[name][0] if name in known else _default(name) for name in MODELS}
        changed = {name: (before[name], now[name]) for name in MODELS if now[name] != before[name]}
        if changed:
            with self.store.one_transaction():
                self._record(changed, CONFIGURATION)

    def _record(self, changed: Mapping[str, tuple[str, str]], by: str) -> None:
        """Record settings with the values before and after, and who set the models that are used now."""
        models = self._models_set() | {name: (after, self.store.now(), by) for name, (_, after) in changed.items()}
        with self.store.write() as connection:
            for name, (before, after) in changed.items():
                records.note(connection, self.store, SettingChanged(name, before, after, by))
        facts.remember(self.store, SET, dumps({name: models[name] for name in MODELS if name in models}))

    def _models_set(self) -> dict[str, tuple[str, str, str]]:
        """By the names of settings: the value, since when, and who set it."""
        return {name: tuple(each) for name, each in json.loads(facts.remembered(self.store, SET) or "{}").items()}

    def written_by(self, *, shared: bool = False) -> str:
        """Which model writes and checks the answers, in a sentence; empty without one that can be asked. Where people share
        the workspace, also where it is, since when, and who chose it."""
        if not factory.has_model(self.settings) or factory.unconnected(self.settings):
            return ""
        model, judge = (factory.models_by_role(self.settings)[role][0] for role in (Role.write, Role.check))
        by = f"and checked by {model}" if judge == model else f"by {model} and checked by {judge}"
        if small := Models(self.context).too_small():
            return f"{small} is too small to write answers, and is not asked: they are quotations."
        weak = ""
        trial = Models(self.context).known_trial(judge) if self.settings.llm_size == "auto" else None
        if trial and not trial.capable:
            by, weak = f"by {model}", f" {judge} does not judge well enough to check them: they hold quotations."
        if not shared:
            return f"Answers are written {by}.{weak}"
        host = urlsplit(self.settings.llm_base_url).netloc.rpartition("@")[2]
        known = self._models_set()
        latest = max(
            (known[name][1:] for name in ("llm_base_url", "llm_model", *OTHER_MODELS) if name in known), default=None
        )
        where = f" at {host}" if host and not factory.is_provider(self.settings, model) else ""
        chosen = f" since {latest[0][:16].replace('T', ' ')}, set by {latest[1]}" if latest else ""
        return f"Answers are written {by}{where}{chosen}.{weak}"

    def connection(self, proposed: ProposedModel | None = None, *, shared: bool = False) -> ModelConnection:
        """The present connection, or what a proposed one would mean. Nothing is sent and nothing is changed. Where the
        workspace is `shared` by people who sign in, an address on this machine needs consent like any other."""
        settings = self._with_model(_named(proposed)) if proposed else self.settings
        return ModelConnection(
            masked(settings.llm_base_url),
            proposed.model if proposed else settings.llm_model if factory.has_model(settings) else "",
            bool(settings.llm_api_key.get_secret_value()),
            tuple(
                Recipient(host, tuple(factory.receives(settings, host)), facts.agreed(self.store, host))
                for host in factory.reached(settings, local=shared)
            ),
            tuple(name for each in CONNECTION if (name := f"{PREFIX}{each.upper()}") in os.environ),
        )

    @staticmethod
    async def servers_here() -> list[ServerHere]:
        """The model servers at their usual ports of this machine, looked for when a person sets a model up."""
        return await servers_here()

    async def names(
        self, proposed: ProposedModel, agreed: Sequence[str] = (), *, shared: bool = False
    ) -> tuple[str, ...]:
        """The names of the models at an address, for a person who asks for them; empty if it lists none. A model that is named
        must be among them. Nothing is sent; where the workspace is shared, the machine must be agreed to all the same."""
        settings = self._with_model(_named(proposed))
        if shared:
            self._require_agreement(factory.model_hosts(settings, local=True), agreed)
        llm = factory.llm_for(settings, settings.llm_model)
        if not isinstance(llm, Checkable):
            return ()
        try:
            return await (llm.check() if proposed.model.strip() else llm.listed())
        except ModelError as error:
            raise _told(error, settings, shared) from None

    async def test(self, proposed: ProposedModel, agreed: Sequence[str] = (), *, shared: bool = False) -> list[str]:
        """Try an endpoint: what it can do, in words. Only test sentences are sent, and only where that was agreed to. Nothing
        of an error's text is told where the workspace is shared: what has never answered as a model may be anything."""
        settings = self._with_model(proposed)
        self._require_agreement(factory.model_hosts(settings, local=shared), agreed)
        tried = replace(self.context, settings=settings)
        try:
            llm = factory.llm_for(settings, settings.llm_model)
            if isinstance(llm, Checkable):
                await llm.check()
            can = await Models(tried).capability(llm, settings.llm_model, anew=True)
        except ModelError as error:
            raise _told(error, settings, shared) from None
        return describe_capability(can)

    async def probe_local_model(self) -> None:
        """Probe a model of this computer, which may be slow, before a question waits for it. What fails, the question tells."""
        if factory.model_hosts(self.settings):
            return
        with suppress(ModelError, UserError):
            await Models(self.context).connect()

    def connect(
        self, proposed: ProposedModel, agreed: Sequence[str] = (), *, by: str = LOCAL.id, shared: bool = False
    ) -> Settings:
        """Store the connection and the agreement, and return the settings from here on. Each change is recorded."""
        settings = self._with_model(proposed)
        hosts = factory.reached(settings, local=shared)
        self._require_agreement(factory.model_hosts(settings, local=shared), agreed)
        changed = {name: getattr(settings, name) for name in (*CONNECTION, *OTHER_MODELS)}
        changed = {name: value for name, value in changed.items() if value != getattr(self.settings, name)}
        if changed:
            _refuse_fixed()
            if proposed.key:
                write_private(self.context.path / KEY_FILE, proposed.key.encode())
                changed["llm_api_key"] = SecretStr(f"file:{(self.context.path / KEY_FILE).resolve()}")
            elif "llm_api_key" in changed:
                (self.context.path / KEY_FILE).unlink(missing_ok=True)
            self.write_changes(changed, by)
        for host in agreed:
            if host in hosts:
                facts.agree(self.store, host)
        return self.settings.model_copy(update=changed)

    def disconnect(self, *, by: str = LOCAL.id) -> Settings:
        """Go on without a model: the endpoint is forgotten, with its key. What was agreed to stays on record."""
        _refuse_fixed()
        gone = {"llm_base_url": "", "llm_model": "", "llm_api_key": SecretStr(""), **dict.fromkeys(OTHER_MODELS, "")}
        self.write_changes(gone, by)
        (self.context.path / KEY_FILE).unlink(missing_ok=True)
        return self.settings.model_copy(update=gone)

    def _with_model(self, proposed: ProposedModel) -> Settings:
        """The settings with the proposed endpoint. A key goes along only to the address that it was given for."""
        address, model, settings = proposed.address.strip(), proposed.model.strip(), self.settings
        same = bool(address) and address in (settings.llm_base_url, masked(settings.llm_base_url))
        if not same:
            _check_address(address)
        _check_names(model, proposed.key)
        key = SecretStr(proposed.key) if proposed.key else settings.llm_api_key if same else SecretStr("")
        others = {} if same else dict.fromkeys(OTHER_MODELS, "")
        own = {"llm_base_url": settings.llm_base_url if same else address, "llm_model": model, "llm_api_key": key}
        found = settings.model_copy(update=own | others)
        factory.require_allowed(found)
        return found

    def _require_agreement(self, hosts: Sequence[str], agreed: Sequence[str]) -> None:
        for host in hosts:
            if host not in agreed and not facts.agreed(self.store, host):
                raise UserError(f"Nothing is sent to {host} before you agree to it.")


def _named(proposed: ProposedModel) -> ProposedModel:
    """The endpoint with any name in place of one that is not chosen yet."""
    return proposed if proposed.model.strip() else replace(proposed, model="the model")


def _told(error: ModelError, settings: Settings, shared: bool) -> ModelError:
    return ModelError(hider(settings)(str(error).partition(SAID)[0] if shared else str(error)))


def _shown(settings: Settings, stored: Settings, name: str, label: str) -> ShownSetting:
    field, value = Settings.model_fields[name], getattr(settings, name)
    kind, choices = _kind(name, field.annotation)
    bounds = {key: getattr(rule, key) for rule in field.metadata for key in ("ge", "gt", "le") if hasattr(rule, key)}
    fixed = _fixed(settings, stored, name)
    if kind == "choice" and value not in choices:
        fixed = fixed or f"It is set to {shown_value(value)} in {FILE}."
        value = shown_value(value)
    return ShownSetting(
        name, label, ABOUT.get(name, field.description or ""), kind, value, field.default, choices,
        bounds.get("ge", bounds.get("gt")), bounds.get("le"), fixed,
    )  # fmt: skip


def _kind(name: str, annotation: Any) -> tuple[Kind, tuple[str, ...]]:
    if name == "reranker":
        return "choice", RERANKERS
    if name == "checkpoints":
        return "several", tuple(Checkpoint)
    if choices := get_args(annotation):
        return "choice", choices
    kinds: dict[Any, Kind] = {bool: "switch", int: "whole", float: "number"}
    return kinds.get(annotation, "words"), ()


def _fixed(settings: Settings, stored: Settings, name: str) -> str:
    """Why this setting cannot be changed here; empty if it can."""
    if (variable := f"{PREFIX}{name.upper()}") in os.environ:
        return f"The environment of the server sets {variable}: change it there."
    if getattr(settings, name) != getattr(stored, name):
        return f"The server was started with another value than {FILE} has: start it again to change it."
    return ""


def _default(name: str) -> str:
    return shown_value(Settings.model_fields[name].default)


def _check_address(address: str) -> None:
    try:
        place = urlsplit(address)
        usable = bool(place.hostname) and (place.port is None or place.port > 0)
        named = "@" in place.netloc
    except ValueError:
        usable = named = False
    if not usable or not factory.is_endpoint(address) or not address.isprintable() or " " in address:
        raise UserError("The address of an endpoint begins with http:// or https:// and, as a rule, ends with /v1.")
    if named:
        raise UserError("An address carries no name and no password here: give the key in its own field.")


def _check_names(model: str, key: str) -> None:
    if not model or not model.isprintable():
        raise UserError("Name the model, as its endpoint calls it.")
    if key and (not key.isprintable() or not key.isascii() or key.startswith(("file:", "keyring:"))):
        raise UserError("That is no key. Where a key comes from (file:…, keyring:…) is set with `assay init`.")


def _refuse_fixed() -> None:
    names = [name for each in CONNECTION if (name := f"{PREFIX}{each.upper()}") in os.environ]
    if names:
        raise UserError(f"The environment of the server sets {', '.join(names)}: change it there.")
