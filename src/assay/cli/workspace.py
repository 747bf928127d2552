"""`assay workspace info`, `assay workspace delete`."""

from __future__ import annotations

import shutil
from pathlib import Path

import typer

from assay.cli.options import Json, Workspace, Yes, console, print_json

app = typer.Typer(help="The workspace: where documents, index and runs are kept.", no_args_is_help=True)


@app.command()
def info(workspace: Workspace = None, json: Json = False) -> None:
    """Show where the workspace is, what is in it and how large it is."""
    from assay.store import caches
    from assay.store.open import version_of
    from assay.workspace import open_workspace

    with open_workspace(workspace) as opened:
        entries = opened.sources()
        facts = {
            "path": str(opened.path.absolute()),
            "version": version_of(opened.store),
            "bases": [base.name for base in opened.scope().bases],
            "documents": sum(entry.state == "ready" for entry in entries),
            "unreadable": sum(entry.state == "unreadable" for entry in entries),
            "unfinished": sum(entry.state == "pending" for entry in entries),
            "passages": sum(entry.passages for entry in entries if entry.state == "ready"),
            "embedder": opened.settings.embedder,
            "cached_vectors": caches.size(opened.cache),
            "bytes": {part: _size(opened.path / part) for part in ("state.db", "index", "originals", "cache.db")},
        }
    if json:
        print_json(facts)
        return
    for name, value in facts.items():
        if name == "bytes":
            value = ", ".join(f"{part} {size / 1e6:.1f} MB" for part, size in facts["bytes"].items())
        console().print(
            f"{name.replace('_', ' ')}: {', '.join(value) if isinstance(value, list) else value}", markup=False
        )


def _size(place: Path) -> int:
    if place.is_file():
        return place.stat().st_size
    return sum(file.stat().st_size for file in place.rglob("*") if file.is_file())


@app.command()
def delete(workspace: Workspace = None, yes: Yes = False) -> None:
    """Delete the workspace: index, kept originals, runs and caches. Your own files are not touched."""
    from assay.errors import UserError
    from assay.workspace import STATE, default_workspace

    folder = (workspace or default_workspace()).expanduser()
    if not (folder / STATE).is_file():
        raise UserError(f"There is no workspace in {str(folder)!r}; nothing was deleted.")
    if not yes:
        typer.confirm(f"Delete the workspace {folder} and everything in it?", abort=True, err=True)
    shutil.rmtree(folder)
    typer.echo(f"Deleted {folder}.")
