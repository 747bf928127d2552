"""`assay migrate`: move the state of a workspace to another database, its search index to another engine, or its originals."""

from __future__ import annotations

import asyncio
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

    from assay.cli.setup.serve import LOCK
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
