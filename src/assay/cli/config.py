"""`assay config show`: every setting, its value, and where the value comes from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from assay.cli.acting import open_workspace
from assay.cli.options import Json, Workspace, workspace_folder
from assay.cli.terminal import at_terminal, cells, confirm, console, print_json, say
from assay.core.errors import AssayError
from assay.core.settings import Settings, show_settings
from assay.models.factory import cluster_hosts, reached, receives
from assay.workspace.facade import Workspace as Opened

app = typer.Typer(no_args_is_help=True)


@app.callback()
def config() -> None:
    """Settings: flag > environment (ASSAY_…) > assay.toml in the workspace > default."""


@app.command()
def agree(
    host: Annotated[str, typer.Argument(help="The machine, as the message names it.")], workspace: Workspace = None
) -> None:
    """Agree once that questions and the text of documents are sent to an endpoint on another machine."""
    with open_workspace(workspace, create=True) as opened:
        opened.setup.agree(host)
    typer.echo(f"Agreed: text may be sent to {host}.")


@app.command()
def show(workspace: Workspace = None, json: Json = False) -> None:
    """Show every setting with where its value comes from. Secrets are never shown."""
    lines = show_settings(workspace_folder(workspace))
    if json:
        print_json(lines)
        return

    table = Table("Setting", "Value", "From", "What it is", box=None, pad_edge=False)
    for line in lines:
        row = cells(line.name, line.value, line.origin, line.about)
        table.add_row(*row, style="" if line.origin == "default" else "bold")
    console().print(table)


def explain(settings: Settings, hosts: Sequence[str]) -> None:
    for host in hosts:
        say(f"To {host} would be sent: {'; '.join(receives(settings, host)) or 'what passes through it'}.")
    kept = "The" if cluster_hosts(settings) else "Files as a whole, the"
    say(f"{kept} index and the records of runs stay here.")


def not_agreed(folder: Path, hosts: Sequence[str]) -> list[str]:
    """The hosts without consent in this workspace; nobody else can consent for its user."""
    if not hosts:
        return []
    try:
        with open_workspace(folder) as opened:
            return [host for host in hosts if not opened.setup.agreed(host)]
    except AssayError:  # missing or unreadable
        return list(hosts)


def settle(opened: Opened, *, model: bool = True) -> None:
    """Ask for consent for new hosts. If not interactive, the workspace will refuse later."""
    hosts = [host for host in reached(opened.settings, model=model) if not opened.setup.agreed(host)]
    if not hosts or not at_terminal():
        return
    explain(opened.settings, hosts)
    try:
        for host in hosts:
            if confirm(f"May it be sent to {host}?"):
                opened.setup.agree(host)
    except KeyboardInterrupt:
        say("Stopped. Nothing was sent.")
        raise typer.Exit(130) from None
