"""Settings that an administrator changes in the browser: which are offered, how they are validated, written and recorded.

What could send text elsewhere, run code, name files or hold a key is not among them: a request for it is refused.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pydantic import SecretStr

from assay.core.errors import UserError
from assay.core.events import Checkpoint, SettingChanged
from assay.core.settings import FILE, PREFIX, Settings, changed_settings, load_settings, shown_value, write_settings
from assay.governance.reviewing import parse_policy, parse_reviewers
from assay.store.runs import records
from assay.workspace.ask import parse_checkpoints
from assay.workspace.context import WorkspaceContext

Kind = Literal["switch", "whole", "number", "choice", "several", "words"]

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


@dataclass(frozen=True, slots=True)
class ShownSetting:
    """One setting, and what it can be. `fixed` says why it cannot be changed here."""

    name: str
    label: str
    about: str
    kind: Kind
    value: str | int | float | bool
    default: str | int | float | bool
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    fixed: str = ""


@dataclass(frozen=True, slots=True)
class SettingGroup:
    title: str
    settings: tuple[ShownSetting, ...]


def setting_groups(context: WorkspaceContext) -> tuple[SettingGroup, ...]:
    """The settings that can be changed in the browser."""
    stored = load_settings(context.path)
    return tuple(
        SettingGroup(title, tuple(_shown(context.settings, stored, name, label) for name, label in labels.items()))
        for title, labels in GROUPS.items()
    )


def change(context: WorkspaceContext, wanted: Mapping[str, Any], by: str) -> Settings:
    """Validate, record and write these settings. Returns the settings from here on."""
    if strange := sorted(wanted.keys() - OFFERED):
        raise UserError(f"The setting {strange[0]!r} cannot be changed in the browser.")
    settings, stored = changed_settings(context.settings, wanted), load_settings(context.path)
    changed = {name: new for name in wanted if (new := getattr(settings, name)) != getattr(context.settings, name)}
    for name in changed:
        if reason := _fixed(context.settings, stored, name):
            raise UserError(f"The setting {name!r} cannot be changed here. {reason}")
    if changed.get("reranker", RERANKERS[0]) not in RERANKERS:
        raise UserError(f"The setting 'reranker' is one of these here: {', '.join(RERANKERS)}.")
    parse_policy(settings)
    parse_reviewers(settings.reviewers)
    parse_checkpoints(settings.checkpoints)
    write_changes(context, changed, by)
    return settings


def write_changes(context: WorkspaceContext, changed: Mapping[str, Any], by: str) -> None:
    """Write these settings to the workspace's file and record each. Without the file there is no record."""
    with context.store.write() as connection:
        for name, value in changed.items():
            before, after = shown_value(getattr(context.settings, name)), shown_value(value)
            if value != getattr(context.settings, name):
                records.note(connection, context.store, SettingChanged(name, before, after, by))
        plain = {name: v.get_secret_value() if isinstance(v, SecretStr) else v for name, v in changed.items()}
        write_settings(context.path, plain)


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
