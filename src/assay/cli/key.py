"""`assay key`: API keys, each of one user. A key is shown only once, when it is created."""

from __future__ import annotations

from typing import Annotated

import typer

from assay.cli.acting import open_workspace
from assay.cli.options import Json, Workspace
from assay.cli.terminal import console, plain, print_json, say, whole

app = typer.Typer(no_args_is_help=True)


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="The user whose key it is.")],
    label: Annotated[str, typer.Option("--label", "-l", help="What it is for, to tell it from others.")] = "",
    workspace: Workspace = None,
) -> None:
    """Make an API key and print it. It is kept as a digest only, so nobody can print it again."""
    with open_workspace(workspace) as opened:
        key = opened.people.new_key(whole(name), whole(label))
    say("Keep it: it is not shown again.")
    typer.echo(key)


@app.command("list")
def list_keys(
    name: Annotated[str, typer.Argument(help="Only this user's.")] = "", workspace: Workspace = None, json: Json = False
) -> None:
    """List the API keys: whose, what for, when made and when last used."""
    with open_workspace(workspace) as opened:
        found = opened.people.list_keys(whole(name))
    if json:
        print_json(found)
        return
    for key in found:
        used = f"last used {key.used[:16].replace('T', ' ')}" if key.used else "never used"
        label = f", {key.label}" if key.label else ""
        console().print(plain(f"{key.id}  {key.who}{label}: made {key.created[:10]}, {used}."), markup=False)


@app.command()
def remove(key: Annotated[str, typer.Argument(help="The key's id.")], workspace: Workspace = None) -> None:
    """Take an API key back. From the next request on it opens nothing."""
    with open_workspace(workspace) as opened:
        gone = opened.people.revoke_key(whole(key))
    say(f"Removed the key {gone.id} of {gone.who}.")
