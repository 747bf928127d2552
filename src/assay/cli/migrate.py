"""`assay migrate`: state, search index and originals of a workspace, moved elsewhere one after the other. Each is copied and
compared, then its setting is changed, then the former one is deleted; a move that was killed goes on with the same command."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from assay.cli.acting import open_workspace
from assay.cli.options import Json, Workspace
from assay.cli.terminal import plain, print_result
from assay.cli.workspace import server_lock
from assay.core.errors import UserError
from assay.core.private_files import write_private
from assay.core.settings import FILE, PREFIX, load_settings, write_settings
from assay.workspace.facade import STATE
from assay.workspace.facade import Workspace as Opened

TO_FILE, TO_FOLDER = "file", "folder"
MOVES = ".moving"  # where each part was, from before it is copied until it is deleted there
NAMES = {"blobs": "The originals are", "state": "The state is", "index": "The search index is"}
STAY = (FILE, "llm.key", "audit.key", "evaluations", "uploads")  # what no option moves
KEPT_ON_SERVER = "The server keeps a copy of everything: erasures do not reach it, and name it."
FORMER_FILE = "state-version-moved.bak"  # an erasure deletes copies with this name


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
    """Move runs, records and accounts to another database, the search index to another engine, and stored originals.

    State: all rows are copied in one transaction and compared. Index: passages and vectors are copied and compared, nothing
    is embedded again. Originals: each copy is read again and compared with its digest. What was copied is deleted at its
    former place last. The same command goes on with a move that was interrupted. Stop servers first.
    """
    if not (to or index or blobs):
        raise UserError(
            "Say what to move: the state with `--to ADDRESS`, the search index with `--index ENGINE`, the stored originals "
            "with `--blobs PLACE`, or several of them."
        )
    if to == TO_FILE and delete_source is None:
        raise UserError(
            "After the move the database still has everything, and erasures do not reach it. Say --delete-source to delete it "
            "there, or --keep-source to keep it as a copy."
        )
    with open_workspace(workspace) as opened:
        folder, settings = opened.path, opened.settings
    if to and settings.index == "postgres" and not index:
        raise UserError("The search index is in the same database. Move it too: `--index lance`.")
    steps = {"blobs": "" if blobs == TO_FOLDER else blobs} if blobs else {}
    steps |= {"state": "" if to == TO_FILE else to} if to else {}
    steps |= {"index": index} if index else {}
    was, _ = _moves(folder).get("index", (settings.index, ""))
    if was == "postgres" and "state" in steps:  # the index leaves a database before its state does
        steps["state"] = steps.pop("state")
    done: dict[str, Any] = {}
    with server_lock(folder, UserError("A server is using this workspace. Stop it, then move.")):
        for part, place in steps.items():
            done[part], words = _moved(folder, part, place, delete_source=bool(delete_source))
            if not json:
                typer.echo(plain(words))
    stay = [name for name in STAY if (folder / name).exists()]
    fixed = [name for part in steps if (name := f"{PREFIX}{part.upper()}") in os.environ]
    lines = [f"In {folder} stay: {', '.join(stay)}."] if stay else []
    lines += [f"{name} in the environment still names a place of its own, which holds: change it." for name in fixed]
    print_result(json, {"moved": done, "stay": stay, "change": fixed}, lines)


def _moved(folder: Path, part: str, to: str, *, delete_source: bool) -> tuple[dict[str, Any], str]:
    """Move one part, or finish moving it."""
    begun, now = _moves(folder), _place(folder, part)
    former, going = begun.get(part, (now, to))
    data, words = {}, f"{NAMES[part]} copied already."
    if now != to:
        _keep(folder, begun | {part: (now, to)})
        with open_workspace(folder) as opened:
            try:
                data, words = _copied(opened, part, to)
            except UserError:
                _keep(folder, begun)
                raise
        write_settings(folder, {part: to})
        former = now
    elif part not in begun or going != to:
        return {}, f"{NAMES[part]} there already."
    more, rest = _deleted(folder, part, former, delete_source=delete_source)
    _keep(folder, {name: places for name, places in _moves(folder).items() if name != part})
    return data | more, f"{words} {rest}".strip()


def _copied(opened: Opened, part: str, to: str) -> tuple[dict[str, Any], str]:
    if part == "blobs":
        copied = opened.records.copy_originals(to)
        return {"originals": copied}, f"Moved {copied:,} originals; each copy was compared with its digest."
    if part == "index":
        passages = asyncio.run(opened.records.copy_indexes(to))
        many = f"{sum(passages.values()):,} passages of {len(passages)} knowledge bases"
        return {"passages": passages}, f"Moved {many}; both copies were equal."
    rows = opened.records.move_state(to)
    return {"rows": rows}, f"Moved {sum(rows.values()):,} rows in {len(rows)} tables; both copies are equal."


def _deleted(folder: Path, part: str, former: str, *, delete_source: bool) -> tuple[dict[str, Any], str]:
    """Delete what was moved from its former place; what is left there, in words."""
    if part == "state" and not former:
        if (folder / STATE).exists():
            (folder / STATE).rename(folder / FORMER_FILE)
        return {"kept": FORMER_FILE}, f"The former file is kept as {FORMER_FILE}."
    if part == "state" and not delete_source:
        return {"kept": "server"}, KEPT_ON_SERVER
    if part == "state":
        with open_workspace(folder) as opened:
            opened.records.delete_former_state(former)
        return {}, "They were deleted from the server."
    flags: dict[str, Any] = {part: former}
    with open_workspace(folder, **flags) as opened:
        if part == "index":
            asyncio.run(opened.records.drop_indexes())
            return {}, ""
        left = opened.records.drop_originals()
    return {"left": left}, f"{left:,} are still at the former place: other workspaces may use them." if left else ""


def _place(folder: Path, part: str) -> str:
    settings = load_settings(folder)
    return {"blobs": settings.blobs, "index": settings.index, "state": settings.state.get_secret_value()}[part]


def _moves(folder: Path) -> dict[str, tuple[str, str]]:
    """The moves that were begun, by part: from where, to where."""
    place = folder / MOVES
    return {part: (old, new) for part, (old, new) in json.loads(place.read_text()).items()} if place.exists() else {}


def _keep(folder: Path, moves: Mapping[str, tuple[str, str]]) -> None:
    if moves:
        write_private(folder / MOVES, json.dumps(moves).encode())
    else:
        (folder / MOVES).unlink(missing_ok=True)
