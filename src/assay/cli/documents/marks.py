"""`assay off`, `assay on`, `assay tag`: documents that are not searched for now, and tags to find documents by."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.documents.sources import stored_name
from assay.cli.options import BaseName, Json, Workspace, console, plain, print_json, whole
from assay.core.printable import printable_name

if TYPE_CHECKING:
    from assay.store.documents import Entry
    from assay.workspace.facade import Workspace as Opened

Named = Annotated[list[str], typer.Argument(help="Paths, file names, titles or ids; a folder means all below it.")]


def off(names: Named, base: BaseName = "", workspace: Workspace = None, json: Json = False) -> None:
    """Switch documents off: they are kept, but not searched, listed to a model or quoted. It holds at once."""
    _switch(names, base, workspace, json, off=True)


def on(names: Named, base: BaseName = "", workspace: Workspace = None, json: Json = False) -> None:
    """Switch documents on again."""
    _switch(names, base, workspace, json, off=False)


def _switch(names: list[str], base: str, workspace: Workspace, json: bool, *, off: bool) -> None:
    from assay.cli.acting import open_workspace

    with open_workspace(workspace) as opened:
        done = [opened.documents.mark(entry.id, off=off) for entry in _named(opened, names, base)]
    if json:
        print_json([{"id": entry.id, "path": entry.uri, "state": entry.standing} for entry in done])
        return
    for entry in done:
        console().print(plain(f"{'Off' if off else 'On'}: {printable_name(entry.uri)}"), markup=False)


def tag(
    names: Annotated[
        list[str] | None, typer.Argument(help="Documents, as `assay sources` names them. None: list all tags.")
    ] = None,
    add: Annotated[list[str] | None, typer.Option("--add", help="A tag to add. May be repeated.")] = None,
    remove: Annotated[list[str] | None, typer.Option("--remove", help="A tag to remove. May be repeated.")] = None,
    base: BaseName = "",
    workspace: Workspace = None,
    json: Json = False,
) -> None:
    """Tag documents, or show their tags. `--meta tag=NAME` then finds them."""
    from assay.cli.acting import open_workspace
    from assay.core.errors import UserError

    if (add or remove) and not names:
        raise UserError("Name the documents to tag.")
    with open_workspace(workspace) as opened:
        entries = _named(opened, names, base) if names else opened.documents.listing([base] if base else [])
        if add or remove:
            added, removed = list(map(whole, add or ())), list(map(whole, remove or ()))
            entries = [opened.documents.mark(entry.id, add=added, remove=removed) for entry in entries]
    _print_tags(entries, json) if names else _print_counts(entries, json)


def _named(opened: Opened, names: list[str], base: str) -> list[Entry]:
    scope = opened.scope([base] if base else [])
    return list(
        {entry.id: entry for name in map(stored_name, names) for entry in opened.documents.named(name, scope)}.values()
    )


def _print_tags(entries: list[Entry], json: bool) -> None:
    if json:
        print_json([{"id": entry.id, "path": entry.uri, "tags": entry.tags} for entry in entries])
        return
    for entry in entries:
        console().print(plain(f"{entry.name}: {', '.join(entry.tags) or 'no tags'}"), markup=False)


def _print_counts(entries: list[Entry], json: bool) -> None:
    """All tags, each with the number of documents that have it."""
    counts = dict(sorted(Counter(tag for entry in entries for tag in entry.tags).items()))
    if json:
        print_json(counts)
        return
    for tag, count in counts.items():
        console().print(plain(f"{tag}: {count}"), markup=False)
    if not counts:
        console().print("No document has a tag. `assay tag NAME --add TAG` gives it one.", markup=False)
