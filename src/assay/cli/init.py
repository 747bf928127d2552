"""`assay init`: a short dialogue that produces settings, a tested endpoint and documents. Also fully controllable by
flags."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from assay.cli.acting import open_workspace
from assay.cli.add import run_with_progress, show
from assay.cli.config import explain, not_agreed
from assay.cli.doctor import checks
from assay.cli.options import Limits, Workspace, with_option_groups, workspace_folder
from assay.cli.terminal import ask_until_valid, at_terminal, confirm, one_of, say, whole
from assay.core.errors import UserError
from assay.core.events import Checkpoint, Eagerness
from assay.core.settings import FILE, PREFIX, Settings, keys_written_in, load_settings, write_settings
from assay.models.endpoint import servers_here
from assay.models.factory import reached
from assay.workspace.facade import Workspace as Opened


@with_option_groups
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
    eagerness: Annotated[Eagerness | None, typer.Option(help="How readily it searches.")] = None,
    checkpoint: Annotated[list[Checkpoint] | None, typer.Option(help="Where to wait for you. May be repeated.")] = None,
    limits: Limits = Limits(),
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
    if not yes and not at_terminal():
        raise UserError("This is not a terminal. Give the settings as flags, with --yes.")
    folder = workspace_folder(workspace)
    flags = {
        "search_per_base": _read(per_base, search),
        "llm_base_url": _read(read_endpoint, endpoint),
        "llm_model": _read(named, model),
        "llm_api_key": _read(read_key, key),
        "eagerness": eagerness and eagerness.value,
        **limits.settings("budget_run"),
        "checkpoints": ", ".join(dict.fromkeys(checkpoint)) if checkpoint else None,
    }
    given = {name: value for name, value in flags.items() if value is not None}
    try:
        wanted, paths = (given, documents or []) if yes else _dialogue(folder, given, documents)
        # The settings as they will be. A key that is not written keeps its source.
        kept = {name: value for name, value in wanted.items() if name != "llm_api_key" or value}
        settings = load_settings(folder, kept)
        agreed = _consent(folder, settings, agree=agree, yes=yes)
        if not yes and not confirm(f"Write {folder / 'assay.toml'}?", present=True):
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        say("Stopped. Nothing was written.")
        raise typer.Exit(130) from None
    raise typer.Exit(_apply(folder, wanted, paths, agreed))


def _read(read: Callable[[str], Any], flag: str) -> Any:
    """The setting of a flag; None where it was not given."""
    try:
        return read(whole(flag)) if flag else None
    except ValueError as wrong:
        raise UserError(f"A flag cannot be used. {wrong}") from None


def _dialogue(folder: Path, given: SettingChanges, documents: list[Path] | None) -> tuple[SettingChanges, list[Path]]:
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


def _consent(folder: Path, settings: Settings, *, agree: bool, yes: bool) -> list[str]:
    """The hosts that the user consents to now."""
    hosts = not_agreed(folder, reached(settings))
    if not hosts or (yes and not agree):
        return []
    explain(settings, hosts)
    return hosts if agree else [host for host in hosts if confirm(f"May it be sent to {host}?")]


def _apply(folder: Path, wanted: SettingChanges, paths: list[Path], agreed: list[str]) -> int:
    """Write the settings, record the consent, test the endpoint, add the documents."""
    with open_workspace(folder, create=True) as opened:
        for host in agreed:
            opened.setup.agree(host)
        changed = write_settings(folder, wanted)
    say(f"{'Wrote' if changed else 'Nothing to change in'} {folder / FILE}.")
    for name in wanted:
        if os.environ.get(f"{PREFIX}{name.upper()}") is not None and name != "llm_api_key":
            say(f"Note: {PREFIX}{name.upper()} is set in the environment, and wins over the file.")
    with open_workspace(folder) as opened:
        opened.setup.notice()
        try:
            reachable = _test_endpoint(opened)
        except KeyboardInterrupt:
            say("Stopped. The settings are written; `assay doctor` tries the endpoint.")
            return 130
        if paths:
            show(run_with_progress(lambda say: opened.add(paths, say=say), quiet=False), quiet=False)
    say(f"Ready. {'Ask with' if paths else 'Add documents with `assay add PATH`, then ask with'} `assay ask QUESTION`.")
    return 0 if reachable else 1


def _test_endpoint(opened: Opened) -> bool:
    """Test the endpoint's capabilities and print them; no document text is sent."""
    refused = not_agreed(opened.path, reached(opened.settings))
    fine = True
    for check, ok, found in checks(opened.path, opened.settings, refused, offline=False):
        say(f"{check}: {found}")
        fine = fine and ok is not False
    for host in refused:
        say(f"Nothing is sent to {host} before you agree: `assay config agree {host}`.")
    return fine


ENVIRONMENT = "environment"
NONE = "none"
SEARCHES = ("one", "per-base")
EAGERNESS = [each.value for each in Eagerness]
CHECKPOINTS = [each.value for each in Checkpoint]

SettingChanges = dict[str, Any]  # settings by name; others stay unchanged


def ask_for(present: Settings, given: SettingChanges, *, ask_key: bool = True) -> SettingChanges:
    """Ask for everything not given by flags. The current value is offered, and an empty answer keeps it."""
    found = dict(given)

    def ask(name: str, question: str, now: str, read: Callable[[str], Any]) -> None:
        if name not in found:
            found[name] = ask_until_valid(question, now, read)

    here = [] if present.llm_model or "llm_base_url" in found else asyncio.run(servers_here())
    for each in here:
        say(f"On this machine: {each.program} at {each.address} with {', '.join(each.models)}.")
    ask(
        "llm_base_url",
        "Address of an OpenAI-compatible endpoint, up to /v1",
        present.llm_base_url or (here[0].address if here else NONE),
        read_endpoint,
    )
    offered = {each.address: each.models[0] for each in here}
    model = present.llm_model or offered.get(found["llm_base_url"], NONE)
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
    money, tokens, seconds = present.budget_run_money, present.budget_run_tokens, present.budget_run_seconds
    ask("budget_run_money", "USD that a question may cost, 0 for no ceiling", f"{money:g}", _number(float, 0))
    ask("budget_run_tokens", "Tokens that a question may take, 0 for no ceiling", f"{tokens}", _number(int, 0))
    ask("budget_run_seconds", "Seconds that a question may take", f"{seconds:g}", _number(float, 1))
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


def _number(kind: type[int] | type[float], least: int) -> Callable[[str], float]:
    def read(typed: str) -> float:
        try:
            value = kind(typed.replace(",", "").replace("_", "") if kind is int else typed)
        except ValueError:
            raise ValueError("Write a number.") from None
        if not least <= value < 1e12:  # rejects values that are too small, infinite or NaN
            raise ValueError(f"Write a number from {least} on.")
        return value

    return read


def stops(typed: str) -> str:
    if typed.casefold() == NONE:
        return ""
    checkpoints = [one_of(CHECKPOINTS)(word.strip()) for word in typed.split(",") if word.strip()]
    return ", ".join(dict.fromkeys(checkpoints))
