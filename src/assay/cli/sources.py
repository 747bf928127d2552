"""`assay sources`, `assay show`, `assay remove`, `assay erase`: the documents that can be asked about."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer
from rich.table import Table

from assay.cli.acting import open_workspace
from assay.cli.options import BaseName, Bases, Json, Workspace, Yes
from assay.cli.terminal import (
    cells,
    console,
    plain,
    print_json,
    print_lines,
    print_result,
    say,
    say_if_any,
    wait_for,
    whole,
)
from assay.core.errors import UserError
from assay.core.events.describe import count_of
from assay.core.identity import describe
from assay.core.printable import printable_name
from assay.core.types import HIDDEN
from assay.ingest.sources import printable_path
from assay.workspace.facade import Workspace as Opened
from assay.workspace.stored import Entry
from assay.workspace.types import ErasureReport


def sources(bases: Bases = None, workspace: Workspace = None, json: Json = False) -> None:
    """List the documents, and the files that could not be read with the reason."""
    with open_workspace(workspace) as opened:
        entries = opened.documents.listing(bases or ())
        names = {base.id: base.name for base in opened.scope().bases}
        say_if_any(opened.documents.outdated(bases or ()))
    if json:
        print_json(
            [
                {
                    "id": entry.id, "base": names[entry.base], "path": entry.uri, "status": entry.status,
                    "state": entry.standing, "title": entry.title, **entry.identity, "authors": entry.authors,
                    "date": entry.date, **({"tags": entry.tags} if entry.tags else {}),
                    "type": entry.kind, "language": entry.language, "pages": entry.pages,
                    "characters": entry.characters, "passages": entry.passages, "added": entry.added, "why": entry.why,
                }
                for entry in entries
            ]
        )  # fmt: skip
        return

    tagged = any(entry.tags for entry in entries)
    heads = ("File", "Title", "About", *(["Tags"] if tagged else []), "Date", "Base", "Pages", "Passages", "Status")
    table = Table(*heads, box=None, pad_edge=False)
    for entry in entries:
        status = entry.standing if entry.standing in {"ready", "off"} else entry.why or entry.state
        tags = [", ".join(entry.tags)] if tagged else []
        table.add_row(
            *cells(entry.name, entry.title, entry.description, *tags, entry.date or "", names[entry.base]),
            *cells(str(entry.pages or "")),
            *cells(str(entry.passages or ""), status), style={"ready": "", "off": "dim"}.get(entry.standing, "yellow"),
        )  # fmt: skip
    console().print(table if entries else "There are no documents yet. `assay add PATH` adds some.")


def show(
    name: Annotated[str, typer.Argument(help="A path, file name, title or id, as `assay sources` gives it.")],
    bases: Bases = None,
    workspace: Workspace = None,
    json: Json = False,
) -> None:
    """Show what was read of a document: title, authors, date, abstract, headings and the text itself."""
    with open_workspace(workspace) as opened:
        entry = opened.documents.named(stored_name(name), opened.scope(bases or ()))[0]
        document = opened.documents.get(entry.id)
    if document is None:
        raise UserError(f"{entry.name} could not be read: {entry.why}")
    if json:
        print_json(document)
        return
    out = console()
    out.print(plain(document.title), style="bold", markup=False)
    facts = (
        ("About", describe(document.meta)),
        ("Authors", ", ".join(document.authors)),
        ("Date", document.date),
        ("File", printable_name(document.uri)),
        ("Left out, since no reader sees it", document.meta.get(HIDDEN)),
        ("Tags", ", ".join(entry.tags)),
        ("State", "off: it is not searched" if entry.off else ""),
    )
    for label, value in facts:
        if value:
            out.print(plain(f"{label}: {value}"), markup=False)
    if document.abstract:
        out.print(plain(f"Abstract: {document.text[slice(*document.abstract)]}"), markup=False)
    for section in document.sections:
        out.print(plain(f"{'  ' * section.level}{section.title}"), style="dim", markup=False)
    out.print()
    out.print(plain(document.text), markup=False)


def remove(
    names: Annotated[
        list[str], typer.Argument(help="Paths, file names, titles or ids; a folder removes all below it.")
    ],
    base: BaseName = "",
    workspace: Workspace = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Remove documents, with their text, their passages, the kept original, and what runs said of them.

    The files themselves are not touched. `assay erase` does the same, and says what went.
    """
    with open_workspace(workspace) as opened:
        entries = _named(opened, names, base)
        if len(entries) > 1 and not yes:
            _confirm(f"Remove these {len(entries)} documents?", entries)
        gone = wait_for(opened.documents.remove([entry.id for entry in entries], base))
    print_result(json, [entry.uri for entry in gone], (f"Removed {printable_name(entry.uri)}" for entry in gone))


def _confirm(question: str, entries: list[Entry]) -> None:
    for entry in entries:
        say(f"  {printable_name(entry.uri)}")
    typer.confirm(question, abort=True, err=True)


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
    if bool(names) == bool(person):
        raise UserError("Name documents, or a person with --person.")
    with open_workspace(workspace) as opened:
        if person:
            if not yes:
                typer.confirm(f"Erase everything of {plain(person)!r}? It cannot be undone.", abort=True, err=True)
            gone = wait_for(opened.records.erase_person(whole(person), with_documents=with_documents))
        else:
            entries = _named(opened, names or [], base)
            if not yes:
                _confirm(f"Erase {count_of(len(entries), 'document')}? It cannot be undone.", entries)
            gone = wait_for(opened.records.erase(entries, opened.scope([base] if base else [])))
    _print_report(gone, json)


def _print_report(gone: ErasureReport, json: bool) -> None:
    if json:
        print_json(gone)
        return
    documents = f"{count_of(len(gone.documents), 'document')} (with all versions) and " if gone.documents else ""
    print_lines(f"Erased {documents}what {count_of(gone.records, 'record')} said.")
    print_lines(*(f"Deleted {path}, a copy of the state from before an upgrade." for path in gone.files))
    if not gone.whole:
        say("Another process is reading: the last of it goes when the workspace is next opened.")
    if gone.backups:
        say("These copies still contain it. Delete them, or replace them with `assay backup`:")
        for backup in gone.backups:
            say(f"  {backup.path} ({backup.at[:10]})")


def stored_name(given: str) -> str:
    """A document's name as stored. A blank name would mean the current folder, and so possibly everything."""
    if not given.strip():
        raise UserError("A document's name cannot be empty. `assay sources` lists them.")
    return printable_path(given)


Named = Annotated[list[str], typer.Argument(help="Paths, file names, titles or ids; a folder means all below it.")]


def off(names: Named, base: BaseName = "", workspace: Workspace = None, json: Json = False) -> None:
    """Switch documents off: they are kept, but not searched, listed to a model or quoted. It holds at once."""
    _switch(names, base, workspace, json, off=True)


def on(names: Named, base: BaseName = "", workspace: Workspace = None, json: Json = False) -> None:
    """Switch documents on again."""
    _switch(names, base, workspace, json, off=False)


def _switch(names: list[str], base: str, workspace: Workspace, json: bool, *, off: bool) -> None:
    with open_workspace(workspace) as opened:
        done = [opened.documents.mark(entry.id, off=off) for entry in _named(opened, names, base)]
    data = [{"id": entry.id, "path": entry.uri, "state": entry.standing} for entry in done]
    print_result(json, data, (f"{'Off' if off else 'On'}: {printable_name(entry.uri)}" for entry in done))


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
    if (add or remove) and not names:
        raise UserError("Name the documents to tag.")
    with open_workspace(workspace) as opened:
        entries = _named(opened, names, base) if names else opened.documents.listing([base] if base else [])
        if add or remove:
            added, removed = list(map(whole, add or ())), list(map(whole, remove or ()))
            entries = [opened.documents.mark(entry.id, add=added, remove=removed) for entry in entries]
    if names:
        data = [{"id": entry.id, "path": entry.uri, "tags": entry.tags} for entry in entries]
        print_result(json, data, (f"{entry.name}: {', '.join(entry.tags) or 'no tags'}" for entry in entries))
        return
    counts = dict(sorted(Counter(tag for entry in entries for tag in entry.tags).items()))
    nothing = ["No document has a tag. `assay tag NAME --add TAG` gives it one."]
    print_result(json, counts, [f"{tag}: {count}" for tag, count in counts.items()] or nothing)


def _named(opened: Opened, names: list[str], base: str) -> list[Entry]:
    scope = opened.scope([base] if base else [])
    return list(
        {entry.id: entry for name in map(stored_name, names) for entry in opened.documents.named(name, scope)}.values()
    )
