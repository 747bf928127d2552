"""`assay config show`: every setting, its value, and where the value comes from."""

from __future__ import annotations

from typing import Annotated

import typer

from assay.cli.options import Json, Workspace, cells, console, print_json

app = typer.Typer(help="Settings.", no_args_is_help=True)


@app.callback()
def config() -> None:
    """Settings: flag > environment (ASSAY_…) > assay.toml in the workspace > default."""


@app.command()
def agree(
    host: Annotated[str, typer.Argument(help="The machine, as the message names it.")], workspace: Workspace = None
) -> None:
    """Agree once that questions and the text of documents are sent to an endpoint on another machine."""
    from assay.workspace.facade import open_workspace

    with open_workspace(workspace, create=True) as opened:
        opened.setup.agree(host)
    typer.echo(f"Agreed: text may be sent to {host}.")


@app.command()
def show(workspace: Workspace = None, json: Json = False) -> None:
    """Show every setting with where its value comes from. Secrets are never shown."""
    from assay.core.settings import show_settings
    from assay.workspace.facade import default_workspace

    lines = show_settings((workspace or default_workspace()).expanduser())
    if json:
        print_json(lines)
        return
    from rich.table import Table

    table = Table("Setting", "Value", "From", "What it is", box=None, pad_edge=False)
    for line in lines:
        row = cells(line.name, line.value, line.origin, line.about)
        table.add_row(*row, style="" if line.origin == "default" else "bold")
    console().print(table)
