"""`assay workspace info`, `assay workspace delete`."""

from __future__ import annotations

import shutil
from fnmatch import fnmatch
from pathlib import Path

import typer

from assay.cli.options import Json, Workspace, Yes, console, plain, print_json

# Everything Assay puts into a workspace. Only these are deleted, the state last, so that a second attempt can finish.
FOLDERS = ("index", "originals", "uploads", "evaluations")
FILES = (
    "cache.db", "cache.db-*", "assay.toml", f".b{'[0-9a-f]' * 16}.lock", ".migration.lock", ".serve.lock", ".serve.token",
    ".audit.lock", ".originals.lock", "audit.key", "llm.key",
    "state-version-*.bak", "state-version-*.part", "state.db-*", "state.db",
)  # fmt: skip

app = typer.Typer(no_args_is_help=True)


@app.command()
def info(workspace: Workspace = None, json: Json = False) -> None:
    """Show where the workspace is, what is in it and how large it is."""
    from assay.models.factory import embedder_setting
    from assay.workspace.facade import open_workspace

    with open_workspace(workspace) as opened:
        entries = opened.documents.listing()
        facts = {
            "path": str(opened.path.absolute()),
            "version": opened.records.version(),
            "bases": [base.name for base in opened.scope().bases],
            "documents": sum(entry.standing == "ready" for entry in entries),
            "off": sum(entry.off for entry in entries),
            "unreadable": sum(entry.state == "unreadable" for entry in entries),
            "unfinished": sum(entry.state == "pending" for entry in entries),
            "passages": sum(entry.passages for entry in entries if entry.standing == "ready"),
            "embedder": embedder_setting(opened.settings),
            "cached_vectors": opened.records.cached_vectors(),
            "bytes": {part: _size(opened.path / part) for part in ("state.db", "index", "originals", "cache.db")},
        }
    if json:
        print_json(facts)
        return
    for name, value in facts.items():
        if name == "bytes":
            value = ", ".join(f"{part} {size / 1e6:.1f} MB" for part, size in facts["bytes"].items())
        words = ", ".join(value) if isinstance(value, list) else value
        console().print(plain(f"{name.replace('_', ' ')}: {words}"), markup=False)


def _size(place: Path) -> int:
    if place.is_file():
        return place.stat().st_size
    return sum(file.stat().st_size for file in place.rglob("*") if file.is_file())


@app.command()
def delete(workspace: Workspace = None, yes: Yes = False) -> None:
    """Delete the workspace: index, kept originals, runs, caches and settings. Your own files are not touched."""
    from assay.core.errors import UserError
    from assay.core.settings import load_settings, secret
    from assay.workspace.facade import default_workspace, has_workspace
    from assay.workspace.stored import SCHEME

    folder = (workspace or default_workspace()).expanduser()
    if not has_workspace(folder):
        raise UserError(f"There is no workspace in {str(folder)!r}; nothing was deleted.")
    if not yes:
        question = f"Delete the workspace {folder} with its index, kept originals, runs, caches and settings?"
        typer.confirm(plain(question), abort=True, err=True)
    settings = load_settings(folder)
    on_server, elsewhere = bool(secret(settings.state)), [settings.index, settings.blobs]
    left = _emptied(folder.resolve())
    if on_server:
        typer.echo("Its runs and accounts are in the database that `state` named. Drop that database too.")
    for place in [each.removeprefix("lance:") for each in elsewhere if SCHEME in each]:
        typer.echo(plain(f"What is in {place} is still there. Delete it too."))
    if left:
        typer.echo(
            plain(f"Deleted the workspace in {folder}. Left there, since Assay did not make it: {', '.join(left)}.")
        )
        return
    folder.resolve().rmdir()
    if folder.is_symlink():
        folder.unlink()
    typer.echo(plain(f"Deleted {folder}."))


def _emptied(folder: Path) -> list[str]:
    """Delete what Assay created, and nothing else; returns the names of what is left. Links are not followed."""
    for name in FOLDERS:
        if (folder / name).is_dir() and not (folder / name).is_symlink():
            shutil.rmtree(folder / name)
    for pattern in FILES:
        for item in [each for each in folder.iterdir() if fnmatch(each.name, pattern) and each.is_file()]:
            item.unlink(missing_ok=True)
    return sorted(item.name for item in folder.iterdir())
