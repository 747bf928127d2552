"""`assay migrate`: move the state of a workspace to another database, its search index to another engine, or its originals."""

from __future__ import annotations

import asyncio
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.options import Json, Workspace, plain, print_json

if TYPE_CHECKING:
    from assay.workspace.facade import Workspace as OpenWorkspace

TO_FILE, TO_FOLDER = "file", "folder"


def migrate(
    to: Annotated[str, typer.Option(help="Move the state: postgresql://… for a server, or `file`.")] = "",
    index: Annotated[str, typer.Option(help="Move the search index: a value of the setting `index`.")] = "",
    blobs: Annotated[
        str, typer.Option(help="Move the stored originals: a PATH, s3://BUCKET/PREFIX, or `folder` for the workspace.")
    ] = "",
    workspace: Workspace = None,
    json: Json = False,
) -> None:
    """Move runs, records and accounts to another database, the search index to another engine, or stored originals.

    State: all rows are copied in one transaction and compared; if anything fails, nothing has moved. Index: passages and
    vectors are copied and compared, nothing is embedded again. Originals: each copy is read again and compared with its
    digest. A move of the index or of originals that was interrupted goes on where it stopped. Stop servers first.
    """
    from filelock import FileLock, Timeout

    from assay.cli.serve import LOCK
    from assay.core.errors import UserError
    from assay.workspace.facade import STATE, open_workspace

    if [bool(to), bool(index), bool(blobs)].count(True) != 1:
        raise UserError(
            "Say what to move: the state with `--to ADDRESS`, the search index with `--index ENGINE`, or the stored "
            "originals with `--blobs PLACE`."
        )
    with open_workspace(workspace) as opened:
        try:
            server = FileLock(opened.path / LOCK, timeout=0)
            server.acquire()
        except Timeout as error:
            raise UserError("A server is using this workspace. Stop it, then move.") from error
        with server:
            if blobs:
                _say_moved_originals(_move_originals(opened, "" if blobs == TO_FOLDER else blobs), blobs, json=json)
                return
            moved = _move_index(opened, index) if index else _move_state(opened, to)
        folder = opened.path
    if index:
        if json:
            print_json({"to": index, "passages": moved})
            return
        typer.echo(
            plain(f"Moved {sum(moved.values()):,} passages of {len(moved)} knowledge bases; both copies were equal.")
        )
        return
    if to != TO_FILE:  # an erasure deletes copies with this name
        (folder / STATE).rename(folder / "state-version-moved.bak")
    if json:
        print_json({"to": TO_FILE if to == TO_FILE else "postgresql", "rows": moved})
        return
    kept = "" if to == TO_FILE else " The former file is kept as state-version-moved.bak."
    typer.echo(plain(f"Moved {sum(moved.values()):,} rows in {len(moved)} tables; both copies are equal.{kept}"))


def _move_state(opened: OpenWorkspace, to: str) -> dict[str, int]:
    from assay.core.errors import UserError

    if opened.settings.index == "postgres":
        raise UserError("The search index is in the same database. Move it first: `assay migrate --index lance`.")
    moved = opened.records.move_state("" if to == TO_FILE else to)
    _set(opened, "state", None if to == TO_FILE else to)
    return moved


def _move_index(opened: OpenWorkspace, index: str) -> dict[str, int]:
    async def move() -> dict[str, int]:
        moved = await opened.records.copy_indexes(index)
        _set(opened, "index", index)
        await opened.records.drop_indexes()  # last: until the setting is changed, the former index is the one in use
        return moved

    return asyncio.run(move())


def _move_originals(opened: OpenWorkspace, place: str) -> int:
    moved = opened.records.copy_originals(place)
    _set(opened, "blobs", place or None)
    opened.records.drop_originals()  # last, as above
    return moved


def _say_moved_originals(moved: int, to: str, *, json: bool) -> None:
    if json:
        print_json({"to": to, "originals": moved})
    else:
        typer.echo(plain(f"Moved {moved:,} originals; each copy was compared with its digest."))


def _set(opened: OpenWorkspace, name: str, value: str | None) -> None:
    from assay.core.private_files import write_private
    from assay.core.settings import FILE, with_settings

    file = opened.path / FILE
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    write_private(file, with_settings(text, {name: value}).encode())


IN_THE_FOLDER = ("", "lance", "memory")  # values of `state`, `index` and `blobs`


def backup(
    file: Annotated[Path, typer.Argument(help="The file to write, for example assay-backup.tar.gz.")],
    workspace: Workspace = None,
) -> None:
    """Write the whole workspace to one file. Caches stay behind; they are made again when needed."""
    from assay.core.settings import FILE, keys_written_in
    from assay.workspace.facade import open_workspace

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
    from assay.core.private_files import write_private
    from assay.core.settings import FILE, with_settings
    from assay.governance.backup import restore as unpack
    from assay.workspace.facade import default_workspace

    folder = (workspace or default_workspace()).expanduser()
    ended = unpack(file.expanduser(), folder, keep_credentials=keep_credentials)
    typer.echo(plain(f"Restored to {folder}."))
    if ended:
        people = "1 person needs" if ended == 1 else f"{ended} people need"
        typer.echo(
            f"{people} a new password (`assay user change NAME --password`) or API key (`assay key add NAME`): "
            "those of the backup may have been taken back since."
        )
    settings = folder / FILE
    text = settings.read_text(encoding="utf-8") if settings.is_file() else ""
    # What these name may hold the workspace as it is now.
    given = tomllib.loads(text)
    elsewhere = [name for name in ("state", "index", "blobs") if given.get(name, IN_THE_FOLDER[0]) not in IN_THE_FOLDER]
    if elsewhere:
        write_private(settings, with_settings(text, dict.fromkeys(elsewhere)).encode())
    if "state" in elsewhere:
        typer.echo("Its runs and accounts are in a file now. `assay migrate --to ADDRESS` moves them to a server.")
    if "index" in elsewhere:
        typer.echo("Its search index was not in the folder, and is not in the backup: `assay reindex` builds it.")
