"""`assay workspace`, `assay backup`, `assay restore`: a workspace as a whole."""

from __future__ import annotations

import shutil
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated

import typer
from filelock import BaseFileLock, FileLock, Timeout

from assay.cli.acting import open_workspace
from assay.cli.options import Json, Workspace, Yes, workspace_folder
from assay.cli.terminal import plain, print_result
from assay.core.errors import UserError
from assay.core.settings import FILE, keys_written_in, load_settings, secret, write_settings
from assay.governance.backup import restore as unpack
from assay.models.factory import embedder_setting
from assay.workspace.facade import has_workspace
from assay.workspace.stored import SCHEME, former_states

# Everything Assay puts into a workspace. Only these are deleted, the state last, so that a second attempt can finish.
FOLDERS = ("index", "originals", "uploads", "evaluations")
FILES = (
    "cache.db", "cache.db-*", "assay.toml", f".b{'[0-9a-f]' * 16}.lock", ".migration.lock", ".serve.lock", ".serve.token",
    ".audit.lock", ".originals.lock", ".moving", "audit.key", "llm.key",
    "state-version-*.bak", "state-version-*.part", "state.db-*", "state.db",
)  # fmt: skip

LOCK = ".serve.lock"

app = typer.Typer(no_args_is_help=True)


@app.command()
def info(workspace: Workspace = None, json: Json = False) -> None:
    """Show where the workspace is, what is in it and how large it is."""
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
            "former_states": [path.name for path in former_states(opened.path)],
            "bytes": {part: _size(opened.path / part) for part in ("state.db", "index", "originals", "cache.db")},
        }
    sizes = [f"{part} {size / 1e6:.1f} MB" for part, size in facts["bytes"].items()]
    words = {
        name: ", ".join(each) or "none" if isinstance(each, list) else each
        for name, each in (facts | {"bytes": sizes}).items()
    }
    print_result(json, facts, (f"{name.replace('_', ' ')}: {each}" for name, each in words.items()))


def _size(place: Path) -> int:
    if place.is_file():
        return place.stat().st_size
    return sum(file.stat().st_size for file in place.rglob("*") if file.is_file())


@app.command()
def delete(workspace: Workspace = None, yes: Yes = False) -> None:
    """Delete the workspace: index, kept originals, runs, caches and settings. Your own files are not touched."""
    folder = workspace_folder(workspace)
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


def server_lock(folder: Path, taken: UserError) -> BaseFileLock:
    """A lock for one server per workspace: two would both resume the runs that were interrupted with a third."""
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise taken from None
    return lock


IN_THE_FOLDER = {"state": "", "index": "lance", "blobs": ""}  # where a setting leaves that part of a workspace


def backup(
    file: Annotated[Path, typer.Argument(help="The file to write, for example assay-backup.tar.gz.")],
    workspace: Workspace = None,
) -> None:
    """Write the whole workspace to one file. Caches stay behind; they are made again when needed."""
    with open_workspace(workspace) as opened:
        size = opened.records.backup(file.expanduser().absolute())
        settings, keys = (opened.path / FILE).is_file(), keys_written_in(opened.path)
    typer.echo(plain(f"Wrote {file} ({size / 1e6:.1f} MB)."))
    if settings:
        secret = f", with a secret in it ({', '.join(keys)})" if keys else ""
        typer.echo(f"Your settings ({FILE}) are inside{secret}.")


def restore(
    file: Annotated[Path, typer.Argument(help="A file that `assay backup` wrote.")],
    keep_credentials: Annotated[
        bool,
        typer.Option(
            "--keep-credentials",
            help="Passwords and API keys of the backup hold again, also those that were taken back since.",
        ),
    ] = False,
    workspace: Workspace = None,
) -> None:
    """Unpack a backup into a new workspace. A workspace that is there is never overwritten."""
    folder = workspace_folder(workspace)
    ended = unpack(file.expanduser(), folder, keep_credentials=keep_credentials)
    typer.echo(plain(f"Restored to {folder}."))
    if ended:
        people = "1 person needs" if ended == 1 else f"{ended} people need"
        typer.echo(
            f"{people} a new password (`assay user change NAME --password`) or API key (`assay key add NAME`): "
            "those of the backup may have been taken back since."
        )
    settings = folder / FILE
    given = tomllib.loads(settings.read_text(encoding="utf-8")) if settings.is_file() else {}
    # What these name may hold the workspace as it is now.
    elsewhere = [name for name in IN_THE_FOLDER if given.get(name, "") not in ("", "lance", "memory")]
    write_settings(folder, {name: IN_THE_FOLDER[name] for name in elsewhere})
    if "state" in elsewhere:
        typer.echo("Its runs and accounts are in a file now. `assay migrate --to ADDRESS` moves them to a server.")
    if "index" in elsewhere:
        typer.echo("Its search index was not in the folder, and is not in the backup: `assay reindex` builds it.")
