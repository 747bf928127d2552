"""`assay erase`: permanent erasure of documents, or of a person's questions and answers, everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.options import BaseName, Json, Workspace, Yes, console, plain, print_json, say, wait_for, whole
from assay.core.printable import printable_name

if TYPE_CHECKING:
    from assay.workspace.facade import Workspace as Opened
    from assay.workspace.types import ErasureReport


def erase(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[DOCUMENT]...", help="Paths, file names, titles or ids of documents.")
    ] = None,
    person: Annotated[
        str,
        typer.Option("--person", metavar="NAME", help="Erase this person's questions and answers, and their account."),
    ] = "",
    with_documents: Annotated[
        bool, typer.Option("--with-documents", help="Of a person: also the knowledge bases that they own.")
    ] = False,
    base: BaseName = "",
    workspace: Workspace = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Erase documents, or a person's data: from the state, the index, caches, originals and the records of all runs.

    The chain of records still verifies. Backups that were made before are named: delete them too, or make them anew.
    """
    from assay.core.errors import UserError
    from assay.workspace.facade import open_workspace

    if bool(names) == bool(person):
        raise UserError("Name documents, or a person with --person.")
    with open_workspace(workspace) as opened:
        if person:
            if not yes:
                typer.confirm(f"Erase everything of {plain(person)!r}? It cannot be undone.", abort=True, err=True)
            gone = wait_for(opened.records.erase_person(whole(person), with_documents=with_documents))
        else:
            gone = _documents(opened, names or [], base, yes)
    _print_report(gone, json)


def _documents(opened: Opened, names: list[str], base: str, yes: bool) -> ErasureReport:
    from assay.cli.sources import stored_name

    scope = opened.scope([base] if base else [])
    selected = {entry.id: entry for name in map(stored_name, names) for entry in opened.documents.named(name, scope)}
    if not yes:
        for entry in selected.values():
            typer.echo(plain(f"  {printable_name(entry.uri)}"), err=True)
        typer.confirm(f"Erase {_counted(len(selected), 'document')}? It cannot be undone.", abort=True, err=True)
    return wait_for(opened.records.erase(list(selected.values()), scope))


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _print_report(gone: ErasureReport, json: bool) -> None:
    from assay.core.codec import to_json

    if json:
        print_json(to_json(gone))
        return
    out = console()
    documents = f"{_counted(len(gone.documents), 'document')} (with all versions) and " if gone.documents else ""
    out.print(f"Erased {documents}what {_counted(gone.records, 'record')} said.")
    for path in gone.files:
        out.print(plain(f"Deleted {path}, a copy of the state from before an upgrade."), markup=False)
    if not gone.whole:
        say("Another process is reading: the last of it goes when the workspace is next opened.")
    if gone.backups:
        say("These earlier backups still contain it. Delete them, or replace them with `assay backup`:")
        for backup in gone.backups:
            say(plain(f"  {backup.path} ({backup.at[:10]})"))
