"""`assay base`: knowledge bases, each with a description that is used to decide where to search."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from assay.cli import access
from assay.cli.acting import open_workspace
from assay.cli.options import Json, Workspace, Yes
from assay.cli.terminal import plain, print_result, wait_for, whole

app = typer.Typer(no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="The knowledge base's name.")]


@app.command("list")
def list_bases(workspace: Workspace = None, json: Json = False) -> None:
    """List the knowledge bases with how many documents each has, and whether their answers wait for a reviewer."""
    with open_workspace(workspace) as opened:
        marked = opened.reviews.bases()
        rows = [
            {
                "id": base.id,
                "name": base.name,
                "description": base.description,
                "documents": sum(entry.standing == "ready" for entry in opened.documents.listing([base.name])),
                "review": base.id in marked,
            }
            for base in opened.scope().bases
        ]
    wait = {True: " Answers wait for a reviewer.", False: ""}
    print_result(
        json,
        rows,
        (f"{r['name']}: {r['documents']} documents.{wait[r['review']]} {r['description']}".rstrip() for r in rows),
    )


@app.command()
def describe(
    name: Name, description: Annotated[str, typer.Argument(help="A sentence.")], workspace: Workspace = None
) -> None:
    """Say what a knowledge base is about."""
    with open_workspace(workspace) as opened:
        opened.scope().named(name)
        opened.documents.get_or_create_base(name, opened.principal, whole(description))


@app.command()
def offers(workspace: Workspace = None, json: Json = False) -> None:
    """List knowledge bases that others share with you, and that you have not accepted."""
    with open_workspace(workspace) as opened:
        found = [(each.base, each.declined) for each in opened.people.offers()]
    print_result(
        json,
        [{"id": base.id, "name": base.name, "owner": base.owner, "declined": declined} for base, declined in found],
        (f"{base.id}  {base.name} from {base.owner}{' (declined)' if declined else ''}" for base, declined in found),
    )


BaseId = Annotated[str, typer.Argument(metavar="ID", help="The knowledge base's id, as `assay base offers` gives it.")]


@app.command()
def accept(base: BaseId, workspace: Workspace = None) -> None:
    """Accept a knowledge base that somebody shares with you: it is searched from now on."""
    with open_workspace(workspace) as opened:
        found = opened.people.answer_offer(whole(base), True)
    typer.echo(plain(f"{found.name!r} from {found.owner} is searched from now on."))


@app.command()
def leave(base: BaseId, workspace: Workspace = None) -> None:
    """Decline a knowledge base that somebody shares with you, or leave one that you had accepted."""
    with open_workspace(workspace) as opened:
        found = opened.scope().find(whole(base))
        found = opened.people.answer_offer(found.id if found else whole(base), False)
    typer.echo(plain(f"{found.name!r} from {found.owner} is not searched any more."))


@app.command()
def review(
    name: Name,
    whether: Annotated[
        Literal["on", "off"], typer.Argument(help="Whether answers that draw on it wait for a reviewer.")
    ],
    workspace: Workspace = None,
) -> None:
    """Have every answer that draws on a knowledge base wait for a reviewer, or no longer."""
    with open_workspace(workspace) as opened:
        opened.reviews.mark_base(name, on=whether == "on")
    wait = "now wait for a reviewer" if whether == "on" else "do not wait for a reviewer because of it any more"
    typer.echo(plain(f"Answers that draw on {name!r} {wait}."))


@app.command()
def delete(name: Name, workspace: Workspace = None, yes: Yes = False) -> None:
    """Delete a knowledge base with all its documents. The files themselves are not touched."""
    with open_workspace(workspace) as opened:
        base = opened.scope().named(name)
        count = len(opened.documents.listing([name]))
        if not yes:
            typer.confirm(f"Delete {base.name!r} with its {count} documents?", abort=True, err=True)
        wait_for(opened.records.erase_base(name))


app.command("share")(access.share)
