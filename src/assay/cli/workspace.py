"""`assay workspace`, `assay migrate`, `assay backup`, `assay restore`: a workspace as a whole, and where its parts are kept."""

from __future__ import annotations

import asyncio
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
from assay.workspace.facade import STATE, has_workspace
from assay.workspace.facade import Workspace as Opened
from assay.workspace.stored import SCHEME, former_states

# Everything Assay puts into a workspace. Only these are deleted, the state last, so that a second attempt can finish.
FOLDERS = ("index", "originals", "uploads", "evaluations")
FILES = (
    "cache.db", "cache.db-*", "assay.toml", f".b{'[0-9a-f]' * 16}.lock", ".migration.lock", ".serve.lock", ".serve.token",
    ".audit.lock", ".originals.lock", "audit.key", "llm.key",
    "state-version-*.bak", "state-version-*.part", "state.db-*", "state.db",
)  # fmt: skip

LOCK = ".serve.lock"
TO_FILE, TO_FOLDER = "file", "folder"

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


def migrate(
    to: Annotated[str, typer.Option(help="Move the state: postgresql://… for a server, or `file`.")] = "",
    index: Annotated[str, typer.Option(help="Move the search index: a value of the setting `index`.")] = "",
    blobs: Annotated[
        str, typer.Option(help="Move the stored originals: a PATH, s3://BUCKET/PREFIX, or `folder` for the workspace.")
    ] = "",
    delete_source: Annotated[
        bool | None,
        typer.Option(
            "--delete-source/--keep-source",
            help="With `--to file`: delete the state from the server, or keep it there as a copy that erasures do not reach.",
        ),
    ] = None,
    workspace: Workspace = None,
    json: Json = False,
) -> None:
    """Move runs, records and accounts to another database, the search index to another engine, or stored originals.

    State: all rows are copied in one transaction and compared; if anything fails, nothing has moved. Index: passages and
    vectors are copied and compared, nothing is embedded again. Originals: each copy is read again and compared with its
    digest. A move of the index or of originals that was interrupted goes on where it stopped. Stop servers first.
    """
    if [bool(to), bool(index), bool(blobs)].count(True) != 1:
        raise UserError(
            "Say what to move: the state with `--to ADDRESS`, the search index with `--index ENGINE`, or the stored "
            "originals with `--blobs PLACE`."
        )
    if to == TO_FILE and delete_source is None:
        raise UserError(
            "After the move the database still has everything, and erasures do not reach it. Say --delete-source to delete it "
            "there, or --keep-source to keep it as a copy."
        )
    with open_workspace(workspace) as opened:
        folder = opened.path
        with server_lock(folder, UserError("A server is using this workspace. Stop it, then move.")):
            if blobs:
                moved, left = _move_originals(opened, "" if blobs == TO_FOLDER else blobs)
                data = {"to": blobs, "originals": moved, "left": left}
                stay = f" {left:,} are still at the former place: other workspaces may use them." if left else ""
                words = f"Moved {moved:,} originals; each copy was compared with its digest.{stay}"
            elif index:
                moved = asyncio.run(_move_index(opened, index))
                data = {"to": index, "passages": moved}
                many = f"{sum(moved.values()):,} passages of {len(moved)} knowledge bases"
                words = f"Moved {many}; both copies were equal."
            else:
                moved = _move_state(opened, to, delete_source=bool(delete_source))
                data = {"to": TO_FILE if to == TO_FILE else "postgresql", "rows": moved}
                kept = " The former file is kept as state-version-moved.bak."
                if to == TO_FILE:
                    kept = " They were deleted from the server." if delete_source else f" {KEPT_ON_SERVER}"
                words = f"Moved {sum(moved.values()):,} rows in {len(moved)} tables; both copies are equal.{kept}"
    if to and to != TO_FILE:  # an erasure deletes copies with this name
        (folder / STATE).rename(folder / "state-version-moved.bak")
    print_result(json, data, [words])


def server_lock(folder: Path, taken: UserError) -> BaseFileLock:
    """A lock for one server per workspace: two would both resume the runs that were interrupted with a third."""
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise taken from None
    return lock


KEPT_ON_SERVER = "The server keeps a copy of everything: erasures do not reach it, and name it."


def _move_state(opened: Opened, to: str, *, delete_source: bool) -> dict[str, int]:
    if opened.settings.index == "postgres":
        raise UserError("The search index is in the same database. Move it first: `assay migrate --index lance`.")
    moved = opened.records.move_state("" if to == TO_FILE else to)
    write_settings(opened.path, {"state": "" if to == TO_FILE else to})
    if to == TO_FILE and delete_source:
        opened.records.delete_former_state()  # last: until the setting is changed, it is the one in use
    return moved


async def _move_index(opened: Opened, index: str) -> dict[str, int]:
    moved = await opened.records.copy_indexes(index)
    write_settings(opened.path, {"index": index})
    await opened.records.drop_indexes()  # last: until the setting is changed, the former index is the one in use
    return moved


def _move_originals(opened: Opened, place: str) -> tuple[int, int]:
    moved = opened.records.copy_originals(place)
    write_settings(opened.path, {"blobs": place})
    return moved, opened.records.drop_originals()  # last, as above


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
