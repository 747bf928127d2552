"""`assay init`: a short dialogue that produces settings, a tested endpoint and documents. Also fully controllable by
flags."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.options import (
    CheckpointOption,
    EagernessOption,
    MaxCost,
    MaxSeconds,
    MaxTokens,
    Workspace,
    ask_until_valid,
    at_terminal,
    confirm,
    one_of,
    say,
    whole,
)

if TYPE_CHECKING:
    from assay.core.settings import Settings
    from assay.workspace.facade import Workspace as Opened


def init(
    documents: Annotated[
        list[Path] | None, typer.Option("--add", help="Files or folders to add. May be repeated.")
    ] = None,
    search: Annotated[
        str,
        typer.Option(help="`one` search over all knowledge bases, or `per-base` one for each.", metavar="one|per-base"),
    ] = "",
    endpoint: Annotated[str, typer.Option(help="Address of an OpenAI-compatible endpoint, up to /v1; or `none`.")] = "",
    model: Annotated[str, typer.Option(help="The model's name there, or provider:model; or `none`.")] = "",
    key: Annotated[
        str, typer.Option(help="Where its key comes from: `environment`, file:PATH, keyring:SERVICE/NAME, or `none`.")
    ] = "",
    eagerness: Annotated[EagernessOption | None, typer.Option(help="How readily it searches.")] = None,
    checkpoint: Annotated[
        list[CheckpointOption] | None, typer.Option(help="Where to wait for you. May be repeated.")
    ] = None,
    max_cost: MaxCost = None,
    max_tokens: MaxTokens = None,
    max_seconds: MaxSeconds = None,
    agree: Annotated[
        bool, typer.Option("--agree", help="Agree that questions and passages are sent to the endpoint.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Ask nothing. Settings without a flag stay as they are.")
    ] = False,
    workspace: Workspace = None,
) -> None:
    """Set Assay up: documents, model, limits. Asks for what no flag says, and writes assay.toml in the workspace.

    Nothing is written before the last question; run it again to change something.
    """
    from assay.core.errors import UserError
    from assay.workspace.facade import default_workspace

    if not yes and not at_terminal():
        raise UserError("This is not a terminal. Give the settings as flags, with --yes.")
    folder = (workspace or default_workspace()).expanduser()
    given = _settings_from_flags(search, endpoint, model, key, eagerness, checkpoint, max_cost, max_tokens, max_seconds)
    try:
        wanted, paths = (given, documents or []) if yes else _dialogue(folder, given, documents)
        settings = _settings_with(folder, wanted)
        agreed = _consent(folder, settings, agree=agree, yes=yes)
        if not yes and not confirm(f"Write {folder / 'assay.toml'}?", present=True):
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        say("Stopped. Nothing was written.")
        raise typer.Exit(130) from None
    raise typer.Exit(_apply(folder, wanted, paths, agreed))


def _settings_from_flags(
    search: str,
    endpoint: str,
    model: str,
    key: str,
    eagerness: EagernessOption | None,
    checkpoint: list[CheckpointOption] | None,
    max_cost: float | None,
    max_tokens: int | None,
    max_seconds: float | None,
) -> SettingChanges:
    """The settings from the flags."""
    from assay.core.errors import UserError

    try:
        found = {
            "search_per_base": per_base(search) if search else None,
            "llm_base_url": read_endpoint(whole(endpoint)) if endpoint else None,
            "llm_model": named(whole(model)) if model else None,
            "llm_api_key": read_key(whole(key)) if key else None,
            "eagerness": eagerness.value if eagerness else None,
            "budget_run_money": max_cost,
            "budget_run_tokens": max_tokens,
            "budget_run_seconds": max_seconds,
            "checkpoints": ", ".join(dict.fromkeys(checkpoint)) if checkpoint else None,
        }
    except ValueError as wrong:
        raise UserError(f"A flag cannot be used. {wrong}") from None
    return {name: value for name, value in found.items() if value is not None}


def _dialogue(folder: Path, given: SettingChanges, documents: list[Path] | None) -> tuple[SettingChanges, list[Path]]:
    from assay.core.settings import FILE, keys_written_in, load_settings

    say(f"Workspace: {folder}. An empty answer keeps the value in brackets. Ctrl-C stops without writing anything.")
    paths = documents if documents is not None else ask_until_valid("Folder or file to add", NONE, _path)
    kept = "llm_api_key" in keys_written_in(folder)
    if kept:
        say(
            f"The key itself stands in {FILE} and stays there. An environment variable or a file would be the better place."
        )
    return ask_for(load_settings(folder), given, ask_key=not kept), paths


def _path(typed: str) -> list[Path]:
    if typed.casefold() == NONE:
        return []
    path = Path(typed).expanduser()
    if not path.exists():
        raise ValueError(f"There is no file or folder {typed!r}.")
    return [path]


def _settings_with(folder: Path, wanted: SettingChanges) -> Settings:
    """The settings as they will be: flags override the file, as the file will then say. A key that is not written
    keeps its source."""
    from assay.core.settings import load_settings

    return load_settings(folder, {name: value for name, value in wanted.items() if name != "llm_api_key" or value})


def _consent(folder: Path, settings: Settings, *, agree: bool, yes: bool) -> list[str]:
    """The hosts that the user consents to now."""
    from assay.cli.config import explain, not_agreed
    from assay.models.factory import reached

    hosts = not_agreed(folder, reached(settings))
    if not hosts or (yes and not agree):
        return []
    explain(settings, hosts)
    return hosts if agree else [host for host in hosts if confirm(f"May it be sent to {host}?")]


def _apply(folder: Path, wanted: SettingChanges, paths: list[Path], agreed: list[str]) -> int:
    """Write the settings, record the consent, test the endpoint, add the documents."""
    from assay.workspace.facade import open_workspace
    from assay.workspace.stored import facts

    with open_workspace(folder, create=True) as opened:
        for host in agreed:
            facts.agree(opened.store, host)
        _write(folder, wanted)
    with open_workspace(folder) as opened:
        try:
            reachable = _test_endpoint(opened)
        except KeyboardInterrupt:
            say("Stopped. The settings are written; `assay doctor` tries the endpoint.")
            return 130
        if paths:
            _add_documents(opened, paths)
    say(f"Ready. {'Ask with' if paths else 'Add documents with `assay add PATH`, then ask with'} `assay ask QUESTION`.")
    return 0 if reachable else 1


def _write(folder: Path, wanted: SettingChanges) -> None:
    from assay.core.settings import FILE, PREFIX, write_settings

    changed = write_settings(folder, wanted)
    say(f"{'Wrote' if changed else 'Nothing to change in'} {folder / FILE}.")
    for name in wanted:
        if os.environ.get(f"{PREFIX}{name.upper()}") is not None and name != "llm_api_key":
            say(f"Note: {PREFIX}{name.upper()} is set in the environment, and wins over the file.")


def _test_endpoint(opened: Opened) -> bool:
    """Test the endpoint's capabilities and print them; no document text is sent."""
    from assay.cli.config import not_agreed
    from assay.cli.doctor import checks
    from assay.models.factory import reached

    refused = not_agreed(opened.path, reached(opened.settings))
    fine = True
    for check, ok, found in checks(opened.path, opened.settings, refused, offline=False):
        say(f"{check}: {found}")
        fine = fine and ok is not False
    for host in refused:
        say(f"Nothing is sent to {host} before you agree: `assay config agree {host}`.")
    return fine


def _add_documents(opened: Opened, paths: list[Path]) -> None:
    from assay.cli.add import run_with_progress, show

    show(run_with_progress(lambda say: opened.add(paths, say=say), quiet=False), quiet=False)


ENVIRONMENT = "environment"
NONE = "none"
SEARCHES = ("one", "per-base")
EAGERNESS = ("sparing", "normal", "eager")
CHECKPOINTS = ("searches", "nothing", "sources", "reading")

SettingChanges = dict[str, Any]  # settings by name; others stay unchanged


def ask_for(present: Settings, given: SettingChanges, *, ask_key: bool = True) -> SettingChanges:
    """Ask for everything not given by flags. The current value is offered, and an empty answer keeps it."""
    found = dict(given)

    def ask(name: str, question: str, now: str, read: Callable[[str], Any]) -> None:
        if name not in found:
            found[name] = ask_until_valid(question, now, read)

    ask(
        "llm_base_url",
        "Address of an OpenAI-compatible endpoint, up to /v1",
        present.llm_base_url or NONE,
        read_endpoint,
    )
    model = present.llm_model or NONE
    ask("llm_model", "Model at the endpoint, or provider:model", model, named)
    if not found["llm_model"]:
        say("No model: questions are answered by quoting. Nothing leaves this machine.")
        return found
    if ask_key and "llm_api_key" not in found:
        say("The key itself is never written down: it comes from $ASSAY_LLM_API_KEY, from a file, or from the keyring.")
        found["llm_api_key"] = ask_until_valid(
            "Key (environment, file:PATH, keyring:SERVICE/NAME, none)", _key_now(present), read_key
        )
    now = SEARCHES[present.search_per_base]
    ask("search_per_base", "One search over all knowledge bases, or one per base (one, per-base)", now, per_base)
    ask("eagerness", f"How readily it searches ({', '.join(EAGERNESS)})", present.eagerness, one_of(EAGERNESS))
    ask("budget_run_money", "USD that a question may cost, 0 for no ceiling", f"{present.budget_run_money:g}", money)
    ask("budget_run_tokens", "Tokens that a question may take, 0 for no ceiling", f"{present.budget_run_tokens}", count)
    ask("budget_run_seconds", "Seconds that a question may take", f"{present.budget_run_seconds:g}", seconds)
    listed = ", ".join(CHECKPOINTS)
    ask("checkpoints", f"Where to wait for you ({listed}; several with commas)", present.checkpoints or NONE, stops)
    return found


def _key_now(present: Settings) -> str:
    value = present.llm_api_key.get_secret_value()
    return value if value.startswith(("file:", "keyring:")) else ENVIRONMENT


def per_base(typed: str) -> bool:
    return one_of(SEARCHES)(typed) == SEARCHES[1]


def read_endpoint(typed: str) -> str:
    if typed.casefold() == NONE:
        return ""
    if not typed.startswith(("http://", "https://")):
        raise ValueError("An address begins with http:// or https://; `none` for no endpoint.")
    return typed


def named(typed: str) -> str:
    return "" if typed.casefold() == NONE else typed


def read_key(typed: str) -> str:
    """The source of the key; the key itself is refused, and not echoed."""
    if typed.casefold() in (ENVIRONMENT, NONE):
        return ""
    if not typed.startswith(("file:", "keyring:")):
        raise ValueError(
            "That may be the key itself, which is not kept. Say environment, file:PATH or keyring:SERVICE/NAME."
        )
    return typed


def money(typed: str) -> float:
    return _number(typed, float, 0)


def count(typed: str) -> int:
    return _number(typed.replace(",", "").replace("_", ""), int, 0)


def seconds(typed: str) -> float:
    return _number(typed, float, 1)


def _number(typed: str, kind: Callable[[str], Any], least: int) -> Any:
    try:
        value = kind(typed)
    except ValueError:
        raise ValueError("Write a number.") from None
    if not least <= value < 1e12:  # rejects values that are too small, infinite or NaN
        raise ValueError(f"Write a number from {least} on.")
    return value


def stops(typed: str) -> str:
    if typed.casefold() == NONE:
        return ""
    checkpoints = [one_of(CHECKPOINTS)(word.strip()) for word in typed.split(",") if word.strip()]
    return ", ".join(dict.fromkeys(checkpoints))
